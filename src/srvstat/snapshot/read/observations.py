"""Read the observations of servers as arrays, and compute the figures of a window."""

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
    """Return a server's observations in a window.

    Raises SnapshotError.
    """
    return _cut(join(list(_iter_blocks(snapshot, server, window))), window)


def iter_observations(
    snapshot: Snapshot, server: ServerRow, window: Window
) -> Iterator[Observations]:
    """Yield, a block at a time, what `read_observations` returns at once.

    Raises SnapshotError.
    """
    return (_cut(block, window) for block in _iter_blocks(snapshot, server, window))


def _iter_blocks(snapshot: Snapshot, server: ServerRow, window: Window) -> Iterator[Observations]:
    """Yield the blocks of a server with the observations in a window, and some around it."""
    file = snapshot.get_file(server)
    with file.convert_decode_errors(f"the observations of {server.title}"):
        wanted = window.locate(read_block_ends(server))
        yield from decode_blocks(server, file.iter_blocks(server, wanted.start, wanted.stop))


def _cut(observations: Observations, window: Window) -> Observations:
    found = window.locate(observations.instants)
    return Observations(*(column[found] for column in observations))


class Extreme(NamedTuple):
    """The greatest or the least count, and the first and the last instant that it was observed."""

    players: int
    first_at: int
    last_at: int


@dataclass(frozen=True)
class WindowFigures:
    """The figures of the observations in a window; each is computed on its first use.

    The window of all observations starts at BEFORE_ALL. A figure is None if there are too few
    observations for it.
    """

    observations: Observations
    window: Window
    parts: "Sequence[WindowFigures]" = field(default=(), kw_only=True)
    """The figures of several windows that these are about together, in ascending order."""

    @property
    def counts(self) -> Observations:
        """The counts that figures are made of: the observations."""
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
        """The mean of the players as a sum and a number; both are 0 without one."""
        return self.total, self.count

    @property
    def open_quotient(self) -> tuple[int, int]:
        """The mean of the counts above 0, as a sum and a number."""
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
        """The greatest count."""
        players = self.counts.players
        return self._find(int(players.max())) if len(players) else None

    @property
    def lowest(self) -> Extreme | None:
        """The least count."""
        players = self.counts.players
        return self._find(int(players.min())) if len(players) else None

    def _find(self, players: int) -> Extreme:
        instants = self.counts.instants[self.counts.players == players]
        return Extreme(players, int(instants[0]), int(instants[-1]))

    @cached_property
    def distances(self) -> Numbers:
        """The distances between successive observations."""
        if self.parts:
            return np.concatenate([one.distances for one in self.parts])
        return np.diff(self.observations.instants)

    @cached_property
    def usual_interval(self) -> float | None:
        """The median distance between successive observations, exact: may be half a millisecond."""
        if not len(self.distances):
            return None
        return sum(find_ranks(self.distances, *find_middle_ranks(len(self.distances)))) / 2

    @cached_property
    def durations(self) -> Numbers:
        """How long each observation lasts, in half milliseconds.

        It lasts until the next one, the last one until the end of the window, but at most three
        usual intervals. One observation alone lasts until the end.
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
        """The mean of the players, weighted by durations; the plain mean if none lasts."""
        weight = int(self.durations.sum())
        total = dot_exactly(self.durations, self.counts.players)
        return total / weight if weight else self.mean

    @property
    def coverage(self) -> float | None:
        """The share of the window in which an observation lasts; None if it has no length.

        A window of all observations begins with the first of them. Of several windows, it is the
        least share.
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

        Compares the mean weighted by durations with the plain mean and with the one for regular
        polling. There the last of at least two observations can also be shorter than the usual
        interval, because the window ends: that alone can change the mean much.
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
        """Return how long observations of more players last, in half milliseconds."""
        above = self.counts.players > players
        return int(self.durations[above].sum()) if len(above) else None


