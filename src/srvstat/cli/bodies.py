"""Request bodies from a file or standard input: one, or one a line."""

import errno
import os
import select
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from srvstat.contract.errors import SourceError
from srvstat.contract.requests import MAX_BODY_BYTES
from srvstat.sources.formats import STDIN

_CHUNK_BYTES = 1 << 16


def read_body(name: str) -> bytes:
    """Read a body, up to one byte more than it may have.

    Raises SourceError.
    """
    body = b""
    with arriving(name) as chunks:
        for chunk in chunks:
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                break
    return body[: MAX_BODY_BYTES + 1]


@contextmanager
def arriving(name: str) -> Iterator[Iterator[bytes]]:
    """Open a file, or standard input, and hand out its bytes as they arrive.

    Raises SourceError, also while they are read.
    """
    title = "standard input" if name == STDIN else name
    with _reading(title):
        descriptor = 0 if name == STDIN else os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with _reading(title):
            # A directory opens like a file, and would be told of by the first read alone.
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        yield _chunks(descriptor, title)
    finally:
        if name != STDIN:
            os.close(descriptor)


def bodies(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Hand on a body a line, each as soon as it is whole.

    A body that is too long may be cut, to no less than one byte more than it may have.
    """
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        rest = rest[: MAX_BODY_BYTES + 1]  # a line without end must not fill the memory
        yield from whole
    if rest:
        yield rest


def _chunks(descriptor: int, title: str) -> Iterator[bytes]:
    with _reading(title):
        while True:
            try:
                chunk = os.read(descriptor, _CHUNK_BYTES)
            except BlockingIOError:  # whoever writes has set the pipe so
                select.select([descriptor], [], [])
                continue
            if not chunk:
                return
            yield chunk


@contextmanager
def _reading(title: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SourceError(f"{title}: {error.strerror or 'cannot be read'}") from None
