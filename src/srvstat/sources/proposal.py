"""Propose which columns of a source are identifiers, times and player counts.

A dry run shows the proposal to a person, and a build never uses it on its own.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from srvstat.contract.time import YEAR_2001, InstantError
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.registry import KINDS, load_function
from srvstat.sources.source import RowError, Source
from srvstat.sources.values import ValueParser

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

_OTHERS = re.compile(r"[\W_]+")

# Counts as people write them, also those that a build rejects.
_COUNT = re.compile(r"[0-9]+(?:[ ,.'][0-9]+)*")

# A count is less than this, and seconds since 2001 are more.
_LEAST_SECONDS = YEAR_2001 // 1000


class Sample(NamedTuple):
    """The names of the columns of a source, and the text of its first values in each."""

    names: Sequence[str]
    values: Sequence[Sequence[str]]

    @classmethod
    def from_rows(cls, names: Sequence[str], rows: Iterable[Sequence[str]]) -> "Sample":
        """Return the sample of some rows; those of another length are left out."""
        whole = [row for row in islice(rows, SAMPLE_ROWS) if len(row) == len(names)]
        return cls(names, list(zip(*whole, strict=True)) or [()] * len(names))


class Proposal(NamedTuple):
    """The names of the columns of a long source, or the column of times of a wide one."""

    columns: Mapping[str, str]
    wide: str | None

    def format_option(self) -> tuple[str, str]:
        """Return the option that declares the columns, and its value."""
        if self.wide is not None:
            return "--wide", f"at={_quote(self.wide)}"
        return "--columns", ",".join(f"{key}={_quote(name)}" for key, name in self.columns.items())


def propose_columns(source: Source) -> Proposal | None:
    """Return the likeliest columns of a source; None if it has none or its names do not tell.

    Raises SourceError if the source can't be read.
    """
    read_sample = KINDS[source.kind].sample
    if read_sample is None:
        return None
    sample: Sample = load_function(source.kind, read_sample)(source)
    return choose_columns(sample, source.mapping)


def choose_columns(sample: Sample, mapping: ColumnMapping) -> Proposal | None:
    """Return the likeliest columns of a sample; those that a mapping names rightly stay."""
    given = {} if mapping.is_wide else {"id": mapping.id, "players": mapping.players}
    given = {key: name for key, name in given.items() if name in sample.names}
    times = [name for name, values in _iter_columns(sample) if _are_times(values)]
    at = mapping.at if mapping.at in sample.names else _find_named("at", times or sample.names)
    at = at or next(iter(times), None)
    if at is None:
        return None
    others = [name for name in sample.names if name not in (at, *given.values()) and name]
    counts = [name for name, values in _iter_columns(sample) if _are_counts(values)]
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


def _iter_columns(sample: Sample) -> Iterable[tuple[str, Sequence[str]]]:
    return zip(sample.names, sample.values, strict=True)


def _find_named(key: str, names: Sequence[str]) -> str | None:
    """Return the name that people use most for a field; None if no name is one of these."""
    folded = {_OTHERS.sub("", name.casefold()): name for name in reversed(names)}
    return next((folded[known] for known in _NAMES[key] if known in folded), None)


def _are_times(values: Sequence[str]) -> bool:
    """Return whether all values are times in some form and unit."""
    written = [value.strip() for value in values if value.strip()]
    return bool(written) and all(map(_is_time, written))


def _is_time(text: str) -> bool:
    try:
        _PARSER.parse_instant(text)
    except InstantError:
        number = text.partition(".")[0]
        return number.isdecimal() and int(number[:20]) >= _LEAST_SECONDS
    return True


def _are_counts(values: Sequence[str]) -> bool:
    """Return whether all values are numbers or empty."""
    return all(_COUNT.fullmatch(value.strip()) or _is_empty(value) for value in values)


def _is_empty(text: str) -> bool:
    try:
        return _PARSER.parse_count(text) is None
    except RowError:
        return False


_PARSER = ValueParser(ColumnMapping(time_zone="UTC"))


def _quote(name: str) -> str:
    """Return a name for an option of columns, quoted if it has a comma, a quote or outer spaces."""
    if name != name.strip() or "," in name or '"' in name:
        return '"' + name.replace('"', '""') + '"'
    return name
