"""Read the player count history of a server, as the BattleMetrics API returns it, as JSON.

An answer doesn't name its server, so the file does: `1234567.json` is of the server 1234567. The
answers of several requests about one server can follow each other in one file.
"""

import os
from collections.abc import Iterator
from typing import Any

from srvstat.contract.errors import SourceError
from srvstat.contract.time import InstantError
from srvstat.files.json_stream import Events, Problem, read_items, read_keys, read_value, skip_value
from srvstat.files.reading import STDIN
from srvstat.sources.batch import NO_COUNT, Batch, Reject, RowError
from srvstat.sources.json_points import Point, collect_batches, read_events
from srvstat.sources.source import Source
from srvstat.sources.times_and_counts import ValueParser

_POINT = {"attributes": {"timestamp": None, "value": None}}
_ERROR = {"title": None, "detail": None}


def read(source: Source) -> Iterator[Batch]:
    """Read the data points of a source.

    Raises SourceError if the source can't be read, has no name, or is no answer with data points.
    """
    return collect_batches(_read_points(source, _find_server_id(source)))


def _find_server_id(source: Source) -> str:
    """Return the name of the file without directory and extensions."""
    if source.name == STDIN:
        raise SourceError(
            f"{source.title}: the answers of BattleMetrics don't name their server; name a file"
            " like the server's identifier, such as 1234567.json"
        )
    stem = os.path.basename(source.title)
    for extension in (".gz", ".json"):
        if stem.lower().endswith(extension):
            stem = stem[: -len(extension)]
    return stem


def _read_points(source: Source, server_id: str) -> Iterator[Point | Reject | str]:
    events, parser = read_events(source), ValueParser(source.mapping)
    for event, _ in events:
        if event != "start_map":
            raise _build_error(source)
        has_data = False
        for key in read_keys(events):
            if key == "data":
                has_data = True
                if next(events)[0] != "start_array":
                    raise _build_error(source)
                for item in read_items(events):
                    yield _build_point(parser, server_id, read_value(item, _POINT))
            elif key == "errors":
                raise SourceError(f"{source.title}: an error of BattleMetrics: {_describe(events)}")
            else:
                skip_value(events)
        if not has_data:
            raise _build_error(source)


def _describe(events: Events) -> str:
    """Return the text of the first error of an answer."""
    errors = read_value(
        events, lambda rest: [read_value(item, _ERROR) for item in read_items(rest)]
    )
    first = errors[0] if isinstance(errors, list) and errors else None
    texts = first.values() if isinstance(first, dict) else ()
    return ": ".join(text for text in texts if isinstance(text, str)) or "unknown"


def _build_point(parser: ValueParser, server_id: str, item: Any) -> Point | Reject | str:
    attributes = item.get("attributes") if isinstance(item, dict) else None
    if not isinstance(attributes, dict) or attributes.keys() != {"timestamp", "value"}:
        return Reject(0, "must have the attributes timestamp and value", "")
    if any(isinstance(value, Problem) for value in attributes.values()):
        return Reject(0, "timestamp and value must be plain values", "")
    observed_at, value = map(str, (attributes["timestamp"], attributes["value"]))
    try:
        instant, players = parser.parse_instant(observed_at), parser.parse_count(value)
    except InstantError as error:
        return Reject(0, f"observedAt: {error}", f"{observed_at},{value}", observed_at, "timestamp")
    except RowError as error:
        return Reject(0, str(error), f"{observed_at},{value}", value, "value")
    return NO_COUNT if players is None else Point(server_id, instant, players)


def _build_error(source: Source) -> SourceError:
    return SourceError(
        f"{source.title}: must be an answer of BattleMetrics to player-count-history, an object"
        " with an array of data points as `data`"
    )
