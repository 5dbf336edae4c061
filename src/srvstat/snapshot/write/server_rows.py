"""Make rows of servers from their records, records from rows, and the summary of a build."""

from collections.abc import Sequence
from dataclasses import asdict
from operator import attrgetter

from srvstat.contract import wire
from srvstat.documents.snapshot import BuildSummary
from srvstat.snapshot.format.rows import DerivedColumns, ServerRow, find_observed_span
from srvstat.snapshot.read.header import read_texts
from srvstat.snapshot.write.intake import Intake
from srvstat.snapshot.write.roster import Roster
from srvstat.snapshot.write.rules import find_remedy, list_reasons
from srvstat.snapshot.write.store import Stored
from srvstat.sources.server_records import ServerRecord, count_completed

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
    """Return the record from which a row was made: fallbacks are None again."""
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


def build_server_rows(roster: Roster, stored: Stored, as_of: int) -> list[ServerRow]:
    """Return the rows of `servers`; a server that no record names needs an observation."""
    return [
        build_server_row(roster.get_record(server_id), key, stored.derived[key], as_of)
        for server_id, key in roster.server_keys.items()
        if roster.has_record(server_id) or stored.derived[key].observation_count
    ]


def summarize(
    intake: Intake, stored: Stored, rows: Sequence[ServerRow], as_of: int, first_reject: str | None
) -> BuildSummary:
    """Return the counts of rows and servers."""
    first, last = find_observed_span(stored.derived.values())
    remedy = find_remedy(list_reasons(intake.rejects, {}, {}))
    return BuildSummary(
        read=intake.rows,
        kept=stored.kept,
        repeated=stored.repeated,
        conflicting=intake.rejects.conflicting,
        rejected=intake.rejects.malformed,
        skipped=intake.skipped,
        first_reject=first_reject,
        remedy=remedy and remedy.text,
        servers=len(rows),
        withheld=len(intake.roster.withheld),
        completed=count_completed(intake.roster.get_record(row.id) for row in rows),
        fallbacks=sum(row.current_is_fallback for row in rows),
        as_of=as_of,
        first_observed_at=first,
        last_observed_at=last,
        warnings=tuple(intake.warnings),
    )
