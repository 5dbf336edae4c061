"""`fleet`: compute the statistics of every server with an engine for large data."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from srvstat.cli.build_options import MaxRejectedOption, QuietOption, parse_limit
from srvstat.cli.options import RangeOption, parse_count, parse_instant_option
from srvstat.cli.output import Form, Outcome, is_progress_shown, report
from srvstat.cli.output_file import OverwriteOption, check_ending
from srvstat.cli.show import show_error
from srvstat.cli.signals import allow_cleanup
from srvstat.cli.source_options import (
    SourceOptions,
    Sources,
    parse_sources,
    take_source_options,
)
from srvstat.contract import wire
from srvstat.contract.errors import InvalidRequestError, MissingLibraryError, UsageError
from srvstat.contract.ranges import DEFAULT_RANGE
from srvstat.contract.requests import parse_range
from srvstat.files.atomic import check_name, check_target
from srvstat.fleet.request import (
    RESULT_EXTENSIONS,
    FleetRequest,
    find_extension,
    parse_size,
)
from srvstat.render.summary import format_dropped_fleet_rows, format_fleet_summary
from srvstat.snapshot.format.digest import MAX_SHARDS
from srvstat.snapshot.write.build import check_is_no_source

if TYPE_CHECKING:
    from srvstat.fleet.counts import Conflicts

_DEFAULT_SHARDS = 8
_MAX_THREADS = 1024  # DuckDB has no limit of its own, and could leave none for other programs
_CONFLICTS: tuple["Conflicts", ...] = ("first", "lowest")

_Choice = TypeVar("_Choice", bound=str)

SourcesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SOURCE", help="Rows of serverId, observedAt and players: FILE, FOLDER, URL or -."
    ),
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The file of the results, one line or row per server: .ndjson, .jsonl or .parquet.",
    ),
]
SnapshotsOption = Annotated[
    str | None,
    typer.Option(
        metavar="DIR", help="Write a snapshot of all observations, as a new folder of shards."
    ),
]
ShardsOption = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help=f"The number of files of that snapshot, up to {MAX_SHARDS} [default:"
        f" {_DEFAULT_SHARDS}].",
    ),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="The instant at which the window ends; later observations are skipped [default: the"
        " latest observation].",
    ),
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="The memory of DuckDB, such as 4GiB; what needs more is written to temporary files.",
    ),
]
ThreadsOption = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="The threads of DuckDB, and the processes that build shards [default: one for each"
        " processor].",
    ),
]
ConflictsOption = Annotated[
    str,
    typer.Option(
        metavar="|".join(_CONFLICTS),
        help="Which of several unequal observations of a server at one instant stands: the first"
        " by source and row, or the one with the fewest players.",
        show_default=True,
        autocompletion=lambda: list(_CONFLICTS),
    ),
]


@take_source_options("observations", "save_mapping")
def fleet(
    options: SourceOptions,
    sources: SourcesArgument = None,
    output: OutputOption = None,
    range: RangeOption = None,
    as_of: AsOfOption = None,
    conflicts: ConflictsOption = _CONFLICTS[0],
    memory: MemoryOption = None,
    threads: ThreadsOption = None,
    snapshots: SnapshotsOption = None,
    shards: ShardsOption = None,
    max_rejected: MaxRejectedOption = None,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
) -> Outcome:
    """Compute the statistics of every server.

    The results are those of `srvstat compare`, byte for byte. DuckDB computes them, also from files
    larger than its memory. On a cluster, `python -m srvstat.spark` computes the same with Spark.

    Example: srvstat fleet observations/ --servers servers.ndjson --range 30d -o results.parquet
    """
    if output is None:
        _check_snapshots_alone(snapshots, range)
    if shards is not None and snapshots is None:
        raise UsageError("--shards: needs --snapshots DIR")
    if output and snapshots and os.path.abspath(output) == os.path.abspath(snapshots):
        raise UsageError(f"--snapshots {snapshots}: is the file of the results; name a folder")
    check_ending(snapshots)
    found = parse_sources(options._replace(observations=sources), output, name="SOURCE")
    request = FleetRequest(
        found.servers,
        found.observations,
        uses_slugs=found.ids == "slug",
        game=found.game,
        range=DEFAULT_RANGE,
        as_of=parse_instant_option("--as-of", as_of),
        max_rejected=parse_limit(max_rejected),
        conflicts=_choose("--conflicts", conflicts, _CONFLICTS),
        output=_check_output(output, found, overwrite=overwrite),
        overwrite=overwrite,
        snapshots=snapshots,
        shards=_parse_limited("--shards", shards, MAX_SHARDS) or _DEFAULT_SHARDS,
        memory=_check_memory(memory),
        threads=_parse_limited("--threads", threads, _MAX_THREADS),
    )
    try:
        request = request._replace(range=parse_range(DEFAULT_RANGE if range is None else range))
    except InvalidRequestError as error:
        return show_error(error, Form.TABLE)
    return _run(request, quiet=quiet)


def _run(request: FleetRequest, *, quiet: bool) -> Outcome:
    # Before signals may interrupt imports.
    try:
        from srvstat.fleet.run import run_fleet  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingLibraryError(
            f"srvstat fleet: needs the library {error.name}; run pip install 'srvstat[bulk]'"
        ) from None

    started = time.monotonic()
    with _show_progress(quiet=quiet) as progress:
        summary = run_fleet(request, progress)
    seconds = time.monotonic() - started
    if not quiet:
        outputs = [path for path in (request.output, request.snapshots) if path is not None]
        report(*format_fleet_summary(outputs, summary, seconds))
    dropped = format_dropped_fleet_rows(summary)
    report(*(f"warning: {line}" for line in (*dropped, *summary.warnings)))
    return Outcome()


def _choose(option: str, value: str, choices: Sequence[_Choice]) -> _Choice:
    for choice in choices:
        if choice == value:
            return choice
    raise UsageError(f"{option}: {wire.quote_value(value)} is not one of {', '.join(choices)}")


def _check_output(path: str | None, sources: Sources, *, overwrite: bool) -> str | None:
    """Return the path of the results, if they may be written there.

    Raises UsageError, OutputError.
    """
    if path is None:
        return None
    location = check_name("-o", path)
    if find_extension(path) not in RESULT_EXTENSIONS:
        raise UsageError(
            f"-o {path}: unknown format; end the name in {', '.join(RESULT_EXTENSIONS)}"
        )
    records = [] if sources.servers is None else [sources.servers]
    check_is_no_source(path, location, [*records, *sources.observations])
    check_target(path, overwrite=overwrite)
    return path


def _check_snapshots_alone(snapshots: str | None, range: str | None) -> None:
    """Check that there is something to write, and that a range is for results."""
    if snapshots is None:
        raise UsageError(
            f"-o: missing; name a file that ends in {', '.join(RESULT_EXTENSIONS)}, or a folder"
            " with --snapshots"
        )
    if range is not None:
        raise UsageError("--range: needs -o; a snapshot has all observations")


def _parse_limited(option: str, text: str | None, most: int) -> int | None:
    """Return the number of an option from 1 to `most`; None if it is not given.

    Raises UsageError.
    """
    if text is None:
        return None
    count = parse_count(option, text, least=1)
    if count > most:
        raise UsageError(f"{option}: {count:,} is more than {most:,}")
    return count


def _check_memory(memory: str | None) -> str | None:
    """Return the size of --memory.

    Raises UsageError.
    """
    if memory is not None:
        try:
            parse_size(memory)
        except ValueError as error:
            raise UsageError(f"--memory: {wire.quote_value(memory)} {error}") from None
    return memory


@contextmanager
def _show_progress(*, quiet: bool) -> Iterator[Callable[[str, float, str], None]]:
    """Show progress on a terminal. An interrupted block can clean up."""
    if not is_progress_shown(quiet=quiet):
        with allow_cleanup():
            yield lambda _step, _share, _detail: None
        return
    # Imported only for a bar: Rich takes 30 ms. Nothing may be imported after allow_cleanup.
    from srvstat.render.progress import show_step_progress  # noqa: PLC0415

    with allow_cleanup(), show_step_progress() as progress:
        yield progress
