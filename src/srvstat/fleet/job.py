"""Run a job: find the servers of a fleet, compute their results, and write what was asked for."""

import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from srvstat.contract.errors import EngineError, UsageError
from srvstat.contract.responses import ServerResult, build_result
from srvstat.contract.stats import compute_statistics
from srvstat.contract.windows import Range, find_window
from srvstat.documents.snapshot import FleetSummary, Manifest, ManifestShard, seal_manifest
from srvstat.files.paths import convert_write_errors
from srvstat.files.writing import atomic_folder, atomic_write, write_file
from srvstat.fleet.engine import Engine, Identified, Job, Progress, Resolved, Servers, open_engine
from srvstat.fleet.processes import WorkerError, count_cores, do_jobs
from srvstat.fleet.results import find_extension, write_results
from srvstat.fleet.rows import Conflicts, Rejected, format_place
from srvstat.snapshot.rows import (
    MANIFEST,
    FileRow,
    compute_shards_root,
    find_observed_span,
    find_shard,
    name_shard,
)
from srvstat.snapshot.write import refusals
from srvstat.snapshot.write.build import Shard, build_shard
from srvstat.snapshot.write.intake import AFTER_AS_OF, Reason, RejectLimit, find_column
from srvstat.snapshot.write.roster import REJECT_REASONS, Roster, read_roster
from srvstat.sources.servers import ServerRecord, count_completed
from srvstat.sources.source import Source, check_sources, list_stored_names
from srvstat.sources.values import is_utf8

_BYTES_PER_PROCESS = 512 << 20
"""The memory of a process that builds shards: it takes 260 MiB for servers of 20,000 rows."""


class FleetRequest(NamedTuple):
    """What to compute of which sources, and how.

    `servers`, `uses_slugs`, `game`, `as_of` and `max_rejected` mean what they mean for a build.
    `output` is the file of the results, and `snapshots` the folder of a sharded snapshot; one of
    them may be None. `memory` is in bytes.
    """

    servers: Source | None
    observations: Sequence[Source]
    uses_slugs: bool
    game: str | None
    range: Range
    as_of: int | None
    max_rejected: RejectLimit | None
    conflicts: Conflicts
    output: str | None
    overwrite: bool
    snapshots: str | None
    shards: int
    memory: int | None
    threads: int | None


def run_fleet(request: FleetRequest, progress: Progress) -> FleetSummary:
    """Write the results and the snapshot that were asked for, each completely or not at all.

    Raises UsageError, SourceError, EngineError, OutputError.
    """
    with ExitStack() as stack:
        results = sharded = None
        if request.output is not None:
            writing = atomic_write(request.output, overwrite=request.overwrite)
            results = stack.enter_context(writing)
        if request.snapshots is not None:
            folder = stack.enter_context(atomic_folder(request.snapshots, "--snapshots"))
            if not is_utf8(folder):  # as DuckDB needs it
                raise UsageError(
                    f"--snapshots {request.snapshots}: the whole path must be UTF-8; name another"
                    " one"
                )
            sharded = ShardedDraft(folder, request.snapshots, request.shards)
        servers = [] if request.servers is None else [request.servers]
        check_sources([*servers, *request.observations])
        roster = read_roster(request.servers, uses_slugs=request.uses_slugs, game=request.game)
        sources = [
            replace(source, accepts_any_id=roster.accepts_any_id) for source in request.observations
        ]
        job = Job(sources, request.as_of, request.conflicts)
        opened = open_engine(job, memory=request.memory, threads=request.threads, progress=progress)
        with opened as engine:
            roster.check_game()  # before all rows are read, but after their columns
            fleet = survey_fleet(engine, job, roster, request.max_rejected)
            summary = None
            if request.output and results:
                found, summary = count_fleet(engine, fleet, request.range)
                with convert_write_errors(request.output):
                    write_results(results, found, find_extension(request.output))
            resolved = sharded.write_rows(engine, fleet) if sharded else None
        # The engine has freed its memory.
        if sharded and resolved:
            summary = summary or summarize(fleet, resolved, fleet.observed, None)
            manifest = sharded.build(
                fleet,
                resolved,
                list_stored_names(request.observations),
                processes=_count_processes(request.memory, request.threads),
                progress=progress,
            )
            summary = replace(summary, manifest=manifest)
    assert summary, "neither results nor a snapshot"  # noqa: S101 - the command checks it
    return replace(summary, warnings=(*roster.warnings, *summary.warnings))


