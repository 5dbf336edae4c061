"""`snapshot build`: build a snapshot from files and databases."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from srvstat.cli.dry_run import show_dry_run
from srvstat.cli.options import parse_instant_option
from srvstat.cli.output import Outcome, is_progress_shown, report
from srvstat.cli.signals import allow_cleanup
from srvstat.cli.source_options import (
    SourceOptions,
    parse_sources,
    save_mapping,
    take_source_options,
)
from srvstat.contract.errors import UsageError
from srvstat.documents.build_summary import BuildSummary
from srvstat.render.summary import format_build_summary, format_dropped_rows
from srvstat.snapshot.write.build import build as build_snapshot
from srvstat.snapshot.write.dry_run import run_dry
from srvstat.snapshot.write.rules import RejectLimit
from srvstat.sources.source import Source

OutputArgument = Annotated[str, typer.Argument(metavar="OUTPUT", help="The snapshot to write.")]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="The instant at which the snapshot ends; later observations are skipped [default: the"
        " latest observation].",
    ),
]
RejectsOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Write rejected and conflicting rows to this file as NDJSON."
    ),
]
MaxRejectedOption = Annotated[
    str | None,
    typer.Option(
        metavar="N|P%", help="Fail if more than N rows, or more than P% of rows, are rejected."
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Stop at the first rejected or conflicting row.")
]
AllowEmptyOption = Annotated[
    bool,
    typer.Option(
        "--allow-empty", help="Build without servers or, with --as-of, without observations."
    ),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT if it exists.")]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show only warnings: no progress bar and no summary.")
]
DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Write nothing; show what would be built, which rows would not, and why."
    ),
]


@take_source_options()
def build(
    options: SourceOptions,
    output: OutputArgument,
    as_of: AsOfOption = None,
    rejects: RejectsOption = None,
    max_rejected: MaxRejectedOption = None,
    strict: StrictOption = False,
    allow_empty: AllowEmptyOption = False,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
    dry_run: DryRunOption = False,
) -> Outcome:
    """Build a snapshot from files.

    Example: srvstat snapshot build snapshot.db --servers servers.ndjson --observations week.csv.gz
    """
    sources = parse_sources(options)
    instant = parse_instant_option("--as-of", as_of)
    limit = parse_limit(max_rejected)
    if dry_run:
        with show_progress(sources.observations, quiet=quiet) as progress:
            found = run_dry(
                servers_source=sources.servers,
                observation_sources=sources.observations,
                uses_slugs=sources.ids == "slug",
                game=sources.game,
                as_of=instant,
                progress=progress,
            )
        return show_dry_run(found, output, options, sources, as_of)
    started = time.monotonic()
    with show_progress(sources.observations, quiet=quiet) as progress:
        summary = build_snapshot(
            output,
            servers_source=sources.servers,
            observation_sources=sources.observations,
            uses_slugs=sources.ids == "slug",
            game=sources.game,
            as_of=instant,
            rejects=rejects,
            strict=strict,
            max_rejected=limit,
            allow_empty=allow_empty,
            overwrite=overwrite,
            progress=progress,
        )
    lines = format_build_summary(output, summary, time.monotonic() - started)
    report_summary(summary, lines, quiet=quiet)
    save_mapping(sources)
    return Outcome()


def report_summary(summary: BuildSummary, lines: Sequence[str], *, quiet: bool) -> None:
    """Report the lines of a summary, or with `quiet` only how many rows were dropped."""
    if quiet:
        report(*(f"warning: {line}" for line in format_dropped_rows(summary)))
    else:
        report(*lines)
    report(*(f"warning: {warning}" for warning in summary.warnings))


def parse_limit(text: str | None) -> RejectLimit | None:
    """Return the limit of --max-rejected.

    Raises UsageError.
    """
    try:
        return None if text is None else RejectLimit.parse(text)
    except ValueError as error:
        raise UsageError(f"--max-rejected: {error}") from None


@contextmanager
def show_progress(
    sources: Sequence[Source], *, quiet: bool
) -> Iterator[Callable[[str, int, int], None]]:
    """Show progress on a terminal. An interrupted block can clean up."""
    if not is_progress_shown(quiet=quiet):
        with allow_cleanup():
            yield lambda _step, _bytes, _rows: None
        return
    # Imported only for a bar: Rich takes 30 ms. Nothing may be imported after allow_cleanup.
    from srvstat.render.progress import show_build_progress  # noqa: PLC0415

    sizes = [source.get_size() for source in sources]
    total = None if None in sizes else sum(size for size in sizes if size)
    with allow_cleanup(), show_build_progress(total) as progress:
        yield progress
