"""What a build would do with its sources. It has no JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnderstoodRow:
    """An observation as it was understood. `server_id` is None if it would not be kept."""

    source_id: str
    server_id: str | None
    observed_at: int
    players: int


@dataclass(frozen=True, slots=True)
class DroppedRows:
    """The rows that would not be kept for one reason: their number, and examples.

    An example is the place of a row and its text, which is empty if it is not known.
    """

    reason: str
    rows: int
    is_rejected: bool
    examples: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a build would do; instants are Unix milliseconds.

    `rows` are the first ones. `intervals` has the number of servers for each usual interval in
    milliseconds, the most frequent first. `dropped` begins with the commonest reason. `advice` is
    what would help: sentences, the values of options that the command lacks, and the command with
    them, or None if no option is missing. `refusal` is why the build would be refused although it
    would keep rows, if it would. The other fields are those of BuildSummary.
    """

    rows: Sequence[UnderstoodRow]
    read: int
    kept: int
    repeated: int
    servers: int
    withheld: int
    completed: Mapping[str, int]
    first_observed_at: int | None
    last_observed_at: int | None
    intervals: Sequence[tuple[int, int]]
    dropped: Sequence[DroppedRows]
    warnings: Sequence[str]
    advice: Sequence[str]
    missing_options: Mapping[str, str]
    refusal: str | None = None
    command: str | None = None
