"""Read what trackers store: Minetrack, BattleMetrics, Prometheus, and Cfx.re's server records.

Minetrack's database has the table `pings`, with a row for each ping: Unix milliseconds, the address
of the server, and its player count, which is NULL if the ping failed. Its servers.json is an array
of objects with a name and an address (`ip`).

A response of BattleMetrics is the player count history of one server, and does not name it. So the
file does: `1234567.json` is of the server 1234567.

A response of Prometheus to `query_range` or `query` has series, which are servers; a label names
the server of each.

Cfx.re returns the record of a single server, whose texts have color codes such as `^1`. They stay:
a response of srvstat has them as the API's has.

A JSON file can have several responses, one after the other.
"""

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from itertools import chain, islice
from typing import Any, NamedTuple

from srvstat.contract import wire
from srvstat.contract.errors import SourceError, UsageError
from srvstat.contract.time import LATEST, format_instant
from srvstat.files import json_stream
from srvstat.files.json_stream import Problem
from srvstat.files.reading import STDIN
from srvstat.sources import servers, sqlite
from srvstat.sources.json import Point, collect_batches, read_events
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.servers import FieldError, PartialRecord, get_field, require_field
from srvstat.sources.source import Batch, Reject, Source
from srvstat.sources.table import SAMPLE_ROWS, Sample, Table
from srvstat.sources.values import COUNT_RULE, MAX_PLAYERS, NO_COUNT, RowError

FAILED_PING = "failed ping"
"""The reason to skip a ping without a player count."""

_PINGS = ColumnMapping(id="ip", at="timestamp", players="playerCount", table="pings")
_OLD_COUNT = "player"
"""The name of the player count in 2015."""


def read_minetrack(source: Source) -> Iterator[Batch]:
    """Read the pings of a database, in the order of its rows.

    Raises SourceError as `sqlite.read` does.
    """
    mapping = _PINGS
    if _OLD_COUNT in sqlite.read_sample(replace(source, mapping=_PINGS)).table.names:
        mapping = replace(_PINGS, players=_OLD_COUNT)
    for batch in sqlite.read(replace(source, mapping=mapping)):
        skipped = batch.skipped.get(NO_COUNT)
        yield replace(batch, skipped={FAILED_PING: skipped} if skipped else {})


def read_minetrack_records(source: Source) -> list[PartialRecord]:
    """Read all server records: the name is the hostname, and the address the source's identifier.

    Raises SourceError if the source can't be read, or for a server without name or address.
    """
    events = read_events(source)
    found = json_stream.read_value(events, json_stream.array_of({"name": None, "ip": None}))
    if not isinstance(found, list) or next(events, None):
        raise SourceError(
            f"{source.title}: must be an array of servers, as in Minetrack's servers.json"
        )
    return _build_records(source, found, _build_minetrack_record)


def _build_minetrack_record(server: Any) -> PartialRecord:
    if isinstance(server, Problem):
        raise FieldError(server.reason)
    return PartialRecord(
        source_id=require_field(server, "ip", servers.check_source_id),
        hostname=require_field(server, "name", servers.check_text),
    )


def _build_records(
    source: Source, found: Iterable[Any], build: Callable[[Any], PartialRecord]
) -> list[PartialRecord]:
    records = []
    for number, server in enumerate(found, 1):
        try:
            records.append(build(server))
        except FieldError as error:
            raise SourceError(f"{source.title}, server {number}: {error}") from None
    return records


_HISTORY = {
    "data": json_stream.array_of({"attributes": {"timestamp": None, "value": None}}),
    "errors": json_stream.array_of({"title": None, "detail": None}),
}
_EXTENSIONS = re.compile(r"(\.json)?(\.gz)?\Z", re.IGNORECASE)
_LENIENT = ColumnMapping()


def read_battlemetrics(source: Source) -> Iterator[Batch]:
    """Read the data points of a source.

    Raises SourceError if the source can't be read, has no name, or is no answer with data points.
    """
    return collect_batches(_read_battlemetrics_points(source, _find_server_id(source)))


def _find_server_id(source: Source) -> str:
    """Return the name of the file without directory and extensions."""
    if source.name == STDIN:
        raise SourceError(
            f"{source.title}: the answers of BattleMetrics don't name their server; name a file"
            " like the server's identifier, such as 1234567.json"
        )
    return _EXTENSIONS.sub("", os.path.basename(source.title))


