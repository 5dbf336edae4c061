"""Lock a file, and copy it in the background."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from srvstat.contract.errors import OutputError, SnapshotError
from srvstat.files.errors import convert_errors, convert_write_errors

_BYTES_PER_CALL = 1 << 28
"""Bytes that the system copies at once: a stopped copy ends after a fraction of a second."""

_BYTES_PER_READ = 1 << 20


@contextmanager
def lock_file(path: str) -> Iterator[int]:
    """Lock the file at a path while the block runs, and yield a descriptor to read it.

    A file system without locks locks nothing.

    Raises SnapshotError for a file that can't be opened, OutputError if another process has the
    lock.
    """
    with convert_errors(path, SnapshotError, remedy="build one with `srvstat snapshot build`"):
        # Without O_NONBLOCK, opening a FIFO would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # NFS locks only files that are open for writing.
        with suppress(OSError):
            _lock(descriptor, path)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OutputError(
            f"{path}: another update of it is running; try again when that has ended"
        ) from None


@contextmanager
def copy_in_background(path: str, source: int, target: str) -> Iterator[Callable[[], None]]:
    """Copy an open file to an existing, empty one while the block runs.

    Yields a function that waits for the end of the copy, which is on the disk at the end of the
    block. Both raise OutputError, which names `path`, if the copy failed. An exception in the block
    stops the copy.
    """
    errors: list[OSError] = []
    copied, stop = Event(), Event()

    def copy() -> None:
        try:
            _copy(source, target, copied, stop)
        except OSError as error:
            errors.append(error)
        finally:
            copied.set()

    def wait() -> None:
        copied.wait()
        raise_error()

    def raise_error() -> None:
        with convert_write_errors(path):
            if errors:
                raise errors.pop()

    thread = Thread(target=copy, name="copy")
    thread.start()
    try:
        yield wait
    finally:
        stop.set()
        thread.join()
    raise_error()


def _copy(source: int, target: str, copied: Event, stop: Event) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
    try:
        position = 0
        while not stop.is_set():
            length = _copy_some(source, descriptor, position)
            if not length:
                copied.set()
                os.fsync(descriptor)
                return
            position += length
    finally:
        os.close(descriptor)


def _copy_some(source: int, target: int, position: int) -> int:
    """Copy some bytes, or only references to them where the file system can share them."""
    try:
        return os.copy_file_range(source, target, _BYTES_PER_CALL, position, position)
    except (AttributeError, OSError):  # not every system and file system can; write errors return
        return os.pwrite(target, os.pread(source, _BYTES_PER_READ, position), position)
