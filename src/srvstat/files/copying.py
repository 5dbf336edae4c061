"""Copy a file in the background."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from srvstat.files.errors import convert_write_errors

_BYTES_PER_CALL = 1 << 25
"""Bytes that the system copies at once: a stopped copy ends after a fraction of a second."""

_BYTES_PER_READ = 1 << 20


@contextmanager
def copy_in_background(path: str, source: int, target: str) -> Iterator[Callable[[], None]]:
    """Copy an open file to an existing, empty one while the block runs.

    Yields a function that waits for the end of the copy, which is then on the disk. It raises
    OutputError, which names `path`, if the copy failed. An exception in the block stops the copy.
    """
    errors: list[OSError] = []
    stop = Event()

    def copy() -> None:
        try:
            _copy(source, target, stop)
        except OSError as error:
            errors.append(error)

    def wait() -> None:
        thread.join()
        with convert_write_errors(path):
            for error in errors:
                raise error

    thread = Thread(target=copy, name="copy")
    thread.start()
    try:
        yield wait
    finally:
        stop.set()
        thread.join()


def _copy(source: int, target: str, stop: Event) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
    try:
        position = 0
        while not stop.is_set():
            copied = _copy_some(source, descriptor, position)
            if not copied:
                os.fsync(descriptor)
                return
            position += copied
    finally:
        os.close(descriptor)


def _copy_some(source: int, target: int, position: int) -> int:
    """Copy some bytes, or only references to them where the file system can share them."""
    try:
        return os.copy_file_range(source, target, _BYTES_PER_CALL, position, position)
    except (AttributeError, OSError):  # not every system and file system can; write errors return
        return os.pwrite(target, os.pread(source, _BYTES_PER_READ, position), position)
