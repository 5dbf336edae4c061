"""Read a file or standard input completely, or raise an error."""

import io
import os
import re
import select
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from srvstat.contract.errors import SourceError
from srvstat.files.paths import convert_errors

OnBytes = Callable[[int], None]
"""A function to call after each read, with the number of bytes."""

STDIN = "-"
"""The name that means standard input."""

CHANGED = "changed while it was read; run again once nothing writes to it"
"""The error message for a file that another program changed."""


# Matches URLs whose shown parts hold no secrets. Other URLs are hidden entirely.
_URL = re.compile(r"([a-z][a-z0-9+.-]*://).*", re.IGNORECASE | re.DOTALL)
_PLAIN_URL = re.compile(
    r"([a-z][a-z0-9+.-]*://)(?:[^@/?#]*@)?((?:[\w.-]+|\[[0-9a-f:]+\])?(?::[0-9]+)?(?:/[\w.%=-]*)*)"
    r"(?:[?#][^@]*)?",
    re.IGNORECASE,
)


def is_url(name: str) -> bool:
    """Return whether the name of an input is a URL."""
    return _URL.fullmatch(name) is not None


def format_title(name: str) -> str:
    """Return an input's name for messages, as text that UTF-8 can encode.

    For a URL, returns the scheme, host and path, without the user, password and parameters.
    """
    if name == STDIN:
        return "standard input"
    if url := _URL.fullmatch(name):
        plain = _PLAIN_URL.fullmatch(name)
        return plain[1] + plain[2] if plain else f"{url[1]}…"
    return os.fsencode(name).decode("utf-8", "backslashreplace")


@contextmanager
def open_input(
    name: str, on_bytes: OnBytes | None = None, *, fills_buffer: bool = False
) -> Iterator["Input"]:
    """Open a file, a FIFO, a device or standard input for reading.

    `on_bytes` is called with the number of bytes after each read. A pipe returns at most 64 KiB at
    a time; with `fills_buffer`, a read waits for the rest of its buffer.

    Raises SourceError.
    """
    is_stdin = name == STDIN
    with convert_errors(format_title(name), SourceError):
        raw = io.FileIO(0 if is_stdin else name, closefd=not is_stdin)
    with raw:
        yield Input(raw, name, on_bytes, fills_buffer=fills_buffer)


def split_lines(chunks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a text that arrives in chunks, each as soon as it is complete.

    A line longer than `max_bytes` may be cut, but to no less than `max_bytes + 1`.
    """
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        rest = rest[: max_bytes + 1]  # a line without an end must not exhaust the memory
        yield from lines
    if rest:
        yield rest


class Input(io.RawIOBase):
    """The bytes of an open file up to its end.

    Reading waits for bytes even if the descriptor is non-blocking, and raises SourceError for
    system errors. It also raises SourceError at the end of a regular file that has changed: a
    changed file usually has newer rows, and a snapshot without them would look complete. This check
    is not possible for pipes and devices, which have no size or modification time.
    """

    def __init__(
        self, raw: io.FileIO, name: str, on_bytes: OnBytes | None, *, fills_buffer: bool
    ) -> None:
        self._raw = raw
        self._name = name
        self._on_bytes = on_bytes
        self._fills_buffer = fills_buffer
        self._bytes_read = 0
        self._status = os.fstat(raw.fileno())
        self._is_regular = stat.S_ISREG(self._status.st_mode)
        # Another process may have read the beginning of a file that is our standard input.
        start = raw.tell() if self._is_regular else 0
        self._bytes_expected = max(self._status.st_size - start, 0)
        self._is_named = self._is_at_its_name()

    def readable(self) -> bool:
        """Return True, as buffered readers require."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # narrower than typeshed's buffer
        """Fill a buffer with the available bytes, at least one; return 0 at the end."""
        with convert_errors(format_title(self._name), SourceError):
            count = more = self._read_available(buffer)
            while more and count < len(buffer) and self._fills_buffer and not self._is_regular:
                more = self._read_available(buffer[count:])
                count += more
            self._bytes_read += count
            if not count and self._is_regular and not self._is_unchanged():
                raise SourceError(f"{format_title(self._name)}: {CHANGED}")
        if self._on_bytes:
            self._on_bytes(count)
        return count

    def _read_available(self, buffer: memoryview) -> int:
        while (count := self._raw.readinto(buffer)) is None:  # no byte is available yet
            select.select([self._raw], [], [])
        return int(count)

    def _is_unchanged(self) -> bool:
        """Return whether the file still has its original size, modification time and name."""
        now = os.fstat(self._raw.fileno())
        before = self._status
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            return False
        # Files that the kernel generates, such as those in /proc, have size 0 but contain bytes.
        if before.st_size and self._bytes_read != self._bytes_expected:
            return False
        return not self._is_named or self._is_at_its_name()

    def _is_at_its_name(self) -> bool:
        """Return whether the file's name still refers to it. Standard input has no name."""
        if self._name == STDIN:
            return False
        try:
            return os.path.samestat(os.stat(self._name), self._status)
        except OSError:
            return False
