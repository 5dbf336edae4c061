"""Divide a window into calendar steps, and find how much of each was observed.

A step includes its start and excludes its end, as `date_trunc` does in SQL. The window of an
analysis excludes its start and includes its end, so its last step also includes its end: each
observation of the window is in exactly one step.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

from srvstat.analysis.local_time import Step, list_step_edges
from srvstat.contract.errors import UsageError
from srvstat.contract.instants import LATEST
from srvstat.contract.requests import MAX_SERVERS
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.snapshot.format.rows import ForgedRowError, ServerRow
from srvstat.snapshot.read.snapshot import Snapshot


class Steps(NamedTuple):
    """Step `i` of a window is `[edges[i], edges[i + 1])`, as far as it is in the window.

    The first edge can be before the window, and the last one after it. Without observations, a
    window of all of them has no step, and no edges.
    """

    edges: Sequence[int]
    window: Window

    @property
    def step_count(self) -> int:
        """The number of steps."""
        return max(len(self.edges) - 1, 0)

    def iter_times(self, first: int = 0, last: int | None = None) -> Iterator[tuple[int, int]]:
        """Return the start and the end of the steps from number `first` up to `last`, cut."""
        edges = [*self.edges[first : None if last is None else last + 1]]
        if edges:  # those inside are in the window
            edges[0] = max(edges[0], self.window.start)
            edges[-1] = min(edges[-1], self.window.end)
        return pairwise(edges)

    def list_read_edges(self) -> list[int]:
        """Return the edges for a snapshot, where a step excludes its start and includes its end."""
        if not self.edges:
            return []
        return [self.window.start, *(edge - 1 for edge in self.edges[1:-1]), self.window.end]


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
            return Steps([], window)
        edges = list_step_edges(min(first, end - 1), end - 1, step, zone)
        return Steps(edges, Window(edges[0] - 1, end))
    # A window that ends where a step begins includes this instant in the step before.
    return Steps(list_step_edges(min(start + 1, end - 1), end - 1, step, zone), window)


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


def find_unobserved(
    snapshot: Snapshot, server: ServerRow, window: Window, usual_interval: float | None
) -> list[tuple[int, int]]:
    """Return the intervals of a window in which no observation lasts, in half milliseconds.

    An observation lasts until the next one, but at most three usual intervals. One before the
    window counts, too. Without a usual interval, in milliseconds, nothing is observed.

    Raises SnapshotError.
    """
    start, end = 2 * window.start, 2 * window.end
    first = server.first_observed_at
    last = snapshot.find_last_observed_at(server, window.end)
    if usual_interval is None or first is None or last is None:
        return [(start, end)]
    with snapshot.convert_decode_errors(server.title):
        if not first <= last:
            raise ForgedRowError("not the instants of observations")
    usual = int(2 * usual_interval)
    found = [(start, 2 * first)] if first > window.start else []
    for before, after in snapshot.find_long_intervals(server, window, usual):
        found.append((max(2 * before + 3 * usual, start), 2 * after))
    found.append((max(2 * last + 3 * usual, start), end))
    return [one for one in found if one[0] < one[1]]


def compute_shares(steps: Steps, unobserved: Iterable[tuple[int, int]]) -> list[float]:
    """Return the part of each step's calendar length that observations cover, from 0 to 1.

    `unobserved` are the intervals of the window that `find_unobserved` returns. The time outside of
    the window is not observed.
    """
    edges, shares = steps.edges, [1.0] * steps.step_count
    if not edges:
        return shares
    missing: Counter[int] = Counter()
    outside = ((2 * edges[0], 2 * steps.window.start), (2 * steps.window.end, 2 * edges[-1]))
    for start, end in (*outside, *unobserved):
        at = max(bisect_right(edges, start // 2) - 1, 0)
        while at < len(shares) and 2 * edges[at] < end:
            missing[at] += max(min(end, 2 * edges[at + 1]) - max(start, 2 * edges[at]), 0)
            at += 1
    for at, unseen in missing.items():
        length = 2 * (edges[at + 1] - edges[at])
        shares[at] = (length - unseen) / length
    return shares


def observe_steps(snapshot: Snapshot, server: ServerRow, steps: Steps) -> list[float]:
    """Return the share of each step that observations of a server cover.

    Raises SnapshotError.
    """
    if not steps.step_count:
        return []
    (found,) = snapshot.compute_figures([server], steps.window)
    unobserved = find_unobserved(snapshot, server, steps.window, found.usual_interval)
    return compute_shares(steps, unobserved)


def observe_sum(snapshot: Snapshot, servers: Iterable[ServerRow], steps: Steps) -> list[float]:
    """Return the least share of each step that is observed of a server, where it is expected.

    A server is expected from the step of its first observation to that of its last. Where none is
    expected, nothing is observed.

    Raises SnapshotError.
    """
    least: list[float | None] = [None] * steps.step_count
    for server in servers:
        first, last = server.first_observed_at, server.last_observed_at
        if first is None or last is None or first > steps.window.end:
            continue
        shares = observe_steps(snapshot, server, steps)
        # The last step includes the end of the window, where another one may begin.
        begin = min(max(bisect_right(steps.edges, first), 1), steps.step_count) - 1
        for at in range(begin, min(bisect_right(steps.edges, last), steps.step_count)):
            before = least[at]
            least[at] = shares[at] if before is None else min(before, shares[at])
    return [share or 0.0 for share in least]


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
