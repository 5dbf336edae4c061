"""Recordings, and what comparing and explaining answers finds."""

from collections.abc import Sequence
from decimal import Decimal
from math import inf
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from srvstat.contract.models import Members
from srvstat.contract.windows import Range
from srvstat.documents import document as base

Status = Annotated[int, Field(ge=100, le=599)]
"""The status of an HTTP response."""


class PlanPermissions(base.Part):
    """What one plan allows, and its number of keys.

    Without `requests_per_minute` there is no limit.
    """

    name: str
    operations: tuple[str, ...]
    ranges: tuple[str, ...]
    raw_history_days: int
    requests_per_minute: int | None
    keys: int


class AccessCheck(base.Document):
    """The plans of an access file.

    Plans are in the order of the file, with the number of all keys.
    """

    document: Literal["accessCheck"] = "accessCheck"
    plans: tuple[PlanPermissions, ...]
    keys: int


class StoredRequest(base.Part):
    """A request; `…` replaces each key in it.

    `path` is as sent and includes the query. `headers` are those that an answer depends on, with
    names in lower case. A body that is not UTF-8 is in `body_base64` instead of `body`. Both are
    None if the body is empty, or was not read because the request was refused before that.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: str | None
    body_base64: str | None


class StoredResponse(base.Part):
    """The answer. `body` is None for HEAD."""

    status: Status
    body: str | None


class Recording(base.SnapshotDocument):
    """A recorded request and its response.

    `plan` is None if authentication failed, or without an access file.

    `as_of` and `root` are those of the snapshot that answered. `requested_at` is when the head of
    the request was received, and `request_id` is its id in the log and in the response.
    """

    document: Literal["recording"] = "recording"
    as_of: base.GivenInstant
    requested_at: base.GivenInstant
    request_id: str | None = None
    plan: str | None
    request: StoredRequest
    response: StoredResponse


class PlainRequest(StoredRequest):
    """A request that a person wrote."""

    headers: dict[str, str] = Field(default_factory=dict)
    body: str | None = None
    body_base64: str | None = None


class PlainResponse(StoredResponse):
    """A response that a person wrote; without `body`, only the status is known."""

    body: str | None = None


class PlainExchange(base.Part):
    """An exchange that a person wrote: a line with less than the service records."""

    request: PlainRequest
    response: PlainResponse | None = None
    as_of: base.GivenInstant | None = None
    requested_at: base.GivenInstant | None = None


class LogEntry(base.Part):
    """A line of the service's log, whose other fields do not matter to an answer."""

    model_config = ConfigDict(extra="ignore")
    time: base.GivenInstant
    id: str | None = None
    operation: str = "unknown"
    servers: list[str] = Field(default_factory=list)
    range: str | None = None
    status: Status


class HarPart(base.Part):
    """A part of an entry of a HAR file, which may have other members, too."""

    model_config = ConfigDict(extra="ignore")


class HarHeader(HarPart):
    """A header."""

    name: str
    value: str


class HarBody(HarPart):
    """A body; without `text`, it was not recorded. `size` and `compression` are bytes."""

    text: str | None = None
    encoding: str | None = None
    size: int | None = None
    compression: int | None = None


class HarTarget(HarPart):
    """What must be valid in a request that is not one to the API."""

    method: str
    url: str
    headers: Members[HarHeader] = ()


class HarRequest(HarTarget):
    """A request."""

    body_size: int | None = None
    post_data: HarBody | None = None


class HarResponse(HarPart):
    """A response; its status is 0 if there was none."""

    status: Annotated[int, Field(ge=0, le=599)] | None = None
    headers: Members[HarHeader] = ()
    content: HarBody | None = None


class ForeignHarEntry(HarPart):
    """An entry of a request that is not one to the API."""

    request: HarTarget


class HarEntry(HarPart):
    """An entry."""

    started_date_time: base.GivenInstant | None = None
    request: HarRequest
    response: HarResponse | None = None


class ExplainedObservation(base.Part):
    """One observation."""

    observed_at: base.Instant
    players: int


class RankedValue(base.Part):
    """A value and its rank in ascending order; ranks count from 1."""

    rank: int
    players: int


