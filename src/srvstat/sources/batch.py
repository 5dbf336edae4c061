"""Batches of observations: what every reader yields, and how a source of any kind is read."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np

from srvstat.contract.arrays import Numbers
from srvstat.contract.wire import IDENTIFIER_PATTERN, MAX_IDENTIFIER_LENGTH, MAX_SAFE_INTEGER
from srvstat.sources.registry import FOLDER_KIND, load_reader
from srvstat.sources.source import Source, check_readable

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
class Batch:
    """Consecutive observations of a source in reading order, as columns of equal length.

    Row i is of the server `names[codes[i]]`; names are the identifiers as the source writes them,
    in the order in which they appear. `instants` are Unix milliseconds. A place is the number of a
    line or row in its source; places never descend, also from batch to batch, and only observations
    of different servers share one. `skipped` counts, by reason, the rows that are well-formed but
    no observations, such as a failed ping.
    """

    names: Sequence[str]
    codes: Numbers
    instants: Numbers
    players: Numbers
    places: Numbers
    rejects: Sequence[Reject] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[tuple[str, int, int, int]],
        rejects: Sequence[Reject] = (),
        skipped: Mapping[str, int] = MappingProxyType({}),
    ) -> Self:
        """Return a batch of rows, each an identifier, an instant, a player count and a place."""
        codes: dict[str, int] = {}
        numbers = [(codes.setdefault(name, len(codes)), *row) for name, *row in rows]
        of_codes, instants, players, places = np.array(numbers, np.int64).reshape(-1, 4).T.copy()
        return cls(list(codes), of_codes, instants, players, places, rejects, skipped)

    def count_rows(self) -> int:
        """Return the number of rows that were read: observations, and rows that are none."""
        return len(self.places) + self.count_rejected() + sum(self.skipped.values())

    def count_rejected(self) -> int:
        """Return the number of rows that are malformed."""
        return sum(reject.rows for reject in self.rejects)


def renumber(codes: Numbers) -> tuple[Numbers, Numbers]:
    """Return the codes that occur, in ascending order, and each code's position among them."""
    is_used = np.bincount(codes) > 0
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[codes]


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
