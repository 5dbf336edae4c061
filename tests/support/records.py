"""Make the records of sources; campaigns need no more, and not pytest."""

import json
from collections.abc import Iterable
from typing import Any

DAY = 86_400_000
AS_OF = 1_772_366_400_000
"""2026-03-01T12:00:00Z, the instant that small snapshots speak for."""


def server(identifier: str, **fields: Any) -> dict[str, Any]:
    """Return a server record with its required fields; `cfxId` is `x-` and the id unless given."""
    required = {
        "id": identifier,
        "cfxId": f"x-{identifier}",
        "game": "game_a",
        "hostname": identifier,
    }
    return {**required, **fields}


def ndjson(records: Iterable[Any]) -> bytes:
    """Return records as NDJSON."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def csv(rows: Iterable[tuple[str, int | str, int | str]]) -> bytes:
    """Return observations as CSV."""
    lines = (f"{server_id},{at},{players}\n" for server_id, at, players in rows)
    return ("serverId,observedAt,players\n" + "".join(lines)).encode()
