"""Read a recording: find its kind, and read the exchanges."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from srvstat.files.reading import STDIN, Input, format_title, open_input
from srvstat.support.recordings.curl import read_curl
from srvstat.support.recordings.exchange import Exchange, Unreadable
from srvstat.support.recordings.har import read_har
from srvstat.support.recordings.ndjson import read_ndjson

Reader = Callable[[str, Iterator[bytes]], Iterator[Exchange | Unreadable]]
"""Reads the exchanges of an input, given its title for places, and its bytes in chunks."""

_READERS: Mapping[str, Reader] = {
    ".har": read_har,
    ".ndjson": read_ndjson,
    ".jsonl": read_ndjson,
    ".sh": read_curl,
    ".txt": read_curl,
    ".curl": read_curl,
}
_CHUNK_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HAR_START = re.compile(rb'\{\s*"log"\s*:')
_MAX_START_BYTES = 1 << 10
"""An input that begins with more white space is not taken for JSON."""


def read_recording(name: str) -> Iterator[Exchange | Unreadable]:
    """Read the exchanges of a HAR file, of curl commands or of NDJSON, in their order.

    The extension of the name decides; without a known one, and for `-` (standard input), the
    first characters do. One byte order mark at the start is skipped.

    Raises SourceError if the input can't be read, or is a HAR file that is not complete.
    """
    extension = "" if name == STDIN else os.path.splitext(name)[1].lower()
    with open_input(name) as file:
        chunks = _read_chunks(file)
        start = _read_start(chunks)
        read = _READERS.get(extension) or _find_reader(start)
        yield from read(format_title(name), chain([start], chunks))


def _read_chunks(file: Input) -> Iterator[bytes]:
    return iter(lambda: file.read(_CHUNK_BYTES), b"")


def _read_start(chunks: Iterator[bytes]) -> bytes:
    """Read enough to find the kind of the input, or all of it; skip a byte order mark."""
    start = b""
    while len(start) < _MAX_START_BYTES and (chunk := next(chunks, b"")):
        start += chunk
    return start.removeprefix(_BYTE_ORDER_MARK)


def _find_reader(start: bytes) -> Reader:
    text = start.lstrip()
    if not text.startswith(b"{"):
        return read_curl
    return read_har if _HAR_START.match(text) else read_ndjson
