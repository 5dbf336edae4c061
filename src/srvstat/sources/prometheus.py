"""Read answers of Prometheus to `query_range` or `query`, as JSON.

Each series is a server, which a label names. Several answers can follow each other in one file.
"""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any, NamedTuple

from srvstat.contract import wire
from srvstat.contract.errors import SourceError, UsageError
from srvstat.contract.time import LATEST
from srvstat.files import json_stream
from srvstat.sources.batch import COUNT_RULE, MAX_PLAYERS, Batch, Reject
from srvstat.sources.json_points import Point, collect_batches, read_events
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.source import Source

NOT_A_NUMBER = "not a number (NaN)"
HISTOGRAM = "native histogram"
"""The reasons to skip a sample."""

_Sample = Point | Reject | str

_NAME = "__name__"
_SAMPLE_KEYS = ("value", "values", "histogram", "histograms")
_COUNT = re.compile(r"0|[1-9][0-9]{0,15}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?")
_CUT = Context(rounding=ROUND_DOWN, traps=[])
"""Cuts digits beyond milliseconds, and has infinity for numbers that are too large."""


def read(source: Source) -> Iterator[Batch]:
    """Read the samples of a source.

    Raises SourceError if the source can't be read, is no answer with series, or is an error that
    Prometheus reports, or if no label names the server of each series; UsageError if the mapping
    has more than the label.
    """
    if source.mapping not in (STRICT, ColumnMapping(id=source.mapping.id)):
        raise UsageError(
            "--from prometheus: takes --columns id=LABEL only; leave out --wide, --time-zone,"
            " --time-unit and other columns"
        )
    return collect_batches(_read_answers(source))


def _read_answers(source: Source) -> Iterator[_Sample]:
    events = read_events(source)
    for event, _ in events:
        if event != "start_map":
            raise _build_error(source)
        has_result, message = False, None
        for key in json_stream.read_keys(events):
            if key == "data":
                has_result = yield from _read_data(source, events)
            elif key == "error":
                message = json_stream.read_value(events, None)
            elif key == "warnings":
                _report_warnings(source, events)
            else:
                json_stream.skip_value(events)
        if message is not None:
            reason = message if isinstance(message, str) else "unknown"
            raise SourceError(f"{source.title}: an error of Prometheus: {reason}")
        if not has_result:
            raise _build_error(source)


def _read_data(source: Source, events: json_stream.Events) -> Generator[_Sample, None, bool]:
    """Yield the samples of an answer's `data`; return whether it has a `result`."""
    if next(events)[0] != "start_map":
        raise _build_error(source)
    has_result = False
    for key in json_stream.read_keys(events):
        if key != "result":
            json_stream.skip_value(events)
            continue
        has_result = True
        if next(events)[0] != "start_array":
            raise _build_error(source)
        numbers: dict[str, int] = {}
        for number, item in enumerate(json_stream.read_items(events), 1):
            if next(item)[0] != "start_map":
                raise _build_error(source)
            yield from _read_series(_Series(source, number, numbers), item)
    return has_result


class LabelError(SourceError):
    """A series has no label that names its server; `labels` are the names of those that it has."""

    def __init__(self, reason: str, labels: Sequence[str]) -> None:
        super().__init__(reason)
        self.labels = labels


class _Series(NamedTuple):
    """A series: its number, from 1, and the numbers of earlier ones by their servers."""

    source: Source
    number: int
    numbers: dict[str, int]

    def find_server_id(self, labels: Mapping[str, Any]) -> str:
        """Return the label that names the server, by default the only one."""
        wanted = self.source.mapping.id
        names = sorted(labels.keys() - {_NAME})
        if wanted not in labels and wanted == STRICT.id and len(names) == 1:
            wanted = names[0]
        if wanted not in labels:
            listed = f"its labels are {', '.join(names)}" if names else "it has no labels"
            reason = f"no label {wanted}; {listed}; --columns id=LABEL names that of the server"
            raise LabelError(self.build_error(reason).reason, names)
        server_id = labels[wanted]
        if not isinstance(server_id, str):
            raise self.build_error(f"the label {wanted} must be a string")
        first = self.numbers.setdefault(server_id, self.number)
        if first != self.number:
            raise self.build_error(
                f"{wanted} is {wire.quote_value(server_id)}, as in series {first}; name another"
                " label with --columns id=LABEL, or add the series up in the query"
            )
        return server_id

    def build_error(self, reason: str) -> SourceError:
        """Return the error for a series that makes the source unusable."""
        return SourceError(f"{self.source.title}, series {self.number}: {reason}")


def _read_series(series: _Series, events: json_stream.Events) -> Iterator[_Sample]:
    server_id = None
    for key in json_stream.read_keys(events):
        if key == "metric":
            server_id = series.find_server_id(_read_labels(series, events))
        elif key not in _SAMPLE_KEYS:
            json_stream.skip_value(events)
        elif server_id is None:
            raise series.build_error("must begin with `metric`")
        elif key in ("value", "histogram"):
            yield _build_sample(key, server_id, json_stream.read_value(events, _read_list))
        elif next(events)[0] == "start_array":
            for item in json_stream.read_items(events):
                yield _build_sample(key, server_id, json_stream.read_value(item, _read_list))
        else:
            raise series.build_error(f"`{key}` must be an array")


def _read_labels(series: _Series, events: json_stream.Events) -> dict[str, Any]:
    if next(events)[0] != "start_map":
        raise series.build_error("`metric` must be an object")
    labels: dict[str, Any] = {}
    for name in json_stream.read_keys(events):
        if name in labels:
            raise series.build_error(f"the label {name} is repeated")
        labels[name] = json_stream.read_value(events, None)
    return labels


def _read_list(events: json_stream.Events) -> list[Any]:
    return [json_stream.read_value(item, None) for item in json_stream.read_items(events)]


def _build_sample(key: str, server_id: str, sample: Any) -> _Sample:
    """Return the point of a sample: Unix seconds as a number, and the value as text."""
    if key.startswith("histogram"):
        return HISTOGRAM
    is_pair = isinstance(sample, list) and len(sample) == len(("time", "value"))
    if not is_pair or any(isinstance(each, json_stream.Problem) for each in sample):
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
    players = _parse_count(value)
    if players is None:
        return Reject(0, f"players: {COUNT_RULE}", text, str(value), "value")
    return Point(server_id, int(milliseconds), players)


def _parse_count(value: Any) -> int | None:
    """Return the whole number that a text is, such as `12`, `12.0` or `1.2e1`; else None."""
    if not isinstance(value, str):
        return None
    if _COUNT.fullmatch(value):
        count = int(value)
    elif not _NUMBER.fullmatch(value) or (number := Decimal(value)) != number.to_integral_value():
        return None
    else:
        count = int(number)
    return count if 0 <= count <= MAX_PLAYERS else None


def _report_warnings(source: Source, events: json_stream.Events) -> None:
    """Report the warnings of Prometheus, such as one about an answer that lacks data."""
    warnings = json_stream.read_value(events, _read_list)
    for warning in warnings if isinstance(warnings, list) else ():
        if source.on_warning and isinstance(warning, str):
            source.on_warning(f"{source.title}: a warning of Prometheus: {warning}")


def _build_error(source: Source) -> SourceError:
    return SourceError(
        f"{source.title}: must be an answer of Prometheus to query_range or query, an object with"
        " an array of series as `data.result`"
    )
