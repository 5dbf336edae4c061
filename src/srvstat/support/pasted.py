"""Read what people paste and export: JSON alone or below a command, fetch calls, and Postman."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from srvstat.contract import errors, http, wire
from srvstat.contract.errors import SourceError
from srvstat.support.recordings import (
    Exchange,
    RecordedResponse,
    Unreadable,
    build_exchange,
    keep_judged,
    parse_date,
)

_MAX_BYTES = 16 << 20
_TYPE = [(b"content-type", http.JSON_TYPE.encode())]
_HEAD = re.compile(
    r"^(?:< )?HTTP/[0-9.]+ ([1-5][0-9]{2})\b[^\n]*\n((?:[^\n{][^\n]*\n)*)", re.MULTILINE
)
_DATE = re.compile(r"^(?:< )?date:[ \t]*([^\n]+)", re.MULTILINE | re.IGNORECASE)
_BODY = re.compile(r'^[^\n"{]{0,80}(\{\s*"(?:data|range|error)"\s*:)', re.MULTILINE)
_FETCH = re.compile(r"\bfetch\(\s*(?=\")")
_STATUS: dict[str, int] = {kind.code: kind.http_status for kind in errors.ApiError.__subclasses__()}


def _read_bytes(title: str, chunks: Iterator[bytes]) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > _MAX_BYTES:
            raise SourceError(f"{title}: more than {_MAX_BYTES:,} bytes; split it")
    return bytes(body).strip()


def _decode(title: str, text: bytes) -> dict[str, Any]:
    try:
        value = wire.decode(text)
    except wire.JsonError as error:
        raise SourceError(f"{title}: {error}; send the whole text") from None
    if not isinstance(value, dict):
        raise SourceError(f"{title}: not a JSON object; send the whole text")
    return value


def read_json(title: str, chunks: Iterator[bytes]) -> Iterator[Exchange | Unreadable]:
    """Read the body of a request of Compare Servers, or of a response.

    A response names the servers and the range of its request.

    Raises SourceError.
    """
    text = _read_bytes(title, chunks)
    value = _decode(title, text)
    if "servers" in value:
        yield replace(build_exchange(title, "POST", http.COMPARE_PATH.encode(), _TYPE), body=text)
        return
    exchange = None
    with suppress(UnicodeEncodeError):
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
    names = [one.get("serverId") for one in _list_objects(value, "data")]
    length = value.get("range")
    if not names or not all(isinstance(each, str) for each in (*names, length)):
        return None
    servers = [{"identifier": name, "by": "id"} for name in names]
    body = wire.encode({"servers": servers, "range": length})
    return replace(build_exchange(title, "POST", http.COMPARE_PATH.encode(), _TYPE), body=body)


def find_response(text: str) -> tuple[RecordedResponse | None, int | None]:
    """Find the response below a command, with its head if curl printed one, and its date.

    Without a head, the body tells the status.
    """
    heads = [*_HEAD.finditer(text)]
    head = heads[-1] if heads else None  # after those of 100 Continue and of redirects
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
        status = _STATUS.get(str(value["error"].get("code")), 500)
    return RecordedResponse(status, text[start:end].strip().encode("utf-8", "replace")), answered_at


def read_fetch(title: str, chunks: Iterator[bytes]) -> Iterator[Exchange | Unreadable]:
    """Read calls of `fetch` as browsers copy them: a URL and an object, both in JSON.

    Raises SourceError.
    """
    text = _read_bytes(title, chunks).decode("utf-8", "replace")
    decode = json.JSONDecoder().raw_decode
    for call in _FETCH.finditer(text):
        place = f"{title}, line {text.count(chr(10), 0, call.start()) + 1}"
        try:
            url, end = decode(text, call.end())
            options: dict[str, Any] = {}
            if comma := re.compile(r"\s*,\s*").match(text, end):
                options, _ = decode(text, comma.end())
            headers = options.get("headers") or {}
            sent = {"method": "GET", **options, "header": _list_pairs(headers), "url": url}
            yield _build_request(place, sent, options.get("body"))
        except (ValueError, AttributeError, TypeError, RecursionError):
            yield Unreadable(place, "not a call of fetch with JSON; copy it as fetch, or as cURL")


def _list_pairs(headers: dict[str, str]) -> list[dict[str, str]]:
    return [{"key": name, "value": value} for name, value in headers.items()]


def read_postman(title: str, chunks: Iterator[bytes]) -> Iterator[Exchange | Unreadable]:
    """Read the saved responses of a Postman collection, its other requests, or a run of newman.

    Raises SourceError.
    """
    value = _decode(title, _read_bytes(title, chunks))
    run = value.get("run")
    found = [*_iter_run(run)] if isinstance(run, dict) else [*_iter_items(value)]
    for number, (request, response) in enumerate(found, 1):
        place = f"{title}, request {number}"
        try:
            body = (request.get("body") or {}).get("raw")
            exchange = _build_request(place, request, body)
            yield exchange if response is None else _add_response(exchange, response)
        except (ValueError, AttributeError, TypeError, LookupError):
            yield Unreadable(place, "not a request of a Postman collection 2.1")


def _iter_items(value: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield requests and responses: each saved response, or a request without one."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        saved = _list_objects(item, "response")
        for response in saved:
            yield response.get("originalRequest") or item.get("request"), response
        if "request" in item and not saved:
            yield item["request"], None
        waiting += reversed(_list_objects(item, "item"))


def _iter_run(run: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    for each in _list_objects(run, "executions"):
        yield each.get("request"), each.get("response")


def _list_objects(value: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = value.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _build_request(place: str, request: dict[str, Any], body: str | None) -> Exchange:
    url = request["url"]
    if isinstance(url, dict):
        path = "/".join(url.get("path") or ())
        raw = url.get("raw") or f"{'.'.join(url.get('host') or ())}/{path}"
        query = "&".join(f"{one['key']}={one['value']}" for one in url.get("query") or ())
        url = raw if url.get("raw") or not query else f"{raw}?{query}"
    method = str(request["method"])
    method.encode()  # it is shown; everything else is encoded below
    # A variable such as {{baseUrl}}, or a host without a scheme, precedes the path.
    target = re.sub(r"^(?!https?://)[^/]*(?=/)", "", url)
    pairs = (
        (one["key"].encode(), str(one["value"]).encode()) for one in request.get("header") or ()
    )
    headers = keep_judged(pairs)
    exchange = build_exchange(place, method, target.encode(), headers)
    return replace(exchange, body=(body or "").encode())


def _add_response(exchange: Exchange, response: dict[str, Any]) -> Exchange:
    body = response.get("body")
    if body is None and response.get("stream") is not None:  # of newman
        body = bytes(response["stream"]["data"]).decode("utf-8", "replace")
    stored = None if body is None else body.encode()
    headers = {one["key"].lower(): str(one["value"]) for one in response.get("header") or ()}
    return replace(
        exchange,
        response=RecordedResponse(HTTPStatus(response["code"]).value, stored),
        answered_at=parse_date(headers.get("date", "")),
        request_id=headers.get("x-request-id"),
    )
