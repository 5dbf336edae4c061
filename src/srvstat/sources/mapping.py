"""How columns become observations: mappings, their options and files, and proposals of them."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Self, get_args

from srvstat.contract import wire
from srvstat.contract.errors import SourceError, SrvstatError
from srvstat.contract.responses import GAMES
from srvstat.contract.time import YEAR_2001, InstantError, load_zone
from srvstat.files.reading import format_title, open_input
from srvstat.files.toml import TomlError, find_line, read_toml
from srvstat.sources import values
from srvstat.sources.registry import KINDS
from srvstat.sources.values import RowError, TimeUnit, is_utf8

_MAX_NAMES = 20
NO_ZONE = "has times without a time zone"
"""The reason to refuse a column of local times."""
COLUMNS = ("id", "at", "players")
"""The fields of an observation, as the keys of --columns."""
_FORM = 'write at=NAME or id=NAME,at=NAME,players=NAME, and a name with a comma as "NAME"'
_COLUMN = re.compile(r'\s*(?P<key>[^=",]*)=(?:\s*"(?P<quoted>(?:[^"]|"")*)"\s*|(?P<plain>[^",]*))')
_MAX_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The columns of a source and the form of its times.

    A wide source has a column of times, and one column for each server, whose name is the server's
    identifier. `time_zone` is the zone of times without an offset, and `time_unit` the unit of
    integer times; None means that neither was declared, and nothing is guessed (D18). A strict
    mapping reads our own input files: other columns and other forms of values are refused. A strict
    mapping with a unit reads numbers that we wrote ourselves, which are right in any year.
    """

    id: str = "serverId"
    at: str = "observedAt"
    players: str = "players"
    is_wide: bool = False
    time_zone: str | None = None
    time_unit: TimeUnit | None = None
    is_strict: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the columns: of identifiers, times and counts, or of times if it is wide."""
        return [self.at] if self.is_wide else [self.id, self.at, self.players]

    def parse_time(self, text: str) -> int:
        """Return an instant in Unix milliseconds.

        Raises RowError.
        """
        try:
            if self.is_strict:
                return values.parse_strict_time(text)
            return values.parse_time(text, self.time_unit, self.time_zone)
        except InstantError as error:
            raise RowError(f"observedAt: {error}", text) from None

    def parse_count(self, text: str) -> int | None:
        """Return a player count, or None for an empty value.

        Raises RowError.
        """
        return values.parse_strict_count(text) if self.is_strict else values.parse_count(text)


STRICT = ColumnMapping(is_strict=True)
"""The mapping without any option."""


def describe_missing(mapping: ColumnMapping, wanted: Sequence[str], names: Sequence[str]) -> str:
    """Describe which of the wanted columns a source lacks, and which it has."""
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
    """The options that say how to read sources; None or empty if an option is not given.

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
        """Return these options, completed by the others where they do not contradict them."""
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
        columns: Mapping[str, Any] = self.columns if self.wide is None else {"at": self.wide}
        return ColumnMapping(
            **columns,
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
        if not is_utf8(name):
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


def _check_choice(choices: Collection[str], value: Any) -> str:
    if value not in choices:
        raise ValueError(f"{wire.quote_value(value)} is not one of {', '.join(choices)}")
    return str(value)


_CHECKS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "from": ("from_", partial(_check_choice, KINDS)),
    "columns": ("columns", _check_columns),
    "wide": ("wide", _check_wide),
    "time-zone": ("time_zone", _check_time_zone),
    "time-unit": ("time_unit", partial(_check_choice, get_args(TimeUnit))),
    "ids": ("ids", partial(_check_choice, ("slug",))),
    "game": ("game", partial(_check_choice, GAMES)),
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
    # A string of TOML escapes like JSON, and DEL too.
    return b"".join(
        b"%b = %b\n" % (name.encode(), wire.encode(value).replace(b"\x7f", rb"\u007f"))
        for name, value in lines.items()
        if value
    )


SAMPLE_ROWS = 200

_NAMES = {
    "at": (
        *("observedat", "timestamp", "datetime", "time", "date", "at", "when", "polledat"),
        *("recordedat", "createdat", "ts", "day", "month", "hour"),
    ),
    "id": (
        *("serverid", "server", "servername", "id", "name", "appid", "gameid", "app", "game"),
        *("gamename", "gamemode", "mode", "instance", "ip", "host", "hostname", "address"),
        *("identifier", "key", "category", "title", "label", "room"),
    ),
    "players": (
        *("players", "playercount", "playersonline", "onlineplayers", "online", "avgplayers"),
        *("averageplayers", "currentplayers", "concurrentplayers", "current", "count", "value"),
        *("users", "avg", "average", "mean", "total", "peakplayers", "peak", "n"),
    ),
}
"""What people name such columns, without capitals and signs, the likeliest first."""

_SIGNS = re.compile(r"[\W_]+")

# Counts as people write them, even if a build rejects them.
_WRITTEN_COUNT = re.compile(r"[0-9]+(?:[ ,.'][0-9]+)*")

# A count is less than this, and seconds since 2001 are more.
_LEAST_SECONDS = YEAR_2001 // 1000


class Sample(NamedTuple):
    """The names of the columns of a source, and the text of its first values in each."""

    names: Sequence[str]
    values: Sequence[Sequence[str]]

    @classmethod
    def from_rows(cls, names: Sequence[str], rows: Iterable[Sequence[str]]) -> "Sample":
        """Return the sample of some rows, without rows of another length."""
        whole = [row for row in islice(rows, SAMPLE_ROWS) if len(row) == len(names)]
        return cls(names, list(zip(*whole, strict=True)) or [()] * len(names))


class Proposal(NamedTuple):
    """The names of the columns of a long source, or the column of times of a wide one."""

    columns: Mapping[str, str]
    wide: str | None

    def format_option(self) -> tuple[str, str]:
        """Return the option that declares the columns, and its value."""
        if self.wide is not None:
            return "--wide", f"at={_quote_name(self.wide)}"
        return "--columns", ",".join(
            f"{key}={_quote_name(name)}" for key, name in self.columns.items()
        )


def find_likely_columns(sample: Sample, mapping: ColumnMapping) -> Proposal | None:
    """Return the likeliest columns of a sample; existing columns of the mapping stay."""
    given = {} if mapping.is_wide else {"id": mapping.id, "players": mapping.players}
    given = {key: name for key, name in given.items() if name in sample.names}
    columns = list(zip(sample.names, sample.values, strict=True))
    times = [name for name, written in columns if _are_times(written)]
    at = mapping.at if mapping.at in sample.names else _find_named("at", times or sample.names)
    at = at or next(iter(times), None)
    if at is None:
        return None
    others = [name for name in sample.names if name not in (at, *given.values()) and name]
    counts = [name for name, written in columns if _are_counts(written)]
    numbers = [name for name in others if name in counts]
    texts = [name for name in others if name not in counts]
    players = given.get("players") or _find_named("players", numbers)
    server_id = given.get("id") or _find_named("id", texts) or next(iter(texts), None)
    server_id = server_id or _find_named("id", [name for name in numbers if name != players])
    if server_id is not None and players is None:
        players = next((name for name in numbers if name != server_id), None)
    if server_id is None or players is None:
        return Proposal({}, at) if numbers or players else None
    return Proposal({"id": server_id, "at": at, "players": players}, None)


def propose_label(labels: Sequence[str]) -> Proposal | None:
    """Return the label that names the server of a series of Prometheus; None if none does."""
    label = _find_named("id", labels)
    return None if label is None else Proposal({"id": label}, None)


def _find_named(key: str, names: Sequence[str]) -> str | None:
    """Return the name that people use most for a field; None if no name is one of these."""
    folded = {_SIGNS.sub("", name.casefold()): name for name in reversed(names)}
    return next((folded[known] for known in _NAMES[key] if known in folded), None)


def _are_times(values: Sequence[str]) -> bool:
    """Return whether all values are times in some form and unit."""
    written = [value.strip() for value in values if value.strip()]
    return bool(written) and all(map(_is_time, written))


def _is_time(text: str) -> bool:
    try:
        values.parse_time(text, zone="UTC")
    except InstantError:
        number = text.partition(".")[0]
        return number.isdecimal() and int(number[:20]) >= _LEAST_SECONDS
    return True


def _are_counts(written: Sequence[str]) -> bool:
    """Return whether all values are numbers or empty."""
    texts = [text.strip() for text in written]
    return all(_WRITTEN_COUNT.fullmatch(text) or text.lower() in values.EMPTY for text in texts)


def _quote_name(name: str) -> str:
    """Return a name for an option of columns, quoted if it has a comma, a quote or outer spaces."""
    if name != name.strip() or "," in name or '"' in name:
        return '"' + name.replace('"', '""') + '"'
    return name
