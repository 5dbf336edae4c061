"""Make rows of `servers` from server records, and records from rows."""

from collections.abc import Sequence
from dataclasses import asdict
from operator import attrgetter

from srvstat.contract import wire
from srvstat.snapshot.format.derive import DerivedColumns
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.decoding import read_texts
from srvstat.sources.server_records import ServerRecord

_GET_DERIVED = attrgetter(*DerivedColumns._fields)


def build_server_row(
    record: ServerRecord, number: int, derived: DerivedColumns, as_of: int
) -> ServerRow:
    """Return a row of `servers`; missing fields of the record come from its observations."""
    fields = asdict(record)
    del fields["publishable"]
    defaults = {
        "players_current": derived.last_players or 0,
        "first_seen_at": as_of if derived.first_observed_at is None else derived.first_observed_at,
        "updated_at": as_of if derived.last_observed_at is None else derived.last_observed_at,
    }
    fields |= {name: value for name, value in defaults.items() if fields[name] is None}
    fields |= {
        "tags": encode_texts(record.tags),
        "flags": encode_texts(record.flags),
        "completed": encode_texts(record.completed),
        "offline": int(record.offline),
    }
    return ServerRow(
        **fields,
        server=number,
        current_is_fallback=int(record.players_current is None),
        first_seen_is_fallback=int(record.first_seen_at is None),
        updated_is_fallback=int(record.updated_at is None),
        **derived._asdict(),
    )


def build_record(row: ServerRow) -> ServerRecord:
    """Return the record from which a row was made: fallbacks are None again.

    Raises ValueError and TypeError for a row that no build writes.
    """
    return ServerRecord(
        id=row.id,
        cfx_id=row.cfx_id,
        game=row.game,
        hostname=row.hostname,
        project_name=row.project_name,
        project_description=row.project_description,
        region=row.region,
        players_current=None if row.current_is_fallback else row.players_current,
        players_max=row.players_max,
        tags=read_texts(row.tags),
        flags=read_texts(row.flags),
        chat_url=row.chat_url,
        icon_url=row.icon_url,
        offline=bool(row.offline),
        first_seen_at=None if row.first_seen_is_fallback else row.first_seen_at,
        updated_at=None if row.updated_is_fallback else row.updated_at,
        source_id=row.source_id,
        completed=read_texts(row.completed),
        publishable=True,
    )


def get_derived(row: ServerRow) -> DerivedColumns:
    """Return the derived columns of a row."""
    return DerivedColumns._make(_GET_DERIVED(row))


def encode_texts(values: Sequence[str]) -> str:
    """Return texts as a JSON array."""
    return wire.encode(values).decode("utf-8")
