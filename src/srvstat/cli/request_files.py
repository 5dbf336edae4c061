"""Read request bodies from a file or standard input: a single one, or one per line."""

from collections.abc import Iterator
from contextlib import contextmanager

from srvstat.contract.errors import SourceError
from srvstat.contract.requests import MAX_BODY_BYTES
from srvstat.files.reading import open_input, split_lines

_CHUNK_BYTES = 1 << 16


def read_body(name: str) -> bytes:
    """Read a body. One that is too long is cut to one byte more than the maximum.

    Raises SourceError.
    """
    body = b""
    with _read_chunks(name) as chunks:
        for chunk in chunks:
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                break
    return body[: MAX_BODY_BYTES + 1]


@contextmanager
def read_lines(name: str) -> Iterator[Iterator[bytes]]:
    """Open a file of bodies and yield its lines, each as soon as it is complete.

    A line that is too long may be cut, as `split_lines` does.

    Raises SourceError, also from the iterator.
    """
    with _read_chunks(name) as chunks:
        yield split_lines(chunks, MAX_BODY_BYTES)


@contextmanager
def _read_chunks(name: str) -> Iterator[Iterator[bytes]]:
    if not name:
        raise SourceError("request file: the name is empty; name a file, or - for standard input")
    with open_input(name) as file:
        yield iter(lambda: file.read(_CHUNK_BYTES), b"")
