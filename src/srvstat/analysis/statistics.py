"""Compute the statistics of servers in a window: the documents `stats` and `top`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import nsmallest
from itertools import islice
from typing import Annotated, Any, Literal

from srvstat.analysis.parameters import Parameter
from srvstat.analysis.questions import LONGEST_MS, find_previous
from srvstat.analysis.selection import Question, build_window_part
from srvstat.analysis.series import Series, Total, compute_figures, get_name
from srvstat.contract import wire
from srvstat.contract.errors import ParameterError
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.documents import analysis as documents
from srvstat.documents.document import LEAST_COVERAGE, ChangePart, GrowthPart, is_silent
from srvstat.operations.answers import check_coverage
from srvstat.snapshot.read.observations import Extreme, WindowFigures, find_last_observed_at
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.read.statistics import compute_window_statistics, compute_window_totals
from srvstat.snapshot.rows import ServerRow


def find_earlier(snapshot: Snapshot, window: Window) -> Window | None:
    """Return the window before; None if there is none, or a bundle does not cover it."""
    if window.start == BEFORE_ALL or window.end - window.start > LONGEST_MS:
        return None
    earlier = find_previous(window)
    covered_from = snapshot.covered_from
    return None if covered_from is not None and earlier.start < covered_from else earlier


def compare_with_earlier(
    snapshot: Snapshot, server: Series, window: Window, earlier: Window | None
) -> tuple[WindowFigures, WindowFigures | None, ChangePart | None]:
    """Return the figures in a window and in an earlier one, and how the average changed.

    Growth compares one moment with another, so it mostly shows the time of day. The change of the
    average does not depend on it. It is None if observations cover too little of one of them.

    Raises SnapshotError.
    """
    after = compute_figures(snapshot, server, window)
    if earlier is None:
        return after, None, None
    before = compute_figures(snapshot, server, earlier)
    if min(before.coverage or 0, after.coverage or 0) < LEAST_COVERAGE:
        return after, before, None
    return after, before, compare_averages(*before.quotient, *after.quotient)


def compare_averages(total: int, count: int, later_total: int, later_count: int) -> ChangePart:
    """Return an average minus an earlier one, in players and in percent, each rounded once.

    The counts are at least 1. The percentage is None if the earlier average is 0.
    """
    rise = later_total * count - total * later_count
    percentage = 100 * rise / (total * later_count) if total else None
    return ChangePart(rise / (count * later_count), percentage)


_HALF_MS_PER_HOUR = 7_200_000
_QUANTILE = re.compile(r"0|1|[01]?\.[0-9]{1,15}")
"""More digits might make two quantiles equal in JSON."""


@dataclass(frozen=True)
class FigureOptions:
    """Figures that a user adds to the usual ones."""

    quantiles: Annotated[
        list[str] | None,
        Parameter("Add a quantile, such as 0.95 (repeatable).", "Q", ("--quantile",)),
    ] = None
    above: Annotated[
        int | None,
        Parameter("Add the hours with more than N players.", "N", least=0, most=MAX_SAFE_INTEGER),
    ] = None
    versus: Annotated[
        Literal["previous"] | None,
        Parameter("Add the figures of the window of equal length before."),
    ] = None

    def __post_init__(self) -> None:
        self.parse_quantiles()

    def parse_quantiles(self) -> tuple[Fraction, ...]:
        """Return the exact values of the quantiles, each once.

        Raises ParameterError.
        """
        return tuple(dict.fromkeys(map(_parse_quantile, self.quantiles or ())))


def _parse_quantile(text: str) -> Fraction:
    """Return the exact value of a decimal from 0 to 1.

    Raises UsageError.
    """
    if not _QUANTILE.fullmatch(text) or Fraction(text) > 1:
        raise ParameterError(
            "{quantiles}: {value} is not a decimal from 0 to 1 with at most 15 digits after the"
            " point, such as 0.95",
            value=wire.quote_value(text),
        )
    return Fraction(text)


_USUAL_FIGURES = FigureOptions()


def compute_stats(question: Question, figures: FigureOptions = _USUAL_FIGURES) -> documents.Stats:
    """Return the statistics of servers in a window, in their order.

    Needs little memory besides the document.

    Raises UsageError if there is no previous window, NotInBundleError, SnapshotError.
    """
    earlier = _find_compared(question, figures)
    return documents.Stats(**_describe_servers(question, question.servers, earlier, figures))


def _find_compared(question: Question, figures: FigureOptions) -> Window | None:
    """Return the window before, if any.

    Raises UsageError and NotInBundleError if its figures are asked for, and there is none.
    """
    if figures.versus:
        check_coverage(question.snapshot, find_previous(question.window))
    return find_earlier(question.snapshot, question.window)


def _describe_servers(
    question: Question, servers: Iterable[Series], earlier: Window | None, figures: FigureOptions
) -> dict[str, Any]:
    """Return what `stats` and `top` have in common.

    Raises SnapshotError.
    """
    snapshot, _, window, _ = question

    def describe(server: Series) -> documents.ServerStatistics:
        found, before, change = compare_with_earlier(snapshot, server, window, earlier)
        return documents.ServerStatistics(
            **get_name(server)._asdict(),
            current_players=server.players_current,
            last_observed_at=server.last_observed_at
            if isinstance(server, Total)
            else find_last_observed_at(snapshot, server, snapshot.as_of),
            **vars(_build_part(found, figures)),
            change=change,
            previous_coverage=None if before is None else before.coverage,
            previous=_build_part(before, figures) if before and figures.versus else None,
        )

    return {
        **question.describe(),
        "previous_window": build_window_part(earlier) if earlier and figures.versus else None,
        "servers": tuple(map(describe, servers)),
    }


def _build_part(figures: WindowFigures, options: FigureOptions) -> documents.FiguresPart:
    peak, lowest, interval = figures.peak, figures.lowest, figures.usual_interval
    above = None
    if options.above is not None:
        lasted = figures.sum_durations_above(options.above)
        hours = None if lasted is None else lasted / _HALF_MS_PER_HOUR
        above = documents.AbovePart(options.above, hours)
    return documents.FiguresPart(
        average_players=figures.mean,
        median_players=figures.median,
        peak_players=peak and peak.players,
        lowest_players=lowest and lowest.players,
        growth=GrowthPart(*figures.growth),
        sample_count=figures.count,
        peak_first_at=peak and peak.first_at,
        peak_last_at=peak and peak.last_at,
        lowest_first_at=lowest and lowest.first_at,
        lowest_last_at=lowest and lowest.last_at,
        quantiles=tuple(
            documents.QuantilePart(float(quantile), figures.find_quantile(quantile))
            for quantile in options.parse_quantiles()
        ),
        time_weighted_average=figures.weighted_mean,
        above=above,
        usual_interval_seconds=interval and interval / 1000,
        coverage=figures.coverage,
        first_players=figures.first,
        last_players=figures.last,
    )


_SERVERS_PER_READ = 100


def rank_servers(
    question: Question, by: documents.TopKey, limit: int, figures: FigureOptions = _USUAL_FIGURES
) -> documents.Top:
    """Return the statistics of the `limit` servers with the greatest values of a figure.

    Only this figure is computed for all servers, and only the winners are kept in memory.

    Raises UsageError if there is no previous window, NotInBundleError, SnapshotError.
    """
    earlier = _find_compared(question, figures)
    if by == "change":
        find_previous(question.window)  # without one, no server has a change
    count = 0

    def iter_ranked() -> Iterator[tuple[bool, float, ServerRow]]:
        nonlocal count
        matches = question.iter_rows()
        while batch := list(islice(matches, _SERVERS_PER_READ)):
            count += len(batch)
            values = _find_values(question, batch, by, earlier)
            for server, value in zip(batch, values, strict=True):
                yield value is None, -(value or 0), server

    # Keeps the order of equal servers, which are read in the order of their ids.
    winners = nsmallest(limit, iter_ranked(), key=lambda ranked: ranked[:2])
    servers = [server for *_, server in winners]
    common = _describe_servers(question, servers, earlier, figures)
    return documents.Top(by=by, server_count=count, **common)


def _find_values(
    question: Question, servers: Sequence[ServerRow], by: documents.TopKey, earlier: Window | None
) -> list[float | None]:
    """Return the figure of each server, by the cheapest means; None if it has none."""
    snapshot, _, window, _ = question
    if by == "change":
        changes = (compare_with_earlier(snapshot, one, window, earlier)[2] for one in servers)
        return [None if change is None else change.players for change in changes]
    if by == "current":
        return [find_current(server, snapshot) for server in servers]
    if snapshot.is_held and by in {"average", "median", "peak", "lowest"}:
        return [_find_value(compute_figures(snapshot, one, window), by) for one in servers]
    if by in {"average", "samples"}:
        totals = compute_window_totals(snapshot, servers, window)
        if by == "samples":
            return [count for count, _ in totals]
        return [total / count if count else None for count, total in totals]
    statistics = compute_window_statistics(snapshot, servers, window)
    return [one.growth.players if by == "growth" else getattr(one, by) for one in statistics]


def _find_value(figures: WindowFigures, by: documents.TopKey) -> float | None:
    if by == "average":
        return figures.mean
    found = getattr(figures, by)
    return found.players if isinstance(found, Extreme) else found


def find_current(server: ServerRow, snapshot: Snapshot) -> int | None:
    """Return the current count of a server; None if it is silent, and so not online."""
    is_unknown = is_silent(server.last_observed_at, snapshot.as_of, hold=snapshot.is_held)
    return None if is_unknown else server.players_current
