"""The command `fleet`: compute the statistics of every server with an engine for large data."""

import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from srvstat.analysis.parameters import Parameter, Without
from srvstat.cli import options
from srvstat.cli.output import Outcome, show_progress
from srvstat.cli.proposals import Command, settle
from srvstat.cli.sources import RejectOptions, SourceOptions, parse_sources, report_summary
from srvstat.contract import wire
from srvstat.contract.errors import ParameterError, UsageError
from srvstat.contract.requests import parse_range
from srvstat.contract.windows import DEFAULT_RANGE
from srvstat.files.writing import check_destination, check_name
from srvstat.render.summary import format_dropped_fleet_rows, format_fleet_summary
from srvstat.snapshot.rows import MAX_SHARDS
from srvstat.snapshot.write.build import check_is_no_source
from srvstat.snapshot.write.intake import Inputs
from srvstat.sources.registry import load_module

if TYPE_CHECKING:
    from srvstat.fleet.job import FleetRequest

_DEFAULT_SHARDS = 8
_SIZE = re.compile(r"([1-9][0-9]{0,5})(MiB|GiB|TiB)")
_UNITS = {"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_MAX_THREADS = 1024  # DuckDB has no limit of its own, and could leave no threads for other programs


@dataclass(frozen=True)
class ResultOptions:
    """Options for the results, which have one row per server."""

    panel = "Results"

    output: Annotated[
        str | None,
        replace(
            options.OUTPUT,
            help="The file of results, one line or row per server: .ndjson, .jsonl or .parquet.",
            metavar="FILE",
        ),
    ] = None
    range: options.RangeOption = None
    at: Annotated[
        options.EndOption,
        "End the window at this time and leave out later observations [default: the latest"
        " observation].",
    ] = None
    conflicts: Annotated[
        Literal["first", "lowest"],
        Parameter(
            "How to resolve conflicting counts for the same server and time: keep the first, by"
            " source and row, or the lowest."
        ),
    ] = "first"


@dataclass(frozen=True)
class EngineOptions:
    """Options that limit the resources of DuckDB."""

    panel = "Engine"

    memory: Annotated[
        str | None,
        Parameter(
            "DuckDB's memory limit, such as 4GiB. Beyond it, DuckDB uses temporary files.", "SIZE"
        ),
    ] = None
    threads: Annotated[
        int | None,
        Parameter(
            "The number of DuckDB threads and shard-building processes [default: one per CPU].",
            "N",
            least=1,
            most=_MAX_THREADS,
        ),
    ] = None

    def parse_memory(self) -> int | None:
        """Parse a size such as `512MiB`, and return it in bytes.

        Raises ParameterError if it is invalid.
        """
        if self.memory is None:
            return None
        found = _SIZE.fullmatch(self.memory)
        if not found:
            raise ParameterError(
                "{memory}: {value} is not a size such as 512MiB or 4GiB",
                value=wire.quote_value(self.memory),
            )
        return int(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True)
class FolderOptions:
    """Options for the folder of shards."""

    panel = "Results"

    snapshots: Annotated[
        str | None,
        Parameter("Also write all observations as a sharded snapshot, in a new folder.", "DIR"),
    ] = None
    shards: Annotated[
        int | None,
        Parameter(
            f"The number of shards [default: {_DEFAULT_SHARDS}].", "N", least=1, most=MAX_SHARDS
        ),
    ] = None


def fleet(
    records: Annotated[SourceOptions, Without("files", "observations", "save_mapping")],
    rows: Annotated[RejectOptions, Without("rejects", "strict")],
    results: ResultOptions,
    engine: EngineOptions,
    folder: FolderOptions,
    sources: Annotated[
        list[str] | None,
        Parameter(
            "Observations (serverId, observedAt, players): a file, folder, URL or -.",
            "SOURCE",
            is_argument=True,
        ),
    ] = None,
    overwrite: options.OverwriteOption = False,
    quiet: options.QuietOption = False,
) -> Outcome:
    """Compute the statistics of every server.

    Each result has exactly the bytes that `srvstat compare` prints. DuckDB computes the results;
    the input may be larger than its memory. `python -m srvstat.fleet.spark` does the same on a
    Spark cluster.

    Example: srvstat fleet observations/ --servers servers.ndjson --range 30d -o results.parquet
    """
    # Import now, before signals may interrupt imports.
    load_module("srvstat fleet", "srvstat.fleet.job", "bulk")
    from srvstat.fleet.job import FleetRequest  # noqa: PLC0415 - for --help without DuckDB

    _check_outputs(results, folder)
    memory, limit = engine.parse_memory(), rows.parse_limit()
    records = replace(records, observations=sources)
    parsed = parse_sources(records)
    if parsed.options.hold:
        raise UsageError("--hold: not supported by fleet; build a snapshot instead")
    chosen = parse_range(DEFAULT_RANGE if results.range is None else results.range)
    instant = options.parse_instant_option("--at", results.at)
    _check_results(results.output, parsed.inputs, overwrite=overwrite)
    others = {**vars(results), **vars(engine), **vars(folder), "overwrite": overwrite}
    conflicts = None if results.conflicts == "first" else results.conflicts
    others |= {"max_rejected": rows.max_rejected, "conflicts": conflicts}
    command = Command(("fleet",), records, others)
    inputs = settle(parsed, command, quiet=quiet).inputs
    request = FleetRequest(
        replace(inputs, as_of=instant, max_rejected=limit),
        range=chosen,
        conflicts=results.conflicts,
        output=results.output,
        overwrite=overwrite,
        snapshots=folder.snapshots,
        shards=folder.shards or _DEFAULT_SHARDS,
        memory=memory,
        threads=engine.threads,
    )
    return _run(request, quiet=quiet)


def _run(request: "FleetRequest", *, quiet: bool) -> Outcome:
    from srvstat.fleet.job import run_fleet  # noqa: PLC0415 - see fleet

    started = time.monotonic()
    with show_progress(lambda bars: bars.show_step_progress(), quiet=quiet) as progress:
        summary = run_fleet(request, progress)
    seconds = time.monotonic() - started
    outputs = [path for path in (request.output, request.snapshots) if path is not None]
    lines = format_fleet_summary(outputs, summary, seconds)
    warnings = (*format_dropped_fleet_rows(summary), *summary.warnings)
    report_summary(lines, warnings, quiet=quiet)
    return Outcome()


def _check_outputs(results: ResultOptions, folder: FolderOptions) -> None:
    """Check that there is an output, and that the options fit it. Raises UsageError if not."""
    from srvstat.fleet.job import RESULT_EXTENSIONS  # noqa: PLC0415 - see fleet

    if results.output is None and folder.snapshots is None:
        raise UsageError(
            f"no output; add -o FILE ({', '.join(RESULT_EXTENSIONS)}) or --snapshots DIR"
        )
    if results.output is None and results.range is not None:
        raise UsageError("--range requires -o; a snapshot always has all observations")
    if folder.snapshots is None:
        if folder.shards is not None:
            raise UsageError("--shards requires --snapshots DIR")
        return
    options.check_ending(folder.snapshots)


def _check_results(path: str | None, inputs: Inputs, *, overwrite: bool) -> None:
    """Check that the results file, if any, may be written.

    Raises UsageError if it may not, and OutputError for a system error.
    """
    from srvstat.fleet.job import find_extension  # noqa: PLC0415 - see fleet

    if path is None:
        return
    location = check_name("-o", path)
    find_extension(path)
    check_is_no_source(path, location, inputs.sources)
    check_destination(path, overwrite=overwrite)
