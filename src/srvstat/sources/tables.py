"""Convert tables of text to observations, using a mapping's columns and forms.

All readers yield tables with columns of text, whatever types the format has, so every form of a
time or count works in all formats.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from srvstat.contract import wire
from srvstat.contract.arrays import Numbers
from srvstat.contract.errors import SourceError
from srvstat.sources import columns
from srvstat.sources.mapping import STRICT, ColumnMapping, describe_missing
from srvstat.sources.registry import TEXT_KINDS
from srvstat.sources.source import Batch, Reject, Source
from srvstat.sources.values import NO_COUNT, RowError, check_identifier, is_identifier

_EXACT = ("parquet", "duckdb", "postgresql")
"""The kinds whose identifiers keep surrounding spaces, because an engine may also read them."""

SAMPLE_ROWS = 10_000
"""The maximum number of rows in a sample."""


class Table(NamedTuple):
    """Rows of a source as columns of text of equal length. Missing and null values are empty.

    - `names`: the column names.
    - `columns`: the texts of each column.
    - `places`: the line or row numbers, ascending.
    - `texts`: the rows as written; if empty, messages quote a row as its values joined by commas.
    """

    names: Sequence[str]
    columns: Sequence[Sequence[str]]
    places: Sequence[int]
    texts: Sequence[str] = ()


class Sample(NamedTuple):
    """The first rows of a source, from which options are proposed.

    - `form`: a description of the format, such as "CSV with semicolons".
    - `table`: the rows.
    - `is_whole`: whether these are all rows.
    - `options`: the options for what the reader chose, such as a table, by option name.
    """

    form: str
    table: Table
    is_whole: bool
    options: Mapping[str, Any] = MappingProxyType({})


def build_own_sample(source: Source, form: str, names: Sequence[str]) -> Sample | None:
    """Return an empty sample if a query has our own columns, because running it may take long."""
    own = STRICT.names
    if source.mapping.is_strict and {*map(str.lower, own)} <= {*map(str.lower, names)}:
        return Sample(form, Table(own, [()] * len(own), ()), is_whole=False)
    return None


def convert_table(source: Source, table: Table, rejects: Sequence[Reject] = ()) -> Batch:
    """Convert a table to a batch that also contains `rejects`.

    The tables of a source may have different columns.

    Raises SourceError if the table lacks a column of the mapping.
    """
    mapping = source.mapping
    find_columns(source, table.names)
    if mapping.is_strict and source.kind not in TEXT_KINDS and mapping.time_unit is None:
        mapping = ColumnMapping()  # only text formats have strict forms
    by_name = dict(zip(table.names, table.columns, strict=True))
    at = mapping.find_times(table.names)
    servers = list_servers(mapping, table.names) if mapping.is_wide else [mapping.players]
    instants = columns.parse_times([columns.Column.join([by_name[name]]) for name in at], mapping)
    joined = columns.Column.join([by_name[name] for name in servers])
    counts = columns.parse_counts(joined, mapping)
    if mapping.is_wide:
        counts[joined.starts == joined.ends] = columns.BLANK
    counts = counts.reshape(len(servers), len(instants)).T
    names, codes = _number_servers(source, mapping, by_name, counts)
    is_known = (instants >= 0) & (codes >= 0).all(axis=1)
    found = [*rejects]
    is_malformed = ~is_known | (counts == columns.MALFORMED).any(axis=1)
    for row in np.flatnonzero(is_malformed).tolist():
        text = table.texts[row] if table.texts else ",".join(each[row] for each in table.columns)
        found += _explain_row(
            mapping,
            Reject(table.places[row], "", text),
            None if (codes[row] >= 0).all() else by_name[mapping.id or ""][row],
            " ".join(by_name[name][row] for name in at),
            [(name, by_name[name][row]) for name in servers],
        )
    empty = int((counts[is_known] == columns.EMPTY_COUNT).sum())
    rows, cells = np.nonzero(is_known[:, np.newaxis] & (counts >= 0))
    used, kept = np.unique(codes[rows, cells], return_inverse=True)
    places = table.places
    numbers = np.arange(places.start, places.stop) if isinstance(places, range) else places
    return Batch(
        [names[code] for code in used.tolist()],
        kept,
        instants[rows],
        counts[rows, cells],
        np.asarray(numbers, np.int64)[rows],
        sorted(found, key=attrgetter("place")),
        {NO_COUNT: empty} if empty else {},
    )


def _number_servers(
    source: Source, mapping: ColumnMapping, by_name: Mapping[str, Sequence[str]], counts: Numbers
) -> tuple[Sequence[str], Numbers]:
    """Return server names, and each count's index among them; negative if malformed."""
    if mapping.is_wide:
        servers = list_servers(mapping, [*by_name])
        return servers, np.broadcast_to(np.arange(len(servers)), counts.shape)
    if mapping.id is None:
        return [source.server_id], np.zeros(counts.shape, np.int64)
    names, codes = columns.number_texts(by_name[mapping.id])
    if mapping.is_strict and not source.accepts_any_id:
        is_valid = np.array([is_identifier(name) for name in names], np.bool_)
        codes = np.where(is_valid[codes], codes, columns.MALFORMED)
    if not source.mapping.is_strict and source.kind not in _EXACT:
        names = [name.strip() for name in names]
    return names, codes[:, np.newaxis]


