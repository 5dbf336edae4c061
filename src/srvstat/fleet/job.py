"""Compute the result of every server of a fleet: survey, find the servers, count."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from srvstat.contract.errors import EngineError
from srvstat.contract.ranges import Range, find_window
from srvstat.contract.responses import ServerResult
from srvstat.documents.snapshot import FleetSummary
from srvstat.fleet.conflicts import format_place
from srvstat.fleet.counts import (
    ORDER_BITS,
    Conflicts,
    Count,
    Engine,
    Job,
    Rejected,
    Resolved,
    Servers,
    Survey,
)
from srvstat.operations import build_result
from srvstat.snapshot.write.intake import AFTER_AS_OF
from srvstat.snapshot.write.roster import REJECT_REASONS, Roster
from srvstat.snapshot.write.rules import (
    Reason,
    RejectLimit,
    RowsRejectedError,
    SourceRows,
    describe_reasons,
    find_column,
    find_excess,
    find_remedy,
    sort_reasons,
)
from srvstat.sources.server_records import ServerRecord, count_completed
from srvstat.sources.source import Source
from srvstat.stats import Growth, Statistics

_ROWS_AT_ONCE = 10_000
"""Rows of a table in memory as Python objects."""

_NO_OBSERVATION = Statistics(0, None, None, None, None, Growth(None, None))


class Last(NamedTuple):
    """The last observation of a server up to the as-of time, and its position."""

    at: int
    position: int
    players: int


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
    engine: Engine, job: Job, roster: Roster, limit: RejectLimit | None = None
) -> Fleet:
    """Read all rows, and find the servers that they and the roster name.

    Raises SourceError, also if no observation is of a known server, or if too many rows were
    rejected; EngineError.
    """
    survey = engine.survey()
    skipped = Counter(survey.skipped)
    unusable: defaultdict[str, list[str]] = defaultdict(list)
    lasts: dict[int, Last] = {}
    keys: dict[str, int] = {}
    rows = 0
    # Sorted, so that an error about two identifiers does not depend on the engine.
    for row in _iter_rows(survey.identifiers.sort_by("identifier")):
        identifier = row["identifier"]
        key = roster[identifier]
        if reason := REJECT_REASONS.get(key):
            unusable[reason].append(identifier)
        elif key in roster.skip_reasons:
            skipped[roster.skip_reasons[key]] += row["rows"]
        else:
            keys[identifier] = key
            rows += row["rows"] - row["late"]
            skipped[AFTER_AS_OF] += row["late"]
            _note_last(lasts, key, row, job.conflicts)
    rejects = [*survey.rejects, *_locate_identifiers(engine, unusable)]
    reasons = _list_reasons(survey.sources, rejects)
    if not lasts:
        others = [Reason(text, count, None, is_rejected=False) for text, count in skipped.items()]
        listed = sort_reasons([*reasons, *(each for each in others if each.rows)])
        parts = [describe_reasons(listed), *roster.describe_unknown()]
        raise RowsRejectedError(f"no observation was kept: {'; '.join(parts)}")
    _check_rejected(survey, rejects, limit)
    as_of = max(last.at for last in lasts.values()) if job.as_of is None else job.as_of
    fleet = Fleet(
        Servers((), {}), (), (), 0, len(roster.withheld), as_of, rows, len(lasts), reasons,
        skipped, (*survey.warnings, *roster.describe_unknown()),
    )  # fmt: skip
    return _add_servers(fleet, roster, keys, lasts)


def _locate_identifiers(
    engine: Engine, unusable: Mapping[str, Sequence[str]]
) -> Iterator[Rejected]:
    """Yield the rows of identifiers that can't be those of a server, given by reason."""
    for reason, identifiers in unusable.items():
        for row in _iter_rows(engine.locate(identifiers)):
            place = row["first"] & ((1 << ORDER_BITS) - 1)
            yield Rejected(row["source"], reason, row["rows"], place, row["identifier"])


def _check_rejected(survey: Survey, rejects: Sequence[Rejected], limit: RejectLimit | None) -> None:
    """Check how many rows of the sources were rejected, as a build does.

    Raises RowsRejectedError.
    """
    found = [
        SourceRows(
            source.title,
            survey.rows.get(number, 0),
            sum(each.rows for each in rejects if each.source == number),
        )
        for number, source in enumerate(survey.sources)
    ]
    first = min(rejects, key=_get_place, default=None)
    excess = find_excess(
        found,
        limit,
        first and f"{_format_place(survey.sources, first)}: {first.reason}",
        lambda number: _list_reasons(
            survey.sources, [each for each in rejects if each.source == number]
        ),
    )
    if excess:
        raise RowsRejectedError(excess.reason)


