"""Compute the statistics of servers in a window: the document `stats`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from srvstat.analysis.change import compare_windows, find_earlier, read_earlier
from srvstat.analysis.selection import iter_batches
from srvstat.analysis.windows import find_previous
from srvstat.contract import wire
from srvstat.contract.errors import UsageError
from srvstat.contract.ranges import BEFORE_ALL, Window
from srvstat.documents.analysis import (
    AbovePart,
    FiguresPart,
    QuantilePart,
    ServerStatistics,
    Stats,
)
from srvstat.documents.document import GrowthPart, WindowPart
from srvstat.operations import check_coverage
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.figures import WindowFigures
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.stats import compute_durations

_HALF_MS_PER_HOUR = 7_200_000
_QUANTILE = re.compile(r"0|1|[01]?\.[0-9]{1,15}")
"""More digits might make two quantiles equal in JSON."""


class FigureQuery(NamedTuple):
    """What to compute besides the usual figures.

    `earlier` is the window before, with which averages are compared, and `previous` the same if its
    other figures were asked for, too.
    """

    quantiles: tuple[Fraction, ...]
    above: int | None
    earlier: Window | None
    previous: Window | None


def compute_stats(  # noqa: PLR0913 - all are parts of the question
    snapshot: Snapshot,
    servers: Iterable[ServerRow],
    window: Window,
    *,
    quantiles: Sequence[Fraction] = (),
    above: int | None = None,
    versus_previous: bool = False,
    zone: str = "UTC",
) -> Stats:
    """Return the statistics of servers in a window, in their order.

    `quantiles` are in [0, 1]. `above` is a number of players. `versus_previous` adds the window of
    equal length before. `zone` is the time zone of the times in tables. Needs little memory besides
    the document.

    Raises UsageError if there is no previous window, NotInBundleError, SnapshotError.
    """
    query = build_query(snapshot, window, quantiles, above, versus_previous=versus_previous)
    return Stats(
        as_of=snapshot.as_of,
        root=snapshot.root,
        time_zone=zone,
        window=build_window_part(window),
        previous_window=query.previous and build_window_part(query.previous),
        servers=tuple(describe_servers(snapshot, servers, window, query)),
    )


def build_query(
    snapshot: Snapshot,
    window: Window,
    quantiles: Sequence[Fraction],
    above: int | None,
    *,
    versus_previous: bool,
) -> FigureQuery:
    """Return what to compute, with equal quantiles once.

    Raises UsageError if there is no previous window, NotInBundleError.
    """
    previous = find_previous(window) if versus_previous else None
    if previous is not None:
        check_coverage(snapshot, previous)
    earlier = find_earlier(snapshot, window)
    return FigureQuery(tuple(dict.fromkeys(quantiles)), above, earlier, previous)


def parse_quantile(text: str) -> Fraction:
    """Return the exact value of a decimal from 0 to 1.

    Raises UsageError.
    """
    if not _QUANTILE.fullmatch(text) or Fraction(text) > 1:
        raise UsageError(
            f"--quantile: {wire.quote_value(text)} is not a decimal from 0 to 1 with at most 15"
            " digits after the point, such as 0.95"
        )
    return Fraction(text)


def build_window_part(window: Window) -> WindowPart:
    """Return a window as it is in documents."""
    return WindowPart(from_=None if window.start == BEFORE_ALL else window.start, to=window.end)


def build_growth_part(figures: WindowFigures) -> GrowthPart:
    """Return the growth in a window as it is in documents."""
    growth = figures.statistics.growth
    return GrowthPart(players=growth.players, percentage=growth.percentage)


def describe_servers(
    snapshot: Snapshot, servers: Iterable[ServerRow], window: Window, query: FigureQuery
) -> Iterator[ServerStatistics]:
    """Yield the statistics of servers in a window.

    Raises SnapshotError.
    """
    for batch in iter_batches(snapshot, servers):
        figures = snapshot.compute_figures(batch, window, query.quantiles)
        quantiles = () if query.previous is None else query.quantiles
        earlier = read_earlier(snapshot, batch, query.earlier, quantiles)
        for server, found, before in zip(batch, figures, earlier, strict=True):
            previous = None
            if query.previous is not None and before is not None:
                previous = _build_part(snapshot, server, query.previous, before, query)
            yield ServerStatistics(
                server_id=server.id,
                cfx_id=server.cfx_id,
                hostname=server.hostname,
                current_players=server.players_current,
                last_observed_at=snapshot.find_last_observed_at(server, snapshot.as_of),
                **vars(_build_part(snapshot, server, window, found, query)),
                change=compare_windows(before, found),
                previous_coverage=None if before is None else before.coverage,
                previous=previous,
            )


def _compute_above(
    snapshot: Snapshot, server: ServerRow, window: Window, players: int | None
) -> AbovePart | None:
    if players is None:
        return None
    instants, counts = snapshot.read_observations(server, window)
    if not instants:
        return AbovePart(players=players, hours=None)
    durations = compute_durations(instants, window.end)
    lasted = sum(
        duration for duration, count in zip(durations, counts, strict=True) if count > players
    )
    return AbovePart(players=players, hours=lasted / _HALF_MS_PER_HOUR)


def _build_part(
    snapshot: Snapshot,
    server: ServerRow,
    window: Window,
    figures: WindowFigures,
    query: FigureQuery,
) -> FiguresPart:
    statistics = figures.statistics
    values = figures.quantiles or [None] * len(query.quantiles)
    interval = figures.usual_interval
    return FiguresPart(
        average_players=statistics.mean,
        median_players=statistics.median,
        peak_players=statistics.peak,
        lowest_players=statistics.lowest,
        growth=build_growth_part(figures),
        sample_count=statistics.observations,
        peak_first_at=figures.peak and figures.peak.first,
        peak_last_at=figures.peak and figures.peak.last,
        lowest_first_at=figures.lowest and figures.lowest.first,
        lowest_last_at=figures.lowest and figures.lowest.last,
        quantiles=tuple(
            QuantilePart(quantile=float(quantile), players=value)
            for quantile, value in zip(query.quantiles, values, strict=True)
        ),
        time_weighted_average=figures.weighted_mean,
        above=_compute_above(snapshot, server, window, query.above),
        # Exact: the interval is a multiple of half a millisecond.
        usual_interval_seconds=None if interval is None else int(2 * interval) / 2000,
        coverage=figures.coverage,
        first_players=figures.first,
        last_players=figures.last,
    )
