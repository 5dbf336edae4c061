"""Compute the result of every server of a fleet: survey, find the servers, count."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from srvstat.contract.errors import EngineError
from srvstat.contract.ranges import Range, find_window
from srvstat.contract.responses import ServerResult
from srvstat.documents.fleet_summary import FleetSummary
from srvstat.fleet.counts import Conflicts, Count, Engine, Job, Resolved, Servers
from srvstat.operations import build_result
from srvstat.snapshot.write.ingest import AFTER_AS_OF
from srvstat.snapshot.write.reasons import Reason, describe_reasons, find_remedy
from srvstat.snapshot.write.roster import REJECT_REASONS, Roster
from srvstat.snapshot.write.rules import RowsRejectedError
from srvstat.sources.server_records import ServerRecord, count_completed
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
    servers up to `as_of`, and `observed` the servers with any.
    """

    servers: Servers
    records: Sequence[ServerRecord]
    currents: Sequence[int]
    fallbacks: int
    withheld: int
    as_of: int
    rows: int
    observed: int
    rejected: Mapping[str, int]
    skipped: Mapping[str, int]
    warnings: Sequence[str]


def survey_fleet(engine: Engine, job: Job, roster: Roster) -> Fleet:
    """Read all rows, and find the servers that they and the roster name.

    Raises SourceError, also if no observation is of a known server; EngineError.
    """
    survey = engine.survey()
    rejected, skipped = Counter(survey.rejected), Counter(survey.skipped)
    lasts: dict[int, Last] = {}
    keys: dict[str, int] = {}
    rows = 0
    # Sorted, so that an error about two identifiers does not depend on the engine.
    for row in _iter_rows(survey.identifiers.sort_by("identifier")):
        identifier = row["identifier"]
        key = roster[identifier]
        if reason := REJECT_REASONS.get(key):
            rejected[reason] += row["rows"]
        elif key in roster.skip_reasons:
            skipped[roster.skip_reasons[key]] += row["rows"]
        else:
            keys[identifier] = key
            rows += row["rows"] - row["late"]
            skipped[AFTER_AS_OF] += row["late"]
            _note_last(lasts, key, row, job.conflicts)
    if not lasts:
        reasons = _list_reasons(rejected, skipped)
        raise RowsRejectedError(f"no observation was kept: {describe_reasons(reasons)}")
    as_of = max(last.at for last in lasts.values()) if job.as_of is None else job.as_of
    fleet = Fleet(
        Servers((), {}), (), (), 0, len(roster.withheld), as_of, rows, len(lasts), rejected,
        skipped, survey.warnings,
    )  # fmt: skip
    return _add_servers(fleet, roster, keys, lasts)


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
    remedy = find_remedy(_list_reasons(fleet.rejected, {}))
    return FleetSummary(
        read=fleet.rows + sum(fleet.skipped.values()) + sum(fleet.rejected.values()),
        kept=resolved.kept,
        repeated=resolved.repeated,
        conflicting=resolved.conflicting,
        reject_reasons=fleet.rejected,
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


def _list_reasons(rejected: Mapping[str, int], skipped: Mapping[str, int]) -> list[Reason]:
    """Return the reasons why rows were not kept, the commonest first."""
    reasons = [
        Reason(text, rows, None, is_rejected=is_rejected)
        for counts, is_rejected in ((rejected, True), (skipped, False))
        for text, rows in counts.items()
        if rows
    ]
    return sorted(reasons, key=lambda reason: (-reason.rows, reason.text))


def _iter_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    batches = table.to_batches(max_chunksize=_ROWS_AT_ONCE)
    return chain.from_iterable(batch.to_pylist() for batch in batches)
