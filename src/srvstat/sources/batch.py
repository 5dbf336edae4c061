"""Batches of observations, the output of every reader, and the checks that text formats share."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from srvstat.contract.instants import InstantError, parse_instant
from srvstat.contract.requests import IDENTIFIER_PATTERN, MAX_IDENTIFIER_LENGTH
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.sources.source import Block, FindText, Source

MAX_PLAYERS = MAX_SAFE_INTEGER
"""The largest player count accepted."""

IDENTIFIER = re.compile(IDENTIFIER_PATTERN)
IDENTIFIER_RULE = f"must be 1 to {MAX_IDENTIFIER_LENGTH} letters, digits and hyphens"
COUNT_RULE = f"must be a whole number from 0 to {MAX_PLAYERS}"

_PLAYERS = re.compile(r"0|[1-9][0-9]{0,15}")


class RowError(ValueError):
    """A row is malformed. The message gives the reason and does not quote the row."""


class Reject(NamedTuple):
    """A malformed row."""

    place: int
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive observations of a source, as columns of equal length.

    `server_ids` are the identifiers as the source writes them. `instants` are Unix milliseconds. A
    place is the number of a line or row in its source; places never descend within a batch or from
    batch to batch, and only observations of different servers share one. `find_text` returns the
    text of the row at a place; it is called only for rows that conflict with others. If it is None,
    the text is the columns as CSV: `serverId,observedAt,players`. `latest_integer` is the latest
    instant written as an integer, or None; it reveals seconds mistaken for milliseconds. `skipped`
    counts, by reason, the rows that are well-formed but no observations, such as a failed ping.
    """

    server_ids: Sequence[str]
    instants: Sequence[int]
    players: Sequence[int]
    places: Sequence[int]
    rejects: Sequence[Reject] = ()
    find_text: FindText | None = None
    latest_integer: int | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)


class Row(NamedTuple):
    """The three fields of a row, as text."""

    server_id: str
    observed_at: str
    players: str

    def parse(self, *, any_id: bool = False) -> tuple[str, int, int]:
        """Return the server id, the instant and the player count.

        Raises RowError for a malformed field. With `any_id`, the id may have any form.
        """
        if not any_id and not IDENTIFIER.fullmatch(self.server_id):
            raise RowError(f"serverId: {IDENTIFIER_RULE}")
        try:
            observed_at = parse_instant(self.observed_at)
        except InstantError as error:
            raise RowError(f"observedAt: {error}") from None
        if not _PLAYERS.fullmatch(self.players) or int(self.players) > MAX_PLAYERS:
            raise RowError(f"players: {COUNT_RULE}, in digits only")
        return self.server_id, observed_at, int(self.players)


def parse_records(
    source: Source,
    block: Block,
    records: Iterable[tuple[int, str]],
    split_record: Callable[[str], Row],
) -> Batch:
    """Parse the records of a block one by one, and keep the block's text if it has observations.

    Each record comes with the number of its first line; empty records are skipped. `split_record`
    returns the fields of a record or raises RowError.
    """
    server_ids: list[str] = []
    instants: list[int] = []
    players: list[int] = []
    lines: list[int] = []
    rejects: list[Reject] = []
    latest: int | None = None
    for line, text in records:
        record = text.removesuffix("\r")
        if not record:
            continue
        try:
            row = split_record(record)
            server_id, instant, count = row.parse(any_id=source.accepts_any_id)
        except RowError as error:
            rejects.append(Reject(line, str(error), record))
            continue
        server_ids.append(server_id)
        instants.append(instant)
        players.append(count)
        lines.append(line)
        if row.observed_at.isdecimal():
            latest = max(latest or 0, instant)
    find_text = source.keep_text(block) if server_ids else None
    return Batch(server_ids, instants, players, lines, rejects, find_text, latest)
