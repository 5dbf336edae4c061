"""Where each figure of an answer comes from."""

from typing import Annotated, Any, Literal

from pydantic import Field

from srvstat.contract.ranges import Range
from srvstat.documents.document import GapPart, Instant, Part, SnapshotDocument, WindowPart


class ExplainedObservation(Part):
    """One observation."""

    observed_at: Instant
    players: int


class RankedValue(Part):
    """A value and its rank in ascending order; ranks count from 1."""

    rank: int
    players: int


class ExtremeValue(Part):
    """The highest or lowest value, and the instant of the first observation that has it."""

    players: int
    first_at: Instant


class GrowthOperands(Part):
    """The players of the first and of the last observation in the window."""

    from_: Annotated[int, Field(serialization_alias="from")]
    to: int


class ServerExplanation(Part):
    """The operands of one server's figures. Values that need an observation are None without one.

    `sum` over `sample_count` is the mean. `middle` has the two middle values, or the one if their
    number is odd. `usual_interval_seconds` is the median distance between successive observations.
    `gaps` are the longest of the `gap_count` distances over 1.5 usual intervals, longest first; the
    distances to the edges of the window count.

    In `time_weighted_average` and `coverage`, an observation lasts until the next one, the last one
    until the end of the window, and each at most three usual intervals. `has_uneven_intervals` is
    true if gaps or irregular polling make that average differ from the mean by more than 1 percent.
    `expected_count` is the number of usual intervals in the window, rounded down, and `coverage`
    the share of the window in which an observation lasts; both are None for fewer than two
    observations and for a window without a start.

    `current_is_fallback` means that the record had no current count, so that it is that of
    `last_in_snapshot`, or 0. That and `first_in_snapshot_at` do not depend on the as-of time of the
    answer.
    """

    server_id: str
    cfx_id: str
    hostname: str
    current_players: int
    current_is_fallback: bool
    first_in_snapshot_at: Instant | None
    last_in_snapshot: ExplainedObservation | None
    window: WindowPart
    sample_count: int
    sum: int
    first: ExplainedObservation | None
    last: ExplainedObservation | None
    middle: tuple[RankedValue, ...]
    peak: ExtremeValue | None
    lowest: ExtremeValue | None
    growth: GrowthOperands | None
    usual_interval_seconds: float | None
    expected_count: int | None
    coverage: float | None
    gap_count: int
    gaps: tuple[GapPart, ...]
    time_weighted_average: float | None
    has_uneven_intervals: bool


class BuildCounts(Part):
    """The rows that the build did not keep: repeated, conflicting and malformed ones.

    A snapshot does not count skipped rows: of unknown servers, or later than its as-of time.
    """

    repeated: int
    conflicting: int
    rejected: int


class Explanation(SnapshotDocument):
    """The operands of an answer, and the answer: a JSON value whose text is the API's bytes.

    `range` is None for Get Server. `program_version` is that of srvstat. `covered_from` is the
    first instant that a bundle covers, and None for a whole snapshot.
    """

    document: Literal["explanation"] = "explanation"
    version: Literal[1] = 1
    snapshot_as_of: Instant
    covered_from: Instant | None
    program_version: str
    range: Range | None
    not_kept: BuildCounts
    servers: tuple[ServerExplanation, ...]
    answer: Any
