"""Documents about recordings, and about comparing and explaining responses."""

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
    """The permissions of one plan, and its number of keys.

    `requests_per_minute` is None if there is no limit.
    """

    name: str
    operations: tuple[str, ...]
    ranges: tuple[str, ...]
    raw_history_days: int
    requests_per_minute: int | None
    keys: int


class AccessCheck(base.Document):
    """The plans of an access file.

    `plans` are in the order of the file. `keys` is the number of all keys.
    """

    document: Literal["accessCheck"] = "accessCheck"
    plans: tuple[PlanPermissions, ...]
    keys: int


class StoredRequest(base.Part):
    """A request; `…` replaces each key in it.

    - `path`: as sent, with the query.
    - `headers`: the headers that a response depends on, with names in lower case.
    - `body`, `body_base64`: the second for a body that is not UTF-8. Both are None if the body is
      empty, or was not read because the request was refused first.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: str | None
    body_base64: str | None


class StoredResponse(base.Part):
    """The response. `body` is None for HEAD."""

    status: Status
    body: str | None


class Recording(base.SnapshotDocument):
    """A recorded request and its response.

    - `as_of`, `root`: from the snapshot that the service used.
    - `requested_at`: when the head of the request was received.
    - `request_id`: the request's id in the log and in the response.
    - `plan`: None if authentication failed, or without an access file.
    """

    document: Literal["recording"] = "recording"
    as_of: base.GivenInstant
    requested_at: base.GivenInstant
    request_id: str | None = None
    plan: str | None
    request: StoredRequest
    response: StoredResponse


class PlainRequest(StoredRequest):
    """A hand-written request."""

    headers: dict[str, str] = Field(default_factory=dict)
    body: str | None = None
    body_base64: str | None = None


class PlainResponse(StoredResponse):
    """A hand-written response. Without `body`, only the status is known."""

    body: str | None = None


class PlainExchange(base.Part):
    """A hand-written exchange, with fewer fields than the service records."""

    request: PlainRequest
    response: PlainResponse | None = None
    as_of: base.GivenInstant | None = None
    requested_at: base.GivenInstant | None = None


class LogEntry(base.Part):
    """A line of the service's log. Other fields are ignored."""

    model_config = ConfigDict(extra="ignore")
    time: base.GivenInstant
    id: str | None = None
    operation: str = "unknown"
    servers: list[str] = Field(default_factory=list)
    range: str | None = None
    status: Status


class HarPart(base.Part):
    """A part of a HAR entry, which may have additional members."""

    model_config = ConfigDict(extra="ignore")


class HarHeader(HarPart):
    """A header."""

    name: str
    value: str


class HarBody(HarPart):
    """A body. `text` is None if it was not recorded. `size` and `compression` are in bytes."""

    text: str | None = None
    encoding: str | None = None
    size: int | None = None
    compression: int | None = None


class HarTarget(HarPart):
    """The fields that must be valid even in an unrelated request."""

    method: str
    url: str
    headers: Members[HarHeader] = ()


class HarRequest(HarTarget):
    """A request."""

    body_size: int | None = None
    post_data: HarBody | None = None


class HarResponse(HarPart):
    """A response. Its status is 0 if there was none."""

    status: Annotated[int, Field(ge=0, le=599)] | None = None
    headers: Members[HarHeader] = ()
    content: HarBody | None = None


class ForeignHarEntry(HarPart):
    """The entry of an unrelated request."""

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
    """A value and its rank in ascending order, counted from 1."""

    rank: int
    players: int


class ExtremeValue(base.Part):
    """The highest or lowest value, and the time of the first observation with it."""

    players: int
    first_at: base.Instant


class GrowthOperands(base.Part):
    """The players of the first and of the last observation in the window."""

    from_: int
    to: int


class ServerExplanation(base.ServerPart):
    """The operands of one server's statistics; None where undefined.

    - `current_is_fallback`: whether the record had no current count, so that `last_in_snapshot`
      provides it, or 0.
    - `first_in_snapshot_at`, `last_in_snapshot`: independent of the response's as-of time.
    - `sum`: divided by `sample_count`, it is the mean.
    - `middle`: the two middle values, or the middle value if their number is odd.
    - `usual_interval_seconds`: the polling interval: the median interval between successive
      observations.
    - `expected_count`: the number of polling intervals in the window, rounded down. None for fewer
      than two observations and for a window without a start.
    - `coverage`: the observed share of the window; None in the same cases.
    - `gap_count`: the number of intervals over 1.5 polling intervals, including intervals to the
      edges of the window.
    - `gaps`: the longest of these intervals, longest first.
    - `time_weighted_average`: the mean weighted by durations. An observation lasts until the next
      observation or the end of the window, but at most three polling intervals.
    - `has_uneven_intervals`: whether gaps or irregular polling make the weighted average differ
      from the mean by more than 1 percent.
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
    """The rows that the build did not keep: repeated, conflicting and malformed rows.

    A snapshot does not count skipped rows, of unknown servers or later than its as-of time.
    """

    repeated: int
    conflicting: int
    rejected: int


class Explanation(base.CountsDocument):
    """The operands of a response.

    - `covered_from`: the first time that a bundle covers, or None for a whole snapshot.
    - `program_version`: the version of srvstat.
    - `range`: None for Get Server.
    - `answer`: the response, a JSON value whose text is the API's bytes.
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
    """A difference between the recorded and the recomputed response.

    - `pointer`: a JSON Pointer (RFC 6901) into the body; `/status` means the status.
    - `class`: `value`; `text` if both are the same JSON value as different text; `current` for a
      current player count, which depends on the time of the capture; or `notComparable` for a
      record field that the snapshot has from another time, or redacted.
    - `absent_in`: `recorded` or `recomputed` if only the other side has the value. The field of
      this name is then None.
    """

    pointer: str
    recorded: Any
    recomputed: Any
    class_: DifferenceClass
    absent_in: Literal["recorded", "recomputed"] | None = None