def _read_battlemetrics_points(source: Source, server_id: str) -> Iterator[Point | Reject | str]:
    events = read_events(source)
    for first in events:
        answer = json_stream.read_value(chain([first], events), _HISTORY)
        parts = answer if isinstance(answer, dict) else {}
        if "errors" in parts:
            raise SourceError(
                f"{source.title}: an error of BattleMetrics: {_describe_error(parts['errors'])}"
            )
        points = parts.get("data")
        if not isinstance(points, list):
            raise SourceError(
                f"{source.title}: must be an answer of BattleMetrics to player-count-history, an"
                " object with an array of data points as `data`"
            )
        for point in points:
            yield _build_point(server_id, point)


def _describe_error(errors: Any) -> str:
    """Return the text of the first error of an answer."""
    first = errors[0] if isinstance(errors, list) and errors else None
    texts = first.values() if isinstance(first, dict) else ()
    return ": ".join(text for text in texts if isinstance(text, str)) or "unknown"


def _build_point(server_id: str, item: Any) -> Point | Reject | str:
    attributes = item.get("attributes") if isinstance(item, dict) else None
    found = attributes if isinstance(attributes, dict) else {}
    if found.keys() != {"timestamp", "value"} or any(
        isinstance(value, Problem) for value in found.values()
    ):
        return Reject(0, "must have the attributes timestamp and value", "")
    observed_at, value = str(found["timestamp"]), str(found["value"])
    column = "timestamp"
    try:
        instant = _LENIENT.parse_time(observed_at)
        column = "value"
        players = _LENIENT.parse_count(value)
    except RowError as error:
        return Reject(0, str(error), f"{observed_at},{value}", error.value, column)
    return NO_COUNT if players is None else Point(server_id, instant, players)


_NOT_PROMETHEUS = (
    "must be an answer of Prometheus to query_range or query, an object with an array of series as"
    " `data.result`"
)

NOT_A_NUMBER = "not a number (NaN)"
HISTOGRAM = "native histogram"
"""The reasons to skip a sample."""

_Sample = Point | Reject | str

_METRIC_NAME = "__name__"
_SAMPLE_TIME, _SAMPLE_VALUE = "time", "value"
_ARRAY = json_stream.array_of(None)
_SAMPLE_KEYS = ("value", "values", "histogram", "histograms")
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?")
_CUT = Context(rounding=ROUND_DOWN, traps=[])
"""Cuts digits beyond milliseconds, and has infinity for numbers that are too large."""


def read_prometheus(source: Source) -> Iterator[Batch]:
    """Read the samples of a source.

    Raises SourceError if the source can't be read, is no answer with series, or is an error that
    Prometheus reports, or if no label names the server of each series; UsageError if the mapping
    has more than the label.
    """
    mapping = source.mapping
    known = ColumnMapping(id=mapping.id, server=mapping.server, rounds=mapping.rounds)
    named = replace(known, at=_SAMPLE_TIME, players=_SAMPLE_VALUE)
    if mapping not in (STRICT, known, named):
        raise UsageError(
            "--from prometheus: takes --columns id=LABEL, --id and --round only; leave out --wide,"
            " --time-zone, --time-unit and other columns"
        )
    return collect_batches(_read_prometheus_answers(source, _Series))


def read_prometheus_sample(source: Source) -> Sample:
    """Return the first samples of a source, with a column for each label.

    Raises SourceError as `read_prometheus`.
    """
    found = islice(_read_prometheus_answers(source, _LabeledSeries), SAMPLE_ROWS)
    samples = [each for each in found if each[1]]
    labels = sorted({label for of, _, _ in samples for label in of})
    names = [*labels, _SAMPLE_TIME, _SAMPLE_VALUE]
    rows = [[*(of.get(label, "") for label in labels), *rest] for of, *rest in samples]
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    table = Table(names, columns, range(1, len(rows) + 1))
    return Sample("Prometheus", table, is_whole=len(rows) < SAMPLE_ROWS)


