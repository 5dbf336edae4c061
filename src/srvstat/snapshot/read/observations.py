"""Read servers' observations as arrays, and compute the statistics of a window."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from srvstat.contract.arrays import Numbers, dot_exactly, find_ranks, sum_exactly
from srvstat.contract.stats import Growth, compute_growth, find_middle_ranks, find_quantile_ranks
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.snapshot.blocks import Observations, decode_blocks, join
from srvstat.snapshot.read.file import check_instants
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.rows import ServerRow, read_block_ends


def read_observations(snapshot: Snapshot, server: ServerRow, window: Window) -> Observations:
    """Return a server's observations in a window. Raises SnapshotError if data are damaged."""
    return _cut(join(list(_iter_blocks(snapshot, server, window))), window)


def iter_observations(
    snapshot: Snapshot, server: ServerRow, window: Window
) -> Iterator[Observations]:
    """Yield the result of `read_observations` one block at a time.

    Raises SnapshotError if data are damaged.
    """
    return (_cut(block, window) for block in _iter_blocks(snapshot, server, window))


def _iter_blocks(snapshot: Snapshot, server: ServerRow, window: Window) -> Iterator[Observations]:
    """Yield the blocks with a server's observations in a window, and with some around it."""
    file = snapshot.get_file(server)
    with file.convert_decode_errors(f"the observations of {server.title}"):
        wanted = window.locate(read_block_ends(server))
        yield from decode_blocks(server, file.iter_blocks(server, wanted.start, wanted.stop))


def _cut(observations: Observations, window: Window) -> Observations:
    found = window.locate(observations.instants)
    return Observations(*(column[found] for column in observations))


class Extreme(NamedTuple):
    """The highest or the lowest count, and the first and the last time that it was observed."""

    players: int
    first_at: int
    last_at: int


