"""Collect what a report shows: the document `report`."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple
from zoneinfo import ZoneInfo

from srvstat.analysis.distribution import compute_distribution
from srvstat.analysis.growth import compute_growth
from srvstat.analysis.integrity.check import check_integrity
from srvstat.analysis.peak_hours import compute_peak_hours
from srvstat.analysis.statistics import build_window_part, compute_stats
from srvstat.analysis.timeline import compute_timeline
from srvstat.contract.ranges import BEFORE_ALL, DAY_MS, Window
from srvstat.documents.growth import GrowthStepName
from srvstat.documents.report import Report
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.reader import SnapshotFile

_MOST_STEPS = 9_000
"""The hours of a year fit."""

_QUANTILES = (Fraction(1, 20), Fraction(1, 4), Fraction(3, 4), Fraction(19, 20))


class ReportOrigin(NamedTuple):
    """Where a report comes from: its title, the program, and the command that repeats it."""

    title: str
    program: str
    command: str


def build_report(
    snapshot: SnapshotFile,
    servers: Sequence[ServerRow],
    window: Window,
    zone: ZoneInfo,
    origin: ReportOrigin,
) -> Report:
    """Return the documents of a report about servers, in their order.

    Raises SnapshotError.
    """
    return Report(
        as_of=snapshot.as_of,
        root=snapshot.root,
        **origin._asdict(),
        time_zone=zone.key,
        window=build_window_part(window),
        stats=compute_stats(snapshot, servers, window, quantiles=_QUANTILES),
        timeline=compute_timeline(snapshot, servers, window, _MOST_STEPS),
        peak_hours=compute_peak_hours(snapshot, servers, window, zone),
        distribution=compute_distribution(snapshot, servers, window),
        growth=compute_growth(snapshot, servers, window, _choose_growth_step(window), zone),
        integrity=check_integrity(snapshot, servers, window, zone),
    )


def _choose_growth_step(window: Window) -> GrowthStepName:
    """Return a step of which a window has a few dozens."""
    days = (window.end - window.start) // DAY_MS
    if window.start == BEFORE_ALL or days > 366:  # noqa: PLR2004 - more than a year
        return "month"
    return "day" if days <= 62 else "week"  # noqa: PLR2004 - two months
