"""Read the counts of a series: a server, or the total of several servers."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from srvstat.contract import errors, stats, time, wire
from srvstat.contract.arrays import Numbers
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.documents import document
from srvstat.documents.document import ServerName
from srvstat.snapshot.blocks import Observations
from srvstat.snapshot.read import observations
from srvstat.snapshot.read.observations import HeldFigures, WindowFigures, read_observations
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.rows import ServerRow, read_block_ends

_FEW_OBSERVATIONS = 10
"""The minimum number of observations to estimate a polling interval."""


def is_silent(snapshot: Snapshot, server: ServerRow) -> bool:
    """Return whether a server has no observation in the last 24 hours of a snapshot.

    With `--hold`, a server with any observation is not silent.
    """
    last, as_of = server.last_observed_at, snapshot.as_of
    return document.is_silent(last, as_of, hold=snapshot.is_held)


@dataclass(frozen=True)
class Total:
    """The sum of servers, with the fields of a server that analyses use.

    Its counts are at the times at which any of the servers was observed. Each is the sum of the
    servers' latest counts, ignoring counts older than three polling intervals of their server. With
    `--hold`, counts of any age are included. The current count excludes silent servers. There is a
    maximum if all servers have a maximum.
    """

    snapshot: Snapshot
    servers: Sequence[ServerRow]

    @property
    def players_current(self) -> int:
        """The sum of the current counts."""
        return sum(one.players_current for one in self.servers if not is_silent(self.snapshot, one))

    @property
    def players_max(self) -> int:
        """The sum of the maxima, or 0 if a server has none."""
        maxima = [server.players_max for server in self.servers]
        return sum(maxima) if all(maxima) else 0

    @property
    def first_observed_at(self) -> int | None:
        """The time of the first observation."""
        instants = (one.first_observed_at for one in self.servers)
        return min((at for at in instants if at is not None), default=None)

    @property
    def last_observed_at(self) -> int | None:
        """The time of the last observation."""
        instants = (one.last_observed_at for one in self.servers)
        return max((at for at in instants if at is not None), default=None)

    @property
    def title(self) -> str:
        """The total's name in messages."""
        return f"the total of {self.count_servers()}"

    def count_servers(self) -> str:
        """Return the number of servers in words."""
        return f"{len(self.servers):,} server{'' if len(self.servers) == 1 else 's'}"

    def find_expected(self, server: ServerRow) -> tuple[int, int] | None:
        """Return the first and the last time at which counts of a server are expected, or None.

        For a silent server, the last time is its last observation. A server without observations
        has none.
        """
        first, last = server.first_observed_at, server.last_observed_at
        if first is None or last is None:
            return None
        return first, last if is_silent(self.snapshot, server) else max(last, self.snapshot.as_of)


Series = ServerRow | Total
"""The subject of an analysis: a server or a total."""


def get_name(series: Series) -> ServerName:
    """Return the names of a server or a total."""
    if isinstance(series, ServerRow):
        return ServerName(series.id, series.cfx_id, series.hostname)
    ids = tuple(server.id for server in series.servers)
    return ServerName(None, "", series.count_servers(), ids)


def find_longest(usual_interval: float | None) -> int:
    """Return the maximum age of a count, in milliseconds."""
    return int(3 * (usual_interval or 0))


class _Member(NamedTuple):
    """A server of a total.

    - `lasting`: its instants; the first may precede the window.
    - `usual_interval`: None for fewer than two observations.
    """

    lasting: Numbers
    usual_interval: float | None
    expected: tuple[int, int]

    @property
    def longest(self) -> int:
        """The maximum age of a count, in milliseconds."""
        return find_longest(self.usual_interval)


