"""Compare two snapshots by all of their rows, as `snapshot diff` does by digests."""

import sqlite3
from collections import defaultdict
from contextlib import closing
from typing import Any, NamedTuple, get_args

from srvstat.contract.requests import ServerReference
from srvstat.contract.time import Range, format_instant
from srvstat.operations.answers import compute_results
from srvstat.snapshot.read.file import SnapshotFile, open_file

RANGES: tuple[Range, ...] = get_args(Range)

_FIELDS = {
    "game": "game",
    "cfx_id": "cfxId",
    "hostname": "hostname",
    "project_name": "projectName",
    "project_description": "projectDescription",
    "region": "region",
    "players_current": "players.current",
    "players_max": "players.max",
    "tags": "tags",
    "flags": "flags",
    "chat_url": "chatUrl",
    "icon_url": "iconUrl",
    "offline": "offline",
    "first_seen_at": "firstSeenAt",
    "updated_at": "updatedAt",
    "source_id": "sourceId",
    "completed": "completed",
}
"""The name of the record's field for each column of `servers`."""


class _Content(NamedTuple):
    records: dict[str, dict[str, Any]]
    observations: dict[str, set[tuple[int, int]]]


def describe_difference(old: str, new: str, at: int | None = None) -> dict[str, Any]:
    """Return the members `servers` and `answers` of the document."""
    before, after = _read_content(old), _read_content(new)
    changed = []
    for name in sorted(before.records.keys() & after.records.keys()):
        was, now = before.records[name], after.records[name]
        fields = [_FIELDS[column] for column in _FIELDS if was[column] != now[column]]
        pairs = before.observations[name] ^ after.observations[name]
        days = sorted({format_instant(instant)[:10] for instant, _ in pairs})
        if fields or days:
            changed.append({"serverId": name, "fields": fields, "days": days})
    with closing(open_file(old)) as first, closing(open_file(new)) as second:
        as_of = min(first.as_of, second.as_of) if at is None else at
        answers = [
            {"serverId": one["serverId"], "range": name, "differences": differences}
            for one in changed
            for name in RANGES
            if (differences := _compare(first, second, str(one["serverId"]), name, as_of))
        ]
    return {
        "servers": {
            "added": sorted(after.records.keys() - before.records.keys()),
            "removed": sorted(before.records.keys() - after.records.keys()),
            "changed": changed,
        },
        "answers": answers,
    }


def _read_content(path: str) -> _Content:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        records = {row["id"]: dict(row) for row in connection.execute("SELECT * FROM servers")}
        observations = defaultdict(set)
        query = "SELECT id, observed_at, players FROM observations JOIN servers USING (server)"
        for name, instant, players in connection.execute(query):
            observations[name].add((instant, players))
    return _Content(records, observations)


def _compare(
    old: SnapshotFile, new: SnapshotFile, identifier: str, name: Range, at: int
) -> list[dict[str, Any]]:
    reference = ServerReference(identifier=identifier, by="id")
    ((before,), (after,)) = (compute_results(file, [reference], name, at=at) for file in (old, new))
    was, now = (_list_figures(one.model_dump()) for one in (before, after))
    return [
        {
            "pointer": pointer,
            "recorded": value,
            "recomputed": now[pointer],
            "class": "current" if pointer == "/currentPlayers" else "value",
            "absentIn": None,
        }
        for pointer, value in was.items()
        if value != now[pointer]
    ]


def _list_figures(result: dict[str, Any]) -> dict[str, Any]:
    growth = result.pop("growth")
    figures = {f"/{name}": value for name, value in result.items() if name != "sampleCount"}
    figures |= {f"/growth/{name}": value for name, value in growth.items()}
    return {**figures, "/sampleCount": result["sampleCount"]}
