"""Read HAR 1.2 files, as browsers and proxies export them."""

import base64
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from srvstat.contract.errors import SourceError
from srvstat.contract.http import MAX_HEAD_BYTES, Headers, find_values
from srvstat.contract.time import InstantError, parse_instant
from srvstat.files import json_stream
from srvstat.support.exchange import (
    NOT_A_STATUS,
    STATUSES,
    Exchange,
    RecordedResponse,
    Unreadable,
    UnreadableError,
    build_exchange,
    keep_judged,
)

_T = TypeVar("_T")

MAX_BODY_BYTES = 4 << 20
"""No body of the API comes near; more is refused instead of decompressed."""

_ZLIB_START = b"\x78"
_ANY_HEADER, _NO_HEADER = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS
_GZIP = (b"gzip", b"x-gzip")

_NOT_HEADERS = "must have objects with a name and a value, which are strings"
_KINDS: Mapping[type, str] = {str: "a string", int: "an integer"}


class _NotHarError(ValueError):
    """The JSON is not that of a HAR file."""


def read_har(title: str, chunks: Iterator[bytes]) -> Iterator[Exchange | Unreadable]:
    """Read the entries of a HAR file in their order.

    Raises SourceError if it is not a HAR file, or not complete.
    """
    count = 0
    try:
        for count, entry in enumerate(_read_entries(json_stream.parse_events(chunks)), 1):
            place = f"{title}, entry {count}"
            try:
                exchange = _build_exchange(place, entry)
            except UnreadableError as error:
                yield Unreadable(place, str(error))
            else:
                yield exchange
    except json_stream.CutOffError:
        problem = f"cut off after entry {count}; export it again"
    except json_stream.NotJsonError:
        problem = f"not JSON after entry {count}; export it again"
    except _NotHarError:
        problem = "not a HAR file: it has no array log.entries; export it as HAR 1.2"
    else:
        return
    raise SourceError(f"{title}: {problem}")


def _read_headers(events: json_stream.Events) -> Headers | json_stream.Problem:
    """Read the rest of an array of headers."""
    is_valid = True

    def iter_pairs() -> Iterator[tuple[bytes, bytes]]:
        nonlocal is_valid
        for item in json_stream.read_items(events):
            pair = json_stream.read_value(item, {"name": None, "value": None})
            name, value = _get_member(pair, "name"), _get_member(pair, "value")
            if isinstance(name, str) and isinstance(value, str):
                yield _encode_header(name), _encode_header(value)
            else:
                is_valid = False

    headers = keep_judged(iter_pairs())
    return headers if is_valid else json_stream.Problem(_NOT_HEADERS)


def _encode_header(text: str) -> bytes:
    # One that was too long to read is still too long.
    is_cut = text.startswith(json_stream.TOO_LONG)
    return b"." * (MAX_HEAD_BYTES + 1) if is_cut else text.encode()


_MESSAGE_BODY: json_stream.Shape = {"text": None, "encoding": None}
_ENTRY: json_stream.Shape = {
    "startedDateTime": None,
    "request": {
        "method": None,
        "url": None,
        "headers": _read_headers,
        "bodySize": None,
        "postData": _MESSAGE_BODY,
    },
    "response": {"status": None, "headers": _read_headers, "content": _MESSAGE_BODY},
}


def _read_entries(events: json_stream.Events) -> Iterator[Any]:
    """Yield the entries, each with the members of its shape, and read to the end of the text.

    Raises _NotHarError, and what `parse_events` does.
    """
    is_found = False
    for _ in _find_members(events, "log"):
        for _ in _find_members(events, "entries"):
            if is_found or next(events)[0] != "start_array":
                raise _NotHarError
            is_found = True
            for item in json_stream.read_items(events):
                yield json_stream.read_value(item, _ENTRY)
    for _ in events:
        pass
    if not is_found:
        raise _NotHarError


def _find_members(events: json_stream.Events, name: str) -> Iterator[None]:
    """Stop at each value that has a name in the next object; the caller reads it."""
    if next(events)[0] != "start_map":
        raise _NotHarError
    for key in json_stream.read_keys(events):
        if key == name:
            yield
        else:
            json_stream.skip_value(events)


