"""Append newer observations to the rows of a server."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain
from operator import sub
from typing import NamedTuple, Protocol

from srvstat.contract.instants import LATEST
from srvstat.contract.windows import Window
from srvstat.snapshot.format.bands import (
    Bands,
    Members,
    ValueNumbers,
    find_epoch,
    find_numbers,
    pack_digests,
    read_bands,
)
from srvstat.snapshot.format.calendar import Blocks, CalendarColumns, read_calendar, split_calendar
from srvstat.snapshot.format.days import Totals, derive_days, pack_sum, read_day_observations
from srvstat.snapshot.format.derive import DerivedColumns
from srvstat.snapshot.format.digest import DIGEST_BYTES, digest_row
from srvstat.snapshot.format.intervals import (
    CountBlock,
    extend_counts,
    find_bands,
    read_count_block,
)
from srvstat.snapshot.format.packing import extend_packed, pack, subtract_neighbors, unpack
from srvstat.snapshot.format.rows import (
    BANDS_PER_SERVER,
    BLOCKS_PER_SERVER,
    DAYS_PER_SERVER,
    Day,
    ForgedRowError,
    IntervalCounts,
    ServerRow,
    Summaries,
    SummaryIndex,
    Value,
)
from srvstat.snapshot.format.summaries import (
    MIN_OBSERVATIONS,
    Index,
    Series,
    SummaryBlock,
    SummaryColumns,
    SummaryDay,
    Take,
    build_block,
    compute_excess,
    extend_blocks,
    find_summary_days,
    has_all_long_intervals,
    read_block,
    read_index,
    read_long_intervals,
)
from srvstat.stats import find_middle_ranks


class StoredRows(Protocol):
    """Reads rows of one server, and verifies each of them."""

    @property
    def server(self) -> ServerRow:
        """The server's own row."""

    def read_last_day(self) -> Day:
        """Return the row of the last day with observations."""

    def read_index(self) -> SummaryIndex:
        """Return the row of `summary_index`."""

    def read_summaries(self, blocks: range) -> list[Summaries]:
        """Return the rows of `summaries` of some blocks, in order."""

    def read_interval_counts(self, block: int) -> IntervalCounts:
        """Return the row of `interval_counts` of a block."""

    def read_members(self, table: str, bands: Sequence[int]) -> dict[int, Members]:
        """Return the rows of `bands` or `intervals` of some bands, which have one."""


class ExtendedBands(NamedTuple):
    """The column of digests of bands with further members, and the rows that have changed."""

    band_digests: bytes
    members: Mapping[int, Members]


def append_members(
    stored: StoredRows,
    table: str,
    bands: Bands,
    cumulative: Sequence[int],
    later: Iterable[tuple[int, int]],
) -> ExtendedBands:
    """Append members to the bands of a server.

    `cumulative` has for each band the number of earlier members in it or a lower one. `later` has
    the band of each further member, and its value.
    """
    above: dict[int, list[int]] = {}
    for band, value in later:
        above.setdefault(band, []).append(value - bands.starts[band])
    with_row = [band for band in above if bands.get_digest(band)]
    changed = stored.read_members(table, with_row) if with_row else {}
    for band, values in above.items():
        if band not in changed and any(values) and bands.is_known(band):
            # So far, all members were the start of the band.
            size = cumulative[band] - (cumulative[band - 1] if band else 0)
            changed[band] = Members(size, bytes(size))
    members = {band: _extend(old, above[band]) for band, old in sorted(changed.items())}
    digests = {band: digest_row(table, (band, *of_band)) for band, of_band in members.items()}
    return ExtendedBands(pack_digests(bands.digests_by_number | digests), members)


def _extend(members: Members, above: Sequence[int]) -> Members:
    size, packed = members
    packed = extend_packed(packed, size, above) if size else pack(above, max(above))
    return Members(size + len(above), packed)


def take_members(
    take: Callable[[str, tuple[Value, ...]], None],
    table: str,
    server: int,
    members: Mapping[int, Members],
) -> None:
    """Call `take` with the row of each band of a server."""
    for band, of_band in members.items():
        take(table, (server * BANDS_PER_SERVER + band, *of_band))


class _LaterDays(NamedTuple):
    """The summary days of newer observations.

    Their series begins with the last stored observation.
    """

    series: Series
    days: Sequence[SummaryDay]
    numbers: bytes
    """The band of each interval."""

    def list_blocks(self, longest_usual: int) -> list[SummaryBlock]:
        """Return a block for each day."""
        intervals = enumerate(self.series.intervals)
        long = [at for at, interval in intervals if interval > longest_usual]
        return [build_block([day], self.series, long) for day in self.days]