def _read_prometheus_answers(source: Source, series: "type[_Series]") -> Iterator[Any]:
    events = read_events(source)
    for event, _ in events:
        if event != "start_map":
            raise SourceError(f"{source.title}: {_NOT_PROMETHEUS}")
        has_result, message = False, None
        for key in json_stream.read_keys(events):
            if key == "data":
                has_result = yield from _read_data(source, events, series)
            elif key == "error":
                message = json_stream.read_value(events, None)
            elif key == "warnings":
                _report_warnings(source, json_stream.read_value(events, _ARRAY))
            else:
                json_stream.skip_value(events)
        if message is not None:
            reason = message if isinstance(message, str) else "unknown"
            raise SourceError(f"{source.title}: an error of Prometheus: {reason}")
        if not has_result:
            raise SourceError(f"{source.title}: {_NOT_PROMETHEUS}")


def _read_data(
    source: Source, events: json_stream.Events, series: "type[_Series]"
) -> Generator[Any, None, bool]:
    """Yield the samples of an answer's `data`; return whether it has a `result`."""
    if next(events)[0] != "start_map":
        raise SourceError(f"{source.title}: {_NOT_PROMETHEUS}")
    has_result = False
    for key in json_stream.read_keys(events):
        if key != "result":
            json_stream.skip_value(events)
            continue
        has_result = True
        if next(events)[0] != "start_array":
            raise SourceError(f"{source.title}: {_NOT_PROMETHEUS}")
        numbers: dict[str, int] = {}
        for number, item in enumerate(json_stream.read_items(events), 1):
            if next(item)[0] != "start_map":
                raise SourceError(f"{source.title}: {_NOT_PROMETHEUS}")
            yield from _read_series(series(source, number, numbers), item)
    return has_result


class _Series(NamedTuple):
    """A series: its number, from 1, and the numbers of earlier ones by their servers."""

    source: Source
    number: int
    numbers: dict[str, int]

    def find_server_id(self, labels: Mapping[str, Any]) -> str:
        """Return the label that names the server, by default the only one."""
        wanted = self.source.mapping.id
        if wanted is None:
            return self._check_first("the server", self.source.server_id)
        names = sorted(labels.keys() - {_METRIC_NAME})
        if wanted not in labels and wanted == STRICT.id and len(names) == 1:
            wanted = names[0]
        if wanted not in labels:
            listed = f"its labels are {', '.join(names)}" if names else "it has no labels"
            reason = f"no label {wanted}; {listed}; --columns id=LABEL names that of the server"
            raise self.build_error(reason)
        server_id = labels[wanted]
        if not isinstance(server_id, str):
            raise self.build_error(f"the label {wanted} must be a string")
        return self._check_first(wanted, server_id)

    def _check_first(self, what: str, server_id: str) -> str:
        first = self.numbers.setdefault(server_id, self.number)
        if first != self.number:
            raise self.build_error(
                f"{what} is {wire.quote_value(server_id)}, as in series {first}; name another"
                " label with --columns id=LABEL, or add the series up in the query"
            )
        return server_id

    def build_sample(self, key: str, server: Any, sample: Any) -> Any:
        """Return the observation of a sample, a reject, or the reason to skip it."""
        return _build_sample(key, server, sample, rounds=self.source.mapping.rounds)

    def build_error(self, reason: str) -> SourceError:
        """Return the error for a series that makes the source unusable."""
        return SourceError(f"{self.source.title}, series {self.number}: {reason}")


class _LabeledSeries(_Series):
    """A series whose samples have all its labels."""

    def find_server_id(self, labels: Mapping[str, Any]) -> Any:
        return {name: str(value) for name, value in labels.items() if name != _METRIC_NAME}

    def build_sample(self, key: str, server: Any, sample: Any) -> Any:
        is_pair = isinstance(sample, list) and len(sample) == len(("time", "value"))
        at, value = sample if is_pair else (None, "")
        point = _build_sample(key, "", [at, "0"], rounds=True)
        text = format_instant(point.instant) if isinstance(point, Point) else ""
        return server, text, "" if value == "NaN" else str(value)


def _read_series(series: _Series, events: json_stream.Events) -> Iterator[Any]:
    server_id = None
    for key in json_stream.read_keys(events):
        if key == "metric":
            if next(events)[0] != "start_map":
                raise series.build_error("`metric` must be an object")
            names = json_stream.read_keys(events)
            server_id = series.find_server_id(
                {name: json_stream.read_value(events, None) for name in names}
            )
        elif key not in _SAMPLE_KEYS:
            json_stream.skip_value(events)
        elif server_id is None:
            raise series.build_error("must begin with `metric`")
        elif key in ("value", "histogram"):
            yield series.build_sample(key, server_id, json_stream.read_value(events, _ARRAY))
        elif next(events)[0] == "start_array":
            for item in json_stream.read_items(events):
                yield series.build_sample(key, server_id, json_stream.read_value(item, _ARRAY))
        else:
            raise series.build_error(f"`{key}` must be an array")


