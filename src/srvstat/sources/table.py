"""Convert tables of text to observations, with the columns and forms that a mapping declares.

A reader of any format but plain CSV and Arrow yields tables: columns of text, whatever the types of
the format are. So a form of a time or a count is known to all formats, or to none.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from srvstat.contract.errors import SourceError
from srvstat.sources.columns import EMPTY_COUNT, MALFORMED, Column, parse_counts, parse_times
from srvstat.sources.mapping import ColumnMapping, describe_missing, describe_repeated
from srvstat.sources.source import Batch, Reject, Source, renumber
from srvstat.sources.values import NO_COUNT, RowError

SAMPLE_ROWS = 10_000
"""The rows that a sample has at most."""


class Table(NamedTuple):
    """Rows of a source as columns of text; a missing or null value is empty.

    All columns have one length. `places` are the numbers of rows or lines, ascending.
    """

    names: Sequence[str]
    columns: Sequence[Sequence[str]]
    places: Sequence[int]


class Sample(NamedTuple):
    """The first rows of a source, for a proposal of options.

    `form` describes the source, such as "CSV with semicolons". `options` are those with which a
    reader chose what to read, such as a table, by the names of options.
    """

    form: str
    table: Table
    is_whole: bool
    options: Mapping[str, Any] = MappingProxyType({})


def convert_tables(source: Source, tables: Iterable[Table]) -> Iterator[Batch]:
    """Convert tables to batches. Tables of a source may have different columns.

    Raises SourceError if a table lacks a column of the mapping.
    """
    for table in tables:
        yield convert_table(source, table)


def convert_table(source: Source, table: Table) -> Batch:
    """Convert a table to a batch.

    Raises SourceError as `convert_tables`.
    """
    mapping = source.mapping
    find_columns(source, table)
    columns = dict(zip(table.names, table.columns, strict=True))
    at = mapping.find_times(table.names)
    servers = [mapping.players]
    if mapping.is_wide:
        servers = [name for name in table.names if name and name not in {*at, *mapping.others}]
    instants = parse_times([Column.from_texts(columns[name]) for name in at], mapping)
    cells = [text for name in servers for text in columns[name]]
    counts = parse_counts(Column.from_texts(cells), mapping).reshape(len(servers), -1).T
    is_timed = (instants >= 0)[:, np.newaxis]
    rows, columns_at = np.nonzero(is_timed & (counts >= 0))
    names, codes = servers, columns_at
    if not mapping.is_wide:
        ids = [source.server_id] if mapping.id is None else columns[mapping.id]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(ids))}
        names = [name.strip() for name in numbers]
        if mapping.id is not None:
            codes = np.fromiter(map(numbers.__getitem__, ids), np.int64, len(ids))[rows]
    used, codes = renumber(codes)
    malformed = np.flatnonzero((instants < 0) | (counts == MALFORMED).any(axis=1))
    skipped = 0 if mapping.is_wide else int((is_timed & (counts == EMPTY_COUNT)).sum())
    return Batch(
        [names[code] for code in used],
        codes,
        instants[rows],
        counts[rows, columns_at],
        np.array(table.places, np.int64)[rows],
        [
            reject
            for row in malformed.tolist()
            for reject in _explain_row(
                mapping,
                table.places[row],
                " ".join(columns[name][row] for name in at),
                [(name, columns[name][row]) for name in servers],
                ",".join(column[row] for column in table.columns),
            )
        ],
        {NO_COUNT: skipped} if skipped else {},
    )


def _explain_row(
    mapping: ColumnMapping, place: int, at: str, cells: Sequence[tuple[str, str]], text: str
) -> Iterator[Reject]:
    """Yield why a row is malformed: its time, or each of its counts that is."""
    try:
        mapping.parse_time(at)
    except RowError as error:
        lost = sum(bool(written.strip()) for _, written in cells) or 1
        yield Reject(place, str(error), text, error.value, rows=lost)
        return
    for name, written in cells:
        try:
            mapping.parse_count(written)
        except RowError as error:
            column = name if mapping.is_wide else None
            yield Reject(place, str(error), text, error.value, column)


def find_columns(source: Source, table: Table, line: int | None = None) -> list[str]:
    """Return the names of the columns that the mapping of a source names, in a line or anywhere.

    Raises SourceError if one is missing or repeated.
    """
    mapping = source.mapping
    wanted = list_wanted(mapping, table.names)
    title = source.title if line is None else source.format_place(line)
    if not {*wanted} <= {*table.names}:
        raise SourceError(f"{title}: {describe_missing(mapping, wanted, table.names)}")
    counts = Counter(table.names)
    for name in filter(None, table.names if mapping.is_wide else wanted):
        if counts[name] > 1:
            raise SourceError(f"{title}: {describe_repeated(name)}")
    return wanted


def list_wanted(mapping: ColumnMapping, names: Sequence[str]) -> list[str]:
    """Return the names of a mapping, with the one or two columns of times among some names."""
    at = mapping.names.index(mapping.at)
    return [*mapping.names[:at], *mapping.find_times(names), *mapping.names[at + 1 :]]
