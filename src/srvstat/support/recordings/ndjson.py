"""Read recordings as NDJSON: those of the service, and lines that a person wrote."""

import base64
from collections.abc import Iterator
from typing import Any

from srvstat.contract import wire
from srvstat.contract.instants import InstantError, parse_instant
from srvstat.contract.models import InvalidValueError, validate
from srvstat.documents.support import PlainExchange, PlainResponse, Recording, StoredResponse
from srvstat.files.reading import split_lines
from srvstat.support.recordings.exchange import (
    NOT_A_STATUS,
    STATUSES,
    Exchange,
    RecordedResponse,
    Unreadable,
)
from srvstat.support.recordings.heads import HeaderList, build_head, find_host, is_foreign_path

MAX_LINE_BYTES = 4 << 20

_INSTANTS = ("asOf", "requestedAt")
_MESSAGES = {"dict_type": "must be an object", "bool_type": "must be true or false"}


class _LineError(ValueError):
    """A line can't be read. The message gives the reason, without contents of the request."""


def read_ndjson(title: str, chunks: Iterator[bytes]) -> Iterator[Exchange | Unreadable]:
    """Read the exchanges of NDJSON text, one a line; empty lines are skipped."""
    for number, line in enumerate(split_lines(chunks, MAX_LINE_BYTES), 1):
        if not line.strip():
            continue
        place = f"{title}, line {number}"
        try:
            yield _parse_exchange(place, line)
        except _LineError as error:
            yield Unreadable(place, str(error))


def _parse_exchange(place: str, line: bytes) -> Exchange:
    if len(line) > MAX_LINE_BYTES:
        raise _LineError(f"longer than {MAX_LINE_BYTES:,} bytes")
    try:
        value = wire.decode(line)
        if not isinstance(value, dict):
            raise _LineError("must be an object")
        return _build_exchange(place, _validate(_parse_instants(value)))
    except (wire.JsonError, InvalidValueError) as error:
        raise _LineError(str(error)) from None
    except RecursionError:  # shallow enough to parse, too deep to validate
        raise _LineError("nested too deeply") from None
    except UnicodeEncodeError:
        raise _LineError("not Unicode text (a lone surrogate)") from None


def _validate(value: dict[str, Any]) -> Recording | PlainExchange:
    if "document" in value:
        return validate(Recording, value, _MESSAGES, by_alias=True)
    return validate(PlainExchange, value, _MESSAGES, by_alias=True)


def _parse_instants(value: dict[str, Any]) -> dict[str, Any]:
    parsed = dict(value)
    for name in _INSTANTS:
        given = value.get(name)
        if type(given) in (int, str):
            try:
                parsed[name] = parse_instant(str(given))
            except InstantError as error:
                raise _LineError(f"{name}: {error}") from None
    return parsed


def _build_exchange(place: str, parsed: Recording | PlainExchange) -> Exchange:
    request = parsed.request
    plan = parsed.plan if isinstance(parsed, Recording) else None
    for text in filter(None, (request.method, plan)):
        text.encode()  # these are shown; everything else is encoded below
    headers = HeaderList()
    for name, text in request.headers.items():
        headers.add(name.encode(), text.encode())
    sent = request.path.encode()
    head, host = build_head(request.method, sent, headers.build()), find_host(sent)
    if is_foreign_path(head.path):
        return Exchange(place, head, b"", host)
    return Exchange(
        place,
        head,
        _decode_body(request.body, request.body_base64),
        host,
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
        raise _LineError(f"response.status: {NOT_A_STATUS}")
    body = None if recorded.body is None else recorded.body.encode()
    return RecordedResponse(recorded.status, body)


def _decode_body(text: str | None, encoded: str | None) -> bytes:
    if encoded is None:
        return (text or "").encode()
    if text is not None:
        raise _LineError("request: both body and bodyBase64")
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:  # binascii.Error, or a character that is not ASCII
        raise _LineError("request.bodyBase64: not base64") from None
