"""Describe what is wrong with the names of columns, for errors."""

from collections.abc import Iterable, Sequence

from srvstat.contract import wire
from srvstat.sources.mapping import ColumnMapping

_MAX_NAMES = 20

NO_ZONE = "has times without a time zone"
"""The reason to refuse a column of local times."""


def describe_missing(
    mapping: ColumnMapping, wanted: Sequence[str], headers: Iterable[Sequence[str]]
) -> str:
    """Describe which of the wanted columns the most likely header lacks, and which it has."""
    names = max(headers, key=lambda names: (len(set(wanted) & set(names)), len(names)))
    found = list_names(names)
    missing = [wire.quote_value(name) for name in wanted if name not in names]
    if not missing:
        return f"no column beside {found}; a wide file has a column for each server"
    what = "column" if len(missing) == 1 else "columns"
    remedy = "name it with --wide" if mapping.is_wide else "name them with --columns"
    return f"no {what} {', '.join(missing)}; the columns are {found}; {remedy}"


def list_names(names: Sequence[str]) -> str:
    """Return the names of columns in quotes, for an error."""
    listed = ", ".join(map(wire.quote_value, names[:_MAX_NAMES]))
    others = len(names) - _MAX_NAMES
    return f"{listed} and {others:,} more" if others > 0 else listed


def describe_repeated(name: str) -> str:
    """Describe that two columns of a table have a name."""
    return f"has two columns {wire.quote_value(name)}; rename one of them"
