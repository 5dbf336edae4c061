"""The players of servers over time, in steps of equal length: the document `timeline`."""

from typing import Literal

from srvstat.documents.document import GapPart, Instant, Part, SnapshotDocument, WindowPart


class ServerTimeline(Part):
    """One server; each array has a value for each step, and None for one without observations.

    A gap is a run of steps without observations between two observations, or between an edge of the
    window and an observation, that are more than three usual intervals apart; the usual interval is
    the median distance between successive observations. The time after `as_of` is in no gap. If a
    server has fewer than two observations, all steps without one are in gaps. In other steps
    without observations, polls are rarer than the steps, late or missed.
    """

    server_id: str
    cfx_id: str
    hostname: str
    sample_counts: tuple[int, ...]
    averages: tuple[float | None, ...]
    lowest: tuple[int | None, ...]
    peak: tuple[int | None, ...]
    gaps: tuple[GapPart, ...]


class Timeline(SnapshotDocument):
    """The players of servers in steps; the window cuts the first and the last step.

    Step `i` is the interval `(steps_from + i * step, steps_from + (i + 1) * step]`. The window of
    all observations begins 1 ms before the first observation of the servers.
    """

    document: Literal["timeline"] = "timeline"
    version: Literal[1] = 1
    window: WindowPart
    steps_from: Instant
    step_seconds: int
    servers: tuple[ServerTimeline, ...]
