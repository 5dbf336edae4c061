"""Put a file in its place once it is complete, or leave everything as it was."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from srvstat.contract.errors import OutputError, UsageError


@contextmanager
def published(path: str, *, overwrite: bool) -> Iterator[str]:
    """Hand out a new file to fill, and give it its name when the block ends without an error.

    The new file lies beside its target. It is flushed to the disk, renamed, and the rename flushed
    too, so the target is the old file or the new one, whole, whatever happens. Without `overwrite`
    a file that stands there, even since a moment ago, is never replaced. A symbolic link stays and
    its target is replaced.

    Raises UsageError where the target may not be replaced, OutputError where it can't be written.
    """
    with writing(path):
        target = os.path.realpath(path)
    _check_target(path, target, overwrite=overwrite)
    draft = os.path.join(os.path.dirname(target), f".srvstat-{secrets.token_hex(8)}.tmp")
    try:
        with writing(path):
            # O_EXCL never follows what someone else put there; the umask sets the mode.
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))
        yield draft
        with writing(path):
            _flush(draft)
            if overwrite:
                os.replace(draft, target)
            else:
                _link(path, draft, target)
            _flush(os.path.dirname(target))
    finally:
        with suppress(OSError):
            os.unlink(draft)


def _check_target(path: str, target: str, *, overwrite: bool) -> None:
    with writing(path):
        try:
            mode = os.stat(target).st_mode
        except FileNotFoundError:
            return
    if not stat.S_ISREG(mode):
        raise UsageError(f"{path}: not a regular file, so it can't be replaced")
    if not overwrite:
        raise _exists(path)


def _link(path: str, draft: str, target: str) -> None:
    try:
        os.link(draft, target)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:  # a file system without hard links
        why = error.strerror or "cannot be linked"
        raise OutputError(f"{path}: {why}; --overwrite needs no hard link") from None


def _exists(path: str) -> UsageError:
    return UsageError(f"{path}: exists; --overwrite replaces it")


def _flush(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Name the output file in what the system says against writing it."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or 'cannot be written'}") from None
    except ValueError:  # a NUL in the path
        raise UsageError(f"{path}: not a file name") from None
