"""Read the formats of trackers: Minetrack, BattleMetrics, Prometheus, and Cfx.re server records.

- Minetrack's database has a table `pings` with a row per ping: Unix milliseconds, the server's
  address, and its player count, which is NULL if the ping failed. Its servers.json is an array of
  objects with a name and an address (`ip`).
- A BattleMetrics response is the player count history of one server, which it does not name. The
  file name is the identifier: `1234567.json` belongs to server 1234567.
- A Prometheus response to `query_range` or `query` has series, one for each server. A label names
  the server.
- A Cfx.re response is the record of a single server. Its texts contain color codes such as `^1`,
  which are kept, as in the API's responses.

A JSON file can contain several responses, one after the other.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from srvstat.contract import wire
from srvstat.contract.errors import SourceError, UsageError
from srvstat.contract.time import format_instant
from srvstat.files.reading import STDIN
from srvstat.sources import servers, sqlite
from srvstat.sources.json import read_document, read_first_values, read_values
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.servers import FieldError, PartialRecord, get_field, require_field
from srvstat.sources.source import Batch, Source
from srvstat.sources.tables import SAMPLE_ROWS, Sample, Table, convert_table
from srvstat.sources.values import NO_COUNT

FAILED_PING = "failed ping"
"""The reason to skip a ping without a player count."""

_PINGS = ColumnMapping(id="ip", at="timestamp", players="playerCount", table="pings")
_OLD_COUNT = "player"
"""The name of the player count column in 2015."""


def read_minetrack(source: Source) -> Iterator[Batch]:
    """Read the pings of a database, in the order of its rows.

    Raises the errors of `sqlite.read`.
    """
    mapping = _PINGS
    if _OLD_COUNT in sqlite.read_sample(replace(source, mapping=_PINGS)).table.names:
        mapping = replace(_PINGS, players=_OLD_COUNT)
    for batch in sqlite.read(replace(source, mapping=mapping)):
        yield _rename_skipped(batch, FAILED_PING)


def read_minetrack_records(source: Source) -> list[PartialRecord]:
    """Read all server records. The name becomes the hostname, and the address the source id.

    Raises SourceError if the source can't be read, or if a server lacks a name or an address.
    """
    found = read_values(source, None)
    if len(found) != 1 or not isinstance(found[0], list):
        raise SourceError(
            f"{source.title}: must be an array of servers, as in Minetrack's servers.json"
        )
    return _build_records(source, found[0], _build_minetrack_record)


def _build_minetrack_record(server: Any) -> PartialRecord:
    if not isinstance(server, dict):
        raise FieldError("must be an object")
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


_BATTLEMETRICS = ColumnMapping(id=None, at="attributes.timestamp", players="attributes.value")


def read_battlemetrics(source: Source) -> Iterator[Batch]:
    """Read the data points of a source.

    Raises SourceError if the source can't be read, has no file name, or is not a response with data
    points.
    """
    if source.name == STDIN:
        raise SourceError(
            f"{source.title}: the responses of BattleMetrics don't name their server; name a file"
            " like the server's identifier, such as 1234567.json"
        )
    return read_document(replace(source, mapping=_BATTLEMETRICS))


_NOT_PROMETHEUS = (
    "must be a response of Prometheus to query_range or query, an object with an array of series as"
    " `data.result`"
)

NOT_A_NUMBER = "not a number (NaN)"
"""The reason to skip a sample."""

_METRIC_NAME = "__name__"
_SERVER, _TIME, _VALUE = "server", "time", "value"
_UNIX = ColumnMapping(time_unit="s")


def read_prometheus(source: Source) -> Iterator[Batch]:
    """Read the samples of a source.

    Raises SourceError if the source can't be read, is not a response with series, contains an error
    reported by Prometheus, or has no label that names each series' server. Raises UsageError if the
    mapping names more than the label.
    """
    mapping = source.mapping
    known = ColumnMapping(id=mapping.id, server=mapping.server, rounds=mapping.rounds)
    own = replace(known, at=_TIME, players=_VALUE)
    if mapping not in (STRICT, known, own):
        raise UsageError(
            "--source prometheus: takes --columns id=LABEL, --id and --round only; leave out"
            " --wide, --time-zone, --time-unit and other columns"
        )
    named = replace(source, mapping=replace(own, id=_SERVER, time_unit="s"))
    place = 1
    for answer in read_values(source):
        numbers: dict[str, int] = {}
        for number, (labels, samples) in enumerate(_list_series(source, answer), 1):
            server = _find_server(source, number, labels)
            first = numbers.setdefault(server, number)
            if first != number:
                raise SourceError(
                    f"{source.title}, series {number}: the server is {wire.quote_value(server)}, as"
                    f" in series {first}; name another label with --columns id=LABEL, or add the"
                    " series up in the query"
                )
            try:
                times = [at for at, _ in samples]
                counts = [count for _, count in samples]
            except (TypeError, ValueError):
                reason = "must have arrays of a time and a value as `values`"
                raise SourceError(f"{source.title}, series {number}: {reason}") from None
            places = range(place, place + len(times))
            place = places.stop
            table = Table((_SERVER, _TIME, _VALUE), ([server] * len(times), times, counts), places)
            yield _rename_skipped(convert_table(named, table), NOT_A_NUMBER)


def read_prometheus_sample(source: Source) -> Sample:
    """Return the first samples of a source, with a column for each label.

    Raises the errors of `read_prometheus`.
    """
    answers, is_whole = read_first_values(source)
    found = (
        (labels, *sample)
        for answer in answers
        for labels, samples in _list_series(source, answer)
        for sample in samples
        if len(sample) == len((_TIME, _VALUE))  # the last sample may be cut off
    )
    rows = [*islice(found, SAMPLE_ROWS)]
    names = sorted({name for labels, *_ in rows for name in labels} - {_METRIC_NAME})
    columns = [
        *([labels.get(name, "") for labels, *_ in rows] for name in names),
        [format_instant(_UNIX.parse_time(at)) for _, at, _ in rows],
        [count for *_, count in rows],
    ]
    table = Table([*names, _TIME, _VALUE], columns, range(1, len(rows) + 1))
    return Sample("Prometheus", table, is_whole=is_whole and len(rows) < SAMPLE_ROWS)


def _list_series(source: Source, answer: Any) -> list[tuple[dict[str, str], Sequence[Any]]]:
    """Return the labels and samples of a response's series, and report its warnings.

    A sample is a time in Unix seconds and a value.

    Raises SourceError if the response has no series or contains an error.
    """
    with suppress(AttributeError, KeyError, TypeError):
        for warning in answer.get("warnings", ()):
            if source.on_warning:
                source.on_warning(f"{source.title}: a warning of Prometheus: {warning}")
        if "error" in answer:
            raise SourceError(f"{source.title}: an error of Prometheus: {answer['error']}")
        return [
            (
                {name: str(label) for name, label in each["metric"].items()},
                each.get("values", [each["value"]] if "value" in each else []),
            )
            for each in answer["data"]["result"]
        ]
    raise SourceError(f"{source.title}: {_NOT_PROMETHEUS}")


def _find_server(source: Source, number: int, labels: Mapping[str, str]) -> str:
    """Return the label that names a series' server; by default its only label.

    Raises SourceError if the series lacks the label.
    """
    wanted = source.mapping.id
    if wanted is None:
        return source.server_id
    names = sorted(labels.keys() - {_METRIC_NAME})
    if wanted not in labels and wanted == STRICT.id and len(names) == 1:
        wanted = names[0]
    if wanted not in labels:
        listed = f"its labels are {', '.join(names)}" if names else "it has no labels"
        raise SourceError(
            f"{source.title}, series {number}: no label {wanted}; {listed}; name the label of"
            " the server with --columns id=LABEL"
        )
    return labels[wanted]


def _rename_skipped(batch: Batch, reason: str) -> Batch:
    """Replace the reason for skipped rows without a count."""
    skipped = batch.skipped.get(NO_COUNT)
    return replace(batch, skipped={reason: skipped} if skipped else {})


def read_cfx_records(source: Source) -> list[PartialRecord]:
    """Read all server records. They have no game, because Cfx.re does not return one.

    Raises SourceError if the source can't be read, or if a response is not a Cfx.re server record.
    """
    found = chain.from_iterable(
        each if isinstance(each, list) else [each] for each in read_values(source, None)
    )
    return _build_records(source, found, _build_cfx_record)


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
