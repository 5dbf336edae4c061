"""Make the records of sources; campaigns need no more, and not pytest."""

import json
from collections.abc import Iterable
from typing import Any

from srvstat.contract.time import YEAR_2001, format_instant

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


def write_time(at: int | str) -> int | str:
    """Return a time in a form that is read without a declared unit."""
    return format_instant(at) if isinstance(at, int) and 0 <= at < YEAR_2001 else at


def csv(rows: Iterable[tuple[str, int | str, int | str]]) -> bytes:
    """Return observations as CSV. Integers before 2001 are written as text, which is any time's."""
    lines = (f"{server_id},{write_time(at)},{players}\n" for server_id, at, players in rows)
    return ("serverId,observedAt,players\n" + "".join(lines)).encode()
