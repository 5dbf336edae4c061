"""Derive the rows of a snapshot as schema.sql describes them, independently of our code."""

import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from itertools import groupby
from typing import Any

from conftest import DAY
from snapshot.described_numbers import describe_sum, pack_numbers
from snapshot.described_summaries import SUMMARY_KEYS, describe_summaries
from srvstat.snapshot.format.digest import digest_row

_Rows = list[tuple[Any, ...]]


def read_stored_rows(path: str) -> dict[str, _Rows]:
    """Return the stored derived rows by table, with the derived columns of `servers`."""
    queries = {
        "days": "SELECT * FROM days ORDER BY server_day",
        "calendars": "SELECT * FROM calendars ORDER BY server_block",
        "bands": "SELECT * FROM bands ORDER BY server_band",
        "servers": (
            "SELECT server, observation_count, first_observed_at, last_observed_at, days,"
            " day_digests, blocks, block_digests, band_count, bands, band_digests,"
            " player_sum, cumulative, last_players, usual_interval, covered, summary_digest"
            " FROM servers ORDER BY server"
        ),
    }
    for table, key in SUMMARY_KEYS.items():
        queries[table] = f"SELECT * FROM {table} ORDER BY {key}"  # noqa: S608 - our own names
    with closing(sqlite3.connect(path)) as connection:
        return {table: connection.execute(sql).fetchall() for table, sql in queries.items()}


def describe_rows(path: str) -> dict[str, _Rows]:
    """Derive the same rows from the observations of a snapshot."""
    with closing(sqlite3.connect(path)) as connection:
        servers = connection.execute("SELECT server FROM servers ORDER BY server").fetchall()
        rows = connection.execute("SELECT * FROM observations ORDER BY 1, 2").fetchall()
    tables = ("days", "calendars", "bands", "servers", *SUMMARY_KEYS)
    found: dict[str, _Rows] = {table: [] for table in tables}
    for (key,) in servers:
        _describe(key, [(at, players) for server, at, players in rows if server == key], found)
    return found


def _describe(key: int, pairs: Sequence[tuple[int, int]], found: dict[str, _Rows]) -> None:
    instants, players = [at for at, _ in pairs], [value for _, value in pairs]
    groups = describe_bands(players, len({at // DAY for at in instants}))
    days = _describe_days(key, pairs, [group[0] for group in groups])
    numbers = [row[0] % 10_000_000 for row in days]
    digests = [digest_row("days", row) for row in days]
    recent = max(len(days) // 32 - 1, 0) * 32
    blocks = [slice(start, start + 32) for start in range(0, recent, 32)]
    calendars = [
        (key * 10_000 + number, pack_numbers(numbers[block]), b"".join(digests[block]))
        for number, block in enumerate(blocks)
    ]
    edges = [day for block in blocks for day in (numbers[block][0], numbers[block][-1])]
    bands = {
        number: (key * 1_000_000 + number, *_describe_members(group, players))
        for number, group in enumerate(groups)
        if len(group) > 1
    }
    of_bands = [
        digest_row("bands", bands[at]) if at in bands else bytes(16) for at in range(len(groups))
    ]
    found["days"] += days
    found["calendars"] += calendars
    found["bands"] += bands.values()
    found["servers"].append(
        (
            *(key, len(pairs), min(instants, default=None), max(instants, default=None)),
            *(pack_numbers(numbers[recent:]), b"".join(digests[recent:]), pack_numbers(edges)),
            b"".join(digest_row("calendars", row) for row in calendars),
            *(len(groups), pack_numbers([group[0] for group in groups])),
            b"".join(of_bands) if bands else b"",
            describe_sum(players),
            describe_cumulative(players, [group[0] for group in groups]),
            players[-1] if players else None,
            *describe_summaries(key, pairs, found),
        )
    )


def describe_bands(players: Sequence[int], days: int) -> list[list[int]]:
    """Return the values of each band of a server with observations on a number of days."""
    counts = Counter(players)
    if not counts:
        return []
    per_day = len(players) // days
    if len(counts) <= 4096 and len(counts) <= 16 * per_day:
        return [[value] for value in sorted(counts)]
    wanted = max(sorted([16, per_day, 512])[1], len(players) // 100_000)
    groups: list[list[int]] = []
    for value in sorted(counts):
        # A full band gets no more values, and a value that fills a band shares it with none.
        last = sum(counts[other] for other in groups[-1]) if groups else len(players)
        if last * wanted >= len(players) or counts[value] * wanted >= len(players):
            groups.append([])
        groups[-1].append(value)
    return groups


def _describe_members(group: Sequence[int], players: Sequence[int]) -> tuple[int, bytes]:
    members = [value - group[0] for value in players if group[0] <= value <= group[-1]]
    return len(members), pack_numbers(members)


def _describe_days(key: int, pairs: Sequence[tuple[int, int]], starts: Sequence[int]) -> _Rows:
    found: _Rows = []
    for day, of_day in groupby(pairs, key=lambda pair: pair[0] // DAY):
        times, players = map(list, zip(*of_day, strict=True))
        before = [value for at, value in pairs if at < day * DAY]
        after = [value for at, value in pairs if at >= (day + 1) * DAY]
        prefix = before + players[: len(players) // 2]
        found.append(
            (
                key * 10_000_000 + day,
                len(players),
                pack_numbers([at - day * DAY for at in times], DAY),
                pack_numbers(players),
                before[-1] if before else None,
                after[0] if after else None,
                len(prefix),
                describe_sum(prefix),
                describe_cumulative(prefix, starts),
            )
        )
    return found


def describe_cumulative(players: Sequence[int], starts: Sequence[int]) -> bytes:
    """Return the number of players in each band or a lower one, packed."""
    ranked = sorted(players)
    below = [bisect_right(ranked, start - 1) for start in starts[1:]]
    return pack_numbers([*below, len(ranked)], len(ranked)) if starts else b""