def _count_processes(memory: int | None, threads: int | None) -> int:
    """Return how many processes build shards at a time: one for each core that has the memory."""
    processes = threads or count_cores()
    return processes if memory is None else max(1, min(processes, memory // _BYTES_PER_PROCESS))


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
    identified, remarks = engine.survey(), engine.remarks
    skipped = Counter(remarks.skipped)
    rank = partial(_rank, job.conflicts)
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
                lasts[key] = max(lasts.get(key, row), row, key=rank)
    located = (engine.locate(names, reason) for reason, names in unusable.items())
    rejects = [*remarks.rejects.values(), *chain.from_iterable(located)]
    reasons = _list_reasons(job.sources, rejects)
    skipped = +skipped
    if not lasts:
        raise _build_refusal(reasons, skipped, roster)
    _check_rejected(job.sources, remarks.rows, rejects, limit)
    # One that no record names needs an observation.
    ids = sorted(
        server_id
        for server_id, key in roster.server_keys.items()
        if roster.has_record(server_id) or key in lasts
    )
    numbers = {roster.server_keys[server_id]: number for number, server_id in enumerate(ids)}
    records = [roster.get_record(server_id) for server_id in ids]
    last_players = {key: row.last_players for key, row in lasts.items()}
    return Fleet(
        servers=Servers(ids, {name: numbers[key] for name, key in keys.items() if key in numbers}),
        records=records,
        currents=[
            last_players.get(key) or 0 if record.players_current is None else record.players_current
            for key, record in zip(numbers, records, strict=True)
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


def _rank(conflicts: Conflicts, row: Identified) -> tuple[int, int, int]:
    at, position, players = row[3:]
    assert at is not None and position is not None and players is not None  # noqa: S101, PT018
    return (at, -position, -players) if conflicts == "first" else (at, -players, -position)


def _build_refusal(
    reasons: Sequence[Reason], skipped: Mapping[str, int], roster: Roster
) -> refusals.RowsRejectedError:
    others = (Reason(text, count, None, is_rejected=False) for text, count in skipped.items())
    listed = refusals.sort_reasons([*reasons, *others])
    parts = [refusals.describe_reasons(listed), *roster.describe_unknown()]
    return refusals.RowsRejectedError(f"no observation was kept: {'; '.join(parts)}")


def _check_rejected(
    sources: Sequence[Source],
    rows: Mapping[int, int],
    rejects: Sequence[Rejected],
    limit: RejectLimit | None,
) -> None:
    """Check how many rows of the sources were rejected, as a build does.

    Raises RowsRejectedError.
    """
    rejected = Counter[int]()
    for each in rejects:
        rejected[each.source] += each.rows
    first = min(rejects, key=attrgetter("first"), default=None)
    excess = refusals.find_excess(
        [
            refusals.SourceRows(source.title, rows.get(number, 0), rejected[number])
            for number, source in enumerate(sources)
        ],
        limit,
        first and f"{format_place(sources, first.first)}: {first.reason}",
        lambda number: _list_reasons(sources, [each for each in rejects if each.source == number]),
    )
    if excess:
        raise refusals.RowsRejectedError(excess.reason)


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
    if observed != resolved.kept or resolved.rows > fleet.rows:
        raise EngineError(
            f"the engine counted {observed:,} observations, but kept {resolved.kept:,} of"
            f" {resolved.rows:,} rows in the window and {fleet.rows:,} in all; please report this"
        )
    nothing = compute_statistics(())
    results = (
        build_result(record.id, record.cfx_id, current, range, figures.get(number, nothing))
        for number, (record, current) in enumerate(zip(fleet.records, fleet.currents, strict=True))
    )
    return results, summarize(fleet, resolved, len(figures), window.start)


def summarize(fleet: Fleet, resolved: Resolved, observed: int, start: int | None) -> FleetSummary:
    """Return what became of all rows, given the servers with an observation in the window."""
    reject_reasons = {reason.text: reason.rows for reason in fleet.reasons}
    remedy = refusals.find_remedy(fleet.reasons)
    return FleetSummary(
        read=fleet.rows + sum(fleet.skipped.values()) + sum(reject_reasons.values()),
        kept=resolved.kept,
        repeated=resolved.repeated,
        conflicting=resolved.conflicting,
        reject_reasons=reject_reasons,
        skipped=fleet.skipped,
        early=fleet.rows - resolved.rows,
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
    return refusals.sort_reasons(reasons)


_ROWS = "rows"
"""The folder of the resolved rows, which is removed when all shards are built."""

_PASSES = 2
"""How often a build reports a row: when it reads it, and when it stores it."""


class ShardedDraft(NamedTuple):
    """A folder to fill with the shards of a fleet, its name for messages, and their number."""

    folder: str
    title: str
    shards: int

    def write_rows(self, engine: Engine, fleet: Fleet) -> Resolved:
        """Write the observations of the fleet by shard. The engine is not needed afterwards.

        Raises SourceError, EngineError.
        """
        shards = [find_shard(server_id, self.shards) for server_id in fleet.servers.ids]
        servers = fleet.servers._replace(shards=shards)
        return engine.write_rows(servers, fleet.as_of, os.path.join(self.folder, _ROWS))

    def build(
        self,
        fleet: Fleet,
        resolved: Resolved,
        sources: Sequence[str],
        *,
        processes: int,
        progress: Progress,
    ) -> Manifest:
        """Build the shards from their rows, then write the manifest; return it.

        `sources` are the names of sources that the shards and the manifest store.

        Raises OutputError; EngineError if a process fails.
        """
        built: dict[int, FileRow] = {}
        done = 0

        def report(rows: int) -> None:
            nonlocal done
            done += rows
            share = done / (_PASSES * resolved.kept or 1)
            progress("building", min(1, share), f"{len(built)} of {self.shards} shards")

        report(0)
        try:
            shards = self._iter_shards(fleet, sources)
            for shard, row in do_jobs(build_shard, shards, processes=processes, report=report):
                built[shard.number] = row
                report(0)
        except WorkerError as error:
            raise EngineError(
                f"{self.title}: {error}; if memory ran out, use more --shards or fewer --threads"
            ) from None
        rows = [built[number] for number in range(self.shards)]
        manifest = _build_manifest(fleet, resolved, sources, rows)
        if manifest.observations != resolved.kept:
            raise EngineError(
                f"{self.title}: the engine kept {resolved.kept:,} observations, but the shards"
                f" have {manifest.observations:,}; please report this"
            )
        with convert_write_errors(self.title), suppress(FileNotFoundError):
            shutil.rmtree(os.path.join(self.folder, _ROWS))
        path = os.path.join(self.folder, MANIFEST)
        write_file(path, [manifest.to_json(), b"\n"], title=self.title)
        return manifest

    def _iter_shards(self, fleet: Fleet, sources: Sequence[str]) -> Iterator[Shard]:
        members: defaultdict[int, list[ServerRecord]] = defaultdict(list)
        for record in fleet.records:
            members[find_shard(record.id, self.shards)].append(record)
        for shard in range(self.shards):
            name = name_shard(shard)
            yield Shard(
                number=shard,
                path=os.path.join(self.folder, name),
                title=os.path.join(self.title, name),
                records=members[shard],
                rows=os.path.join(self.folder, _ROWS, f"shard={shard}"),
                as_of=fleet.as_of,
                sources=sources,
            )


def _build_manifest(
    fleet: Fleet, resolved: Resolved, sources: Sequence[str], rows: Sequence[FileRow]
) -> Manifest:
    """Return the manifest of shards, given the rows of their files in order."""
    roots = [row.root.hex() for row in rows]
    first_observed_at, last_observed_at = find_observed_span(rows)
    manifest = Manifest(
        as_of=fleet.as_of,
        root=compute_shards_root(fleet.as_of, roots),
        servers=sum(row.server_count for row in rows),
        observations=sum(row.observation_count for row in rows),
        first_observed_at=first_observed_at,
        last_observed_at=last_observed_at,
        sources=tuple(sources),
        repeated=resolved.repeated,
        conflicting=resolved.conflicting,
        rejected=sum(reason.rows for reason in fleet.reasons),
        shards=tuple(
            ManifestShard(
                file=name_shard(number),
                root=row.root.hex(),
                servers=row.server_count,
                observations=row.observation_count,
            )
            for number, row in enumerate(rows)
        ),
    )
    return seal_manifest(manifest)
