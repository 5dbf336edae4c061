"""Compute the statistics of servers in a window: the documents `stats` and `top`."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from heapq import nsmallest
from itertools import islice
from typing import Annotated, Any

from srvstat.analysis import questions
from srvstat.analysis.history import describe_cells
from srvstat.analysis.parameters import Parameter
from srvstat.analysis.selection import Question, build_window_part
from srvstat.analysis.series import Series, Total, compute_figures, get_name, is_silent
from srvstat.contract import wire
from srvstat.contract.errors import ParameterError
from srvstat.contract.windows import BEFORE_ALL, DAY_MS, Window
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.documents import analysis as documents
from srvstat.documents.document import LEAST_COVERAGE, ChangePart, GrowthPart
from srvstat.operations.answers import check_coverage
from srvstat.snapshot.read import observations
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.read.statistics import compute_window_statistics, compute_window_totals
from srvstat.snapshot.rows import ServerRow


def find_earlier(snapshot: Snapshot, window: Window) -> list[Window]:
    """Return a list with the previous window.

    It is empty if there is no such window or the snapshot does not cover it.
    """
    if window.start == BEFORE_ALL or window.end - window.start > questions.LONGEST_MS:
        return []
    earlier = questions.find_previous(window)
    covered_from = snapshot.covered_from
    return [] if covered_from is not None and earlier.start < covered_from else [earlier]


def compare_with_earlier(
    snapshot: Snapshot, server: Series, window: Window, earlier: Sequence[Window]
) -> tuple[observations.WindowFigures, observations.WindowFigures | None, ChangePart | None]:
    """Return the statistics of a window and of earlier windows together, and the change of average.

    Growth compares two moments, so it mostly reflects the time of day; the change of the average
    does not. The change is None if observations cover less than 80 % of either period.

    Raises SnapshotError if data are damaged.
    """
    after = compute_figures(snapshot, server, window)
    if not earlier:
        return after, None, None
    before = observations.join_figures([compute_figures(snapshot, server, one) for one in earlier])
    # A total can be observed without an observation in the window.
    has_counts = before.quotient[1] and after.quotient[1]
    if not has_counts or min(before.coverage or 0, after.coverage or 0) < LEAST_COVERAGE:
        return after, before, None
    return after, before, compare_averages(*before.quotient, *after.quotient)


def compare_averages(total: int, count: int, later_total: int, later_count: int) -> ChangePart:
    """Return an average minus an earlier average, in players and in percent, each rounded once.

    The counts are at least 1. The percentage is None if the earlier average is 0.
    """
    rise = later_total * count - total * later_count
    percentage = 100 * rise / (total * later_count) if total else None
    return ChangePart(rise / (count * later_count), percentage)


_HALF_MS_PER_HOUR = 7_200_000
_QUANTILE = re.compile(r"0|1|[01]?\.[0-9]{1,15}")
"""The form of a quantile. With more digits, two quantiles could be equal in JSON."""


@dataclass(frozen=True)
class FigureOptions:
    """Options that add statistics."""

    panel = "Statistics"

    quantiles: Annotated[
        list[str] | None,
        Parameter("Add a quantile, such as 0.95; repeatable.", "Q", ("--quantile",)),
    ] = None
    above: Annotated[
        int | None,
        Parameter("Add the hours with more than N players.", "N", least=0, most=MAX_SAFE_INTEGER),
    ] = None
    occupancy: Annotated[bool, Parameter("Add a table column with the average occupancy.")] = False

    def __post_init__(self) -> None:
        self.parse_quantiles()

    def parse_quantiles(self) -> tuple[Fraction, ...]:
        """Return the exact values of the quantiles, each once.

        Raises ParameterError for an invalid value.
        """
        return tuple(dict.fromkeys(map(_parse_quantile, self.quantiles or ())))


def _parse_quantile(text: str) -> Fraction:
    """Return the exact value of a decimal from 0 to 1. Raises UsageError for other text."""
    if not _QUANTILE.fullmatch(text) or Fraction(text) > 1:
        raise ParameterError(
            "{quantiles}: {value} is not a decimal from 0 to 1 with at most 15 digits after the"
            " point; for the 95th percentile, write 0.95",
            value=wire.quote_value(text),
        )
    return Fraction(text)


_USUAL_FIGURES = FigureOptions()
_USUAL_QUERY = questions.ComparedQuery()


def compute_stats(
    question: Question,
    figures: FigureOptions = _USUAL_FIGURES,
    query: questions.ComparedQuery = _USUAL_QUERY,
    *,
    has_cells: bool = False,
) -> documents.Stats:
    """Return the statistics of servers in a window, in their order.

    - `question`: the servers and their window.
    - `query`: chooses the comparison window.
    - `has_cells`: adds the averages of steps, for tables.

    Needs little memory besides the document.

    Raises UsageError if there is no comparison window, NotInBundleError if a bundle does not cover
    a window, and SnapshotError if data are damaged.
    """
    if question.is_sum and query.until_last_seen:
        raise ParameterError(
            "{sum} can't be combined with {until_last_seen}; a total has one window"
        )
    asked = _Asked(question, figures, query, has_cells)
    return documents.Stats(**asked.describe(), servers=tuple(map(asked.measure, question.servers)))


_CELL_STEPS = {"hour": 7, "day": 366, "week": 5 * 366}
"""The cell step for windows below each number of days. Hours of weeks would show only a daily
wave.
"""


@dataclass(frozen=True)
class _Asked:
    """A statistics query and its per-server windows."""

    question: Question
    figures: FigureOptions
    query: questions.ComparedQuery
    has_cells: bool

    @cached_property
    def _bounded(self) -> Window:
        return questions.bound_window(self.question)

    @cached_property
    def cell_step(self) -> str:
        """The name of the cell steps: `hour`, `day`, `week` or `month`."""
        days = (self._bounded.end - self._bounded.start) // DAY_MS
        return next((name for name, most in _CELL_STEPS.items() if days < most), "month")

    @property
    def is_compared(self) -> bool:
        """Whether the statistics of another window were requested."""
        return self.query.versus is not None or self.query.around is not None

    @cached_property
    def _earlier(self) -> list[Window]:
        return self._find_earlier(self.question.window)

    def _find_earlier(self, window: Window) -> list[Window]:
        if self.is_compared:
            return questions.list_compared(self.question, self.query, window)
        return find_earlier(self.question.snapshot, window)

    def choose_windows(self, server: Series) -> tuple[Window, list[Window]]:
        """Return the window of a server, and its comparison windows.

        Raises UsageError if there is no comparison window, NotInBundleError if a bundle does not
        cover a window, and SnapshotError if data are damaged.
        """
        snapshot, _, window, _ = self.question
        last = None
        if self.query.until_last_seen:
            last = _find_last(snapshot, server, window.end)
        if last is None:
            return window, self._earlier
        if window.start != BEFORE_ALL:
            window = Window(last - (window.end - window.start), last)
            check_coverage(snapshot, window)
        return window, self._find_earlier(window)

    def compare(
        self, server: Series
    ) -> tuple[observations.WindowFigures, observations.WindowFigures | None, ChangePart | None]:
        """Return the result of `compare_with_earlier` for the windows of a server."""
        return compare_with_earlier(self.question.snapshot, server, *self.choose_windows(server))

    def describe(self) -> dict[str, Any]:
        """Return the fields that `stats` and `top` share, except the servers.

        Raises UsageError and NotInBundleError if there is no comparison window.
        """
        previous = None
        if self.is_compared and not self.query.until_last_seen and self._earlier:
            previous = build_window_part(Window(self._earlier[0].start, self._earlier[-1].end))
        return {
            **self.question.describe(),
            "previous_window": previous,
            "versus": self._name_versus(),
            "until_last_seen": self.query.until_last_seen,
            "shows_occupancy": self.figures.occupancy,
            "cell_step": self.cell_step if self.has_cells else "",
        }

    def _name_versus(self) -> documents.Versus | None:
        named: dict[str | None, documents.Versus] = {"previous": "previous", "usual": "usual"}
        return named.get(self.query.versus, "other") if self.is_compared else None

    def measure(
        self, server: Series, total_average: Fraction | None = None
    ) -> documents.ServerStatistics:
        """Return the statistics of a server. Its share is relative to `total_average`.

        Raises UsageError if there is no comparison window, NotInBundleError if a bundle does not
        cover a window, and SnapshotError if data are damaged.
        """
        snapshot = self.question.snapshot
        found, before, change = self.compare(server)
        average, weight = found.quotient
        cells: tuple[documents.StepCell, ...] = ()
        if self.has_cells:
            is_whole = found.window.start == BEFORE_ALL
            question = self.question._replace(window=self._bounded if is_whole else found.window)
            step = questions.parse_step("1h" if self.cell_step == "hour" else self.cell_step)
            cells = describe_cells(snapshot, server, found, questions.divide_window(question, step))
        return documents.ServerStatistics(
            **get_name(server)._asdict(),
            current_players=server.players_current,
            last_observed_at=_find_last(snapshot, server, snapshot.as_of),
            cells=cells,
            window=build_window_part(found.window) if self.query.until_last_seen else None,
            share=float(average / (weight * total_average)) if weight and total_average else None,
            **vars(_build_part(found, server, self.figures)),
            change=change,
            previous_coverage=None if before is None else before.coverage,
            previous=_build_part(before, server, self.figures)
            if before and self.is_compared
            else None,
        )


def _find_last(snapshot: Snapshot, series: Series, until: int) -> int | None:
    """Return the time of the last observation of a server, or of any server in a total."""
    servers = series.servers if isinstance(series, Total) else [series]
    found = [observations.find_last_observed_at(snapshot, one, until) for one in servers]
    return max((at for at in found if at is not None), default=None)


def _divide(total: int, weight: int) -> float | None:
    return total / weight if weight else None


def _build_part(
    figures: observations.WindowFigures, server: Series, options: FigureOptions
) -> documents.FiguresPart:
    peak, lowest, interval = figures.peak, figures.lowest, figures.usual_interval
    above, most = None, server.players_max
    if options.above is not None:
        above = documents.AbovePart(options.above, _count_hours_above(figures, options.above))
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
        occupancy=_divide(figures.quotient[0], figures.quotient[1] * most),
        full_hours=_count_hours_above(figures, most - 1) if most else None,
        average_when_open=_divide(*figures.open_quotient),
    )


def _count_hours_above(figures: observations.WindowFigures, players: int) -> float | None:
    lasted = figures.sum_durations_above(players)
    return None if lasted is None else lasted / _HALF_MS_PER_HOUR


_SERVERS_PER_READ = 100


def rank_servers(  # noqa: PLR0913 - what a user can ask for
    question: Question,
    by: documents.TopKey,
    limit: int,
    figures: FigureOptions = _USUAL_FIGURES,
    query: questions.ComparedQuery = _USUAL_QUERY,
    *,
    is_sum: bool = False,
    reverse: bool = False,
    has_cells: bool = False,
) -> documents.Top:
    """Return the statistics of the `limit` servers with the highest values of a statistic.

    - `reverse`: use the servers with the lowest values instead.
    - `is_sum`: adds the total.
    - `has_cells`: adds the averages of steps, for tables.

    Only this statistic is computed for all servers, and without a total only the winners are kept
    in memory.

    Raises UsageError if there is no comparison window, NotInBundleError if a bundle does not cover
    a window, and SnapshotError if data are damaged.
    """
    asked = _Asked(question, figures, query, has_cells)
    common = asked.describe()
    common["shows_occupancy"] |= by == "occupancy"
    if by == "change" and not asked.is_compared:
        questions.find_previous(question.window)  # raises if no server can have a change
    count = 0
    averages: Counter[int] = Counter()

    def iter_ranked() -> Iterator[tuple[bool, float, ServerRow]]:
        nonlocal count
        matches = question.iter_rows()
        while batch := list(islice(matches, _SERVERS_PER_READ)):
            count += len(batch)
            values = _find_values(asked, batch, by, averages)
            for server, value in zip(batch, values, strict=True):
                yield value is None, (value or 0) * (1 if reverse else -1), server

    # Ties keep their order, which is by id.
    winners = nsmallest(limit, iter_ranked(), key=lambda ranked: ranked[:2])
    whole = sum((Fraction(total, weight) for weight, total in averages.items()), Fraction())
    total = Total(question.snapshot, list(question.iter_rows())) if is_sum and count else None
    return documents.Top(
        **common,
        by=by,
        reverse=reverse,
        server_count=count,
        total=asked.measure(total) if total else None,
        servers=tuple(asked.measure(server, whole) for *_, server in winners),
    )


def _find_values(
    asked: _Asked, servers: Sequence[ServerRow], by: documents.TopKey, averages: Counter[int]
) -> list[float | None]:
    """Return the ranking value of each server, computed as cheaply as possible, or None.

    For shares, adds the servers' player sums to `averages`, by weight.
    """
    snapshot, _, window, _ = asked.question
    if by == "change":
        changes = (asked.compare(one)[2] for one in servers)
        return [None if change is None else change.players for change in changes]
    if by == "current":
        return [find_current(server, snapshot) for server in servers]
    if by in {"average", "share", "occupancy"}:
        quotients = _find_quotients(asked, servers)
        if by == "share":
            for total, weight in quotients:
                if weight:
                    averages[weight] += total
        maxima = [one.players_max if by == "occupancy" else 1 for one in servers]
        return [
            _divide(total, weight * most)
            for (total, weight), most in zip(quotients, maxima, strict=True)
        ]
    if asked.query.until_last_seen or (snapshot.is_held and by in {"median", "peak", "lowest"}):
        return [
            _find_value(compute_figures(snapshot, one, asked.choose_windows(one)[0]), by)
            for one in servers
        ]
    if by == "samples":
        return [count for count, _ in compute_window_totals(snapshot, servers, window)]
    statistics = compute_window_statistics(snapshot, servers, window)
    return [one.growth.players if by == "growth" else getattr(one, by) for one in statistics]


def _find_quotients(asked: _Asked, servers: Sequence[ServerRow]) -> list[tuple[int, int]]:
    """Return the average of each server as a sum and a weight."""
    snapshot, _, window, _ = asked.question
    if asked.query.until_last_seen or snapshot.is_held:
        windows = [asked.choose_windows(one)[0] for one in servers]
        pairs = zip(servers, windows, strict=True)
        return [compute_figures(snapshot, *pair).quotient for pair in pairs]
    return [(total, count) for count, total in compute_window_totals(snapshot, servers, window)]


def _find_value(figures: observations.WindowFigures, by: documents.TopKey) -> float | None:
    if by == "samples":
        return figures.count
    if by == "growth":
        return figures.growth.players
    found = getattr(figures, by)
    return found.players if isinstance(found, observations.Extreme) else found


def find_current(server: ServerRow, snapshot: Snapshot) -> int | None:
    """Return the current count of a server, or None if it is silent, and so not online."""
    return None if is_silent(snapshot, server) else server.players_current
