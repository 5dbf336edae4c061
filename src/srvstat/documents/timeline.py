"""The players of servers over time, in steps of equal length: the document `timeline`."""

from typing import Literal

from srvstat.documents.document import GapPart, Instant, Part, SnapshotDocument, WindowPart


class ServerTimeline(Part):
    """One server; each array has a value for each step, and None for one without observations.

    A gap is a time between two observations, or an edge of the window and an observation, of more
    than three usual intervals; it is widened or narrowed to whole steps. Steps without observations
    that are in no gap are due to polling that is slower than the steps.
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

    Step `i` is the interval `(steps_from + i * step, steps_from + (i + 1) * step]`.
    """

    document: Literal["timeline"] = "timeline"
    version: Literal[1] = 1
    window: WindowPart
    steps_from: Instant
    step_seconds: int
    servers: tuple[ServerTimeline, ...]