@dataclass(frozen=True)
class HeldFigures(WindowFigures):
    """The figures of a window in which each count lasts until the next one.

    `held` are the observations of the window and, at its start, the count that lasts into it. The
    last one is held until `until`. Averages and quantiles are weighted by time. `count`, `total`,
    `growth`, the first and the last are those of the observations. There is no usual interval: the
    distance between changes is not one of polls.
    """

    held: Observations
    until: int

    @property
    def counts(self) -> Observations:
        """The counts that figures are made of: those that are held."""
        return self.held

    @property
    def usual_interval(self) -> None:
        """None."""

    @cached_property
    def durations(self) -> Numbers:
        """How long each count is held, in half milliseconds."""
        if self.parts:
            return np.concatenate([one.durations for one in self.parts])
        return 2 * np.diff(self.held.instants, append=self.until)

    @property
    def quotient(self) -> tuple[int, int]:
        """The mean of the players, weighted by durations; the plain mean if none lasts."""
        weight = int(self.durations.sum())
        return (
            (dot_exactly(self.durations, self.held.players), weight) if weight else super().quotient
        )

    @property
    def open_quotient(self) -> tuple[int, int]:
        """The mean of the counts above 0, weighted like the mean of all."""
        if not self.durations.any():
            return super().open_quotient
        return self.quotient[0], int(self.durations[self.held.players > 0].sum())

    def find_quantile(self, quantile: Fraction) -> float | None:
        """Return a quantile of the players, in which each half millisecond counts once."""
        weight = int(self.durations.sum())
        if not weight:
            return super().find_quantile(quantile)
        order = self.held.players.argsort(kind="stable")
        ends = self.durations[order].cumsum()
        found = ends.searchsorted(find_quantile_ranks(weight, quantile), "right")
        lower, upper = self.held.players[order[found]].tolist()
        return float(lower + upper) / 2

    def split(self, edges: Numbers) -> tuple[Observations, Numbers]:
        """Divide the counts at ascending instants, and return how long each part lasts.

        The first edge is at or before all observations of the window.
        """
        instants, players = self.held
        if not len(instants):
            return self.held, instants
        instants = instants.clip(edges[0])
        starts = np.union1d(instants, edges[(edges > instants[0]) & (edges < self.until)])
        parts = Observations(starts, players[instants.searchsorted(starts, "right") - 1])
        return parts, np.diff(starts, append=max(self.until, int(starts[-1])))


def join_figures(parts: Sequence[WindowFigures]) -> WindowFigures:
    """Return the figures of several windows together; no two of the ascending windows overlap."""
    window = Window(parts[0].window.start, parts[-1].window.end)
    joined = join([one.observations for one in parts])
    held = [one for one in parts if isinstance(one, HeldFigures)]
    if not held:
        return WindowFigures(joined, window, parts=parts)
    return HeldFigures(joined, window, join([one.held for one in held]), window.end, parts=parts)


def find_gaps(instants: Numbers, interval: float) -> list[tuple[int, int]]:
    """Return the pairs of successive instants that are more than 1.5 usual intervals apart.

    So one missed observation is a gap. The longest is first; of gaps of equal length, the earliest
    is first.
    """
    distances = np.diff(instants)
    gaps = np.flatnonzero(2 * distances > 3 * interval)
    gaps = gaps[np.argsort(-distances[gaps], kind="stable")]
    return list(zip(instants[gaps].tolist(), instants[gaps + 1].tolist(), strict=True))


def compute_figures(snapshot: Snapshot, server: ServerRow, window: Window) -> WindowFigures:
    """Return the figures of a server in a window.

    Raises SnapshotError.
    """
    if not snapshot.is_held:
        return WindowFigures(read_observations(snapshot, server, window), window)
    with snapshot.convert_decode_errors(server.title):
        ends = read_block_ends(server)
    block = bisect_right(ends, window.start)
    # The block before the window ends with the count that is held into it, at the latest.
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
    """Return the instant of a server's last observation up to and including `until`.

    Raises SnapshotError.
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