@dataclass(frozen=True)
class WindowFigures:
    """The statistics of the observations in a window, each computed on first use.

    The window of all observations starts at BEFORE_ALL. A statistic is None if there are too few
    observations for it.
    """

    observations: Observations
    window: Window
    parts: "Sequence[WindowFigures]" = field(default=(), kw_only=True)
    """The statistics of each of several windows that are combined here, in ascending order."""

    @property
    def counts(self) -> Observations:
        """The counts from which statistics are computed: the observations."""
        return self.observations

    @property
    def count(self) -> int:
        """The number of observations."""
        return len(self.observations.players)

    @cached_property
    def total(self) -> int:
        """The sum of the players of all observations."""
        return sum_exactly(self.observations.players)

    @property
    def quotient(self) -> tuple[int, int]:
        """The mean players as a numerator and a denominator.

        Both are 0 if there are no observations.
        """
        return self.total, self.count

    @property
    def open_quotient(self) -> tuple[int, int]:
        """The mean of the counts above 0, as a numerator and a denominator."""
        return self.total, int(np.count_nonzero(self.observations.players))

    @property
    def mean(self) -> float | None:
        """The mean of the players."""
        total, weight = self.quotient
        return total / weight if weight else None

    @property
    def median(self) -> float | None:
        """The median of the players."""
        return self.find_quantile(Fraction(1, 2))

    def find_quantile(self, quantile: Fraction) -> float | None:
        """Return a quantile of the players."""
        if not self.count:
            return None
        ranks = find_quantile_ranks(self.count, quantile)
        return sum(find_ranks(self.observations.players, *ranks)) / 2

    @property
    def first(self) -> int | None:
        """The players of the first observation."""
        return int(self.observations.players[0]) if self.count else None

    @property
    def last(self) -> int | None:
        """The players of the last observation."""
        return int(self.observations.players[-1]) if self.count else None

    @property
    def growth(self) -> Growth:
        """The last observation minus the first."""
        if self.count <= 1:
            return Growth(None, None)
        first, last = self.observations.players[[0, -1]].tolist()
        return compute_growth(first, last)

    @property
    def peak(self) -> Extreme | None:
        """The highest count, or None if there are no counts."""
        players = self.counts.players
        return self._find(int(players.max())) if len(players) else None

    @property
    def lowest(self) -> Extreme | None:
        """The lowest count, or None if there are no counts."""
        players = self.counts.players
        return self._find(int(players.min())) if len(players) else None

    def _find(self, players: int) -> Extreme:
        instants = self.counts.instants[self.counts.players == players]
        return Extreme(players, int(instants[0]), int(instants[-1]))

    @cached_property
    def distances(self) -> Numbers:
        """The intervals between successive observations, in milliseconds."""
        if self.parts:
            return np.concatenate([one.distances for one in self.parts])
        return np.diff(self.observations.instants)

    @cached_property
    def usual_interval(self) -> float | None:
        """The polling interval: the exact median interval, in milliseconds (maybe with a half)."""
        if not len(self.distances):
            return None
        return sum(find_ranks(self.distances, *find_middle_ranks(len(self.distances)))) / 2

    @cached_property
    def durations(self) -> Numbers:
        """The duration of each observation, in half milliseconds.

        An observation lasts until the next one, or until the end of the window, but at most three
        polling intervals. A single observation lasts until the end.
        """
        if self.parts:
            return np.concatenate([one.durations for one in self.parts])
        last = self.window.end - self.observations.instants[-1:]
        durations = 2 * np.append(self.distances, last)
        if self.usual_interval is not None:
            np.minimum(durations, 3 * int(2 * self.usual_interval), out=durations)
        return durations

    @property
    def weighted_mean(self) -> float | None:
        """The mean players, weighted by durations. If all durations are 0, the plain mean."""
        weight = int(self.durations.sum())
        total = dot_exactly(self.durations, self.counts.players)
        return total / weight if weight else self.mean

    @property
    def coverage(self) -> float | None:
        """The observed share of the window, or None if the window has no length.

        A window of all observations begins with the first of them. For several windows, the
        minimum.
        """
        if self.parts:
            return min(one.coverage or 0 for one in self.parts)
        start, end = self.window
        if start == BEFORE_ALL:
            start = int(self.counts.instants[0]) if len(self.counts.instants) else end
        return int(self.durations.sum()) / (2 * (end - start)) if start < end else None

    @property
    def has_uneven_intervals(self) -> bool:
        """Whether gaps or irregular polling change the mean by more than 1 percent.

        The time-weighted mean must differ both from the plain mean and from the weighted mean for
        regular polling. The second comparison excludes the effect of the window's end, which
        shortens the last observation even with regular polling.
        """
        count, total, regular = self.count, self.total, int(2 * (self.usual_interval or 0))
        last, last_players = min(int(self.durations[-1]), regular), self.last or 0
        weight, regular_weight = int(self.durations.sum()), regular * (count - 1) + last
        weighted = dot_exactly(self.durations, self.observations.players)
        if_regular = regular * (total - last_players) + last * last_players
        # Compares quotients as products of integers, which are exact.
        differs = 100 * abs(weighted * count - total * weight) > total * weight
        excess = 100 * count * abs(weighted * regular_weight - if_regular * weight)
        return differs and excess > total * weight * regular_weight

    def sum_durations_above(self, players: int) -> int | None:
        """Return the total duration of observations with more players, in half milliseconds."""
        above = self.counts.players > players
        return int(self.durations[above].sum()) if len(above) else None


