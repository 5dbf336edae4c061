"""What a report shows: several documents about the same servers and window."""

from typing import Literal

from srvstat.documents.distribution import Distribution
from srvstat.documents.document import SnapshotDocument, WindowPart
from srvstat.documents.growth import GrowthDocument
from srvstat.documents.integrity import Integrity
from srvstat.documents.peak_hours import PeakHours
from srvstat.documents.statistics import Stats
from srvstat.documents.timeline import Timeline


class Report(SnapshotDocument):
    """The documents of a report, about the same servers in the same order, and the same window.

    `program` is the name and version of the program, and `command` the command that repeats the
    report.
    """

    document: Literal["report"] = "report"
    version: Literal[1] = 1
    title: str
    program: str
    command: str
    time_zone: str
    window: WindowPart
    stats: Stats
    timeline: Timeline
    peak_hours: PeakHours
    distribution: Distribution
    growth: GrowthDocument
    integrity: Integrity
