"""Derive the rows of a snapshot as schema.sql describes them, independently of our code."""

import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from itertools import groupby, pairwise
from typing import Any

from conftest import DAY
from snapshot.described_numbers import describe_sum, pack_numbers
from snapshot.described_summaries import SUMMARY_KEYS, describe_digests, describe_summaries
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
        servers = connection.execute("SELECT server, id FROM servers ORDER BY server").fetchall()
        rows = connection.execute("SELECT * FROM observations ORDER BY 1, 2").fetchall()
    tables = ("days", "calendars", "bands", "servers", *SUMMARY_KEYS)
    found: dict[str, _Rows] = {table: [] for table in tables}
    for key, server_id in servers:
        pairs = [(at, players) for server, at, players in rows if server == key]
        _describe(key, pairs, describe_epoch(server_id, len(pairs)), found)
    return found


def describe_epoch(server_id: str, observations: int) -> int:
    """Return the number of first observations that determine the bands of a server."""
    thresholds = [2**18 + int(sha256(server_id.encode()).hexdigest()[:4], 16)]
    while thresholds[-1] < (observations + 1) * 2**18:
        thresholds.append(thresholds[-1] * 5 // 4)
    return max((each // 2**18 for each in thresholds[:-1]), default=0)


def _describe(
    key: int, pairs: Sequence[tuple[int, int]], epoch: int, found: dict[str, _Rows]
) -> None:
    instants, players = [at for at, _ in pairs], [value for _, value in pairs]
    starts = describe_bands(players[:epoch], len({at // DAY for at in instants[:epoch]}))
    days = _describe_days(key, pairs, starts)
    numbers = [row[0] % 10_000_000 for row in days]
    digests = [digest_row("days", row) for row in days]
    recent = max(len(days) // 32 - 1, 0) * 32
    blocks = [slice(start, start + 32) for start in range(0, recent, 32)]
    calendars = [
        (key * 10_000 + number, pack_numbers(numbers[block]), b"".join(digests[block]))
        for number, block in enumerate(blocks)
    ]
    edges = [day for block in blocks for day in (numbers[block][0], numbers[block][-1])]
    members = [
        [value - start for value in players if start <= value < end]
        for start, end in pairwise([*starts, 2**53])
    ]
    bands = {
        number: (key * 1_000_000 + number, len(above), pack_numbers(above))
        for number, above in enumerate(members)
        if any(above)
    }
    found["days"] += days
    found["calendars"] += calendars
    found["bands"] += bands.values()
    found["servers"].append(
        (
            *(key, len(pairs), min(instants, default=None), max(instants, default=None)),
            *(pack_numbers(numbers[recent:]), b"".join(digests[recent:]), pack_numbers(edges)),
            b"".join(digest_row("calendars", row) for row in calendars),
            *(len(starts), pack_numbers(starts)),
            describe_digests({at: digest_row("bands", row) for at, row in bands.items()}),
            describe_sum(players),
            describe_cumulative(players, starts),
            players[-1] if players else None,
            *describe_summaries(key, pairs, epoch, found),
        )
    )


def describe_bands(players: Sequence[int], days: int) -> list[int]:
    """Return the starts of the bands of a server whose epoch has a number of days."""
    counts = Counter(players)
    if not counts:
        return []
    per_day = len(players) // days
    wanted = max(sorted([16, per_day, 512])[1], len(players) // 100_000)
    is_few = len(counts) <= 4096 and len(counts) <= 16 * per_day
    full = 1 if is_few else -(-len(players) // wanted)
    starts = {0}
    in_band = full
    for value, count in sorted(counts.items()):
        if count >= full:
            starts |= {value, value + 1}
            in_band = full
            continue
        if in_band >= full:
            starts.add(value)
            in_band = 0
        in_band += count
    least, greatest = min(counts), max(counts)
    steps = [2**power for power in range(53)]
    starts |= {least - step for step in steps if step < least}
    starts |= {greatest + step for step in steps if step <= greatest or step == 1}
    return sorted(start for start in starts if start < 2**53)


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
