"""Batches of observations: what every reader yields, and how a source of any kind is read."""

import os
import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, groupby, pairwise, repeat
from operator import attrgetter, itemgetter
from sys import byteorder
from typing import NamedTuple, overload

from srvstat.contract.identifiers import IDENTIFIER_PATTERN, MAX_IDENTIFIER_LENGTH
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.sources.registry import FOLDER_KIND, load_reader
from srvstat.sources.source import FindText, Source, check_readable

MAX_PLAYERS = MAX_SAFE_INTEGER
"""The largest player count accepted."""

IDENTIFIER = re.compile(IDENTIFIER_PATTERN)
IDENTIFIER_RULE = f"must be 1 to {MAX_IDENTIFIER_LENGTH} letters, digits and hyphens"
COUNT_RULE = f"must be a whole number from 0 to {MAX_PLAYERS}"

_MAX_VALUE_LENGTH = 100
"""The characters of a malformed value that are kept for messages."""

NO_COUNT = "without a player count"
"""The reason to skip a row whose count is empty or null: it is no observation."""


class RowError(ValueError):
    """A row is malformed. The message gives the reason and does not quote the row.

    `value` is the text of the value that is malformed; None if the row as a whole is.
    """

    def __init__(self, reason: str, value: str | None = None) -> None:
        super().__init__(reason)
        self.value = value


class Reject(NamedTuple):
    """A malformed row.

    `value` is the text of the value that is malformed, and `column` its column; None if the row as
    a whole is malformed. The column is also None if the mapping names it, or if there is none.
    `rows` is the number of rows that are lost, which are the counts of a wide row.
    """

    place: int
    reason: str
    text: str
    value: str | None = None
    column: str | None = None
    rows: int = 1

    def find_value(self) -> tuple[str, str | None]:
        """Return the value for messages and its column: the text of the row without a value."""
        if self.value is None:
            return cut_value(self.text), ""
        return cut_value(self.value), self.column


def cut_value(value: str) -> str:
    """Return the beginning of a value as text that can be stored: JSON can have lone surrogates."""
    return value[:_MAX_VALUE_LENGTH].encode("utf-8", "backslashreplace").decode("utf-8")


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


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive observations of a source, as columns of equal length.

    `server_ids` are the identifiers as the source writes them; they are Runs if the reader grouped
    the rows by server. `instants` are Unix milliseconds. A place is the number of a line or row in
    its source; places never descend from batch to batch, nor within a batch or each of its runs,
    and only observations of different servers share one. `find_text` returns the text of the row at
    a place; it is called only for rows that conflict with others. If it is None, the text is the
    columns as CSV: `serverId,observedAt,players`. `skipped` counts, by reason, the rows that are
    well-formed but no observations, such as a failed ping. `has_integers` says that the times of
    plain CSV are integers.
    """

    server_ids: Sequence[str]
    instants: Sequence[int]
    players: Sequence[int]
    places: Sequence[int]
    rejects: Sequence[Reject] = ()
    find_text: FindText | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    has_integers: bool = False

    def count_rejected(self) -> int:
        """Return the number of rows that are malformed."""
        return sum(reject.rows for reject in self.rejects)


def group_rows(batch: Batch) -> Batch:
    """Return a batch with its rows grouped by server; those of a server stay in order."""
    if isinstance(batch.server_ids, Runs):
        return batch
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for position, of_server in enumerate(map(positions.__getitem__, batch.server_ids)):
        of_server.append(position)
    runs = Runs(list(positions), list(accumulate(map(len, positions.values()))))
    if all(each[-1] - each[0] < len(each) for each in positions.values()):
        return replace(batch, server_ids=runs)
    order = list(chain.from_iterable(positions.values()))
    pick = itemgetter(*order)
    instants, players = array("q", pick(batch.instants)), array("q", pick(batch.players))
    if isinstance(batch.places, range):
        places = add_to_each(array("q", order), batch.places.start)
    else:
        places = array("q", pick(batch.places))
    return replace(batch, server_ids=runs, instants=instants, players=players, places=places)


def add_to_each(values: "array[int] | memoryview[int]", added: int) -> "array[int]":
    """Add a number to 64-bit integers that are not negative, as one sum of two long integers."""
    shifts = array("q", [added]) * len(values)
    both = [int.from_bytes(memoryview(each).cast("B"), byteorder) for each in (values, shifts)]
    sums = array("q")
    sums.frombytes(sum(both).to_bytes(sums.itemsize * len(values), byteorder))
    return sums


def read_batches(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a batch at a time.

    Raises SourceError if the source can't be read or is not of its kind.
    """
    read: Callable[[Source], Iterator[Batch]] = load_reader(source.kind).read
    return read(source)


def check_sources(sources: Sequence[Source]) -> None:
    """Check files, before any of them is read: that they may be read, and that folders fit.

    Raises SourceError.
    """
    check_readable(sources)
    in_folders = [source for source in sources if source.folder is not None]
    for (kind, _), files in groupby(in_folders, key=attrgetter("kind", "folder")):
        check_types: Callable[[Iterable[Source]], None] = load_reader(kind).check_types
        check_types(files)


def split_folder(source: Source) -> list[Source]:
    """Return the files of a folder as sources, and any other source as it is.

    Raises SourceError.
    """
    if source.kind != FOLDER_KIND or not os.path.isdir(source.name):
        return [source]
    list_files: Callable[[Source], list[Source]] = load_reader(source.kind).list_files
    return list_files(source)
