"""Read the bytes of a file or of standard input: all of them, or refuse it."""

import io
import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from srvstat.contract.errors import SourceError

STDIN = "-"
"""The name that means standard input."""

_CHANGED = "changed while it was read; run again once nothing writes to it"


def format_title(name: str) -> str:
    """Return the name of an input as text that any file can hold, whatever its bytes."""
    if name == STDIN:
        return "standard input"
    return os.fsencode(name).decode("utf-8", "backslashreplace")


@contextmanager
def open_input(name: str) -> Iterator["Input"]:
    """Open a file, a FIFO, a device or standard input for reading.

    Raises SourceError.
    """
    is_stdin = name == STDIN
    try:
        with _name_errors(name):
            raw = io.FileIO(0 if is_stdin else name, closefd=not is_stdin)
    except ValueError:  # a NUL in the path
        raise SourceError(f"{format_title(name)}: not a file name") from None
    with raw:
        yield Input(raw, name)


class Input(io.RawIOBase):
    """The bytes of an open file up to its end.

    Reading waits for bytes where the descriptor does not block. It raises SourceError for what the
    system reports, and at the end of a regular file if its size or modification time has changed
    since it was opened, if not all of its bytes were read, or if its name now means another file.
    """

    def __init__(self, raw: io.FileIO, name: str) -> None:
        self._raw = raw
        self._name = name
        self._bytes_read = 0
        self._status = os.fstat(raw.fileno())
        self._is_regular = stat.S_ISREG(self._status.st_mode)
        # Standard input may be a file of which someone has read the beginning.
        start = raw.tell() if self._is_regular else 0
        self._bytes_expected = max(self._status.st_size - start, 0)
        self._is_named = self._is_at_its_name()

    def readable(self) -> bool:
        """Return what Python's buffers ask for."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # narrower than typeshed's buffer
        """Fill a buffer with what is there, and wait for the first byte; 0 is the end."""
        with _name_errors(self._name):
            while (count := self._raw.readinto(buffer)) is None:  # no byte has come yet
                select.select([self._raw], [], [])
            self._bytes_read += count
            if not count and self._is_regular and not self._is_unchanged():
                raise SourceError(f"{format_title(self._name)}: {_CHANGED}")
        return int(count)

    def _is_unchanged(self) -> bool:
        now = os.fstat(self._raw.fileno())
        before = self._status
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            return False
        # Files that the kernel makes up, as below /proc, have a size of 0 and bytes all the same.
        if before.st_size and self._bytes_read != self._bytes_expected:
            return False
        return not self._is_named or self._is_at_its_name()

    def _is_at_its_name(self) -> bool:
        """Check whether the name means this file; standard input has no name."""
        if self._name == STDIN:
            return False
        try:
            return os.path.samestat(os.stat(self._name), self._status)
        except OSError:
            return False


@contextmanager
def _name_errors(name: str) -> Iterator[None]:
    """Name the input in what the system says against reading it."""
    try:
        yield
    except OSError as error:
        raise SourceError(f"{format_title(name)}: {error.strerror or 'cannot be read'}") from None
