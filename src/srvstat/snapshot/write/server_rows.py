"""Make rows of servers from their records, and records from rows."""

from collections.abc import Sequence
from dataclasses import fields

from srvstat.contract import wire
from srvstat.snapshot.read.verified_rows import read_texts
from srvstat.snapshot.rows import ServerRow
from srvstat.sources.servers import ServerRecord

_RECORD = {field.name for field in fields(ServerRecord)} & {*ServerRow._fields}
_DERIVED = tuple(ServerRow._field_defaults)


def build_server_row(record: ServerRecord, number: int) -> ServerRow:
    """Return a row of `servers` without observations; `fill_fallbacks` completes it."""
    values = {name: getattr(record, name) for name in _RECORD} | {
        "tags": encode_texts(record.tags),
        "flags": encode_texts(record.flags),
        "completed": encode_texts(record.completed),
        "offline": int(record.offline),
    }
    return ServerRow(
        **values,
        server=number,
        current_is_fallback=int(record.players_current is None),
        first_seen_is_fallback=int(record.first_seen_at is None),
        updated_is_fallback=int(record.updated_at is None),
    )


def copy_derived(source: ServerRow, target: ServerRow) -> ServerRow:
    """Return a row with the columns of another one that are derived from observations."""
    return target._replace(**{name: getattr(source, name) for name in _DERIVED})


def fill_fallbacks(row: ServerRow, as_of: int) -> ServerRow:
    """Return a row with the fields that its record lacks, from its observations."""
    first = as_of if row.first_observed_at is None else row.first_observed_at
    last = as_of if row.last_observed_at is None else row.last_observed_at
    return row._replace(
        players_current=row.last_players or 0 if row.current_is_fallback else row.players_current,
        first_seen_at=first if row.first_seen_is_fallback else row.first_seen_at,
        updated_at=last if row.updated_is_fallback else row.updated_at,
    )


def build_record(row: ServerRow) -> ServerRecord:
    """Return the record from which a row was made: fallbacks are None again."""
    values = row._asdict() | {
        "players_current": None if row.current_is_fallback else row.players_current,
        "tags": read_texts(row.tags),
        "flags": read_texts(row.flags),
        "offline": bool(row.offline),
        "first_seen_at": None if row.first_seen_is_fallback else row.first_seen_at,
        "updated_at": None if row.updated_is_fallback else row.updated_at,
        "completed": read_texts(row.completed),
    }
    return ServerRecord(**{name: values[name] for name in _RECORD})


def encode_texts(values: Sequence[str]) -> str:
    """Return texts as a JSON array."""
    return wire.encode(values).decode("utf-8")