class ExtremeValue(base.Part):
    """The highest or lowest value, and the instant of the first observation that has it."""

    players: int
    first_at: base.Instant


class GrowthOperands(base.Part):
    """The players of the first and of the last observation in the window."""

    from_: int
    to: int


class ServerExplanation(base.ServerPart):
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

    current_players: int
    current_is_fallback: bool
    first_in_snapshot_at: base.Instant | None
    last_in_snapshot: ExplainedObservation | None
    window: base.WindowPart
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
    gaps: tuple[base.GapPart, ...]
    time_weighted_average: float | None
    has_uneven_intervals: bool


class BuildCounts(base.Part):
    """The rows that the build did not keep: repeated, conflicting and malformed ones.

    A snapshot does not count skipped rows: of unknown servers, or later than its as-of time.
    """

    repeated: int
    conflicting: int
    rejected: int


class Explanation(base.CountsDocument):
    """The operands of a response.

    The response is a JSON value whose text is the API's bytes.

    `range` is None for Get Server. `program_version` is that of srvstat. `covered_from` is the
    first instant that a bundle covers, and None for a whole snapshot.
    """

    document: Literal["explanation"] = "explanation"
    snapshot_as_of: base.Instant
    covered_from: base.Instant | None
    program_version: str
    range: Range | None
    not_kept: BuildCounts
    servers: tuple[ServerExplanation, ...]
    answer: Any


ExchangeClass = Literal[
    "match", "differs", "unrecorded", "foreign", "notReproducible", "unreadable"
]
DifferenceClass = Literal["value", "text", "current", "notComparable"]


class Difference(base.Part):
    """A difference between the recorded and the recomputed answer.

    `pointer` is a JSON Pointer (RFC 6901) into the body; `/status` names the status. `class` is
    `text` if both are the same JSON value in different text, `current` for a current player count,
    which depends on the time of the capture, and `notComparable` for a field of a server's record
    that the snapshot has of another time, or redacted. `absent_in` names the side without the
    value, which is None then.
    """

    pointer: str
    recorded: Any
    recomputed: Any
    class_: DifferenceClass
    absent_in: Literal["recorded", "recomputed"] | None = None


class Answer(base.Part):
    """An answer of the API; a HEAD request has no body."""

    status: int
    body: Any


class ReferencedServers(base.Part):
    """The servers that a valid request names, such as `cfxId:abc123`, and the range it gets."""

    servers: tuple[str, ...]
    range: Range | None


class Interval(base.Part):
    """Instants from `from` to `to`, both inclusive."""

    from_: base.Instant
    to: base.Instant


def find_nearest(intervals: Sequence[Interval], at: int) -> tuple[Interval, int]:
    """Return the interval that is nearest to an instant, and by how much it ended before it.

    The distance is in milliseconds: 0 if the instant is in the interval, negative before it.
    """

    def measure(interval: Interval) -> int:
        return max(at - interval.to, 0) or min(at - interval.from_, 0)

    nearest = min(intervals, key=lambda interval: abs(measure(interval)))
    return nearest, measure(nearest)


class ServerIntervals(base.Part):
    """When the recorded result of one server was true."""

    server_id: str
    true_during: tuple[Interval, ...]


class ReplayedExchange(base.Part):
    """A recorded exchange and its result.

    `place` is its file and its line or entry, and `request_id` the `X-Request-Id` of the response.
    `path` is as sent, with its query; of a foreign
    request it is only the path, after the host if that was recorded. `request` is None for an
    invalid request, and for one that was not answered, as are `as_of` and `answer`. `reason` says
    why an exchange can't be read, reproduced or compared, or why the answer is an error.
    `requested_at` is by the clock of the client, `answered_at` by that of the service, and `clock`
    is the one that `as_of` is of, None if it is of neither. `searched`, `true_during` and `servers`
    are None unless a search was made, as for each comparison that differs; they list the instants
    tried, and when the whole answer and the result of each server were true. `searched_around` is
    the instant before which the search began: of the request, or the end of the snapshot; None if
    the recording has no time.
    `explanation` is None unless asked for.
    """

    place: str
    request_id: str | None = None
    method: str | None = None
    path: str | None = None
    requested_at: base.Instant | None = None
    answered_at: base.Instant | None = None
    clock: Literal["client", "service"] | None = None
    as_of: base.Instant | None = None
    class_: ExchangeClass
    reason: str | None = None
    request: ReferencedServers | None = None
    answer: Answer | None = None
    differences: tuple[Difference, ...] = ()
    searched: Interval | None = None
    searched_around: base.Instant | None = None
    true_during: tuple[Interval, ...] | None = None
    servers: tuple[ServerIntervals, ...] | None = None
    explanation: Explanation | None = None

    def find_lateness(self) -> int | None:
        """Return by how many milliseconds an answer was true before the request.

        It is negative if the answer was true only later, and None if that is not known.
        """
        if not self.true_during or self.searched_around is None:
            return None
        return find_nearest(self.true_during, self.searched_around)[1]


