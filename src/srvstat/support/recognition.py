"""Recognize the kind of a recording by its content, and read it."""

import codecs
import gzip
import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from srvstat.contract.errors import SourceError
from srvstat.files.reading import STDIN, format_title, open_input
from srvstat.support import pasted, recordings
from srvstat.support.recordings import Exchanges, ReadFile, Unreadable, read_har

Reader = Callable[[str, Iterator[bytes]], Exchanges]
"""Reads the exchanges of an input. Its arguments are the title for places, and chunks of bytes."""

_Count = Callable[[bytes], bytes]
"""Counts unpacked bytes of an input, and returns them. Raises SourceError if they are too many."""

_CHUNK_BYTES = 1 << 16
MAX_ARCHIVE_BYTES = 1 << 28
MAX_UNPACKED_BYTES = 1 << 30
"""The maximum unpacked size of an archive or gzip file."""
_MAX_START_BYTES = 1 << 10
"""The maximum white space before JSON. An input with more is not taken for JSON."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_STARTS: Mapping[str, Reader] = {
    r'\{\s*"log"\s*:': read_har,
    r'\{\s*"(?:data|range|servers|error)"\s*:': pasted.read_json,
    r'\{\s*"(?:info|collection|run)"\s*:': pasted.read_postman,
    r"(?:---\s+)?(?:http_)?interactions:\s": pasted.read_cassette,
    r'\{\s*"(?:version|(?:http_)?interactions)"\s*:': pasted.read_cassette,
    r"[0-9]+:[0-9]+:\w+[;,]": pasted.read_flows,
    r"\{": recordings.read_ndjson,
    "": pasted.read_text,
}
"""The beginnings of texts of each kind, the most specific first.

mitmproxy's flows are a dictionary as a tnetstring: its length, then its first key with the key's
length.
"""
_IGNORED = re.compile(r"__MACOSX/.*|(?:.*/)?(?:[0-9a-f]{40}\.\w+)?", re.DOTALL)
"""Ignored members of archives: macOS metadata, folders, and the bodies that Playwright attaches to
a HAR file.
"""


def read_recording(name: str) -> Exchanges:
    """Read the exchanges of a recording, in order. `-` is standard input.

    Recordings are HAR files, the service's NDJSON, text with commands or calls, Postman
    collections, VCR cassettes, mitmproxy flows, and the JSON of a single request or response. The
    content determines the kind; if it is ambiguous, the extension does. The input may be in UTF-16
    or gzip, or be an archive of such files.

    Raises SourceError if the input can't be read, or is an incomplete HAR file.
    """
    title = format_title(name)
    left = MAX_UNPACKED_BYTES

    def count(data: bytes) -> bytes:
        nonlocal left
        left -= len(data)
        if left < 0:
            problem = f"more than {MAX_UNPACKED_BYTES:,} bytes when unpacked; divide it"
            raise SourceError(f"{title}: {problem}")
        return data

    with open_input(name, fills_buffer=True) as file:
        stream = io.BufferedReader(file, _CHUNK_BYTES)
        if not stream.peek(len(_ZIP)).startswith(_ZIP):
            yield from _read(title, "" if name == STDIN else name, stream, count)
            return
        packed = stream.read(MAX_ARCHIVE_BYTES + 1)
        if len(packed) > MAX_ARCHIVE_BYTES:
            raise SourceError(f"{title}: more than {MAX_ARCHIVE_BYTES:,} bytes; divide it")
        try:
            with zipfile.ZipFile(io.BytesIO(packed)) as archive:
                for member in archive.namelist():
                    if not _IGNORED.fullmatch(member):
                        yield from _read_member(title, archive, member, count)
        except (zipfile.BadZipFile, NotImplementedError, ValueError):
            raise SourceError(f"{title}: a damaged archive; ask for it again") from None


def _read_member(title: str, archive: zipfile.ZipFile, member: str, count: _Count) -> Exchanges:
    """Read a member of an archive, which may contain other files."""
    place = f"{title}/{format_title(member)}"

    def read_file(name: str) -> bytes:
        with archive.open(posixpath.join(posixpath.dirname(member), name)) as file:
            return count(file.read(recordings.MAX_BODY_BYTES + 1))

    try:
        with archive.open(member) as file:
            yield from _read(place, member, file, count, read_file)
    except SourceError as error:
        if not error.reason.startswith(place):  # the error concerns the whole archive
            raise
        yield Unreadable(place, error.reason.removeprefix(f"{place}: "))
    except (RuntimeError, NotImplementedError):
        yield Unreadable(place, "encrypted or compressed in a way that is not supported")
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError):
        yield Unreadable(place, "damaged; ask for the archive again")


def _read(
    title: str, name: str, stream: Any, count: _Count, read_file: ReadFile | None = None
) -> Exchanges:
    chunks = _decode(title, stream, count)
    start = b""
    while len(start) < _MAX_START_BYTES and (chunk := next(chunks, b"")):
        start += chunk
    start = start.removeprefix(_BYTE_ORDER_MARK)
    if read_file is None and not start.strip():
        raise SourceError(f"{title}: empty; ask for the recording again")
    read = _find_reader(start.lstrip(), name.lower())
    read = partial(read_har, read_file=read_file) if read is read_har else read
    yield from read(title, chain([start], chunks))


def _decode(title: str, stream: Any, count: _Count) -> Iterator[bytes]:
    """Yield the bytes of a text, decompressed and converted to UTF-8.

    Raises SourceError if compressed data are damaged.
    """
    if stream.peek(len(_GZIP)).startswith(_GZIP):
        stream = gzip.GzipFile(fileobj=stream)
    try:
        chunks = iter(lambda: stream.read(_CHUNK_BYTES), b"")
        if isinstance(stream, gzip.GzipFile | zipfile.ZipExtFile):
            chunks = map(count, chunks)
        first = next(chunks, b"")
        if first.startswith(_UTF_16):
            for text in codecs.iterdecode(chain([first], chunks), "utf-16", "replace"):
                yield text.encode()
        else:
            yield first
            yield from chunks
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise SourceError(f"{title}: damaged or cut gzip data; ask for it again") from None


def _find_reader(text: bytes, name: str) -> Reader:
    if name.endswith(".har") and text[:1] in (b"", b"{", b"["):
        return read_har
    return next(read for start, read in _STARTS.items() if re.match(start.encode(), text))
