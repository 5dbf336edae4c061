"""Run a job: open the engine, compute what was asked for, and write it."""

from dataclasses import replace

from srvstat.documents.fleet_summary import FleetSummary
from srvstat.files.atomic_write import atomic_write
from srvstat.files.errors import convert_write_errors
from srvstat.fleet.counts import Job, Progress
from srvstat.fleet.engines import open_engine
from srvstat.fleet.job import count_fleet, survey_fleet
from srvstat.fleet.request import FleetRequest, find_extension
from srvstat.fleet.results import write_results
from srvstat.snapshot.write.roster import read_roster


def run_fleet(request: FleetRequest, progress: Progress) -> FleetSummary:
    """Write the result of every server to a file, completely or not at all.

    The engine is loaded already (`load_engine`).

    Raises UsageError, SourceError, EngineError, OutputError.
    """
    warnings: list[str] = []
    with atomic_write(request.output, overwrite=request.overwrite) as draft:
        roster = read_roster(
            request.servers,
            uses_slugs=request.uses_slugs,
            game=request.game,
            warn=warnings.append,
        )
        sources = [
            replace(source, accepts_any_id=roster.accepts_any_id) for source in request.observations
        ]
        job = Job(sources, request.as_of, request.conflicts)
        with open_engine(request.engine, job, request.options, progress) as engine:
            fleet = survey_fleet(engine, job, roster)
            answer = count_fleet(engine, fleet, request.range)
        with convert_write_errors(request.output):
            write_results(draft, answer.results, find_extension(request.output))
    return replace(answer.summary, warnings=(*warnings, *answer.summary.warnings))
