"""Prepare to draw servers: check how many they are, and give their window a beginning."""

from collections.abc import Sequence

from srvstat.analysis.steps import find_first_instant
from srvstat.contract.errors import UsageError
from srvstat.contract.ranges import BEFORE_ALL, Window
from srvstat.contract.requests import MAX_SERVERS
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot


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
