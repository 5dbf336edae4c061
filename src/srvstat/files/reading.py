"""Read a file or standard input completely, or raise an error."""

import io
import os
import re
import select
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from srvstat.contract import wire
from srvstat.contract.errors import SourceError
from srvstat.files.paths import convert_errors, convert_write_errors

STDIN = "-"
"""The name of standard input."""

CHANGED = "changed while it was read; run again once nothing writes to it"
"""The problem of a file that another program changed."""


# The parts of a URL that can't be secret. Anything else hides the whole.
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
    """Return the name of an input for messages, as text that UTF-8 can encode.

    Of a URL it is the scheme, host and path; the user, password and parameters are left out.
    """
    if name == STDIN:
        return "standard input"
    if url := _URL.fullmatch(name):
        plain = _PLAIN_URL.fullmatch(name)
        return plain[1] + plain[2] if plain else f"{url[1]}…"
    return os.fsencode(name).decode("utf-8", "backslashreplace")


@contextmanager
def open_input(
    name: str, on_bytes: Callable[[int], None] | None = None, *, fills_buffer: bool = False
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
    """Yield the lines of a text that comes in chunks, each as soon as it is complete.

    A line longer than `max_bytes` may be cut, to no less than one byte more than that.
    """
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        rest = rest[: max_bytes + 1]  # a line without an end must not fill the memory
        yield from lines
    if rest:
        yield rest


class Input(io.RawIOBase):
    """The bytes of an open file up to its end.

    Reading waits for bytes even if the descriptor does not block, and raises SourceError for errors
    of the system. It also raises SourceError at the end of a regular file that has changed: a
    changed file usually has newer rows, and a snapshot without them would look complete. Pipes and
    devices have no size or time to compare.
    """

    def __init__(
        self,
        raw: io.FileIO,
        name: str,
        on_bytes: Callable[[int], None] | None,
        *,
        fills_buffer: bool,
    ) -> None:
        self._raw = raw
        self._name = name
        self._on_bytes = on_bytes
        self._fills_buffer = fills_buffer
        self._bytes_read = 0
        self._status = os.fstat(raw.fileno())
        self._is_regular = stat.S_ISREG(self._status.st_mode)
        # Another process may have read the beginning of a file on standard input.
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
        """Return whether the size, the time and the name are those of the opened file."""
        now = os.fstat(self._raw.fileno())
        before = self._status
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            return False
        # Files that the kernel generates, such as those in /proc, have size 0 but contain bytes.
        if before.st_size and self._bytes_read != self._bytes_expected:
            return False
        return not self._is_named or self._is_at_its_name()

    def _is_at_its_name(self) -> bool:
        """Return whether the name refers to this file; standard input has no name."""
        if self._name == STDIN:
            return False
        try:
            return os.path.samestat(os.stat(self._name), self._status)
        except OSError:
            return False


_DESCRIPTOR = re.compile(r"(/dev|/proc/[^/]+(/task/[^/]+)?)/fd/[0-9]{1,9}")
_MAX_LINKS = 40
_BUFFER_BYTES = 1 << 16


def is_stream(path: str) -> bool:
    """Return whether a path names a FIFO, a device or a descriptor, which can't be replaced.

    This includes the file that standard output or standard error writes to.

    Raises OutputError.
    """
    if find_descriptor_path(path) or _find_standard_descriptor(path) is not None:
        return True
    with convert_write_errors(path):
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


class Stream:
    """Buffers lines for a descriptor; the methods raise OSError."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()
        self._is_terminal = os.isatty(descriptor)

    def write(self, line: bytes) -> None:
        """Write a line that ends with a newline; a terminal gets it without control characters."""
        body = line.removesuffix(b"\n")
        self._buffer.extend(wire.escape_for_terminal(body) if self._is_terminal else body)
        self._buffer.extend(b"\n")
        if len(self._buffer) >= _BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered lines."""
        _write_all(self._descriptor, self._buffer)
        self._buffer.clear()


@contextmanager
def open_stream(path: str) -> Iterator[Stream]:
    """Open a stream for writing. The caller must flush it; the end of the block does not.

    Raises OutputError.
    """
    with convert_write_errors(path):
        descriptor = _open_descriptor(path)
    try:
        yield Stream(descriptor)
    finally:
        with suppress(OSError):  # flushing has reported failed writes
            os.close(descriptor)


def _find_standard_descriptor(path: str) -> int | None:
    """Return the standard descriptor that is open on the regular file at a path, if any."""
    with suppress(OSError, ValueError):
        status = os.stat(path)
        for descriptor in (1, 2):
            if stat.S_ISREG(status.st_mode) and os.path.samestat(os.fstat(descriptor), status):
                return descriptor
    return None


def _open_descriptor(path: str) -> int:
    if (standard := _find_standard_descriptor(path)) is not None:
        return os.dup(standard)
    found = find_descriptor_path(path)
    directory, name = os.path.split(found or path)
    if found and directory in ("/dev/fd", f"/proc/{os.getpid()}/fd"):
        # Opening a regular file again would start at its beginning and overwrite it.
        return os.dup(int(name))
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC)


def _write_all(descriptor: int, data: bytes | bytearray) -> None:
    with memoryview(data) as view:
        start = 0
        while start < len(view):
            try:
                start += os.write(descriptor, view[start:])
            except BlockingIOError:
                select.select([], [descriptor], [])


def find_descriptor_path(path: str) -> str | None:
    """Return the path in a directory of descriptors, such as /dev/fd/2, that a path leads to.

    Returns None for other paths. Does not resolve the descriptor to the file that it refers to.

    Raises OutputError.
    """
    with convert_write_errors(path):
        for _ in range(_MAX_LINKS):
            directory, name = os.path.split(path)
            path = os.path.join(os.path.realpath(directory), name)
            if _DESCRIPTOR.fullmatch(path):
                return path
            if not os.path.islink(path):
                break
            path = os.path.join(os.path.dirname(path), os.readlink(path))
    return None
