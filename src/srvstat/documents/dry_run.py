"""What a build would do with its sources. It has no JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Remedy(NamedTuple):
    """What helps against a reason: an option and its value, or None, and a sentence."""

    option: tuple[str, str] | None
    text: str


@dataclass(frozen=True, slots=True)
class UnderstoodRow:
    """An observation as it was understood. `server_id` is None if it would not be kept."""

    source_id: str
    server_id: str | None
    observed_at: int
    players: int


@dataclass(frozen=True, slots=True)
class DroppedRows:
    """The rows that would not be kept for one reason: their number, examples, and what helps.

    An example is the place of a row and its text, which is empty if it is not known. The number is
    0 if a source can't be read at all.
    """

    reason: str
    rows: int
    is_rejected: bool
    examples: Sequence[tuple[str, str]]
    remedy: Remedy | None = None


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a build would do; instants are Unix milliseconds.

    `rows` are the first ones. `intervals` has the number of servers for each usual interval in
    milliseconds, the most frequent first. `dropped` begins with the commonest reason. `needs_game`
    says that servers have no game, and `refusal` why the build would be refused although it would
    keep rows; the limit `max_rejected` would admit them. The other fields up to `warnings` are
    those of BuildSummary.

    The dry run is that of `command`, which has the options that help against `obstacles`; it is
    None if no option is missing. `advice` are sentences about them.
    """

    rows: Sequence[UnderstoodRow]
    read: int
    kept: int
    repeated: int
    conflicting: int
    rejected: int
    servers: int
    withheld: int
    completed: Mapping[str, int]
    first_observed_at: int | None
    last_observed_at: int | None
    intervals: Sequence[tuple[int, int]]
    dropped: Sequence[DroppedRows]
    warnings: Sequence[str]
    needs_game: bool
    obstacles: Sequence[DroppedRows] = ()
    advice: Sequence[str] = ()
    refusal: str | None = None
    max_rejected: str | None = None
    command: str | None = None
