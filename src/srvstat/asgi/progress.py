"""What is known of a request while it is answered, for its answer, the log and the recording."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from srvstat.asgi.answers import build_headers, create_request_id
from srvstat.asgi.snapshots import Generation
from srvstat.contract.http import (
    KEY_HEADER,
    REQUEST_ID_HEADER,
    REQUEST_ID_PATTERN,
    Head,
    find_values,
)
from srvstat.contract.key_filter import HIDDEN, KeyFilter
from srvstat.contract.requests import ServerReference

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that the log names; any other is `other`."""

_REQUEST_ID = re.compile(REQUEST_ID_PATTERN)
_REQUEST_ID_NAME = REQUEST_ID_HEADER.lower()
_KEY_NAME = KEY_HEADER.lower().encode()


@dataclass
class Progress:
    """A request, and what has been found out so far."""

    requested_at: int
    """In Unix milliseconds."""
    head: Head
    key_filter: KeyFilter
    entry: dict[str, Any]
    """The entry in the log."""
    headers: dict[str, str]
    """The headers of the answer so far."""
    plan: str | None = None
    body: bytes = b""
    """Empty until it is read completely."""
    generation: Generation | None = None
    """The one that answers; None until it is selected."""
    send_at: float = 0.0
    """The time of the event loop before which the answer is not sent."""
    is_rehearsed: bool = False
    """Whether the answer is a rehearsed failure, not the API's."""


def start_progress(request: Request, is_registered: Callable[[bytes], bool]) -> Progress:
    """Return what is known from the head of a request; `is_registered` knows the keys."""
    scope = request.scope
    keys = [key.decode("latin-1") for key in find_values(scope["headers"], _KEY_NAME)]
    key_filter = KeyFilter(keys, is_registered)
    entry = {
        "id": _choose_request_id(request, key_filter),
        "remote": format_address(request.client),
        "method": request.method if request.method in _METHODS else "other",
    }
    head = Head(request.method, scope["raw_path"], scope["query_string"], scope["headers"])
    requested_at = time.time_ns() // 1_000_000
    return Progress(requested_at, head, key_filter, entry, build_headers(entry["id"]))


def format_address(client: tuple[str, int] | None) -> str:
    """Format a client's address: `127.0.0.1:5000`, `[::1]:5000`."""
    if client is None:
        return ""
    host, port = client
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def format_references(references: tuple[ServerReference, ...], key_filter: KeyFilter) -> list[str]:
    """Format references for the log: `cfxId:abc123`."""
    return [
        f"{each.by}:{HIDDEN if key_filter.has_key(each.identifier) else each.identifier}"
        for each in references
    ]


def _choose_request_id(request: Request, key_filter: KeyFilter) -> str:
    """Return the request id that the client sent if it is harmless, else a new one."""
    sent = request.headers.getlist(_REQUEST_ID_NAME)
    if len(sent) == 1 and _REQUEST_ID.fullmatch(sent[0]) and not key_filter.has_key(sent[0]):
        return sent[0]
    return create_request_id()