def _build_sample(key: str, server_id: str, sample: Any, *, rounds: bool) -> _Sample:
    """Return the point of a sample: Unix seconds as a number, and the value as text."""
    if key.startswith("histogram"):
        return HISTOGRAM
    is_pair = isinstance(sample, list) and len(sample) == len(("time", "value"))
    if not is_pair or any(isinstance(each, Problem) for each in sample):
        return Reject(0, "must be an array of a time and a value", "")
    seconds, value = sample
    text = f"{server_id},{seconds},{value}"
    is_number = type(seconds) in (int, Decimal)
    milliseconds = _CUT.multiply(seconds, 1000) if is_number else Decimal(-1)
    if not 0 <= milliseconds < LATEST + 1:
        reason = "observedAt: must be a number of Unix seconds up to the year 9999"
        return Reject(0, reason, text, str(seconds))
    if value == "NaN":
        return NOT_A_NUMBER
    players = _parse_count(value, rounds=rounds)
    if players is None:
        return Reject(0, f"players: {COUNT_RULE}", text, str(value), "value")
    return Point(server_id, int(milliseconds), players)


def _parse_count(value: Any, *, rounds: bool) -> int | None:
    """Return the whole number that a text is, such as `12`, `12.0` or `1.2e1`; else None.

    `rounds` rounds fractions.
    """
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        return None
    number = Decimal(value)
    whole = number.to_integral_value(ROUND_HALF_UP)
    return int(whole) if (rounds or whole == number) and 0 <= number <= MAX_PLAYERS else None


def _report_warnings(source: Source, warnings: Any) -> None:
    """Report the warnings of Prometheus, such as one about an answer that lacks data."""
    for warning in warnings if isinstance(warnings, list) else ():
        if source.on_warning and isinstance(warning, str):
            source.on_warning(f"{source.title}: a warning of Prometheus: {warning}")


_CFX_ANSWER = {
    "EndPoint": None,
    "Data": {
        **dict.fromkeys(("clients", "sv_maxclients", "svMaxclients", "hostname")),
        "vars": dict.fromkeys(("sv_projectName", "sv_projectDesc", "tags")),
    },
    "error": None,
}


def read_cfx_records(source: Source) -> list[PartialRecord]:
    """Read all server records. They have no game, because Cfx.re does not name it.

    Raises SourceError if the source can't be read, or for an answer that is not one of Cfx.re about
    a server.
    """
    return _build_records(source, _read_cfx_answers(source), _build_cfx_record)


def _read_cfx_answers(source: Source) -> Iterator[Any]:
    """Yield the parts of each answer that a record needs, or a Problem."""
    events = read_events(source)
    for first in events:
        if first[0] == "start_array":
            yield from json_stream.array_of(_CFX_ANSWER)(events)
        else:
            yield json_stream.read_value(chain([first], events), _CFX_ANSWER)


def _build_cfx_record(answer: Any) -> PartialRecord:
    given = _check_part("the answer", answer)
    if "Data" not in given and isinstance(given.get("error"), str):
        raise FieldError(f"an error of Cfx.re: {given['error']}")
    data = _check_part("Data", given.get("Data"))
    texts = _check_part("vars", {} if data.get("vars") is None else data["vars"])
    server_id = require_field(given, "EndPoint", servers.check_identifier)
    tags = get_field(texts, "tags", servers.check_text) or ""
    most = "sv_maxclients" if data.get("sv_maxclients") is not None else "svMaxclients"
    return PartialRecord(
        id=server_id,
        cfx_id=server_id,
        hostname=get_field(data, "hostname", servers.check_text),
        project_name=get_field(texts, "sv_projectName", servers.check_text) or "",
        project_description=get_field(texts, "sv_projectDesc", servers.check_text) or "",
        players_current=get_field(data, "clients", servers.check_count),
        players_max=get_field(data, most, servers.check_count) or 0,
        tags=tuple(filter(None, map(str.strip, tags.split(",")))),
    )


def _check_part(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise FieldError(f"{name}: must be an object, as Cfx.re returns it for a single server")
    return value
