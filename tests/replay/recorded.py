"""Exchanges with the API: as a reader of recordings returns them, and in files to be read."""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from srvstat.contract.http import Head
from srvstat.support.recognition import read_recording
from srvstat.support.recordings import Exchange, RecordedResponse, Unreadable

COMPARE = "/gateway/v1/compare"
SERVER = "/gateway/v1/servers/a"
HOST = "https://api.example"

Line = dict[str, Any]
"""An exchange as a person writes it."""


def record_comparison(
    identifiers: Sequence[str], range: str, answer: bytes | None, **more: Any
) -> Exchange:
    """Return a comparison of servers by their ids, and its response."""
    servers = [{"identifier": name, "by": "id"} for name in identifiers]
    head = Head("POST", COMPARE.encode(), b"", [(b"content-type", b"application/json")])
    body = json.dumps({"servers": servers, "range": range}).encode()
    return _record(head, body, answer, **more)


def record_get(target: str, answer: bytes | None, **more: Any) -> Exchange:
    """Return a request for one server by the end of its path and its query, and its response."""
    path, _, query = f"/gateway/v1/servers/{target}".encode().partition(b"?")
    return _record(Head("GET", path, query, []), b"", answer, **more)


def _record(
    head: Head,
    body: bytes,
    answer: bytes | None,
    status: int = 200,
    headers: Sequence[tuple[bytes, bytes]] = (),
    **fields: Any,
) -> Exchange:
    head = head._replace(headers=[*head.headers, *headers])
    response = RecordedResponse(status, answer)
    return Exchange("case.har, entry 1", head, body, response=response, **fields)


def write_ndjson(path: Path, lines: Iterable[Line]) -> str:
    """Write exchanges by hand, one a line, and return the name of the file."""
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return str(path)


def describe_exchange(
    target: str,
    answer: str | None,
    *,
    status: int = 200,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
    **times: str,
) -> Line:
    """Return an exchange: a comparison if it has a body, else a request for one server."""
    sent = {"content-type": "application/json"} if body is not None else {}
    return {
        "request": {
            "method": "GET" if body is None else "POST",
            "path": target,
            "headers": {**sent, **(headers or {})},
            "body": body,
        },
        "response": {"status": status, "body": answer},
        **times,
    }


def write_har(path: Path, lines: Iterable[Line]) -> str:
    """Write the same exchanges as a HAR file, as browsers do, and return its name."""
    path.write_bytes(build_har(*map(convert_line, lines)))
    return str(path)


def convert_line(line: Line) -> dict[str, Any]:
    """Return an exchange as an entry of a HAR file."""
    request, response = line["request"], line["response"]
    sent = [{"name": name.title(), "value": value} for name, value in request["headers"].items()]
    return build_entry(
        f"{HOST}{request['path']}",
        startedDateTime=line["requestedAt"],
        request_method=request["method"],
        request_headers=sent,
        request_postData={"mimeType": "application/json", "text": request["body"]},
        response_status=response["status"],
        response_content=build_content(response["body"].encode()),
    )


def read_all(path: Path, content: bytes | str) -> list[Exchange | Unreadable]:
    """Write a recording, and read it."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_recording(str(path)))


def read_one(path: Path, content: bytes | str) -> Exchange:
    """Write a recording of one exchange, and read it."""
    (read,) = read_all(path, content)
    assert isinstance(read, Exchange), read
    return read


def find_reason(path: Path, content: bytes | str) -> str:
    """Write a recording of one part that is unreadable; return the reason."""
    (read,) = read_all(path, content)
    assert isinstance(read, Unreadable), read
    return read.reason


def build_entry(url: str = HOST + SERVER, **members: Any) -> dict[str, Any]:
    """Return an entry of a HAR file; members named `request_…` and `response_…` are inside."""
    request = {"method": "GET", "url": url, "httpVersion": "h2", "headers": [], "bodySize": 0}
    response = {"status": 200, "headers": [], "content": {"mimeType": "application/json"}}
    entry: dict[str, Any] = {
        "startedDateTime": "2026-03-01T12:00:00.123Z",
        "time": 1.5,
        "request": request,
        "response": response,
        "timings": {"send": 0, "wait": 1.25, "receive": 0.25},
    }
    for name, value in members.items():
        outer, _, inner = name.partition("_")
        if inner:
            entry[outer][inner] = value
        else:
            entry[outer] = value
    return entry


def build_content(body: bytes, **members: Any) -> dict[str, Any]:
    """Return a body as browsers store one that is no text."""
    return {"text": base64.b64encode(body).decode(), "encoding": "base64", **members}


def build_har(*entries: Any) -> bytes:
    """Return a HAR file."""
    log = {"version": "1.2", "creator": {"name": "test"}, "pages": [], "entries": entries}
    return json.dumps({"log": log}, indent=1).encode()
