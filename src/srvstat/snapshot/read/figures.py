"""Compute the analyzer's figures of windows and steps from lists.

Only callers that do not compute with arrays yet use this module.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.verified_rows import VerifiedRows
from srvstat.stats import (
    Statistics,
    compute_coverage,
    compute_durations,
    compute_statistics,
    compute_usual_interval,
    compute_weighted_mean,
    find_quantile_ranks,
)


class Span(NamedTuple):
    """The first and the last instant at which a value was observed."""

    first: int
    last: int


class WindowFigures(NamedTuple):
    """The figures of one server in one window; None where there are too few observations."""

    statistics: Statistics
    total: int
    """The sum of the players of all observations."""
    quantiles: tuple[float, ...]
    """In the order asked; empty without observations."""
    peak: Span | None
    lowest: Span | None
    usual_interval: float | None
    """In milliseconds, exact: may be a half. None for fewer than two observations."""
    weighted_mean: float | None
    coverage: float | None
    """A window of all observations begins with the first one. None if it has no length."""
    first: int | None
    """The players of the first observation."""
    last: int | None


class StepTotals(NamedTuple):
    """The totals of successive steps, in columns: creating a tuple for each step takes longer.

    `counts` are the numbers of observations, and `sums` the sums of their players. `firsts` and
    `lasts` are the players of the first and the last observation, None without one.
    """

    counts: list[int]
    sums: list[int]
    firsts: list[int | None]
    lasts: list[int | None]


def compute_observed_figures(
    instants: Sequence[int], players: Sequence[int], window: Window, quantiles: Sequence[Fraction]
) -> WindowFigures:
    """Return the figures of the observations in a window, given in ascending order of instants."""
    statistics = compute_statistics(players)
    if not players:
        return build_empty_figures(window, statistics)
    ascending = sorted(players)
    durations = compute_durations(instants, window.end)
    length = find_length(window, instants[0])
    return WindowFigures(
        statistics=statistics,
        total=sum(players),
        quantiles=compute_quantiles(len(players), ascending.__getitem__, quantiles),
        peak=_find_span(instants, players, ascending[-1]),
        lowest=_find_span(instants, players, ascending[0]),
        usual_interval=compute_usual_interval(instants),
        weighted_mean=compute_weighted_mean(players, durations),
        coverage=compute_coverage(durations, length) if length else None,
        first=players[0],
        last=players[-1],
    )


def build_empty_figures(window: Window, statistics: Statistics) -> WindowFigures:
    """Return the figures of a window without observations."""
    coverage = 0.0 if find_length(window, window.end) else None
    return WindowFigures(statistics, 0, (), None, None, None, None, coverage, None, None)


def compute_quantiles(
    count: int, find_value: Callable[[int], int], quantiles: Sequence[Fraction]
) -> tuple[float, ...]:
    """Return quantiles of `count` values; `find_value` returns the one with a rank."""
    ranks = [find_quantile_ranks(count, quantile) for quantile in quantiles]
    return tuple((find_value(lower) + find_value(upper)) / 2 for lower, upper in ranks)


def find_length(window: Window, first: int) -> int:
    """Return the length of a window; one of all observations begins with the first of them."""
    return window.end - (first if window.start == BEFORE_ALL else window.start)


def _find_span(instants: Sequence[int], players: Sequence[int], value: int) -> Span:
    last = len(players) - 1 - players[::-1].index(value)
    return Span(instants[players.index(value)], instants[last])


def compute_observed_steps(
    instants: Sequence[int], players: Sequence[int], edges: Sequence[int]
) -> StepTotals:
    """Return the totals of the steps between successive edges; each excludes its start.

    The observations are in ascending order of instants, and so are the edges.
    """
    positions = [bisect_right(instants, edge) for edge in edges]
    steps = [players[first:last] for first, last in pairwise(positions)]
    return StepTotals(
        [*map(len, steps)],
        [*map(sum, steps)],
        [step[0] if step else None for step in steps],
        [step[-1] if step else None for step in steps],
    )


def build_empty_steps(count: int) -> StepTotals:
    """Return the totals of a number of steps without observations."""
    return StepTotals([0] * count, [0] * count, [None] * count, [None] * count)


class ListReader:
    """Reads observations as lists."""

    def get_file(self, server: ServerRow) -> VerifiedRows:
        """Return the file that has a server."""
        raise NotImplementedError

    def read_observations(self, server: ServerRow, window: Window) -> tuple[list[int], list[int]]:
        """Return the ascending instants of a server's observations in a window, and the players."""
        from srvstat.snapshot.read.observations import read_observations  # noqa: PLC0415

        instants, players = read_observations(self, server, window)
        return instants.tolist(), players.tolist()

    def iter_observations(
        self, server: ServerRow, window: Window
    ) -> Iterator[tuple[list[int], list[int]]]:
        """Yield what `read_observations` returns."""
        yield self.read_observations(server, window)

    def compute_figures(
        self, servers: Sequence[ServerRow], window: Window, quantiles: Sequence[Fraction] = ()
    ) -> list[WindowFigures]:
        """Return the figures of each server in a window, which may start at BEFORE_ALL."""
        return [
            compute_observed_figures(*self.read_observations(server, window), window, quantiles)
            for server in servers
        ]

    def compute_step_totals(self, server: ServerRow, edges: Sequence[int]) -> StepTotals:
        """Return the totals of the steps between successive ascending edges."""
        window = Window(edges[0], edges[-1])
        return compute_observed_steps(*self.read_observations(server, window), edges)

    def read_steps(self, server: ServerRow, edges: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return positions of edges in players, and the players."""
        instants, players = self.read_observations(server, Window(edges[0], edges[-1]))
        return [bisect_right(instants, edge) for edge in edges], players

    def find_long_intervals(
        self, server: ServerRow, window: Window, usual: int
    ) -> list[tuple[int, int]]:
        """Return the intervals that end in a window and are longer than three usual ones."""
        instants, _ = self.read_observations(server, Window(-1, window.end))
        return [
            pair
            for pair in pairwise(instants)
            if pair[1] > window.start and 2 * (pair[1] - pair[0]) > 3 * usual
        ]

    def find_last_observed_at(self, server: ServerRow, until: int) -> int | None:
        """Return the instant of a server's last observation up to and including `until`."""
        instants, _ = self.read_observations(server, Window(-1, until))
        return instants[-1] if instants else None
