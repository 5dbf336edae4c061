"""Convert errors of the operating system to ours, with the file's name in the message."""

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from srvstat.contract.errors import OutputError, SrvstatError, UsageError


@contextmanager
def convert_errors(
    title: str,
    error_class: type[SrvstatError],
    *,
    unknown: str = "can't be read",
    name_class: type[SrvstatError] | None = None,
    remedy: str | None = None,
) -> Iterator[None]:
    """Raise an error of `error_class` for an OSError in the block.

    The message is the title of the file and the reason that the system gives, or `unknown` if it
    gives none. A name that no file can have raises an error of `name_class`, which defaults to
    `error_class`. So does a missing file if a `remedy` is given, which the message then ends with.
    """
    name_class = name_class or error_class
    try:
        yield
    except OSError as error:
        if remedy and isinstance(error, FileNotFoundError):
            raise name_class(f"{title}: no such file; {remedy}") from None
        reason = error.strerror or unknown
        if error.errno == errno.EMFILE:
            reason += "; allow more with `ulimit -n`"
        raise error_class(f"{title}: {reason}") from None
    except SrvstatError:  # UsageError is a ValueError too
        raise
    except ValueError:  # a NUL in the path
        raise name_class(f"{title}: not a file name") from None


def convert_write_errors(path: str) -> AbstractContextManager[None]:
    """Raise OutputError for an OSError in the block, UsageError for an invalid name."""
    return convert_errors(path, OutputError, unknown="can't be written", name_class=UsageError)


Identity = tuple[int, ...] | None
"""Device, inode, size and modification time in nanoseconds; None for a missing file."""


def identify_file(path: str) -> Identity:
    """Return the identity of the file at a path."""
    try:
        return compute_identity(os.stat(path))
    except OSError:
        return None


def compute_identity(status: os.stat_result) -> tuple[int, ...]:
    """Return the identity of a file from its status."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


_FIRST_PAUSE = 5.0
"""Seconds before a rejected file is tried again: its permissions may have been fixed."""
_LONGEST_PAUSE = 300.0
"""Limit of the pause, which doubles each time the same file is rejected."""


class Candidate(NamedTuple):
    """A file that has to be read."""

    identity: Identity
    is_retry: bool
    """The same file was rejected before."""


class WatchedFile:
    """Remember which file at a path was accepted, and which was rejected and why.

    Create it before the file is read for the first time, so that it detects a replacement during
    that read. The caller reads one candidate at a time, and reports each with `accept` or `reject`.
    """

    def __init__(self, path: str, identify: Callable[[str], Identity] = identify_file) -> None:
        self.path = path
        self._identify = identify
        self._accepted = identify(path)
        self._rejected: Candidate | None = None
        self._pause = _FIRST_PAUSE
        self._retry_at = 0.0
        self._reported: tuple[object, str] | None = None

    def find_candidate(self) -> Candidate | None:
        """Return the file at the path if it has to be read now, else None."""
        identity = self._identify(self.path)
        if identity == self._accepted:
            if self._rejected:
                self._forget_rejection()
            return None
        is_retry = self._rejected is not None and identity == self._rejected.identity
        if is_retry and time.monotonic() < self._retry_at:
            return None
        return Candidate(identity, is_retry)

    def accept(self, candidate: Candidate) -> None:
        """Record that a candidate was read and is in use."""
        self._accepted = candidate.identity
        self._forget_rejection()

    def reject(self, candidate: Candidate, reason: str) -> bool:
        """Record that a candidate can't be used; return whether to report that.

        A file that is still being written changes with each check; it is reported once.
        """
        self._pause = min(self._pause * 2, _LONGEST_PAUSE) if candidate.is_retry else _FIRST_PAUSE
        self._retry_at = time.monotonic() + self._pause
        self._rejected = candidate
        report = candidate.identity and candidate.identity[:2], reason
        is_new = report != self._reported
        self._reported = report
        return is_new

    def _forget_rejection(self) -> None:
        self._rejected = self._reported = None
