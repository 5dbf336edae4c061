"""Interpret the options that declare a mapping, from a command line or from a file."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, get_args

from srvstat.contract import wire
from srvstat.contract.errors import SrvstatError
from srvstat.contract.time_zones import load_zone
from srvstat.sources.mapping import STRICT, ColumnMapping, TimeUnit
from srvstat.sources.registry import KINDS
from srvstat.sources.server_records import GAMES

COLUMNS = ("id", "at", "players")
"""The fields of an observation, as the keys of --columns."""

_ID_RULES = ("slug",)

_FORM = 'write at=NAME or id=NAME,at=NAME,players=NAME, and a name with a comma as "NAME"'

_COLUMN = re.compile(r'\s*(?P<key>[^=",]*)=(?:\s*"(?P<quoted>(?:[^"]|"")*)"\s*|(?P<plain>[^",]*))')


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """The options that say how to read sources; None or nothing for those that are not given.

    `columns` are names of columns by the keys of COLUMNS; `wide` is the name of the column of times
    of a wide source. The other fields are options of the same names.
    """

    from_: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    wide: str | None = None
    time_zone: str | None = None
    time_unit: TimeUnit | None = None
    ids: str | None = None
    game: str | None = None

    def merge(self, other: Self) -> Self:
        """Return these options, and those of the others that do not contradict them."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        merged = replace(other, **{name: value for name, value in given.items() if value})
        if self.wide is not None:
            return replace(merged, columns={})
        if self.columns:
            return replace(merged, columns={**other.columns, **self.columns}, wide=None)
        return merged

    def build_mapping(self) -> ColumnMapping:
        """Return the mapping that the options declare, STRICT if they declare none."""
        if not (self.columns or self.wide is not None or self.time_zone or self.time_unit):
            return STRICT
        columns = self.columns if self.wide is None else {"at": self.wide}
        return ColumnMapping(
            id=columns.get("id", STRICT.id),
            at=columns.get("at", STRICT.at),
            players=columns.get("players", STRICT.players),
            is_wide=self.wide is not None,
            time_zone=self.time_zone,
            time_unit=self.time_unit,
        )


def build_options(
    values: Mapping[str, Any], build_error: Callable[[str, str], SrvstatError]
) -> MappingOptions:
    """Check the values of options, by their names, and return the options.

    `columns` and `wide` are tables of names of columns. `build_error` returns the error to raise
    for the value of a name, and a reason.
    """
    options: dict[str, Any] = {}
    for name, value in values.items():
        if name not in _CHECKS:
            raise build_error(name, f"unknown; the options are {', '.join(_CHECKS)}")
        attribute, check = _CHECKS[name]
        try:
            options[attribute] = check(value)
        except ValueError as error:
            raise build_error(name, str(error)) from None
    if "wide" in options and "columns" in options:
        raise build_error("wide", "can't be combined with columns; name the column of times only")
    return MappingOptions(**options)


def parse_columns(text: str) -> dict[str, str]:
    """Return the names of columns by their keys from a text such as `id=name,at=timestamp`.

    A name with a comma or a quote must be quoted, and "" is a quote in it.

    Raises ValueError.
    """
    found: dict[str, str] = {}
    at = 0
    while at <= len(text):
        match = _COLUMN.match(text, at)
        if match is None or text[match.end() : match.end() + 1] not in ("", ","):
            raise ValueError(f"can't be read from {wire.quote_value(text[at:])}; {_FORM}")
        key = match["key"].strip()
        if key in found:
            raise ValueError(f"{key} is given twice")
        is_quoted = match["quoted"] is not None
        found[key] = match["quoted"].replace('""', '"') if is_quoted else match["plain"].strip()
        at = match.end() + 1
    return found


def _check_columns(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        raise ValueError("must be a table with some of the keys id, at and players")
    for key, name in value.items():
        if key not in COLUMNS:
            raise ValueError(f"{wire.quote_value(key)} is not one of {', '.join(COLUMNS)}")
        if not isinstance(name, str) or not name:
            raise ValueError(f"{key}: must be the name of a column")
        if any("\ud800" <= each <= "\udfff" for each in name):
            raise ValueError(f"{key}: not Unicode text")
    if len(set(value.values())) < len(value):
        raise ValueError("two fields can't have the same column")
    return value


def _check_wide(value: Any) -> str:
    if not isinstance(value, dict) or value.keys() != {"at"}:
        raise ValueError("takes at=NAME only, the column of times; the others are servers")
    return _check_columns(value)["at"]


def _check_time_zone(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be the name of a time zone")
    load_zone(value)
    return value


def _check_choice(*choices: str) -> Callable[[Any], str]:
    """Return a function that checks a value, returns it, and raises ValueError."""

    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"{wire.quote_value(value)} is not one of {', '.join(choices)}")
        return str(value)

    return check


_CHECKS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "from": ("from_", _check_choice(*KINDS)),
    "columns": ("columns", _check_columns),
    "wide": ("wide", _check_wide),
    "time-zone": ("time_zone", _check_time_zone),
    "time-unit": ("time_unit", _check_choice(*get_args(TimeUnit))),
    "ids": ("ids", _check_choice(*_ID_RULES)),
    "game": ("game", _check_choice(*GAMES)),
}
"""The attribute of each option, and the function that checks its value or raises ValueError."""
