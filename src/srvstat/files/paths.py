"""Convert operating system errors to srvstat's errors, with the file's name in the message."""

import errno
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from srvstat.contract.errors import OutputError, SrvstatError, UsageError


@contextmanager
def convert_errors(
    title: str,
    error_class: type[SrvstatError],
    *,
    name_class: type[SrvstatError] | None = None,
    remedy: str | None = None,
) -> Iterator[None]:
    """Convert an OSError in the block to `error_class`.

    - `title`: the file's name for the message; the system's reason follows.
    - `name_class`: the error for a name that no file can have. Default: `error_class`.
    - `remedy`: if given, a missing file raises `name_class` with this remedy.
    """
    name_class = name_class or error_class
    try:
        yield
    except OSError as error:
        if remedy and isinstance(error, FileNotFoundError):
            raise name_class(f"{title}: no such file; {remedy}") from None
        reason = describe_error(error)
        if error.errno == errno.EMFILE:
            reason += "; allow more with `ulimit -n`"
        raise error_class(f"{title}: {reason}") from None
    except SrvstatError:  # UsageError is a ValueError too
        raise
    except ValueError:  # a NUL in the path
        raise name_class(f"{title}: not a file name") from None


def describe_error(error: OSError) -> str:
    """Return the reason that the system gives, as a part of a message."""
    reason = error.strerror or str(error)
    return reason[:1].lower() + reason[1:]


def convert_write_errors(path: str) -> AbstractContextManager[None]:
    """Raise OutputError for an OSError in the block, and UsageError for an invalid name."""
    return convert_errors(path, OutputError, name_class=UsageError)


Identity = tuple[int, ...] | None
"""Device, inode, size and modification time in nanoseconds; None for a missing file."""


def identify_file(path: str) -> Identity:
    """Return the identity of the file at a path."""
    try:
        return compute_identity(os.stat(path))
    except OSError:
        return None


def compute_identity(status: os.stat_result) -> tuple[int, ...]:
    """Return a file's identity, given its status."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
