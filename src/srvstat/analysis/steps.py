"""Divide a window into calendar steps, and find how much of each was observed.

A step includes its start and excludes its end, as `date_trunc` does in SQL. The window of an
analysis excludes its start and includes its end, so its last step also includes its end: each
observation of the window is in exactly one step.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from srvstat.analysis.figures import WindowFigures
from srvstat.analysis.local_time import Step, list_step_edges
from srvstat.contract.arrays import Doubles, Numbers
from srvstat.contract.errors import UsageError
from srvstat.contract.requests import MAX_SERVERS
from srvstat.contract.time import BEFORE_ALL, DAY_MS, LATEST, Window
from srvstat.snapshot.read.observations import read_observations
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.rows import ForgedRowError, ServerRow


class Steps(NamedTuple):
    """Step `i` of a window is `[edges[i], edges[i + 1])`, as far as it is in the window.

    The first edge can be before the window, and the last one after it. Without observations, a
    window of all of them has no step, and no edges.
    """

    edges: Numbers
    window: Window

    @property
    def step_count(self) -> int:
        """The number of steps."""
        return max(len(self.edges) - 1, 0)

    def iter_times(self) -> Iterator[tuple[int, int]]:
        """Return the start and the end of each step, cut to the window."""
        return pairwise(self.edges.clip(*self.window).tolist())

    def locate(self, instants: Numbers) -> Numbers:
        """Return the positions of the steps: step `i` has `instants[found[i] : found[i + 1]]`.

        The instants are those of the window.
        """
        found = instants.searchsorted(self.edges)
        found[:1], found[-1:] = 0, len(instants)
        return found


def divide_window(
    snapshot: Snapshot, servers: Iterable[ServerRow], window: Window, step: Step, zone: ZoneInfo
) -> Steps:
    """Return the steps of a window.

    A window of all observations begins with the step of the first observation of the servers.

    Raises UsageError for too many steps, SnapshotError.
    """
    start, end = window
    if start == BEFORE_ALL:
        first = find_first_instant(snapshot, servers)
        if first > end:
            return Steps(np.array([], np.int64), window)
        edges = list_step_edges(min(first, end - 1), end - 1, step, zone)
        return Steps(edges, Window(int(edges[0]) - 1, end))
    # A window that ends where a step begins includes this instant in the step before.
    edges = list_step_edges(min(start + 1, end - 1), end - 1, step, zone)
    return Steps(edges, window)


def find_first_instant(snapshot: Snapshot, servers: Iterable[ServerRow]) -> int:
    """Return the instant of the first observation of servers; LATEST if they have none.

    Raises SnapshotError.
    """
    with snapshot.convert_decode_errors("the servers"):
        firsts = [one.first_observed_at for one in servers]
        first = min((at for at in firsts if at is not None), default=LATEST)
        if not 0 <= first <= LATEST:
            raise ForgedRowError("not an instant")
    return first


def read_lasting(snapshot: Snapshot, server: ServerRow, figures: WindowFigures) -> Numbers:
    """Return the instants of a window, after that of the observation that lasts into it, if any.

    The window has at least two observations.

    Raises SnapshotError.
    """
    instants, start = figures.observations.instants, figures.window.start
    first, usual = server.first_observed_at, figures.usual_interval
    if first is None or first > start or usual is None:
        return instants
    before = Window(max(start - int(3 * usual) - 1, BEFORE_ALL), start)
    return np.append(read_observations(snapshot, server, before).instants[-1:], instants)


def find_unobserved(snapshot: Snapshot, server: ServerRow, figures: WindowFigures) -> Numbers:
    """Return the starts and the ends of the intervals of a window in which no observation lasts.

    They are in half milliseconds. An observation before the window may last into it. Without a
    usual interval, nothing is observed.

    Raises SnapshotError.
    """
    (start, end), usual = figures.window, figures.usual_interval
    if start == BEFORE_ALL:
        start -= 366 * DAY_MS  # in some time zones, the first step begins before 1970
    if usual is None:
        return np.array([[2 * start], [2 * end]])
    edges = np.append(read_lasting(snapshot, server, figures), end)
    is_long = np.diff(edges) > 3 * usual
    starts = np.append(2 * start, 2 * edges[:-1][is_long] + 3 * int(2 * usual))
    ends = 2 * np.append(edges[0], edges[1:][is_long])
    np.maximum(starts, 2 * start, out=starts)
    return np.stack((starts, ends))[:, starts < ends]


def compute_shares(steps: Steps, unobserved: Numbers) -> Doubles:
    """Return the part of each step's calendar length that observations cover, from 0 to 1.

    `unobserved` are the intervals of the window that `find_unobserved` returns. The time outside of
    the window is not observed.
    """
    if not steps.step_count:
        return np.array([])
    edges = 2 * steps.edges
    window_start, window_end = 2 * steps.window.start, 2 * steps.window.end
    starts = np.concatenate(([edges[0]], unobserved[0], [window_end])).clip(edges[0], edges[-1])
    ends = np.concatenate(([window_start], unobserved[1], [edges[-1]])).clip(edges[0], edges[-1])
    # How much is unobserved before each edge: whole intervals, less what is after the edge.
    before = starts.searchsorted(edges, "right")
    missing = np.append(0, np.cumsum(ends - starts))[before]
    missing -= np.maximum(ends[before - 1] - edges, 0)
    lengths = np.diff(edges)
    shares: Doubles = (lengths - np.diff(missing)) / lengths
    return shares


def check_server_count(count: int) -> None:
    """Check that the number of servers to draw is from 1 to the most that a comparison has.

    Raises UsageError.
    """
    if not count:
        raise UsageError("no server; give IDENTIFIER…")
    if count > MAX_SERVERS:
        raise UsageError(f"servers: {count:,} given, at most {MAX_SERVERS} can be drawn")


def bound_window(snapshot: Snapshot, servers: Sequence[ServerRow], window: Window) -> Window:
    """Return a window, from just before the first observation of servers if it has no beginning.

    Raises SnapshotError.
    """
    if window.start != BEFORE_ALL:
        return window
    return Window(min(find_first_instant(snapshot, servers), window.end) - 1, window.end)
