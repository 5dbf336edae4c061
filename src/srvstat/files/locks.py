"""Lock a file that is going to be replaced."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from srvstat.contract.errors import OutputError, SnapshotError
from srvstat.files.errors import convert_errors


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
