"""What a reader of observations hands on, a block of lines at a time."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from srvstat.contract.instants import InstantError, parse_instant
from srvstat.contract.requests import IDENTIFIER_PATTERN, MAX_IDENTIFIER_LENGTH
from srvstat.contract.wire import MAX_SAFE_INTEGER

MAX_PLAYERS = MAX_SAFE_INTEGER
"""The greatest player count that is accepted."""

IDENTIFIER = re.compile(IDENTIFIER_PATTERN)
IDENTIFIER_NEEDED = f"1 to {MAX_IDENTIFIER_LENGTH} letters, digits and hyphens are needed"
COUNT_NEEDED = f"a whole number from 0 to {MAX_PLAYERS} is needed"

_PLAYERS = re.compile(r"0|[1-9][0-9]{0,15}")


class RowError(ValueError):
    """A line is no observation; the message says why without quoting it."""


class Reject(NamedTuple):
    """A line that gave no observation."""

    line: int
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Batch:
    """The observations of consecutive lines, in columns of one length.

    `instants` are Unix milliseconds, and `lines` the numbers of the lines. `latest_integer` is the
    latest instant that was written as an integer, by which seconds are told from milliseconds; None
    without one. `text` holds the lines, the first of which is `first_line`; it is None where each
    of them reads `serverId,observedAt,players`, just as the columns would be written.
    """

    server_ids: Sequence[str]
    instants: Sequence[int]
    players: Sequence[int]
    lines: Sequence[int]
    rejects: Sequence[Reject]
    latest_integer: int | None
    text: str | None
    first_line: int


class Row(NamedTuple):
    """The three fields of a line as they are written."""

    server_id: str
    observed_at: str
    players: str

    def observation(self) -> tuple[str, int, int]:
        """Judge the form of the fields and return the observation: server id, instant, players.

        Raises RowError.
        """
        if not IDENTIFIER.fullmatch(self.server_id):
            raise RowError(f"serverId: {IDENTIFIER_NEEDED}")
        try:
            observed_at = parse_instant(self.observed_at)
        except InstantError as error:
            raise RowError(f"observedAt: {error}") from None
        if not _PLAYERS.fullmatch(self.players) or int(self.players) > MAX_PLAYERS:
            raise RowError(f"players: {COUNT_NEEDED}, in digits alone")
        return self.server_id, observed_at, int(self.players)


def judged(
    records: Iterable[tuple[int, str]], row_of: Callable[[str], Row], text: str, first_line: int
) -> Batch:
    """Judge records one by one; `row_of` takes one apart or raises RowError.

    A record comes with the number of its first line. Empty ones are skipped.
    """
    server_ids: list[str] = []
    instants: list[int] = []
    players: list[int] = []
    lines: list[int] = []
    rejects: list[Reject] = []
    latest: int | None = None
    for line, written in records:
        record = written.removesuffix("\r")
        if not record:
            continue
        try:
            row = row_of(record)
            server_id, instant, count = row.observation()
        except RowError as error:
            rejects.append(Reject(line, str(error), record))
            continue
        server_ids.append(server_id)
        instants.append(instant)
        players.append(count)
        lines.append(line)
        if row.observed_at.isdecimal():
            latest = max(latest or 0, instant)
    return Batch(server_ids, instants, players, lines, rejects, latest, text, first_line)
