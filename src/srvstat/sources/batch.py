"""Batches of observations, the output of every reader, and the checks that text formats share."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise, repeat
from typing import NamedTuple, overload

from srvstat.contract.instants import InstantError, parse_instant
from srvstat.contract.requests import IDENTIFIER_PATTERN, MAX_IDENTIFIER_LENGTH
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.sources.source import Block, FindText, Source

MAX_PLAYERS = MAX_SAFE_INTEGER
"""The largest player count accepted."""

IDENTIFIER = re.compile(IDENTIFIER_PATTERN)
IDENTIFIER_RULE = f"must be 1 to {MAX_IDENTIFIER_LENGTH} letters, digits and hyphens"
COUNT_RULE = f"must be a whole number from 0 to {MAX_PLAYERS}"

NO_COUNT = "without a player count"
"""The reason to skip a row whose count is empty or null: it is no observation."""

_PLAYERS = re.compile(r"0|[1-9][0-9]{0,15}")


class RowError(ValueError):
    """A row is malformed. The message gives the reason and does not quote the row."""


class Reject(NamedTuple):
    """A malformed row."""

    place: int
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Runs(Sequence[str]):
    """A column of identifiers of rows that are grouped: each identifier and where its rows end.

    The rows of identifier `names[i]` are those from `ends[i - 1]` (0 for the first) to `ends[i]`.
    The columns of a batch with runs are memory views or arrays of 64-bit integers, so that no row
    is handled by itself.
    """

    names: Sequence[str]
    ends: Sequence[int]

    def __iter__(self) -> Iterator[str]:
        """Yield the identifier of each row."""
        lengths = (end - start for start, end in pairwise((0, *self.ends)))
        return chain.from_iterable(map(repeat, self.names, lengths))

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[str]: ...
    def __getitem__(self, row: int | slice) -> str | Sequence[str]:
        """Return the identifier of a row."""
        if isinstance(row, slice):
            return [self[at] for at in range(*row.indices(len(self)))]
        return self.names[bisect_right(self.ends, range(len(self))[row])]

    def iter_runs(self) -> Iterator[tuple[str, slice]]:
        """Yield each identifier with its rows."""
        return zip(self.names, map(slice, (0, *self.ends), self.ends), strict=True)


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive observations of a source, as columns of equal length.

    `server_ids` are the identifiers as the source writes them; they are Runs if the reader grouped
    the rows by server. `instants` are Unix milliseconds. A place is the number of a line or row in
    its source; places never descend from batch to batch, nor within a batch or each of its runs,
    and only observations of different servers share one. `find_text` returns the text of the row at
    a place; it is called only for rows that conflict with others. If it is None, the text is the
    columns as CSV: `serverId,observedAt,players`. `latest_integer` is the latest instant written as
    an integer, or None; it reveals seconds mistaken for milliseconds. `skipped` counts, by reason,
    the rows that are well-formed but no observations, such as a failed ping.
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
