"""How the columns of a source become observations: mappings, their options and files."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self, get_args

from srvstat.contract import wire
from srvstat.contract.errors import SourceError, SrvstatError
from srvstat.contract.responses import GAMES
from srvstat.contract.time import load_zone
from srvstat.files.reading import format_title, open_input
from srvstat.files.toml import TomlError, find_line, read_toml
from srvstat.sources.registry import KINDS

TimeUnit = Literal["s", "ms"]


_MAX_NAMES = 20
NO_ZONE = "has times without a time zone"
"""The reason to refuse a column of local times."""
COLUMNS = ("id", "at", "players")
"""The fields of an observation, as the keys of --columns."""
_ID_RULES = ("slug",)
_FORM = 'write at=NAME or id=NAME,at=NAME,players=NAME, and a name with a comma as "NAME"'
_COLUMN = re.compile(r'\s*(?P<key>[^=",]*)=(?:\s*"(?P<quoted>(?:[^"]|"")*)"\s*|(?P<plain>[^",]*))')
_MAX_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The columns of a source and the form of its times.

    A wide source has a column of times, and one column for each server, whose name is the server's
    identifier. `time_zone` is the zone of times without an offset, and `time_unit` the unit of
    integer times; None means that neither was declared, and nothing is guessed (D18). A strict
    mapping is that of our own input files: other columns and other forms of values are refused.
    With a unit, a strict mapping is that of our own numbers, which are right in any year.
    """

    id: str = "serverId"
    at: str = "observedAt"
    players: str = "players"
    is_wide: bool = False
    time_zone: str | None = None
    time_unit: TimeUnit | None = None
    is_strict: bool = False


STRICT = ColumnMapping(is_strict=True)
"""The mapping without any option."""


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


def _check_choice(choices: Collection[str]) -> Callable[[Any], str]:
    """Return a function that checks a value, returns it, and raises ValueError."""

    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"{wire.quote_value(value)} is not one of {', '.join(choices)}")
        return str(value)

    return check


_CHECKS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "from": ("from_", _check_choice(KINDS)),
    "columns": ("columns", _check_columns),
    "wide": ("wide", _check_wide),
    "time-zone": ("time_zone", _check_time_zone),
    "time-unit": ("time_unit", _check_choice(get_args(TimeUnit))),
    "ids": ("ids", _check_choice(_ID_RULES)),
    "game": ("game", _check_choice(GAMES)),
}
"""The attribute of each option, and the function that checks its value or raises ValueError."""


def read_mapping_file(path: str) -> MappingOptions:
    """Return the options in a mapping file.

    Raises SourceError, with the line of the problem.
    """
    title = format_title(path)
    with open_input(path) as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise SourceError(f"{title}: longer than {_MAX_BYTES:,} bytes, so it is no mapping file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{title}: not UTF-8") from None
    try:
        values = read_toml(text)
    except TomlError as error:
        raise SourceError(f"{title}, line {error.line}: {error}") from None
    return build_options(
        values,
        lambda name, reason: SourceError(
            f"{title}, line {find_line(text, (name,))}: {name}: {reason}"
        ),
    )


def format_mapping_file(options: MappingOptions) -> bytes:
    """Return the text of a mapping file, without the options that are not given."""
    lines = {
        "from": options.from_,
        **{f"columns.{key}": name for key, name in options.columns.items()},
        "wide.at": options.wide,
        "time-zone": options.time_zone,
        "time-unit": options.time_unit,
        "ids": options.ids,
        "game": options.game,
    }
    text = "".join(f"{name} = {_quote(value)}\n" for name, value in lines.items() if value)
    return text.encode()


def _quote(text: str) -> str:
    """Return a text as a string of TOML, whose escapes are those of JSON, and also for DEL."""
    return wire.encode(text).decode().replace("\x7f", r"\u007f")