def _explain_row(
    mapping: ColumnMapping,
    reject: Reject,
    identifier: str | None,
    at: str,
    cells: Sequence[tuple[str, str]],
) -> Iterator[Reject]:
    """Yield why a row is malformed: its identifier, its time, or each malformed count."""
    try:
        if identifier is not None:
            check_identifier(identifier)
        mapping.parse_time(at)
    except RowError as error:
        lost = sum(bool(written.strip()) for _, written in cells) or 1
        yield reject._replace(reason=str(error), value=error.value, rows=lost)
        return
    for name, written in cells:
        try:
            mapping.parse_count(written)
        except RowError as error:
            found = reject._replace(reason=str(error), value=error.value)
            if mapping.is_wide:
                found = found._replace(text=f"{name},{at},{written}")
            yield found


def check_columns(source: Source, names: Sequence[str], line: int | None = None) -> list[str]:
    """Return the columns to read among a source's names. `line` is the line of the header, if any.

    Warns about an unnamed column of a wide source, unless it is the last column.

    Raises SourceError if a column is missing or repeated.
    """
    mapping = source.mapping
    wanted = find_columns(source, names, line)
    if not mapping.is_wide:
        return wanted
    title = source.title if line is None else source.format_place(line)
    servers = list_servers(mapping, names)
    if not servers and "" not in names:
        raise SourceError(f"{title}: {describe_missing(mapping, wanted, names)}")
    if "" in names[:-1] and source.on_warning:
        source.on_warning(f"{title}: column {names.index('') + 1} has no name, so it is ignored")
    return [*wanted, *servers]


def find_columns(source: Source, names: Sequence[str], line: int | None = None) -> list[str]:
    """Return the columns that the mapping names. `line` is the line of the header, if any.

    Raises SourceError if a column is missing or repeated.
    """
    mapping = source.mapping
    wanted = list_wanted(mapping, names)
    title = source.title if line is None else source.format_place(line)
    if not {*wanted} <= {*names}:
        raise SourceError(f"{title}: {describe_missing(mapping, wanted, names)}")
    counts = Counter(names)
    for name in filter(None, names if mapping.is_wide else wanted):
        if counts[name] > 1:
            quoted = wire.quote_value(name)
            raise SourceError(f"{title}: has two columns {quoted}; rename one of them")
    return wanted


def list_servers(mapping: ColumnMapping, names: Sequence[str]) -> list[str]:
    """Return the columns of a wide source that are servers, among all column names."""
    others = {"", *mapping.find_times(names), *mapping.others}
    return [name for name in names if name not in others]


def fold_names(mapping: ColumnMapping, names: Sequence[str]) -> list[str]:
    """Spell column names as the mapping does, because a database may have folded their case."""
    wanted = {name.lower(): name for name in list_wanted(mapping, names)}
    return [name if name in wanted.values() else wanted.get(name.lower(), name) for name in names]


def list_wanted(mapping: ColumnMapping, names: Sequence[str]) -> list[str]:
    """Return the columns that a mapping names, with its time columns chosen among `names`."""
    at = mapping.names.index(mapping.at)
    return [*mapping.names[:at], *mapping.find_times(names), *mapping.names[at + 1 :]]
