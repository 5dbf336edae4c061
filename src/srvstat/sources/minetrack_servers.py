"""Read the servers.json of Minetrack: an array of objects with a name and an address (`ip`)."""

from typing import Any

from srvstat.contract.errors import SourceError
from srvstat.files.json_events import Events, Problem, read_items, read_value
from srvstat.sources.json_points import read_events
from srvstat.sources.record_fields import FieldError, check_source_id, check_text, require_field
from srvstat.sources.server_records import PartialRecord
from srvstat.sources.source import Source

_SERVER = {"name": None, "ip": None}


def read_records(source: Source) -> list[PartialRecord]:
    """Read all server records: the name is the hostname, and the address the source's identifier.

    Raises SourceError if the source can't be read, or for a server without name or address.
    """
    records = []
    events = read_events(source)
    found = read_value(events, _read_servers)
    if not isinstance(found, list) or next(events, None):
        raise SourceError(
            f"{source.title}: must be an array of servers, as in Minetrack's servers.json"
        )
    for number, server in enumerate(found, 1):
        try:
            records.append(_build_record(server))
        except FieldError as error:
            raise SourceError(f"{source.title}, server {number}: {error}") from None
    return records


def _read_servers(events: Events) -> list[Any]:
    return [read_value(item, _SERVER) for item in read_items(events)]


def _build_record(server: Any) -> PartialRecord:
    if isinstance(server, Problem):
        raise FieldError(server.reason)
    return PartialRecord(
        source_id=require_field(server, "ip", check_source_id),
        hostname=require_field(server, "name", check_text),
    )