def append_summaries(
    stored: StoredRows, instants: "array[int]", players: "array[int]", take: Take
) -> SummaryColumns | None:
    """Append observations to the summaries of a server.

    Calls `take` with the table and the values of each new or changed row. Returns None if the usual
    interval or the excess of long intervals does not follow from the rows that are read.
    """
    server, index_row = stored.server, stored.read_index()
    index = read_index(index_row)
    first = index.last_block
    block = read_block(stored.read_summaries(range(first, first + 1))[0])
    later = _list_later(server, index, instants, players)
    blocks = extend_blocks(block, later.list_blocks(index.longest_usual))
    starts = index.bands.starts
    counts = read_count_block(stored.read_interval_counts(first), len(block.days), len(starts))
    count_blocks = extend_counts(
        counts,
        [later.numbers[day.intervals] for day in later.days],
        joins_last_day=later.days[0].number == block.days[-1].day,
    )
    extended = append_members(
        stored,
        "intervals",
        index.bands,
        counts.after,
        zip(later.numbers, later.series.intervals, strict=True),
    )
    usual = _find_usual_interval(stored, index.bands, extended.members, count_blocks[-1].after)
    covered = usual and _compute_covered(stored, index, blocks, later.series, usual)
    if usual is None or covered is None:
        return None
    take_members(take, "intervals", server.server, extended.members)
    row = _append_rows(index_row, index, blocks, count_blocks, take)
    row = row._replace(band_digests=extended.band_digests)
    take("summary_index", row)
    return SummaryColumns(usual, covered, digest_row("summary_index", row))


def _list_later(
    server: ServerRow, index: Index, instants: "array[int]", players: "array[int]"
) -> _LaterDays:
    if server.last_observed_at is None or server.last_players is None:
        raise ForgedRowError("summaries without observations")
    days = [
        SummaryDay(number, first + 1, end + 1) for number, first, end in find_summary_days(instants)
    ]
    instants = array("q", [server.last_observed_at]) + instants
    players = array("q", [server.last_players]) + players
    intervals = subtract_neighbors(instants)
    numbers = find_bands(intervals, index.bands.starts)
    return _LaterDays(Series(instants, players, intervals), days, numbers)


def _find_usual_interval(
    stored: StoredRows,
    bands: Bands,
    changed: Mapping[int, Members],
    cumulative: Sequence[int],
) -> int | None:
    """Return the median of the intervals, in half milliseconds; None if it is not stored.

    `changed` has the new rows of bands, and `cumulative` counts all intervals.
    """
    members = {**changed}
    total = 0
    for rank in find_middle_ranks(cumulative[-1]):
        band = bisect_right(cumulative, rank)
        if not bands.is_known(band):
            return None
        if band not in members and bands.get_digest(band):
            members |= stored.read_members("intervals", [band])
        total += bands.starts[band]
        if band in members:
            size = members[band].size
            total += sorted(members[band].slice(0, size))[rank - cumulative[band] + size]
    return total


def _compute_covered(
    stored: StoredRows,
    index: Index,
    blocks: Sequence[SummaryBlock],
    later: Series,
    usual: int,
) -> int | None:
    """Return the sum of all intervals, each at most three usual ones, in half milliseconds.

    None if some long intervals are not listed.
    """
    server = stored.server
    if usual == server.usual_interval:
        length = later.instants[-1] - later.instants[0]
        return (server.covered or 0) + 2 * length - compute_excess(later.intervals, usual)
    if not has_all_long_intervals(usual, index.longest_usual):
        return None
    earlier = map(read_long_intervals, stored.read_summaries(range(index.last_block)))
    listed = [*earlier, *(block.long for block in blocks)]
    if None in listed:
        return None
    lengths = (each.length for each in chain.from_iterable(long or () for long in listed))
    length = later.instants[-1] - (server.first_observed_at or 0)
    return 2 * length - compute_excess(lengths, usual)


def _append_rows(
    row: SummaryIndex,
    index: Index,
    blocks: Sequence[SummaryBlock],
    counts: Sequence[CountBlock],
    take: Take,
) -> SummaryIndex:
    """Call `take` with the rows of blocks, the first of which replaces the last stored block.

    Returns the index with their days and digests.
    """
    first = index.last_block
    edges = [*index.edges[: 2 * first]]
    kept = first * DIGEST_BYTES
    digests, count_digests = [index.digests[:kept]], [index.count_digests[:kept]]
    for key, block in enumerate(blocks, row.server * BLOCKS_PER_SERVER + first):
        edges += (block.days[0].day, block.days[-1].day)
        summaries = block.build_row(key)
        take("summaries", summaries)
        digests.append(digest_row("summaries", summaries))
    for key, count_block in enumerate(counts, row.server * BLOCKS_PER_SERVER + first):
        interval_counts = count_block.build_row(key)
        take("interval_counts", interval_counts)
        count_digests.append(digest_row("interval_counts", interval_counts))
    return row._replace(
        blocks=pack(edges, edges[-1]),
        digests=b"".join(digests),
        count_digests=b"".join(count_digests),
    )


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

    Raises what `stored` raises.
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