def _build_exchange(place: str, entry: Any) -> Exchange:
    method = _require(_get(entry, "request.method", str), "request.method")
    url = _require(_find(entry, "request.url"), "request.url")
    if not isinstance(url, str):
        raise UnreadableError("request.url: must be a string")
    headers: Headers = _find(entry, "request.headers") or ()
    sent = url.removeprefix(json_stream.TOO_LONG).encode()
    exchange = build_exchange(place, method, sent, headers)
    if exchange.is_foreign:
        return exchange
    _get(entry, "request.url", str)  # now, because it is too long only if it is not foreign
    started = _get(entry, "startedDateTime", str)
    try:
        requested_at = None if started is None else parse_instant(started)
    except InstantError as error:
        raise UnreadableError(f"startedDateTime: {error}") from None
    body, response = _build_request_body(entry, headers), _build_response(entry)
    return replace(exchange, body=body, requested_at=requested_at, response=response)


def _build_request_body(entry: Any, headers: Headers) -> bytes:
    body = _build_body(entry, "request.postData")
    if body is not None:
        return body
    lengths = find_values(headers, b"content-length")
    size = _get(entry, "request.bodySize", int) or 0
    if size > 0 or any(length.strip(b"0") for length in lengths):
        raise UnreadableError("request.postData.text: missing; export the recording with bodies")
    return b""


def _build_response(entry: Any) -> RecordedResponse | None:
    """Return the response; None if there was none, for which HAR has the status 0."""
    status = _get(entry, "response.status", int)
    if not status:
        return None
    if status not in STATUSES:
        raise UnreadableError(f"response.status: {NOT_A_STATUS}")
    body = _build_body(entry, "response.content")
    headers: Headers = _find(entry, "response.headers") or ()
    if body is not None and _find(entry, "response.content.encoding"):
        codings = find_values(headers, b"content-encoding")
        body = _decompress("response.content", body, b", ".join(codings).lower())
    return RecordedResponse(status, body)


def _build_body(entry: Any, path: str) -> bytes | None:
    text, encoding = _get(entry, f"{path}.text", str), _get(entry, f"{path}.encoding", str)
    if text is None or not encoding:
        return None if text is None else text.encode()
    if encoding.lower() != "base64":
        raise UnreadableError(f"{path}.encoding: not base64")
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError:  # binascii.Error, or a character that is not ASCII
        raise UnreadableError(f"{path}.text: not base64") from None


def _decompress(place: str, body: bytes, coding: bytes) -> bytes:
    """Return a body decompressed if it still is compressed as its `Content-Encoding` says.

    Most programs record the decompressed body beside the original header.

    Raises UnreadableError for an unknown coding, and for damaged or too much data.
    """
    if not coding or coding == b"identity":
        return body
    # Compressed data is not UTF-8: neither its first bytes nor its checksum.
    with suppress(UnicodeDecodeError):
        body.decode()
        return body
    if coding in _GZIP:
        return _inflate(place, body, _ANY_HEADER)
    if coding == b"deflate":
        return _inflate(place, body, _ANY_HEADER if body.startswith(_ZLIB_START) else _NO_HEADER)
    name = coding.decode("latin-1") if coding.isalnum() else "an unknown coding"
    raise UnreadableError(
        f"{place}: compressed with {name[:20]}; export it again with decompressed bodies"
    )


def _inflate(place: str, body: bytes, window_bits: int) -> bytes:
    stream = zlib.decompressobj(window_bits)
    try:
        text = stream.decompress(body, MAX_BODY_BYTES + 1)
    except zlib.error:
        raise UnreadableError(f"{place}: damaged compressed data") from None
    if len(text) > MAX_BODY_BYTES:
        raise UnreadableError(f"{place}: more than {MAX_BODY_BYTES:,} bytes when decompressed")
    if not stream.eof:
        raise UnreadableError(f"{place}: compressed data that is cut off")
    return text


def _get(entry: Any, path: str, kind: type[_T]) -> _T | None:
    """Return the value at a path of an entry, or None if it is missing or null.

    Raises UnreadableError if it is of another type, or a string that was too long to read.
    """
    value = _find(entry, path)
    if type(value) is not kind and value is not None:
        raise UnreadableError(f"{path}: must be {_KINDS[kind]}")
    if isinstance(value, str) and value.startswith(json_stream.TOO_LONG):
        raise UnreadableError(f"{path}: longer than {json_stream.MAX_TEXT_BYTES:,} bytes")
    return value


def _find(entry: Any, path: str) -> Any:
    """Return the value at a path, or None. Raises UnreadableError if it does not have its shape."""
    value, place = entry, "entry"
    for step in path.split("."):
        if isinstance(value, json_stream.Problem):
            break
        value = _get_member(value, step)
        place = path[: path.index(step) + len(step)]
    if isinstance(value, json_stream.Problem):
        raise UnreadableError(f"{place}: {value.reason}")
    return value


def _get_member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else value


def _require(value: _T | None, path: str) -> _T:
    if value is None:
        raise UnreadableError(f"{path}: missing")
    return value
