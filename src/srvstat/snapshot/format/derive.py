"""Derive rows from the observations of a server.

A build stores them, and `snapshot verify` compares them with the stored ones.
"""

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.snapshot.format.bands import (
    ValueNumbers,
    build_band_rows,
    digest_rows,
    divide_into_bands,
    find_epoch,
    pack_digests,
)
from srvstat.snapshot.format.calendar import split_calendar
from srvstat.snapshot.format.days import (
    create_totals,
    derive_days,
    find_day_starts,
    is_ascending,
    pack_sum,
)
from srvstat.snapshot.format.digest import digest_row
from srvstat.snapshot.format.packing import pack
from srvstat.snapshot.format.rows import DAYS_PER_SERVER, FileRow, ServerRow, Value
from srvstat.snapshot.format.summaries import derive_summaries


class DerivedColumns(NamedTuple):
    """The columns of `servers` that are derived from observations."""

    observation_count: int
    first_observed_at: int | None
    last_observed_at: int | None
    days: bytes
    day_digests: bytes
    blocks: bytes
    block_digests: bytes
    band_count: int
    bands: bytes
    band_digests: bytes
    player_sum: bytes
    cumulative: bytes
    last_players: int | None
    usual_interval: int | None
    covered: int | None
    summary_digest: bytes


def derive(
    server_id: str,
    server: int,
    instants: Sequence[int],
    players: Sequence[int],
    take: Callable[[str, tuple[Value, ...]], None],
) -> DerivedColumns:
    """Derive all rows of a server from its observations in ascending order.

    `server` is its number. Calls `take` with the table and the values of each row: the days, the
    calendars, the bands and the summaries, each in the order of the table's key. Returns the
    derived columns of `servers`.
    """
    # Slices of arrays become lists fast.
    instants, players = array("q", instants), array("q", players)
    epoch = find_epoch(server_id, len(instants))
    starts = divide_into_bands(players[:epoch], sum(1 for _ in find_day_starts(instants[:epoch])))
    bands = ValueNumbers(starts)
    totals = create_totals(len(starts))
    days: list[int] = []
    digests: list[bytes] = []
    for day in derive_days(server, instants, players, bands, totals):
        take("days", day)
        number = day.server_day % DAYS_PER_SERVER
        days.append(number)
        digests.append(digest_row("days", day))
    calendar, blocks = split_calendar(server, days, b"".join(digests))
    for block in blocks:
        take("calendars", block)
    rows = list(build_band_rows(server, players, starts, bands))
    for row in rows:
        take("bands", row)
    return DerivedColumns(
        len(instants),
        instants[0] if instants else None,
        instants[-1] if instants else None,
        *calendar,
        len(starts),
        pack(starts, starts[-1]) if starts else b"",
        pack_digests(digest_rows("bands", rows)),
        pack_sum(sum(players)),
        pack(list(accumulate(totals.histogram.values())), len(players)),
        players[-1] if players else None,
        *derive_summaries(server, instants, players, epoch, take),
    )


def has_valid_observations(instants: Sequence[int], players: Sequence[int], as_of: int) -> bool:
    """Return whether a build could have kept these observations of a server."""
    return not instants or (
        is_ascending(instants)
        and instants[0] >= 0
        and instants[-1] <= as_of
        and min(players) >= 0
        and max(players) <= MAX_SAFE_INTEGER
    )


def find_observed_span(
    holders: Iterable[DerivedColumns | ServerRow | FileRow],
) -> tuple[int | None, int | None]:
    """Return the first and the last instant of all observations of servers or files."""
    firsts, lasts = [], []
    for holder in holders:
        if holder.first_observed_at is not None and holder.last_observed_at is not None:
            firsts.append(holder.first_observed_at)
            lasts.append(holder.last_observed_at)
    return min(firsts, default=None), max(lasts, default=None)
