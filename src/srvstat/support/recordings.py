"""Read recordings of any kind."""

import base64
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from srvstat.contract import wire
from srvstat.contract.models import InvalidValueError, validate
from srvstat.contract.time import InstantError, parse_instant
from srvstat.documents.support import (
    PlainExchange,
    PlainResponse,
    Recording,
    StoredResponse,
)
from srvstat.files.reading import STDIN, format_title, open_input, split_lines
from srvstat.support.curl import read_curl
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
from srvstat.support.har import read_har

Reader = Callable[[str, Iterator[bytes]], Iterator[Exchange | Unreadable]]
"""Reads the exchanges of an input, given its title for places, and its bytes in chunks."""

MAX_LINE_BYTES = 4 << 20

_INSTANTS = ("asOf", "requestedAt")
_MESSAGES = {"dict_type": "must be an object", "bool_type": "must be true or false"}
_CHUNK_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HAR_START = re.compile(rb'\{\s*"log"\s*:')
_MAX_START_BYTES = 1 << 10
"""An input that begins with more white space is not taken for JSON."""


def read_ndjson(title: str, chunks: Iterator[bytes]) -> Iterator[Exchange | Unreadable]:
    """Read the exchanges of NDJSON text, one a line; empty lines are skipped."""
    for number, line in enumerate(split_lines(chunks, MAX_LINE_BYTES), 1):
        if not line.strip():
            continue
        place = f"{title}, line {number}"
        try:
            yield _parse_exchange(place, line)
        except UnreadableError as error:
            yield Unreadable(place, str(error))


def _parse_exchange(place: str, line: bytes) -> Exchange:
    if len(line) > MAX_LINE_BYTES:
        raise UnreadableError(f"longer than {MAX_LINE_BYTES:,} bytes")
    try:
        value = wire.decode(line)
        if not isinstance(value, dict):
            raise UnreadableError("must be an object")
        value = _parse_instants(value)
        if "document" in value:
            return _build_exchange(place, validate(Recording, value, _MESSAGES, by_alias=True))
        return _build_exchange(place, validate(PlainExchange, value, _MESSAGES, by_alias=True))
    except (wire.JsonError, InvalidValueError) as error:
        raise UnreadableError(str(error)) from None
    except RecursionError:  # shallow enough to parse, too deep to validate
        raise UnreadableError("nested too deeply") from None
    except UnicodeEncodeError:
        raise UnreadableError("not Unicode text (a lone surrogate)") from None


def _parse_instants(value: dict[str, Any]) -> dict[str, Any]:
    parsed = dict(value)
    for name in _INSTANTS:
        given = value.get(name)
        if type(given) in (int, str):
            try:
                parsed[name] = parse_instant(str(given))
            except InstantError as error:
                raise UnreadableError(f"{name}: {error}") from None
    return parsed


def _build_exchange(place: str, parsed: Recording | PlainExchange) -> Exchange:
    request = parsed.request
    plan = parsed.plan if isinstance(parsed, Recording) else None
    for text in filter(None, (request.method, plan)):
        text.encode()  # these are shown; everything else is encoded below
    pairs = ((name.encode(), text.encode()) for name, text in request.headers.items())
    sent = request.path.encode()
    exchange = build_exchange(place, request.method, sent, keep_judged(pairs))
    if exchange.is_foreign:
        return exchange
    return replace(
        exchange,
        body=_decode_body(request.body, request.body_base64),
        requested_at=parsed.requested_at,
        response=_build_response(parsed.response),
        is_from_service=isinstance(parsed, Recording),
        plan=plan,
        as_of=parsed.as_of,
    )


def _build_response(recorded: StoredResponse | PlainResponse | None) -> RecordedResponse | None:
    if recorded is None:
        return None
    if recorded.status not in STATUSES:
        raise UnreadableError(f"response.status: {NOT_A_STATUS}")
    body = None if recorded.body is None else recorded.body.encode()
    return RecordedResponse(recorded.status, body)


def _decode_body(text: str | None, encoded: str | None) -> bytes:
    if encoded is None:
        return (text or "").encode()
    if text is not None:
        raise UnreadableError("request: both body and bodyBase64")
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:  # binascii.Error, or a character that is not ASCII
        raise UnreadableError("request.bodyBase64: not base64") from None


_READERS: Mapping[str, Reader] = {
    ".har": read_har,
    ".ndjson": read_ndjson,
    ".jsonl": read_ndjson,
    ".sh": read_curl,
    ".txt": read_curl,
    ".curl": read_curl,
}


def read_recording(name: str) -> Iterator[Exchange | Unreadable]:
    """Read the exchanges of a HAR file, of curl commands or of NDJSON, in their order.

    The extension of the name decides; without a known one, and for `-` (standard input), the
    first characters do. One byte order mark at the start is skipped.

    Raises SourceError if the input can't be read, or is a HAR file that is not complete.
    """
    extension = "" if name == STDIN else os.path.splitext(name)[1].lower()
    with open_input(name) as file:
        chunks = iter(lambda: file.read(_CHUNK_BYTES), b"")
        start = b""
        while len(start) < _MAX_START_BYTES and (chunk := next(chunks, b"")):
            start += chunk
        start = start.removeprefix(_BYTE_ORDER_MARK)
        read = _READERS.get(extension) or _find_reader(start)
        yield from read(format_title(name), chain([start], chunks))


def _find_reader(start: bytes) -> Reader:
    text = start.lstrip()
    if not text.startswith(b"{"):
        return read_curl
    return read_har if _HAR_START.match(text) else read_ndjson
