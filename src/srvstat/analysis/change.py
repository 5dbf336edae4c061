"""Compare the average of a window with that of the window of equal length before.

The first and the last observation of a window are two moments, mostly at different times of day.
Averages of whole windows are not affected by the time of day.
"""

from collections.abc import Sequence
from typing import NamedTuple

from srvstat.analysis.windows import LONGEST_MS, find_previous
from srvstat.contract.ranges import BEFORE_ALL, Window
from srvstat.documents.document import LEAST_COVERAGE, ChangePart
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.figures import WindowFigures
from srvstat.snapshot.read.snapshot import Snapshot


class Change(NamedTuple):
    """How an average changed, and the share of the earlier window that was observed.

    Without an earlier window, both are None.
    """

    part: ChangePart | None
    previous_coverage: float | None


def find_earlier(snapshot: Snapshot, window: Window) -> Window | None:
    """Return the window before; None if there is none, or a bundle does not cover it."""
    if window.start == BEFORE_ALL or window.end - window.start > LONGEST_MS:
        return None
    earlier = find_previous(window)
    covered_from = snapshot.covered_from
    return None if covered_from is not None and earlier.start < covered_from else earlier


def compute_changes(
    snapshot: Snapshot,
    servers: Sequence[ServerRow],
    figures: Sequence[WindowFigures],
    earlier: Window | None,
) -> list[Change]:
    """Return how the average of each server changed since an earlier window.

    `figures` are those of the servers in the later window.

    Raises SnapshotError.
    """
    if earlier is None:
        return [Change(None, None)] * len(servers)
    before = snapshot.compute_figures(servers, earlier)
    return [Change(_compare(*pair), pair[0].coverage) for pair in zip(before, figures, strict=True)]


def _compare(before: WindowFigures, after: WindowFigures) -> ChangePart | None:
    if min(before.coverage or 0, after.coverage or 0) < LEAST_COVERAGE:
        return None
    counts = before.statistics.observations, after.statistics.observations
    players, percentage = compare_averages(before.total, counts[0], after.total, counts[1])
    return ChangePart(players=players, percentage=percentage)


def compare_averages(
    total: int, count: int, later_total: int, later_count: int
) -> tuple[float, float | None]:
    """Return an average minus an earlier one, in players and in percent, each rounded once.

    The counts are at least 1. The percentage is None if the earlier average is 0.
    """
    rise = later_total * count - total * later_count
    return rise / (count * later_count), 100 * rise / (total * later_count) if total else None