class Answer(base.Part):
    """A response of the API. A HEAD request has no body."""

    status: int
    body: Any


class ReferencedServers(base.Part):
    """The servers in a valid request, such as `cfxId:abc123`, and its range."""

    servers: tuple[str, ...]
    range: Range | None


class Interval(base.Part):
    """The times from `from` to `to`, both inclusive."""

    from_: base.Instant
    to: base.Instant


def find_nearest(intervals: Sequence[Interval], at: int) -> tuple[Interval, int]:
    """Return the interval nearest to an instant, and the distance in milliseconds.

    The distance is positive if the interval ended before the instant, 0 if it contains the instant,
    and negative if it begins after the instant.
    """

    def measure(interval: Interval) -> int:
        return max(at - interval.to, 0) or min(at - interval.from_, 0)

    nearest = min(intervals, key=lambda interval: abs(measure(interval)))
    return nearest, measure(nearest)


class ServerIntervals(base.Part):
    """The times at which one server's recorded result was correct."""

    server_id: str
    true_during: tuple[Interval, ...]


class ReplayedExchange(base.Part):
    """A recorded exchange and its result.

    - `place`: the file, and the line or entry.
    - `request_id`: the `X-Request-Id` of the response.
    - `path`: as sent, with its query. For an unrelated request, only the path, after the host if
      that was recorded.
    - `requested_at`, `answered_at`: by the client's and by the service's clock.
    - `clock`: whose clock `as_of` comes from, or None if it comes from neither the client nor the
      service.
    - `as_of`, `request`, `answer`: None if no response was recomputed. `request` is also None for
      an invalid request.
    - `reason`: why the exchange can't be read, reproduced or compared, or why the response is an
      error.
    - `searched`: the interval that was searched, or None if there was no search. Comparisons that
      differ are searched.
    - `true_during`, `servers`: the times at which the whole response, and each server's result, was
      correct. None without a search.
    - `searched_around`: the reference time of the search: the recorded as-of time, the time of the
      request or, failing both, the end of the snapshot. None if the recording has no time.
    - `explanation`: None unless requested.
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
        """Return how long before the request the response was last correct, in milliseconds.

        It is negative if the response was correct only later, and None if unknown.
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

    Exchanges are in the order of the recordings. `as_of` is the end of the snapshot.
    """

    long_field = "exchanges"

    document: Literal["replay"] = "replay"
    exchanges: tuple[ReplayedExchange, ...]
    counts: ReplayCounts


FIGURES = ("samples", "average", "median", "peak", "lowest", "growth", "percentage")
"""The names of statistics that people write, in the order of Statistics, with its growth."""


class Figure(base.Part):
    """A statistic, such as `median`, and its value, or None if there are no observations.

    A wanted value may differ by at most `tolerance`.
    """

    figure: str
    value: float | None
    tolerance: float = 0.0

    def measure(self, value: float | None) -> float | None:
        """Return the relative distance from this value, or None if within tolerance."""
        if value is None or self.value is None:
            return None if value is self.value else inf
        distance = abs(Decimal(repr(value)) - Decimal(repr(self.value)))
        is_near = distance <= Decimal(repr(self.tolerance))
        return None if is_near else float(distance) / max(abs(self.value), 1)


class Miss(base.Part):
    """The closest match: its interval and its values."""

    from_: base.Instant
    to: base.Instant
    figures: tuple[Figure, ...]


class DatedServer(base.Part):
    """The wanted statistics of a server, and the times at which all of them were correct.

    `nearest` is None if there are such times.
    """

    server_id: str
    figures: tuple[Figure, ...]
    true_during: tuple[Interval, ...]
    nearest: Miss | None


class When(base.SnapshotDocument):
    """The times at which statistics were correct.

    - `servers`: the times of each server.
    - `true_during`: the times at which the statistics of all servers were correct at once.
    """

    document: Literal["when"] = "when"
    range: Range
    searched: Interval
    servers: tuple[DatedServer, ...]
    true_during: tuple[Interval, ...]


class ChangedServer(base.Part):
    """A server in both snapshots whose record or observations differ.

    - `fields`: the names of the API's fields, such as `players.max`.
    - `days`: the UTC dates with differing observations.
    """

    server_id: str
    fields: tuple[str, ...]
    days: tuple[str, ...]


class ServerChanges(base.Part):
    """The ids of added and removed servers, and the changed servers, each ordered by id."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[ChangedServer, ...]


class ChangedAnswer(base.Part):
    """A result of Compare Servers that differs. Pointers begin at the server's result.

    In each difference, `recorded` is from the old snapshot, and `recomputed` from the new snapshot.
    """

    server_id: str
    range: str
    differences: tuple[Difference, ...]


class SnapshotDiff(base.SnapshotDocument):
    """The differences between two snapshots.

    - `as_of`: the time of the responses.
    - `root`: the root of the new snapshot.
    - `compared_from`: if a snapshot is a bundle, the time from which both have observations.
      Earlier days, responses for windows that begin earlier, and servers that a bundle lacks are
      not compared.
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
