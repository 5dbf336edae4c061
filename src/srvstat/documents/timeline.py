"""The players of servers over time, in steps of a calendar: the document `timeline`."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from srvstat.documents.document import GapPart, Instant, Part, SnapshotDocument, WindowPart


class StepRun(Part):
    """Successive steps of equal length, from an instant on."""

    from_: Annotated[Instant, Field(serialization_alias="from")]
    seconds: int
    count: int


class ServerTimeline(Part):
    """One server; each array has a value for each step, and None for one without observations.

    `observed_shares` are the parts of the steps' calendar lengths that observations cover: until
    the next observation, at most three usual intervals. A step with a share below 0.9 is partial.
    A gap is the time between two observations, or an edge of the window and an observation, that
    are more than three usual intervals apart; the usual interval is the median distance between
    successive observations. The time after `as_of` is in no gap.
    """

    server_id: str
    cfx_id: str
    hostname: str
    sample_counts: tuple[int, ...]
    averages: tuple[float | None, ...]
    lowest: tuple[int | None, ...]
    peak: tuple[int | None, ...]
    observed_shares: tuple[float, ...]
    gaps: tuple[GapPart, ...]


class Timeline(SnapshotDocument):
    """The players of servers in steps of a time zone.

    A step includes its start and excludes its end; the last step also includes the end of the
    window. `step` is the name of the steps, such as `1h` or `day`. `steps` are whole steps: the
    first can begin before the window, and the last end after it.
    """

    document: Literal["timeline"] = "timeline"
    version: Literal[1] = 1
    window: WindowPart
    time_zone: str
    step: str
    steps: tuple[StepRun, ...]
    servers: tuple[ServerTimeline, ...]

    def list_edges(self) -> list[int]:
        """Return the start of each step, and the end of the last one."""
        edges: list[int] = []
        for run in self.steps:
            length = run.seconds * 1000
            edges += range(run.from_, run.from_ + run.count * length, length)
        last = self.steps[-1]
        return [*edges, last.from_ + last.count * last.seconds * 1000]


def build_runs(edges: Sequence[int]) -> tuple[StepRun, ...]:
    """Return the steps between edges as runs of equal length."""
    runs: list[tuple[int, int, int]] = []
    for start, end in pairwise(edges):
        seconds = (end - start) // 1000
        if runs and runs[-1][1] == seconds:
            runs[-1] = (*runs[-1][:2], runs[-1][2] + 1)
        else:
            runs.append((start, seconds, 1))
    return tuple(StepRun(from_=start, seconds=length, count=count) for start, length, count in runs)
