"""Append newer observations of a server to its stored rows.

The result equals what `derive` returns for all observations, but few stored rows are read.
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from operator import sub
from typing import NamedTuple

from srvstat.contract.instants import LATEST
from srvstat.contract.ranges import Window
from srvstat.snapshot.format.append_members import append_members, take_members
from srvstat.snapshot.format.append_summaries import append_summaries
from srvstat.snapshot.format.bands import ValueNumbers, find_numbers, read_bands
from srvstat.snapshot.format.calendar import Blocks, CalendarColumns, read_calendar, split_calendar
from srvstat.snapshot.format.days import Totals, derive_days, pack_sum, read_day_observations
from srvstat.snapshot.format.derive import DerivedColumns
from srvstat.snapshot.format.derive_summaries import MIN_OBSERVATIONS, Take
from srvstat.snapshot.format.digest import DIGEST_BYTES, digest_row
from srvstat.snapshot.format.epochs import find_epoch
from srvstat.snapshot.format.packing import pack, unpack
from srvstat.snapshot.format.rows import DAYS_PER_SERVER, Day, ServerRow, Value
from srvstat.snapshot.format.stored_rows import StoredRows


class AppendResult(NamedTuple):
    """The new derived columns of `servers`, and the rows that replace or follow the stored ones.

    Each row has its table. A row with the key of a stored one replaces it.
    """

    columns: DerivedColumns
    rows: Sequence[tuple[str, tuple[Value, ...]]]


def append(
    stored: StoredRows, instants: Sequence[int], players: Sequence[int]
) -> AppendResult | None:
    """Append observations, at least one, in ascending order of instants, to those of a server.

    Returns None if the rows have to be derived from all observations: the server has fewer than 64
    stored ones, the first instant is not later than the last stored one, a new epoch begins, or
    the usual interval or the excess of long intervals does not follow from the rows that are read.

    Raises what `stored` raises; ValueError, TypeError and LookupError for rows that no build
    writes.
    """
    server = stored.server
    if not _is_possible(server, instants):
        return None
    instants, players = array("q", instants), array("q", players)
    rows: list[tuple[str, tuple[Value, ...]]] = []

    def take(table: str, row: tuple[Value, ...]) -> None:
        rows.append((table, row))

    summaries = append_summaries(stored, instants, players, take)
    if summaries is None:
        return None
    bands = read_bands(server)
    numbers = find_numbers(players, bands.starts)
    cumulative = unpack(server.cumulative, len(bands.starts))
    later = zip(numbers, players, strict=True)
    extended = append_members(stored, "bands", bands, cumulative, later)
    take_members(take, "bands", server.server, extended.members)
    calendar, totals = _append_days(stored, instants, players, bands.starts, take)
    columns = DerivedColumns(
        observation_count=totals.observations,
        first_observed_at=server.first_observed_at,
        last_observed_at=instants[-1],
        **calendar._asdict(),
        band_count=server.band_count,
        bands=server.bands,
        band_digests=extended.band_digests,
        player_sum=pack_sum(totals.player_sum),
        cumulative=pack(list(accumulate(totals.histogram.values())), totals.observations),
        last_players=players[-1],
        **summaries._asdict(),
    )
    return AppendResult(columns, rows)


def _is_possible(server: ServerRow, instants: Sequence[int]) -> bool:
    """Check that newer observations leave the bands of a server as they are."""
    last, count = server.last_observed_at, server.observation_count
    if last is None or count < MIN_OBSERVATIONS or instants[0] <= last:
        return False
    return find_epoch(server.id, count) == find_epoch(server.id, count + len(instants))


def _append_days(
    stored: StoredRows,
    instants: "array[int]",
    players: "array[int]",
    starts: Sequence[int],
    take: Take,
) -> tuple[CalendarColumns, Totals]:
    """Derive the last stored day and later ones.

    Calls `take` with each row. Returns the calendar, and the totals of all observations.
    """
    server, last = stored.server, stored.read_last_day()
    times, of_day = read_day_observations([last], Window(-1, LATEST))
    instants, players = array("q", times) + instants, array("q", of_day) + players
    before = _read_totals(last, of_day, starts)
    calendar = read_calendar(server)
    blocks = calendar.stored_blocks
    days = [*calendar.recent.days[:-1]]
    digests = [calendar.recent.digests[:-DIGEST_BYTES]]
    for row in derive_days(server.server, instants, players, ValueNumbers(starts), before):
        take("days", row)
        days.append(row.server_day % DAYS_PER_SERVER)
        digests.append(digest_row("days", row))
    earlier = Blocks(calendar.edges[: 2 * blocks], calendar.digests)
    columns, rows = split_calendar(server.server, days, b"".join(digests), earlier)
    for block in rows:
        take("calendars", block)
    return columns, Totals(
        before.observations + len(players),
        before.player_sum + sum(players),
        players[-1],
        before.histogram,
    )


def _read_totals(day: Day, players: Sequence[int], starts: Sequence[int]) -> Totals:
    """Return the totals before a day, whose prefix includes the first half of its players."""
    half = players[: len(players) // 2]
    cumulative = unpack(day.cumulative, len(starts))
    histogram = Counter(dict(enumerate(map(sub, cumulative, [0, *cumulative]))))
    histogram.subtract(find_numbers(half, starts))
    total = int.from_bytes(day.prefix_sum, "little") - sum(half)
    return Totals(day.prefix_count - len(half), total, day.players_before, histogram)