@dataclass(frozen=True)
class TotalFigures(WindowFigures):
    """The statistics of a total. Its polling interval is the median of its servers' intervals.

    `present`: the number of servers in each sum.
    """

    present: Numbers
    members: Sequence[_Member]

    @cached_property
    def usual_interval(self) -> float | None:
        """The median of the servers' polling intervals."""
        known = sorted(one.usual_interval for one in self.members if one.usual_interval is not None)
        return (
            sum(known[rank] for rank in stats.find_middle_ranks(len(known))) / 2 if known else None
        )

    @property
    def coverage(self) -> float | None:
        """The lowest coverage of any expected server."""
        edges = np.array([self.window.start, self.window.end])
        if self.window.start == BEFORE_ALL:
            edges[0] = self.observations.instants[0] if self.count else self.window.end
        if edges[0] >= edges[1]:
            return None
        return int(self.measure_observed(edges)[0]) / (2 * int(edges[1] - edges[0]))

    def list_whole(self) -> Observations:
        """Return the sums in which no server is missing."""
        begins = np.sort([one.expected[0] for one in self.members])
        ends = np.sort([one.expected[1] + one.longest for one in self.members])
        instants = self.observations.instants
        expected = begins.searchsorted(instants, "right") - ends.searchsorted(instants)
        return Observations(*(column[self.present >= expected] for column in self.observations))

    def count_present(self, edges: Numbers) -> Numbers:
        """Return the maximum number of servers in one sum of each step."""
        most = np.maximum.reduceat(np.append(self.present, 0), edges)[:-1]
        found: Numbers = np.where(np.diff(edges) > 0, most, 0)
        return found

    def measure_observed(self, edges: Numbers) -> Numbers:
        """Return the observed time of each step, in half milliseconds.

        This is the minimum of the servers' observed times. While other servers are expected, time
        before a server's first or after its last expected count is treated as observed.
        """
        if not self.members or not len(edges):
            return np.zeros(max(len(edges) - 1, 0), np.int64)
        least = np.full(len(edges) - 1, np.iinfo(np.int64).max)
        first = min(one.expected[0] for one in self.members)
        last = max(one.expected[1] + one.longest for one in self.members)
        inside = edges.clip(*self.window)
        for one in self.members:
            begin, end = one.expected[0], one.expected[1] + one.longest
            outside = inside.clip(first, begin) + inside.clip(end, max(last, end))
            observed = measure_observed(one.lasting, one.usual_interval, self.window, edges)
            np.minimum(least, observed + 2 * np.diff(outside), out=least)
        return least


def compute_figures(snapshot: Snapshot, series: Series, window: Window) -> WindowFigures:
    """Return the statistics of a server or a total in a window.

    Raises UsageError for a total above 2^53 - 1, and SnapshotError if data are damaged.
    """
    if isinstance(series, ServerRow):
        return observations.compute_figures(snapshot, series, window)
    if snapshot.is_held:
        return _add_held(snapshot, series, window)
    counts, members = [], []
    for server in series.servers:
        expected = series.find_expected(server)
        if expected is not None:
            recent = read_recent(snapshot, server, window)
            found, usual = carry_counts(recent, window)
            members.append(_Member(found.instants, usual, expected))
            counts.append(found)
    sums, present = add_up(counts, [one.longest for one in members])
    inside = window.locate(sums.instants)
    return TotalFigures(_cut(sums, inside), window, present[inside], members)


def read_recent(snapshot: Snapshot, server: ServerRow, window: Window) -> Observations:
    """Return the observations of a window and, if there are any, at least ten before it.

    Raises SnapshotError if data are damaged.
    """
    with snapshot.get_file(server).convert_decode_errors(server.title):
        ends = read_block_ends(server)
    block = bisect_right(ends, window.start)
    for before in (block - 1, block - 2):  # one block before is enough for a few observations
        start = ends[before] if before >= 0 else BEFORE_ALL
        found = read_observations(snapshot, server, Window(start, window.end))
        if before < 0 or window.locate(found.instants).start >= _FEW_OBSERVATIONS:
            break
    return found


def carry_counts(recent: Observations, window: Window) -> tuple[Observations, float | None]:
    """Return the observations of a window and the preceding one, and the polling interval.

    `recent`: from `read_recent`. The polling interval is estimated from at least the last few
    observations up to the end of the window.
    """
    inside = window.locate(recent.instants)
    first = min(inside.start, inside.stop - _FEW_OBSERVATIONS)
    usual = WindowFigures(_cut(recent, slice(max(first, 0), inside.stop)), window).usual_interval
    return _cut(recent, slice(max(inside.start - 1, 0), inside.stop)), usual


def _cut(counts: Observations, inside: slice) -> Observations:
    return Observations(*(column[inside] for column in counts))


