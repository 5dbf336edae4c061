"""Read server records as Cfx.re returns them for a single server, as JSON.

A file has one answer, an array of answers, or several one after the other. Color codes such as `^1`
stay in the texts: an answer of srvstat has them as the API's has.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from srvstat.contract.errors import SourceError
from srvstat.files.json_stream import Events, read_items, read_value
from srvstat.sources.json_points import read_events
from srvstat.sources.server_records import PartialRecord
from srvstat.sources.servers import (
    FieldError,
    check_count,
    check_identifier,
    check_text,
    get_field,
    require_field,
)
from srvstat.sources.source import Source

_ANSWER = {
    "EndPoint": None,
    "Data": {
        "clients": None,
        "sv_maxclients": None,
        "svMaxclients": None,
        "hostname": None,
        "vars": {"sv_projectName": None, "sv_projectDesc": None, "tags": None},
    },
    "error": None,
}


def read_records(source: Source) -> list[PartialRecord]:
    """Read all server records. They have no game, because Cfx.re does not name it.

    Raises SourceError if the source can't be read, or for an answer that is not one of Cfx.re about
    a server.
    """
    records = []
    for number, answer in enumerate(_read_answers(source), 1):
        try:
            records.append(_build_record(answer))
        except FieldError as error:
            raise SourceError(f"{source.title}, server {number}: {error}") from None
    return records


def _read_answers(source: Source) -> Iterator[Any]:
    """Yield the parts of each answer that a record needs, or a Problem."""

    def read_array(events: Events) -> list[Any]:
        return [read_value(item, _ANSWER) for item in read_items(events)]

    events = read_events(source)
    for first in events:
        if first[0] == "start_array":
            yield from read_array(events)
        else:
            yield read_value(chain([first], events), _ANSWER)


def _build_record(answer: Any) -> PartialRecord:
    given = _check_part("the answer", answer)
    if "Data" not in given and isinstance(given.get("error"), str):
        raise FieldError(f"an error of Cfx.re: {given['error']}")
    data = _check_part("Data", given.get("Data"))
    texts = _check_part("vars", {} if data.get("vars") is None else data["vars"])
    server_id = require_field(given, "EndPoint", check_identifier)
    most = "sv_maxclients" if data.get("sv_maxclients") is not None else "svMaxclients"
    return PartialRecord(
        id=server_id,
        cfx_id=server_id,
        hostname=get_field(data, "hostname", check_text),
        project_name=get_field(texts, "sv_projectName", check_text) or "",
        project_description=get_field(texts, "sv_projectDesc", check_text) or "",
        players_current=get_field(data, "clients", check_count),
        players_max=get_field(data, most, check_count) or 0,
        tags=_split_tags(get_field(texts, "tags", check_text) or ""),
    )


def _check_part(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise FieldError(f"{name}: must be an object, as Cfx.re returns it for a single server")
    return value


def _split_tags(text: str) -> tuple[str, ...]:
    return tuple(tag for part in text.split(",") if (tag := part.strip()))
