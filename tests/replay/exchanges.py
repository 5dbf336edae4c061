"""Make exchanges with the API, as a reader of recordings returns them."""

import json
from collections.abc import Sequence
from typing import Any

from srvstat.contract.http import Head
from srvstat.support.recordings import Exchange, RecordedResponse

COMPARE = b"/gateway/v1/compare"
JSON_HEADERS = ((b"content-type", b"application/json"),)


def record_comparison(
    identifiers: Sequence[str],
    range: str,
    answer: bytes | None,
    *,
    status: int = 200,
    headers: Sequence[tuple[bytes, bytes]] = (),
    **fields: Any,
) -> Exchange:
    """Return a comparison of servers by their ids, and its response."""
    servers = [{"identifier": name, "by": "id"} for name in identifiers]
    return Exchange(
        place="case.har, entry 1",
        head=Head("POST", COMPARE, b"", [*JSON_HEADERS, *headers]),
        body=json.dumps({"servers": servers, "range": range}).encode(),
        response=RecordedResponse(status, answer),
        **fields,
    )


def record_get(
    target: str,
    answer: bytes | None,
    *,
    status: int = 200,
    headers: Sequence[tuple[bytes, bytes]] = (),
    **fields: Any,
) -> Exchange:
    """Return a request for one server by the end of its path and its query, and its response."""
    path, _, query = f"/gateway/v1/servers/{target}".encode().partition(b"?")
    return Exchange(
        place="case.har, entry 1",
        head=Head("GET", path, query, [*headers]),
        body=b"",
        response=RecordedResponse(status, answer),
        **fields,
    )