class ReplayCounts(base.Part):
    """The number of exchanges of each class."""

    match: int = 0
    differs: int = 0
    unrecorded: int = 0
    foreign: int = 0
    not_reproducible: int = 0
    unreadable: int = 0


class Replay(base.SnapshotDocument):
    """Recorded responses, compared with the snapshot.

    Requests are in the order of the recordings. `as_of` is the end of the snapshot.
    """

    long_field = "exchanges"

    document: Literal["replay"] = "replay"
    exchanges: tuple[ReplayedExchange, ...]
    counts: ReplayCounts


FIGURES = ("samples", "average", "median", "peak", "lowest", "growth", "percentage")
"""The names of figures that people write, in the order of Statistics with its growth."""


class Figure(base.Part):
    """A figure, such as `median`, and its value; None without an observation.

    A wanted value may differ by at most `tolerance`.
    """

    figure: str
    value: float | None
    tolerance: float = 0.0

    def measure(self, value: float | None) -> float | None:
        """Return the distance of a value, as a part of this one; None if it is near enough."""
        if value is None or self.value is None:
            return None if value is self.value else inf
        distance = abs(Decimal(repr(value)) - Decimal(repr(self.value)))
        is_near = distance <= Decimal(repr(self.tolerance))
        return None if is_near else float(distance) / max(abs(self.value), 1)


class Miss(base.Part):
    """The interval in which the fewest figures differed, and by the least, and what they were."""

    from_: base.Instant
    to: base.Instant
    figures: tuple[Figure, ...]


class DatedServer(base.Part):
    """The wanted figures of a server, and when all of them were true.

    `nearest` is None if they ever were.
    """

    server_id: str
    figures: tuple[Figure, ...]
    true_during: tuple[Interval, ...]
    nearest: Miss | None


class When(base.SnapshotDocument):
    """When statistics were true.

    Times are those of each server, and of all servers at once.
    """

    document: Literal["when"] = "when"
    range: Range
    searched: Interval
    servers: tuple[DatedServer, ...]
    true_during: tuple[Interval, ...]


class ChangedServer(base.Part):
    """A server in both snapshots whose record or observations differ.

    `fields` are the names of the API's fields, such as `players.max`. `days` are UTC dates whose
    observations differ.
    """

    server_id: str
    fields: tuple[str, ...]
    days: tuple[str, ...]


class ServerChanges(base.Part):
    """The ids of added and removed servers, and the changed ones, each ordered by id."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[ChangedServer, ...]


class ChangedAnswer(base.Part):
    """A result of Compare Servers that differs; its pointers begin at the server's result.

    In each difference, `recorded` is the value of the old snapshot, `recomputed` of the new one.
    """

    server_id: str
    range: str
    differences: tuple[Difference, ...]


class SnapshotDiff(base.SnapshotDocument):
    """The differences between two snapshots.

    `as_of` is the time of the responses, and `root` the hash of the new snapshot.

    `old` and `new` in other fields are the two snapshots. If one is a bundle, `compared_from` is
    the instant from which both have observations: earlier days and the answers of windows that
    begin earlier are left out, and so are servers that a bundle lacks.
    """

    document: Literal["diff"] = "diff"
    old_as_of: base.Instant
    new_as_of: base.Instant
    old_root: str
    compared_from: base.Instant | None
    servers: ServerChanges
    answers: tuple[ChangedAnswer, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is no difference."""
        return not (self.servers.added or self.servers.removed or self.servers.changed)
