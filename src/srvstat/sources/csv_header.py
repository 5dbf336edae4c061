"""Find the columns that a mapping names in the header of a CSV file, and the delimiter."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from srvstat.contract import wire
from srvstat.sources.column_names import describe_missing
from srvstat.sources.csv_records import CsvForm, Header, get_form
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.source import Source

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}


class Columns(NamedTuple):
    """The positions of columns, from 0.

    `width` is the number of columns, and `wanted` has the positions of those that the mapping
    names. `servers` are the other columns of a wide file: their positions by their names.
    """

    form: CsvForm
    width: int
    wanted: Sequence[int]
    servers: Mapping[str, int]


def recognize_columns(source: Source, header: Header) -> Columns:
    """Return the columns of a file. The delimiter is the one that separates the wanted columns.

    A column of a wide file without a name is ignored, with a warning.

    Raises SourceError if a column is missing or repeated, or if several delimiters fit.
    """
    mapping = source.mapping
    wanted = _list_wanted_columns(mapping)
    headers = {delimiter: _split_header(header.text, delimiter) for delimiter in DELIMITERS}
    least = len(wanted) + mapping.is_wide  # a wide file without servers has no observation
    fitting = [
        delimiter
        for delimiter, names in headers.items()
        if len(names) >= least and set(wanted) <= set(names)
    ]
    if not fitting:
        raise source.build_error(header.line, describe_missing(mapping, wanted, headers.values()))
    if len(fitting) > 1:
        found = " or by ".join(map(DELIMITERS.__getitem__, fitting))
        raise source.build_error(header.line, f"the columns can be separated by {found}")
    names = headers[fitting[0]]
    _check_repeated(source, header.line, names if mapping.is_wide else wanted, names)
    servers = {}
    if mapping.is_wide:
        servers = {name: at for at, name in enumerate(names) if name and name not in wanted}
        _warn_of_unnamed(source, header.line, names)
    return Columns(get_form(fitting[0]), len(names), [*map(names.index, wanted)], servers)


def _list_wanted_columns(mapping: ColumnMapping) -> list[str]:
    columns = [mapping.at] if mapping.is_wide else [mapping.id, mapping.at, mapping.players]
    return [name.strip(" ") for name in columns]


def _split_header(text: str, delimiter: str) -> list[str]:
    return [name.strip(" ") for name in get_form(delimiter).split_fields(text) or ()]


def _check_repeated(
    source: Source, line: int, checked: Sequence[str], names: Sequence[str]
) -> None:
    """Check that names of columns occur once. Columns without a name may be repeated.

    Raises SourceError.
    """
    counts = Counter(names)
    for name in filter(None, checked):
        if counts[name] > 1:
            places = " and ".join(str(at) for at, other in enumerate(names, 1) if other == name)
            raise source.build_error(
                line, f"two columns have the name {wire.quote_value(name)} (columns {places})"
            )


def _warn_of_unnamed(source: Source, line: int, names: Sequence[str]) -> None:
    if "" in names and source.on_warning:
        reason = f"column {names.index('') + 1} has no name, so it is ignored"
        source.on_warning(source.build_error(line, reason).reason)