@dataclass(frozen=True)
class HeldFigures(WindowFigures):
    """The statistics of a window in which each count is valid until the next one.

    - `held`: the observations in the window and, at its start, the count that is valid there.
    - `until`: the end of the last count's validity.

    Averages and quantiles are weighted by time. `count`, `total`, `growth`, `first` and `last`
    describe the observations. There is no polling interval, because the intervals between changes
    have other causes.
    """

    held: Observations
    until: int

    @property
    def counts(self) -> Observations:
        """The counts from which statistics are computed: the held counts."""
        return self.held

    @property
    def usual_interval(self) -> None:
        """Always None: held counts have no polling interval."""

    @cached_property
    def durations(self) -> Numbers:
        """The duration of each count, in half milliseconds."""
        if self.parts:
            return np.concatenate([one.durations for one in self.parts])
        return 2 * np.diff(self.held.instants, append=self.until)

    @property
    def quotient(self) -> tuple[int, int]:
        """The mean players, weighted by durations. If all durations are 0, the plain mean."""
        weight = int(self.durations.sum())
        return (
            (dot_exactly(self.durations, self.held.players), weight) if weight else super().quotient
        )

    @property
    def open_quotient(self) -> tuple[int, int]:
        """The mean of the counts above 0, with the same weights as `quotient`."""
        if not self.durations.any():
            return super().open_quotient
        return self.quotient[0], int(self.durations[self.held.players > 0].sum())

    def find_quantile(self, quantile: Fraction) -> float | None:
        """Return a quantile of the players. Each half millisecond counts once."""
        weight = int(self.durations.sum())
        if not weight:
            return super().find_quantile(quantile)
        order = self.held.players.argsort(kind="stable")
        ends = self.durations[order].cumsum()
        found = ends.searchsorted(find_quantile_ranks(weight, quantile), "right")
        lower, upper = self.held.players[order[found]].tolist()
        return float(lower + upper) / 2

    def split(self, edges: Numbers) -> tuple[Observations, Numbers]:
        """Divide the counts at ascending times, and return each part's duration in milliseconds.

        The first edge must not be after the first observation in the window.
        """
        instants, players = self.held
        if not len(instants):
            return self.held, instants
        instants = instants.clip(edges[0])
        starts = np.union1d(instants, edges[(edges > instants[0]) & (edges < self.until)])
        parts = Observations(starts, players[instants.searchsorted(starts, "right") - 1])
        return parts, np.diff(starts, append=max(self.until, int(starts[-1])))


def join_figures(parts: Sequence[WindowFigures]) -> WindowFigures:
    """Return the combined statistics of several windows, which must ascend without overlaps."""
    window = Window(parts[0].window.start, parts[-1].window.end)
    joined = join([one.observations for one in parts])
    held = [one for one in parts if isinstance(one, HeldFigures)]
    if not held:
        return WindowFigures(joined, window, parts=parts)
    return HeldFigures(joined, window, join([one.held for one in held]), window.end, parts=parts)


def find_gaps(instants: Numbers, interval: float) -> list[tuple[int, int]]:
    """Return the pairs of successive times that are more than 1.5 polling intervals apart.

    Thus a single missed observation is a gap. The longest gap comes first; among equal lengths, the
    earliest.
    """
    distances = np.diff(instants)
    gaps = np.flatnonzero(2 * distances > 3 * interval)
    gaps = gaps[np.argsort(-distances[gaps], kind="stable")]
    return list(zip(instants[gaps].tolist(), instants[gaps + 1].tolist(), strict=True))


def compute_figures(snapshot: Snapshot, server: ServerRow, window: Window) -> WindowFigures:
    """Return a server's statistics in a window. Raises SnapshotError if data are damaged."""
    if not snapshot.is_held:
        return WindowFigures(read_observations(snapshot, server, window), window)
    with snapshot.convert_decode_errors(server.title):
        ends = read_block_ends(server)
    block = bisect_right(ends, window.start)
    # Start with the last count of the previous block, because it may be held into the window.
    early = Window(ends[block - 1] - 1 if block else BEFORE_ALL, window.end)
    instants, players = read_observations(snapshot, server, early)
    inside, until = window.locate(instants), min(window.end, snapshot.as_of)
    has_held = inside.start > 0 and window.start < until
    lasting = slice(inside.start - has_held, inside.stop)
    held = Observations(instants[lasting].clip(window.start), players[lasting])
    last = int(held.instants[-1]) if len(held.instants) else until
    own = Observations(instants[inside], players[inside])
    return HeldFigures(own, window, held, max(until, last))


def find_last_observed_at(snapshot: Snapshot, server: ServerRow, until: int) -> int | None:
    """Return the time of a server's last observation up to and including `until`, or None.

    Raises SnapshotError if data are damaged.
    """
    with snapshot.get_file(server).convert_decode_errors(server.title):
        ends = read_block_ends(server)
        block = bisect_right(ends, until)
        last = ends[block - 1] if block else None
        check_instants(last)
    if block == len(ends):
        return last
    start = BEFORE_ALL if last is None else last - 1
    instants = read_observations(snapshot, server, Window(start, until)).instants
    return int(instants[-1]) if len(instants) else None