def cut_to(window: Window, counts: Observations) -> Observations:
    """Return the observations within a window."""
    return _cut(counts, window.locate(counts.instants))


def _add_held(snapshot: Snapshot, total: Total, window: Window) -> HeldFigures:
    figures = [observations.compute_figures(snapshot, one, window) for one in total.servers]
    held = [one.held for one in figures if isinstance(one, HeldFigures)]
    sums, _ = add_up(held, [time.LATEST] * len(held))
    until = max((one.until for one in figures if isinstance(one, HeldFigures)), default=window.end)
    return HeldFigures(cut_to(window, sums), window, sums, until)


def add_up(counts: Sequence[Observations], longest: Iterable[int]) -> tuple[Observations, Numbers]:
    """Return the sum of the latest counts at each instant, and the number of counts in it.

    A count that is more than `longest` milliseconds old has expired.
    """
    if sum(int(players.max(initial=0)) for _, players in counts) > wire.MAX_SAFE_INTEGER:
        raise errors.UsageError("the total may exceed 2^53 - 1; select fewer servers")
    none = np.zeros(0, np.int64)
    times, changes, joins = [none], [none], [none]
    for (instants, players), age in zip(counts, longest, strict=True):
        expires = np.append(np.diff(instants) > age, True)[: len(instants)]
        times += [instants, instants[expires] + age + 1]
        replaced = np.append(0, ~expires)[: len(instants)]
        changes += [players - replaced * np.append(0, players)[:-1], -players[expires]]
        joins += [1 - replaced, np.full(np.count_nonzero(expires), -1)]
    all_times = np.concatenate(times)
    order = all_times.argsort(kind="stable")
    # Much faster than np.unique, because the instants of each server are already in order.
    instants = np.sort(np.concatenate([none, *(one.instants for one in counts)]), kind="stable")
    instants = instants[np.diff(instants, prepend=-1) > 0]
    places = all_times[order].searchsorted(instants, "right") - 1
    sums, present = (np.concatenate(one)[order].cumsum()[places] for one in (changes, joins))
    return Observations(instants, sums), present


def count_begun(series: Series, instants: Numbers) -> Numbers:
    """Return the number of servers in a series that were first observed before each instant."""
    servers = series.servers if isinstance(series, Total) else [series]
    firsts = [one.first_observed_at for one in servers if one.first_observed_at is not None]
    return np.sort(np.array(firsts, np.int64)).searchsorted(instants)


def read_lasting(snapshot: Snapshot, series: Series, figures: WindowFigures) -> Numbers:
    """Return the instants of a window, with the previous observation if it lasts into the window.

    Raises SnapshotError if data are damaged.
    """
    instants, start = figures.observations.instants, figures.window.start
    first, usual = series.first_observed_at, figures.usual_interval
    if isinstance(series, Total) or first is None or first > start or usual is None:
        return instants
    before = Window(max(start - int(3 * usual) - 1, BEFORE_ALL), start)
    return np.append(read_observations(snapshot, series, before).instants[-1:], instants)


def measure_observed(
    lasting: Numbers, usual_interval: float | None, window: Window, edges: Numbers
) -> Numbers:
    """Return the observed time of each step, in half milliseconds.

    `lasting`: from `read_lasting`. Time outside the window is not observed. Without a polling
    interval, no time is observed.
    """
    if usual_interval is None or not len(edges) or not len(lasting):
        return np.zeros(max(len(edges) - 1, 0), np.int64)
    # In half milliseconds, because the polling interval may have a half.
    start, end = 2 * window.start, 2 * window.end
    begins, edges = 2 * lasting, 2 * edges
    lengths = np.minimum(np.diff(begins, append=end), 3 * int(2 * usual_interval))
    before = max(start - int(begins[0]), 0)
    begins[0] += before
    lengths[0] = max(int(lengths[0]) - before, 0)
    # Observed time before each edge: whole observations, minus the part after the edge.
    inside = np.maximum(edges, begins[0])
    last = begins.searchsorted(inside, "right") - 1
    observed = lengths.cumsum()[last] - np.maximum(begins[last] + lengths[last] - inside, 0)
    measured: Numbers = np.diff(observed)
    return measured
