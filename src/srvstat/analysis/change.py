"""Compare the average of a window with that of the window of equal length before.

The first and the last observation of a window are two moments, mostly at different times of day.
Averages of whole windows are not affected by the time of day.
"""

from collections.abc import Sequence
from fractions import Fraction

from srvstat.analysis.windows import LONGEST_MS, find_previous
from srvstat.contract.ranges import BEFORE_ALL, Window
from srvstat.documents.document import LEAST_COVERAGE, ChangePart
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.figures import WindowFigures
from srvstat.snapshot.read.snapshot import Snapshot


def find_earlier(snapshot: Snapshot, window: Window) -> Window | None:
    """Return the window before; None if there is none, or a bundle does not cover it."""
    if window.start == BEFORE_ALL or window.end - window.start > LONGEST_MS:
        return None
    earlier = find_previous(window)
    covered_from = snapshot.covered_from
    return None if covered_from is not None and earlier.start < covered_from else earlier


def read_earlier(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    earlier: Window | None,
    quantiles: Sequence[Fraction] = (),
) -> Sequence[WindowFigures | None]:
    """Return the figures of servers in an earlier window; None if there is no such window.

    Raises SnapshotError.
    """
    if earlier is None:
        return [None] * len(servers)
    return snapshot.compute_figures(servers, earlier, quantiles)


def compare_windows(before: WindowFigures | None, after: WindowFigures) -> ChangePart | None:
    """Return how an average changed; None if observations cover too little of a window."""
    if before is None or min(before.coverage or 0, after.coverage or 0) < LEAST_COVERAGE:
        return None
    counts = before.statistics.observations, after.statistics.observations
    return compare_averages(before.total, counts[0], after.total, counts[1])


def compare_averages(total: int, count: int, later_total: int, later_count: int) -> ChangePart:
    """Return an average minus an earlier one, in players and in percent, each rounded once.

    The counts are at least 1. The percentage is None if the earlier average is 0.
    """
    rise = later_total * count - total * later_count
    percentage = 100 * rise / (total * later_count) if total else None
    return ChangePart(rise / (count * later_count), percentage)
