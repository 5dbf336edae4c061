"""Summarize what a build or an update read, and make the rows of its servers."""

from collections.abc import Sequence

from srvstat.documents.snapshot import BuildSummary
from srvstat.snapshot.format.derive import find_observed_span
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.write.ingest import Intake
from srvstat.snapshot.write.reasons import find_remedy, list_reasons
from srvstat.snapshot.write.roster import Roster
from srvstat.snapshot.write.server_rows import build_server_row
from srvstat.snapshot.write.store import Stored
from srvstat.sources.server_records import count_completed


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
