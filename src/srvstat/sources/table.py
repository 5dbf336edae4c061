"""Convert tables of text to observations, with the columns and forms that a mapping declares.

A reader of any format but plain CSV and Arrow yields tables: columns of text, whatever the types of
the format are. So a form of a time or a count is known to all formats, or to none.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from srvstat.contract.errors import SourceError
from srvstat.sources.mapping import describe_missing, describe_repeated
from srvstat.sources.source import Batch, Reject, Source
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
    found: list[tuple[str, int, int, int]] = []
    rejects: list[Reject] = []
    without_count = 0
    columns = dict(zip(table.names, table.columns, strict=True))
    at = mapping.find_times(table.names)
    servers = [
        name
        for name in table.names
        if name and mapping.is_wide and name not in at and name not in mapping.others
    ]
    for row, place in enumerate(table.places):
        observed_at = " ".join(columns[name][row] for name in at)
        if mapping.is_wide:
            cells = [(name, columns[name][row]) for name in servers]
        else:
            server_id = source.server_id if mapping.id is None else columns[mapping.id][row]
            cells = [(server_id, columns[mapping.players][row])]
        text = ",".join(column[row] for column in table.columns)
        try:
            instant = mapping.parse_time(observed_at)
        except RowError as error:
            lost = sum(bool(written.strip()) for _, written in cells) or 1
            rejects.append(Reject(place, str(error), text, error.value, rows=lost))
            continue
        for server_id, written in cells:
            try:
                count = mapping.parse_count(written)
            except RowError as error:
                column = server_id if mapping.is_wide else None
                rejects.append(Reject(place, str(error), text, error.value, column))
                continue
            if count is not None:
                found.append((server_id, instant, count, place))
            elif not mapping.is_wide:
                without_count += 1
    return Batch.from_rows(found, rejects, {NO_COUNT: without_count} if without_count else {})


def find_columns(source: Source, table: Table) -> list[str]:
    """Return the names of the columns that the mapping of a source names.

    Raises SourceError if one is missing or repeated.
    """
    mapping = source.mapping
    wanted = [name for name in mapping.names if name != mapping.at]
    wanted += mapping.find_times(table.names)
    if not {*wanted} <= {*table.names}:
        raise SourceError(f"{source.title}: {describe_missing(mapping, wanted, table.names)}")
    counts = Counter(table.names)
    for name in filter(None, table.names if mapping.is_wide else wanted):
        if counts[name] > 1:
            raise SourceError(f"{source.title}: {describe_repeated(name)}")
    return wanted
