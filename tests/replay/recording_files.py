"""Write recordings in the forms that clients export."""

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Line = dict[str, Any]


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
    entries = [_build_entry(line) for line in lines]
    log = {"version": "1.2", "creator": {"name": "x", "version": "1"}, "entries": entries}
    path.write_text(json.dumps({"log": log}), encoding="utf-8")
    return str(path)


def _build_entry(line: Line) -> dict[str, Any]:
    request, response = line["request"], line["response"]
    sent = [{"name": name.title(), "value": value} for name, value in request["headers"].items()]
    body = request["body"]
    posted = {} if body is None else {"postData": {"mimeType": "application/json", "text": body}}
    content = base64.b64encode(response["body"].encode()).decode()
    return {
        "startedDateTime": line["requestedAt"],
        "request": {
            "method": request["method"],
            "url": f"https://api.example{request['path']}",
            "headers": sent,
            **posted,
        },
        "response": {
            "status": response["status"],
            "headers": [],
            "content": {"mimeType": "application/json", "text": content, "encoding": "base64"},
        },
    }
