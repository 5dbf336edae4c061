"""The results of rules about player counts: observations about numbers, never proof of a cause."""

from collections.abc import Iterator
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import Field

from srvstat.contract import wire
from srvstat.documents import document as base
from srvstat.documents.rows import Column, RowDocument, Rows

Result = Literal["pass", "suspect", "notEvaluated"]
"""Named after the flags of QARTOD. `suspect` only means that a value is beyond its threshold."""


_Evidence = TypeVar("_Evidence", bound=base.Part)
_Threshold = TypeVar("_Threshold", bound=base.Part | None)


class RulePart(base.Part, Generic[_Evidence, _Threshold]):
    """The result of a rule for one server.

    - `reason`: why the rule was not evaluated, or None if it was.
    - `evidence`: None if the rule was not evaluated.
    - `innocent_causes`: benign explanations of a suspect result.
    """

    rule: str
    result: Result
    reason: str | None
    evidence: _Evidence | None
    threshold: _Threshold
    innocent_causes: tuple[str, ...]


class FlatLineEvidence(base.Part):
    """The longest run of equal counts above 0: its length, count, first and last time."""

    longest_run: int
    players: int
    from_: base.Instant
    to: base.Instant


class FlatLineThreshold(base.Part):
    """The minimum observations and hours of a suspect run, for its count."""

    longest_run: int
    hours: int


class FlatLineRule(RulePart[FlatLineEvidence, FlatLineThreshold | None]):
    """A count that does not change for a long time."""

    rule: Literal["flatLine"] = "flatLine"


class FloorEvidence(base.Part):
    """The lowest usual count, and the share of the counts above 0 that are equal to it."""

    players: int
    share: float


class FloorThreshold(base.Part):
    """The lowest suspect values."""

    players: int
    share: float


class FloorRule(RulePart[FloorEvidence, FloorThreshold]):
    """A count that is frequent and that few observations go below."""

    rule: Literal["floor"] = "floor"


class JitterEvidence(base.Part):
    """The lag-1 correlation of the differences. `pairs` is the number of successive pairs."""

    correlation: float
    pairs: int


class JitterThreshold(base.Part):
    """The highest suspect correlation."""

    correlation: float


class JitterRule(RulePart[JitterEvidence, JitterThreshold]):
    """Counts that vary at random, independent of the previous count."""

    rule: Literal["jitter"] = "jitter"


class MissingValuesEvidence(base.Part):
    """The numbers between two counts that never occur, and how regularly they are spaced.

    - `from`, `to`: the counts at 5 and 95 percent.
    - `holes`: the number of holes; adjacent missing numbers are one hole.
    - `spacing`: the typical distance between the starts of successive holes: the number that the
      most distances equal or exceed by 1.
    - `regular`: the share of these distances.

    `spacing` and `regular` are None for fewer than two holes.
    """

    from_: int
    to: int
    missing: int
    share: float
    first: tuple[int, ...]
    holes: int
    spacing: int | None
    regular: float | None


class MissingValuesThreshold(base.Part):
    """The lowest suspect values, all of which must be reached."""

    share: float
    holes: int
    regular: float


class MissingValuesRule(RulePart[MissingValuesEvidence, MissingValuesThreshold]):
    """Numbers that are missing at regular intervals."""

    rule: Literal["missingValues"] = "missingValues"


class StepChangeEvidence(base.Part):
    """The medians of seven days before and after the midnight (UTC) between them.

    `ratio` is the higher median divided by the lower, after adding 5 players to both.
    """

    at: base.Instant
    median_before: float
    median_after: float
    ratio: float


class StepChangeThreshold(base.Part):
    """The lowest suspect ratio."""

    ratio: float


class StepChangeRule(RulePart[StepChangeEvidence, StepChangeThreshold]):
    """A level that changes from one day to the next, and remains."""

    rule: Literal["stepChange"] = "stepChange"


class DailyCycleEvidence(base.Part):
    """The lowest and the highest hourly median, and the first hour with each.

    `share` is their difference divided by `typical_players`, the median of all 24 medians.
    """

    lowest_players: float
    lowest_hour: int
    highest_players: float
    highest_hour: int
    typical_players: float
    share: float


class DailyCycleThreshold(base.Part):
    """The highest suspect share."""

    share: float


class DailyCycleRule(RulePart[DailyCycleEvidence, DailyCycleThreshold]):
    """Counts that do not depend on the hour of the day."""

    rule: Literal["noDailyCycle"] = "noDailyCycle"


class MaximumEvidence(base.Part):
    """The observations above the maximum in the record. The times are None if there are none."""

    observations: int
    maximum_players: int
    peak_players: int
    first_at: base.Instant | None
    last_at: base.Instant | None


class MaximumThreshold(base.Part):
    """The minimum number of observations that is suspect."""

    observations: int


class MaximumRule(RulePart[MaximumEvidence, MaximumThreshold]):
    """Counts above the maximum in the server's record."""

    rule: Literal["aboveMaximum"] = "aboveMaximum"


class GapsEvidence(base.Part):
    """The coverage of the window from the first observation on, and its longest gaps.

    `gap_count` is the number of all gaps: intervals of more than 1.5 polling intervals between
    successive observations, or from the last observation to the end of the window.
    """

    coverage: float
    gap_count: int
    longest: tuple[base.GapPart, ...]


class GapsThreshold(base.Part):
    """The coverage below which a window is suspect."""

    coverage: float


class GapsRule(RulePart[GapsEvidence, GapsThreshold]):
    """Missing observations. They do not show whether the server was up."""

    rule: Literal["gaps"] = "gaps"


AnyRule = Annotated[
    FlatLineRule
    | FloorRule
    | JitterRule
    | MissingValuesRule
    | StepChangeRule
    | DailyCycleRule
    | MaximumRule
    | GapsRule,
    Field(discriminator="rule"),
]


class ServerIntegrity(base.ServerPart):
    """The results of all rules for one server."""

    rules: tuple[AnyRule, ...]


class Integrity(base.CountsDocument, RowDocument):
    """Unusual patterns in player counts.

    A result is an observation about numbers. It proves nothing, and it is not a probability.
    """

    long_field = "servers"
    _details = "cfxId|evidence|threshold"

    document: Literal["integrity"] = "integrity"
    window: base.WindowPart
    time_zone: str
    servers: tuple[ServerIntegrity, ...]

    def to_rows(self) -> Rows:
        """Return a row for each rule of each server, with evidence and threshold as JSON."""
        names = (*base.ServerName._fields[:3], *RulePart.model_fields)
        columns = tuple(Column(base.name_member(name), "text") for name in names)
        return Rows(columns, self._iter_rows())

    def _iter_rows(self) -> Iterator[tuple[str | None, ...]]:
        for server in self.servers:
            names = server.server_id, server.cfx_id, server.hostname
            for rule in server.rules:
                parts = (
                    None if part is None else wire.encode(part.model_dump()).decode()
                    for part in (rule.evidence, rule.threshold)
                )
                causes = " ".join(rule.innocent_causes)
                yield *names, rule.rule, rule.result, rule.reason, *parts, causes
