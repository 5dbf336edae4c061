"""What the tests of recordings share: readings of text, and parts of HAR files."""

import json
from pathlib import Path
from typing import Any

from srvstat.support.recordings import Exchange, Unreadable
from srvstat.support.replay import read_recording

COMPARE = "https://api.example/gateway/v1/compare"
SERVER = "https://api.example/gateway/v1/servers/a"


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


def build_entry(url: str = SERVER, **members: Any) -> dict[str, Any]:
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


def build_har(*entries: Any) -> bytes:
    """Return a HAR file."""
    log = {"version": "1.2", "creator": {"name": "test"}, "pages": [], "entries": entries}
    return json.dumps({"log": log}, indent=1).encode()
