"""How columns map to observations: mappings, their options, and mapping files."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self, get_args

from srvstat.contract import wire
from srvstat.contract.errors import SourceError, SrvstatError
from srvstat.contract.responses import GAMES
from srvstat.contract.time import InstantError, load_zone
from srvstat.files.reading import format_title, open_input
from srvstat.files.toml import TomlError, find_line, read_toml
from srvstat.sources import values
from srvstat.sources.registry import list_choices
from srvstat.sources.values import RowError, TimeUnit, is_utf8

_MAX_NAMES = 20
COLUMNS = ("id", "at", "players")
"""The fields of an observation, which are the keys of `--columns`."""
_COLUMN = re.compile(r'\s*(?P<key>[^=",]*)=(?:\s*"(?P<quoted>(?:[^"]|"")*)"\s*|(?P<plain>[^",]*))')
_MAX_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMapping(values.Forms):
    """The columns of a source, and the forms of their values.

    - `id`: the column of server identifiers; None if all rows belong to `server`.
    - `at`: the column of times, or two columns of dates and clock times as `A+B`.
    - `players`: the column of player counts.
    - `server`: the identifier of all rows without an `id` column. `{file}` and `{folder}` stand for
      the names of the source's file, without its extension, and of its folder.
    - `is_wide`: whether each server has its own column, whose name is the server's identifier.
    - `others`: the columns of a wide source that are not servers.
    - `table`: the table, sheet or archive to read.
    - `encoding`: the encoding of the text.
    - `is_strict`: whether to accept only the columns and forms of our own input files. A strict
      mapping with a unit reads numbers that we wrote ourselves, which are right in any year.
    """

    id: str | None = "serverId"
    at: str = "observedAt"
    players: str = "players"
    server: str | None = None
    is_wide: bool = False
    others: tuple[str, ...] = ()
    table: str | None = None
    encoding: str | None = None
    is_strict: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the columns of identifiers, times and counts that the mapping reads."""
        if self.is_wide:
            return [self.at]
        return [*([] if self.id is None else [self.id]), self.at, self.players]

    def find_times(self, names: Collection[str]) -> list[str]:
        """Return the one or two columns of times among some names."""
        return [self.at] if self.at in names or "+" not in self.at else self.at.split("+", 1)

    def write_number(self, text: str) -> str:
        """Format a numeric cell as text that this mapping can parse.

        Where points separate thousands, a decimal point would be misread: 1.5 would become 15.
        """
        return text.replace(".", ",") if self.thousands == "." else text

    def parse_time(self, text: str) -> int:
        """Return an instant in Unix milliseconds.

        Raises RowError if the text is not a time in a form of this mapping.
        """
        try:
            if self.is_strict:
                return values.parse_strict_time(text)
            return values.parse_time(text, self)
        except InstantError as error:
            raise RowError(f"observedAt: {error}", text) from None

    def parse_count(self, text: str) -> int | None:
        """Return a player count, or None for an empty value.

        Raises RowError if the text is not a count in a form of this mapping.
        """
        if self.is_strict:
            return values.parse_strict_count(text)
        return values.parse_count(text, self)


STRICT = ColumnMapping(is_strict=True)
"""The mapping without any options."""


def describe_missing(mapping: ColumnMapping, wanted: Sequence[str], names: Sequence[str]) -> str:
    """Describe which wanted columns a source lacks, and which columns it has."""
    found = list_names(names)
    missing = [wire.quote_value(name) for name in wanted if name not in names]
    if not missing:
        return f"no column beside {found}; a wide file has a column for each server"
    what = "column" if len(missing) == 1 else "columns"
    remedy = "name it with --wide" if mapping.is_wide else "name them with --columns"
    return f"no {what} {', '.join(missing)}; the columns are {found}; {remedy}"


def list_names(names: Sequence[str]) -> str:
    """Return quoted column names for an error message."""
    listed = ", ".join(map(wire.quote_value, names[:_MAX_NAMES]))
    others = len(names) - _MAX_NAMES
    return f"{listed} and {others:,} more" if others > 0 else listed


