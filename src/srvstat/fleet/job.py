"""Find the servers of a fleet in the rows of its sources, and compute their results."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from srvstat.contract.errors import EngineError
from srvstat.contract.responses import ServerResult
from srvstat.contract.stats import Growth, Statistics
from srvstat.contract.time import Range, find_window
from srvstat.documents.snapshot import FleetSummary
from srvstat.fleet.engine import Engine, Identified, Job, Resolved, Servers
from srvstat.fleet.rows import Conflicts, Rejected, format_place
from srvstat.operations.answers import build_result
from srvstat.snapshot.write import rules
from srvstat.snapshot.write.intake import AFTER_AS_OF
from srvstat.snapshot.write.rejects import Reason, find_column
from srvstat.snapshot.write.roster import REJECT_REASONS, Roster
from srvstat.sources.servers import ServerRecord, count_completed
from srvstat.sources.source import Source

_NO_OBSERVATION = Statistics(0, None, None, None, None, Growth(None, None))


class Fleet(NamedTuple):
    """The publishable servers of a fleet, and what became of the rows so far.

    `records` and `currents`, the values of `currentPlayers`, are in the order of `servers.ids`.
    `fallbacks` counts the currents that no record has. `rows` counts the observations of these
    servers up to `as_of`, and `observed` the servers with any. `reasons` say why rows were
    rejected.
    """

    servers: Servers
    records: Sequence[ServerRecord]
    currents: Sequence[int]
    fallbacks: int
    withheld: int
    as_of: int
    rows: int
    observed: int
    reasons: Sequence[Reason]
    skipped: Mapping[str, int]
    warnings: Sequence[str]


def survey_fleet(
    engine: Engine, job: Job, roster: Roster, limit: rules.RejectLimit | None = None
) -> Fleet:
    """Read all rows, and find the servers that they and the roster name.

    Raises SourceError, also if no observation is of a known server, or if too many rows were
    rejected; EngineError.
    """
    identified = engine.survey()
    remarks, skipped = engine.remarks, Counter(engine.remarks.skipped)
    unusable: defaultdict[str, list[str]] = defaultdict(list)
    lasts: dict[int, Identified] = {}
    keys: dict[str, int] = {}
    rows = 0
    for row in identified:
        key = roster[row.identifier]
        if reason := REJECT_REASONS.get(key):
            unusable[reason].append(row.identifier)
        elif key in roster.skip_reasons:
            skipped[roster.skip_reasons[key]] += row.rows
        else:
            keys[row.identifier] = key
            rows += row.rows - row.late
            skipped[AFTER_AS_OF] += row.late
            if row.last_at is not None:
                # A server may have several identifiers.
                lasts[key] = max(
                    lasts.get(key, row), row, key=lambda row: _rank(row, job.conflicts)
                )
    rejects = [*remarks.rejects.values()]
    for reason, identifiers in unusable.items():
        rejects += (
            Rejected(found.source, reason, found.rows, found.first, found.identifier)
            for found in engine.locate(identifiers)
        )
    reasons = _list_reasons(job.sources, rejects)
    if not lasts:
        others = [Reason(text, count, None, is_rejected=False) for text, count in skipped.items()]
        listed = rules.sort_reasons([*reasons, *(each for each in others if each.rows)])
        parts = [rules.describe_reasons(listed), *roster.describe_unknown()]
        raise rules.RowsRejectedError(f"no observation was kept: {'; '.join(parts)}")
    _check_rejected(job.sources, remarks.rows, rejects, limit)
    # One that no record names needs an observation.
    ids = sorted(
        server_id
        for server_id, key in roster.server_keys.items()
        if roster.has_record(server_id) or key in lasts
    )
    numbers = {roster.server_keys[server_id]: number for number, server_id in enumerate(ids)}
    records = [roster.get_record(server_id) for server_id in ids]
    stand_ins = [(lasts[key].last_players if key in lasts else None) or 0 for key in numbers]
    return Fleet(
        servers=Servers(ids, {name: numbers[key] for name, key in keys.items() if key in numbers}),
        records=records,
        currents=[
            stand_in if record.players_current is None else record.players_current
            for record, stand_in in zip(records, stand_ins, strict=True)
        ],
        fallbacks=sum(record.players_current is None for record in records),
        withheld=len(roster.withheld),
        as_of=max(row.last_at or 0 for row in lasts.values()) if job.as_of is None else job.as_of,
        rows=rows,
        observed=len(lasts),
        reasons=reasons,
        skipped=skipped,
        warnings=(*remarks.warnings, *roster.describe_unknown()),
    )


def _rank(row: Identified, conflicts: Conflicts) -> tuple[int, int, int]:
    at, position, players = row[3:]
    assert at is not None and position is not None and players is not None  # noqa: S101, PT018
    return (at, -position, -players) if conflicts == "first" else (at, -players, -position)


def _check_rejected(
    sources: Sequence[Source],
    rows: Mapping[int, int],
    rejects: Sequence[Rejected],
    limit: rules.RejectLimit | None,
) -> None:
    """Check how many rows of the sources were rejected, as a build does.

    Raises RowsRejectedError.
    """
    rejected = Counter[int]()
    for each in rejects:
        rejected[each.source] += each.rows
    first = min(rejects, key=attrgetter("first"), default=None)
    excess = rules.find_excess(
        [
            rules.SourceRows(source.title, rows.get(number, 0), rejected[number])
            for number, source in enumerate(sources)
        ],
        limit,
        first and f"{format_place(sources, first.first)}: {first.reason}",
        lambda number: _list_reasons(sources, [each for each in rejects if each.source == number]),
    )
    if excess:
        raise rules.RowsRejectedError(excess.reason)


def count_fleet(
    engine: Engine, fleet: Fleet, range: Range
) -> tuple[Iterator[ServerResult], FleetSummary]:
    """Compute the result of every server over a range that ends at the fleet's as-of time.

    Returns the results in the order of the ids, and the summary.

    Raises SourceError, EngineError.
    """
    window = find_window(range, fleet.as_of)
    figures, resolved = engine.count(fleet.servers, window)
    observed = sum(each.observations for each in figures.values())
    in_window = resolved.kept + resolved.repeated + resolved.conflicting
    if observed != resolved.kept or in_window > fleet.rows:
        raise EngineError(
            f"the engine counted {observed:,} observations, but kept {resolved.kept:,} of"
            f" {in_window:,} rows in the window and {fleet.rows:,} in all; please report this"
        )
    results = (
        build_result(record.id, record.cfx_id, current, range, figures.get(number, _NO_OBSERVATION))
        for number, (record, current) in enumerate(zip(fleet.records, fleet.currents, strict=True))
    )
    return results, summarize(fleet, resolved, len(figures), window.start)


def summarize(fleet: Fleet, resolved: Resolved, observed: int, start: int | None) -> FleetSummary:
    """Return what became of all rows, given the servers with an observation in the window."""
    in_window = resolved.kept + resolved.repeated + resolved.conflicting
    reject_reasons = {reason.text: reason.rows for reason in fleet.reasons}
    remedy = rules.find_remedy(fleet.reasons)
    return FleetSummary(
        read=fleet.rows + sum(fleet.skipped.values()) + sum(reject_reasons.values()),
        kept=resolved.kept,
        repeated=resolved.repeated,
        conflicting=resolved.conflicting,
        reject_reasons=reject_reasons,
        skipped={reason: rows for reason, rows in fleet.skipped.items() if rows},
        early=fleet.rows - in_window,
        conflict=resolved.conflict,
        remedy=remedy and remedy.text,
        servers=len(fleet.records),
        observed=observed,
        withheld=fleet.withheld,
        completed=count_completed(fleet.records),
        fallbacks=fleet.fallbacks,
        start=start,
        as_of=fleet.as_of,
        warnings=tuple(fleet.warnings),
    )


def _list_reasons(sources: Sequence[Source], rejects: Sequence[Rejected]) -> list[Reason]:
    """Return the reasons why rows of all sources were rejected, the commonest first."""
    groups: defaultdict[str, list[Rejected]] = defaultdict(list)
    for rejected in rejects:
        groups[rejected.reason].append(rejected)
    reasons = []
    for text, group in groups.items():
        first = min(group, key=attrgetter("first"))
        reasons.append(
            Reason(
                text,
                sum(each.rows for each in group),
                format_place(sources, first.first),
                is_rejected=True,
                value=first.value,
                column=find_column(sources[first.source], text, first.column),
                kind=sources[first.source].kind,
            )
        )
    return rules.sort_reasons(reasons)
