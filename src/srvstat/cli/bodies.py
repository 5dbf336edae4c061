"""Request bodies from a file or standard input: one, or one a line."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from srvstat.contract.errors import SourceError
from srvstat.contract.requests import MAX_BODY_BYTES
from srvstat.files.reading import open_input

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
    if not name:
        raise SourceError("the name of the file of requests is empty; name a file, or -")
    with open_input(name) as opened:
        yield iter(lambda: opened.read(_CHUNK_BYTES), b"")


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
