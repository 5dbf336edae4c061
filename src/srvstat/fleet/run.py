"""Run a job: open the engine, compute what was asked for, and write it."""

from contextlib import ExitStack
from dataclasses import replace

from srvstat.documents.snapshot import FleetSummary
from srvstat.files.atomic import atomic_folder, atomic_write
from srvstat.files.paths import convert_write_errors
from srvstat.fleet.engine import Job, Progress, open_engine
from srvstat.fleet.job import count_fleet, summarize, survey_fleet
from srvstat.fleet.request import FleetRequest, count_processes, find_extension
from srvstat.fleet.results import write_results
from srvstat.fleet.snapshots import ShardedDraft
from srvstat.snapshot.write.roster import read_roster
from srvstat.sources.source import check_sources, list_stored_names


def run_fleet(request: FleetRequest, progress: Progress) -> FleetSummary:
    """Write the results and the snapshot that were asked for, each completely or not at all.

    Raises UsageError, SourceError, EngineError, OutputError.
    """
    warnings: list[str] = []
    with ExitStack() as stack:
        results = sharded = None
        if request.output is not None:
            writing = atomic_write(request.output, overwrite=request.overwrite)
            results = stack.enter_context(writing)
        if request.snapshots is not None:
            folder = stack.enter_context(atomic_folder(request.snapshots, "--snapshots"))
            sharded = ShardedDraft(folder, request.snapshots, request.shards)
        servers = [] if request.servers is None else [request.servers]
        check_sources([*servers, *request.observations])
        roster = read_roster(
            request.servers, uses_slugs=request.uses_slugs, game=request.game, warn=warnings.append
        )
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
                processes=count_processes(request.memory, request.threads),
                progress=progress,
            )
            summary = replace(summary, manifest=manifest)
    assert summary, "neither results nor a snapshot"  # noqa: S101 - the command checks it
    return replace(summary, warnings=(*warnings, *summary.warnings))
