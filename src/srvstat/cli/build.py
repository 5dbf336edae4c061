"""`snapshot build` and `snapshot draft-servers`: read observations from files."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from srvstat.cli.options import parse_instant_option
from srvstat.cli.output import Outcome, is_progress_shown, report
from srvstat.cli.signals import allow_cleanup
from srvstat.contract import wire
from srvstat.contract.errors import UsageError
from srvstat.documents.build_summary import BuildSummary
from srvstat.render.summary import format_build_summary, format_dropped_rows
from srvstat.render.text import format_count
from srvstat.snapshot.write.build import build as build_snapshot
from srvstat.snapshot.write.rules import RejectLimit
from srvstat.sources.observations import collect_server_ids
from srvstat.sources.registry import EXTENSIONS, FORMATS
from srvstat.sources.servers import draft_records
from srvstat.sources.source import Source, check_stdin_once

OutputArgument = Annotated[str, typer.Argument(metavar="OUTPUT", help="The snapshot to write.")]
ServersOption = Annotated[
    str, typer.Option(metavar="FILE|-", help="Server records as NDJSON, one per line.")
]
ObservationsOption = Annotated[
    list[str],
    typer.Option(
        "--observations",
        metavar="FILE|-",
        help="Rows of serverId, observedAt and players, as"
        f" {' or '.join(map(str.upper, FORMATS))}; repeatable.",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="|".join(FORMATS),
        help="The format of standard input and of files with an extension other than"
        f" {', '.join(EXTENSIONS)} (with or without .gz).",
    ),
]
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


def build(
    output: OutputArgument,
    servers: ServersOption,
    observations: ObservationsOption,
    format: FormatOption = None,
    as_of: AsOfOption = None,
    rejects: RejectsOption = None,
    max_rejected: MaxRejectedOption = None,
    strict: StrictOption = False,
    allow_empty: AllowEmptyOption = False,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
) -> Outcome:
    """Build a snapshot from files.

    Example: srvstat snapshot build snapshot.db --servers servers.ndjson --observations week.csv.gz
    """
    servers_source = _parse_servers_source(servers)
    sources = [_parse_source(name, format) for name in observations]
    instant = parse_instant_option("--as-of", as_of)
    limit = _parse_limit(max_rejected)
    started = time.monotonic()
    with _show_progress(sources, quiet=quiet) as progress:
        summary = build_snapshot(
            output,
            servers_source=servers_source,
            observation_sources=sources,
            as_of=instant,
            rejects=rejects,
            strict=strict,
            max_rejected=limit,
            allow_empty=allow_empty,
            overwrite=overwrite,
            progress=progress,
        )
    _report_summary(output, summary, time.monotonic() - started, quiet=quiet)
    return Outcome()


def draft_servers(observations: ObservationsOption, format: FormatOption = None) -> Outcome:
    """Draft a servers file to fill in.

    Prints a server record for each identifier in the observations.

    Example: srvstat snapshot draft-servers --observations week.csv.gz > servers.ndjson
    """
    check_stdin_once(observations)
    seen, rejected = collect_server_ids(
        [_parse_source(name, format) for name in observations],
        warn=lambda warning: report(f"warning: {warning}"),
    )
    if rejected:
        report(f"warning: {format_count(rejected, 'malformed row')} ignored")
    report(
        f"{format_count(len(seen), 'server')}: replace each null; an optional field can be removed"
    )
    return Outcome(draft_records(seen))


def _report_summary(output: str, summary: BuildSummary, seconds: float, *, quiet: bool) -> None:
    if quiet:
        report(*(f"warning: {line}" for line in format_dropped_rows(summary)))
    else:
        report(*format_build_summary(output, summary, seconds))
    report(*(f"warning: {warning}" for warning in summary.warnings))


def _parse_source(name: str, format: str | None) -> Source:
    """Return the source of observations for a name and --format.

    Raises UsageError.
    """
    _check_name(name)
    if format is not None and format not in FORMATS:
        raise UsageError(f"--format: {wire.quote_value(format)} is not one of {', '.join(FORMATS)}")
    return Source.from_name(name, format)


def _parse_servers_source(name: str) -> Source:
    """Return the source of server records, which is always NDJSON.

    Raises UsageError.
    """
    _check_name(name)
    return Source(name, "ndjson")


def _check_name(name: str) -> None:
    if not name:
        raise UsageError("input file: the name is empty; name a file, or - for standard input")


def _parse_limit(text: str | None) -> RejectLimit | None:
    """Return the limit of --max-rejected.

    Raises UsageError.
    """
    try:
        return None if text is None else RejectLimit.parse(text)
    except ValueError as error:
        raise UsageError(f"--max-rejected: {error}") from None


@contextmanager
def _show_progress(
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