_SHARED = ("encoding", "time_zone", "time_unit", "time_format", "thousands")
"""Options stored unchanged in a mapping."""


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """Options for reading sources. An option that was not given is None or empty.

    `columns` maps the keys of COLUMNS to column names. `wide` holds the time column of a wide
    source as `at`, and as `except` the columns that are not servers, joined by `+`. The other
    fields are the options of the same names.
    """

    source: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    wide: Mapping[str, str] = field(default_factory=dict)
    id: str | None = None
    input_table: str | None = None
    encoding: str | None = None
    time_zone: str | None = None
    time_unit: TimeUnit | None = None
    time_format: str | None = None
    thousands: str | None = None
    round: bool | None = None
    hold: bool | None = None
    slug_ids: bool | None = None
    game: str | None = None

    def merge(self, other: Self) -> Self:
        """Return these options, completed with the other options where they don't conflict."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        merged = replace(other, **{name: value for name, value in given.items() if value})
        if self.wide:
            return replace(merged, columns={})
        if self.columns:
            return replace(merged, columns={**other.columns, **self.columns}, wide={})
        return merged

    def build_mapping(self) -> ColumnMapping:
        """Return the mapping that the options declare, or STRICT if they declare none."""
        declared = replace(self, source=None, hold=None, slug_ids=None, game=None)
        if declared == MappingOptions():
            return STRICT
        columns: dict[str, Any] = {**self.columns}
        if self.id is not None:
            columns["id"] = None
        if self.wide:
            others = self.wide.get("except")
            columns = {"at": self.wide["at"], "others": tuple(others.split("+")) if others else ()}
        return ColumnMapping(
            **columns,
            server=self.id,
            is_wide=bool(self.wide),
            rounds=bool(self.round),
            table=self.input_table,
            **{name: getattr(self, name) for name in _SHARED},
        )


def build_options(
    values: Mapping[str, Any], build_error: Callable[[str, str], SrvstatError]
) -> MappingOptions:
    """Validate option values by name, and return the options.

    `columns` and `wide` are mappings of column names. `build_error` takes an option's name and a
    reason, and returns the error to raise.
    """
    options: dict[str, Any] = {}
    for name, value in values.items():
        found = _CHECKS.get(name, _OLD_CHECKS.get(name))
        if found is None:
            raise build_error(name, f"unknown; the options are {', '.join(_CHECKS)}")
        attribute, check = found
        try:
            options[attribute] = check(value)
        except ValueError as error:
            raise build_error(name, str(error)) from None
    if "wide" in options and "columns" in options:
        raise build_error("wide", "can't be combined with columns; name the column of times only")
    return MappingOptions(**options)


def parse_columns(text: str) -> dict[str, str]:
    """Parse a text such as `id=name,at=timestamp` into column names by key.

    A name with a comma or a quote must be quoted; within it, "" stands for a quote.

    Raises ValueError if the text is malformed or repeats a key.
    """
    found: dict[str, str] = {}
    at = 0
    while at <= len(text):
        match = _COLUMN.match(text, at)
        if match is None or text[match.end() : match.end() + 1] not in ("", ","):
            raise ValueError(f"{wire.quote_value(text[at:])} is not KEY=NAME")
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
        if not isinstance(name, str) or not name or not is_utf8(name):
            raise ValueError(f"{key}: must be the name of a column")
    if len(set(value.values())) < len(value):
        raise ValueError("two fields can't have the same column")
    return value


def _check_wide(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or "at" not in value or not value.keys() <= {"at", "except"}:
        raise ValueError(
            "takes at=NAME, the column of times, and except=NAME+NAME; the other"
            " columns are servers"
        )
    return {**_check_columns({"at": value["at"]}), **value}


def _check_text(value: Any) -> str:
    if not isinstance(value, str) or not value or not is_utf8(value):
        raise ValueError("must be text")
    return value


def _check_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _check_encoding(value: Any) -> str:
    try:
        "a".encode(_check_text(value))
    except (LookupError, UnicodeError):  # also raised by codecs that don't encode text
        raise ValueError(f"{wire.quote_value(value)} is not an encoding, such as cp1252") from None
    return str(value)


def _check_time_format(value: Any) -> str:
    text = _check_text(value)
    day = datetime(2026, 1, 5, tzinfo=UTC)
    with suppress(ValueError):
        # strptime ignores the name of a zone.
        is_whole = datetime.strptime(day.strftime(text), text).date() == day.date()  # noqa: DTZ007 - the day
        if is_whole and "%Z" not in text:
            return text
    if text in {values.DAY_FIRST, values.MONTH_FIRST}:
        return text
    raise ValueError(
        f"{wire.quote_value(text)} is not day-first, month-first, or a strptime format with a whole"
        " date, such as %d.%m.%Y %H:%M"
    )


def _check_time_zone(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be the name of a time zone")
    name, sign, choice = value.partition(":")
    load_zone(name)
    if sign and choice not in values.CHANGES:
        raise ValueError(f"{wire.quote_value(choice)} is not one of {', '.join(values.CHANGES)}")
    return value


def _check_choice(choices: Collection[str], value: Any) -> str:
    if value not in choices:
        raise ValueError(f"{wire.quote_value(value)} is not one of {', '.join(choices)}")
    return str(value)


THOUSANDS = (",", ".", " ", "'")
"""The characters that `--thousands` accepts."""


def _check_thousands(value: Any) -> str:
    if value not in THOUSANDS:
        raise ValueError(
            f"{wire.quote_value(value)} is not a thousands separator; use a comma, a point, a space"
            " or an apostrophe"
        )
    return str(value)


_CHECKS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "source": ("source", lambda value: _check_choice(list_choices(), value)),
    "columns": ("columns", _check_columns),
    "wide": ("wide", _check_wide),
    "id": ("id", _check_text),
    "input-table": ("input_table", _check_text),
    "encoding": ("encoding", _check_encoding),
    "time-zone": ("time_zone", _check_time_zone),
    "time-unit": ("time_unit", partial(_check_choice, get_args(TimeUnit))),
    "time-format": ("time_format", _check_time_format),
    "thousands": ("thousands", _check_thousands),
    "round": ("round", _check_flag),
    "hold": ("hold", _check_flag),
    "slug-ids": ("slug_ids", _check_flag),
    "game": ("game", partial(_check_choice, GAMES)),
}
"""The attribute of each option, and the function that validates its value or raises ValueError."""

_OLD_CHECKS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "from": _CHECKS["source"],
    "table": _CHECKS["input-table"],
    "ids": ("slug_ids", lambda value: bool(_check_choice(("slug",), value))),
}
"""Former option names, accepted until 2.0 in mapping files, snapshots and calls."""


def read_mapping_file(path: str) -> MappingOptions:
    """Return the options in a mapping file.

    Raises SourceError with the line of the problem if the file is invalid.
    """
    title = format_title(path)
    with open_input(path) as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise SourceError(f"{title}: longer than {_MAX_BYTES:,} bytes, so it is no mapping file")
    try:
        text = content.decode("utf-8-sig")
        values = read_toml(text)
    except UnicodeDecodeError:
        raise SourceError(f"{title}: not UTF-8") from None
    except TomlError as error:
        raise SourceError(f"{title}, line {error.line}: {error}") from None
    return build_options(
        values,
        lambda name, reason: SourceError(
            f"{title}, line {find_line(text, (name,))}: {name}: {reason}"
        ),
    )


def list_options(options: MappingOptions) -> dict[str, Any]:
    """Return the given options by name, for `build_options`."""
    found = {name: getattr(options, attribute) for name, (attribute, _) in _CHECKS.items()}
    return {name: value for name, value in found.items() if value}


def format_mapping_file(options: MappingOptions) -> bytes:
    """Return the text of a mapping file with the given options."""
    lines: dict[str, Any] = {}
    for name, value in list_options(options).items():
        if isinstance(value, Mapping):
            lines |= {f"{name}.{key}": column for key, column in value.items()}
        else:
            lines[name] = value
    # A TOML string escapes like JSON, and also DEL.
    return b"".join(
        b"%b = %b\n" % (name.encode(), wire.encode(value).replace(b"\x7f", rb"\u007f"))
        for name, value in lines.items()
    )


def format_columns(columns: Mapping[str, str]) -> str:
    """Format names as a value of `--columns` or `--wide` that `parse_columns` can read."""
    return ",".join(f"{key}={_quote_name(name)}" for key, name in columns.items())


def _quote_name(name: str) -> str:
    """Quote a name if it has a comma, a quote, or leading or trailing spaces."""
    if name != name.strip() or "," in name or '"' in name:
        return '"' + name.replace('"', '""') + '"'
    return name