def _note_last(
    lasts: dict[int, Last], key: int, row: Mapping[str, Any], conflicts: Conflicts
) -> None:
    """Note the last observation of an identifier; a server may have several identifiers."""
    if row["last_at"] is None:
        return
    found = Last(row["last_at"], row["last_position"], row["last_players"])

    def rank(last: Last) -> tuple[int, int, int]:
        first, second = last.position, last.players
        return (last.at, -first, -second) if conflicts == "first" else (last.at, -second, -first)

    lasts[key] = max(lasts.get(key, found), found, key=rank)


def _add_servers(
    fleet: Fleet, roster: Roster, keys: Mapping[str, int], lasts: Mapping[int, Last]
) -> Fleet:
    """Return a fleet with its servers; one that no record names needs an observation."""
    ids = sorted(
        server_id
        for server_id, key in roster.server_keys.items()
        if roster.has_record(server_id) or key in lasts
    )
    numbers = {roster.server_keys[server_id]: number for number, server_id in enumerate(ids)}
    records = [roster.get_record(server_id) for server_id in ids]
    stand_ins = [lasts.get(key, Last(0, 0, 0)).players for key in numbers]
    return fleet._replace(
        servers=Servers(ids, {name: numbers[key] for name, key in keys.items() if key in numbers}),
        records=records,
        currents=[
            stand_in if record.players_current is None else record.players_current
            for record, stand_in in zip(records, stand_ins, strict=True)
        ],
        fallbacks=sum(record.players_current is None for record in records),
    )


class Answer(NamedTuple):
    """The result of each server, in the order of their ids, and the summary."""

    results: Iterator[ServerResult]
    summary: FleetSummary


def count_fleet(engine: Engine, fleet: Fleet, range: Range) -> Answer:
    """Compute the result of every server over a range that ends at the fleet's as-of time.

    Raises SourceError, EngineError.
    """
    window = find_window(range, fleet.as_of)
    count = engine.count(fleet.servers, window)
    _check_count(fleet, count)
    figures = _iter_figures(count.figures, len(fleet.servers.ids))
    results = (
        build_result(record.id, record.cfx_id, current, range, each)
        for record, current, each in zip(fleet.records, fleet.currents, figures, strict=True)
    )
    return Answer(results, summarize(fleet, count.resolved, len(count.figures), window.start))


def _check_count(fleet: Fleet, count: Count) -> None:
    """Check that an engine counted each row once.

    Raises EngineError.
    """
    resolved, numbers = count.resolved, count.figures["server"]
    observed = pc.sum(count.figures["observations"]).as_py() or 0
    in_window = resolved.kept + resolved.repeated + resolved.conflicting
    if (
        observed != resolved.kept
        or in_window > fleet.rows
        or pc.count_distinct(numbers).as_py() != len(numbers)
    ):
        raise EngineError(
            f"the engine counted {observed:,} observations, but kept {resolved.kept:,} of"
            f" {in_window:,} rows in the window and {fleet.rows:,} in all; please report this"
        )


def _iter_figures(figures: pa.Table, servers: int) -> Iterator[Statistics]:
    """Yield the figures of each server by its number."""
    rows = _iter_rows(figures.sort_by("server"))
    row = next(rows, None)
    for number in range(servers):
        if row is None or row["server"] != number:
            yield _NO_OBSERVATION
            continue
        growth = Growth(row.pop("growth_players"), row.pop("growth_percentage"))
        del row["server"]
        yield Statistics(**row, growth=growth)
        row = next(rows, None)


def summarize(fleet: Fleet, resolved: Resolved, observed: int, start: int | None) -> FleetSummary:
    """Return what became of all rows, given the servers with an observation in the window."""
    in_window = resolved.kept + resolved.repeated + resolved.conflicting
    reject_reasons = {reason.text: reason.rows for reason in fleet.reasons}
    remedy = find_remedy(fleet.reasons)
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
        first = min(group, key=_get_place)
        reasons.append(
            Reason(
                text,
                sum(each.rows for each in group),
                _format_place(sources, first),
                is_rejected=True,
                value=first.value,
                column=find_column(sources[first.source], text, first.column),
                kind=sources[first.source].kind,
            )
        )
    return sort_reasons(reasons)


def _get_place(rejected: Rejected) -> tuple[int, int]:
    return rejected.source, rejected.first


def _format_place(sources: Sequence[Source], rejected: Rejected) -> str:
    return format_place(sources, rejected.source << ORDER_BITS | rejected.first)


def _iter_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    batches = table.to_batches(max_chunksize=_ROWS_AT_ONCE)
    return chain.from_iterable(batch.to_pylist() for batch in batches)
