"""Write lines to a FIFO, a device or an open descriptor."""

import os
import re
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from srvstat.contract import wire
from srvstat.files.errors import convert_write_errors

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
