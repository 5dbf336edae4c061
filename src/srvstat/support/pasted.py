"""Read what people paste: the JSON of a request or a response alone, or below a command."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from srvstat.contract import errors, http, wire
from srvstat.contract.errors import SourceError
from srvstat.support.recordings import (
    Exchange,
    RecordedResponse,
    Unreadable,
    build_exchange,
    parse_date,
)

_MAX_BYTES = 16 << 20
_TYPE = [(b"content-type", http.JSON_TYPE.encode())]
_HEAD = re.compile(
    r"^(?:< )?HTTP/[0-9.]+ ([1-5][0-9]{2})\b[^\n]*\n((?:[^\n{][^\n]*\n)*)", re.MULTILINE
)
_DATE = re.compile(r"^(?:< )?date:[ \t]*([^\n]+)", re.MULTILINE | re.IGNORECASE)
_BODY = re.compile(r'^[^\n"{]{0,80}(\{\s*"(?:data|range|error)"\s*:)', re.MULTILINE)
_STATUS = {kind.code: kind.http_status for kind in errors.ApiError.__subclasses__()}


def read_json(title: str, chunks: Iterator[bytes]) -> Iterator[Exchange | Unreadable]:
    """Read the body of a request of Compare Servers, or of a response.

    A response names the servers and the range of its request.

    Raises SourceError.
    """
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > _MAX_BYTES:
            raise SourceError(f"{title}: more than {_MAX_BYTES:,} bytes for one body; split it")
    text = bytes(body).strip()
    try:
        value = wire.decode(text)
    except wire.JsonError as error:
        raise SourceError(f"{title}: {error}; send the whole body") from None
    if "servers" in value:
        yield replace(build_exchange(title, "POST", http.COMPARE_PATH.encode(), _TYPE), body=text)
        return
    exchange = _infer_request(title, value)
    if exchange is None:
        yield Unreadable(title, "a response that names no servers; send the request, too")
        return
    yield replace(exchange, response=RecordedResponse(200, text))


def _infer_request(title: str, value: dict[str, Any]) -> Exchange | None:
    """Return the request of a response; None if it names no servers."""
    data = value.get("data")
    if isinstance(data, dict) and isinstance(data.get("id"), str):
        path = http.SERVERS_PATH + data["id"]
        return build_exchange(title, "GET", path.encode("utf-8", "replace"), [])
    if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
        return None
    servers = [{"identifier": one.get("serverId"), "by": "id"} for one in data]
    body = wire.encode({"servers": servers, "range": value.get("range")})
    return replace(build_exchange(title, "POST", http.COMPARE_PATH.encode(), _TYPE), body=body)


def find_response(text: str) -> tuple[RecordedResponse | None, int | None]:
    """Find the response below a command, with its head if curl printed one, and its date.

    Without a head, the body tells the status.
    """
    head = _HEAD.search(text)
    body = _BODY.search(text, head.end() if head else 0)
    date = _DATE.search(head[2]) if head else None
    answered_at = parse_date(date[1].strip()) if date else None
    if body is None:
        return (RecordedResponse(int(head[1]), None) if head else None), answered_at
    start = body.start(1)
    end = len(text)
    value: Any = None
    with suppress(ValueError, RecursionError):  # it is compared as it is
        value, end = json.JSONDecoder().raw_decode(text, start)
    status = int(head[1]) if head else 200
    if head is None and isinstance(value, dict) and isinstance(value.get("error"), dict):
        status = _STATUS.get(value["error"].get("code"), 500)
    return RecordedResponse(status, text[start:end].strip().encode("utf-8", "replace")), answered_at
