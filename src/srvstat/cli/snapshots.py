"""`snapshot build`, `info`, `verify` and `draft-servers`.

What reads sources, builds, or draws is imported by the command that does it.
"""

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from srvstat.cli.interruptions import allow_cleanup
from srvstat.cli.options import (
    SNAPSHOT_DEFAULT,
    SNAPSHOT_VARIABLE,
    SnapshotOption,
    TableOption,
    parse_instant_option,
    snapshot_argument,
)
from srvstat.cli.output import STDERR, Form, Outcome, choose_form, json_output, report
from srvstat.contract import wire
from srvstat.contract.errors import DifferenceError, UsageError
from srvstat.contract.instants import format_instant
from srvstat.render.text import format_count
from srvstat.snapshot.read.reader import open_file
from srvstat.sources.registry import ENDINGS, FORMATS

if TYPE_CHECKING:
    from srvstat.snapshot.write.rules import RejectLimit
    from srvstat.sources.source import Source

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="|".join(FORMATS),
        help="The format of standard input, and of files without a known ending:"
        f" {', '.join(ENDINGS)}, each also with .gz.",
    ),
]
ObservationsOption = Annotated[
    list[str],
    typer.Option(
        "--observations",
        metavar="FILE|-",
        help="Observations as CSV (serverId,observedAt,players) or NDJSON; repeatable.",
    ),
]
PathArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="PATH",
        help=f"The snapshot; else ${SNAPSHOT_VARIABLE}, else ./{SNAPSHOT_DEFAULT}.",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="JSON; the default where output is no terminal.")
]
OutputArgument = Annotated[str, typer.Argument(metavar="OUTPUT", help="The snapshot to write.")]


def build(
    output: OutputArgument,
    servers: Annotated[
        str, typer.Option(metavar="FILE|-", help="Server records as NDJSON, one a line.")
    ],
    observations: ObservationsOption,
    format: FormatOption = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="The instant the snapshot speaks for [default: the latest observation]."
            " Later observations are skipped.",
        ),
    ] = None,
    rejects: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keep the rows that are no observation here, as NDJSON."),
    ] = None,
    max_rejected: Annotated[
        str | None,
        typer.Option(
            metavar="N|P%",
            help="Build nothing where more rows, or a greater share of them, are no observation.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first row that is no observation.")
    ] = False,
    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty",
            help="Build without any server, and with --as-of without any observation.",
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace OUTPUT where it exists.")
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Neither a progress bar nor a summary, only warnings."),
    ] = False,
) -> Outcome:
    """Build a snapshot from files.

    Example: srvstat snapshot build snapshot.db --servers servers.ndjson --observations week.csv.gz
    """
    from srvstat.cli.sources import parse_servers_source, parse_source
    from srvstat.render.summary import build_summary, rows_not_kept
    from srvstat.snapshot.write.build import build as build_snapshot

    servers_source = parse_servers_source(servers)
    sources = [parse_source(name, format) for name in observations]
    instant = parse_instant_option("--as-of", as_of)
    limit = _limit_of(max_rejected)
    started = time.monotonic()
    with _progress(sources, quiet=quiet) as progress:
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
    if quiet:
        report(*(f"warning: {line}" for line in rows_not_kept(summary)))
    else:
        report(*build_summary(output, summary, time.monotonic() - started))
    for warning in summary.warnings:
        report(f"warning: {warning}")
    return Outcome()


def draft_servers(observations: ObservationsOption, format: FormatOption = None) -> Outcome:
    """Draft a servers file to fill in.

    It has a line for each identifier seen in the observations.

    Example: srvstat snapshot draft-servers --observations week.csv.gz > servers.ndjson
    """
    from srvstat.cli.sources import parse_source
    from srvstat.sources.observations import find_servers
    from srvstat.sources.servers import draft
    from srvstat.sources.source import check_stdin_once

    check_stdin_once(observations)
    seen, rejected = find_servers(
        [parse_source(name, format) for name in observations],
        warn=lambda warning: report(f"warning: {warning}"),
    )
    if rejected:
        report(f"note: {format_count(rejected, 'row')} skipped: not observations")
    servers = format_count(len(seen), "server")
    report(f"{servers}: fill in each null, or leave it out where it is optional")
    return Outcome(draft(seen))


def info(
    path: PathArgument = None,
    snapshot: SnapshotOption = None,
    json: JsonOption = False,
    table: TableOption = False,
) -> Outcome:
    """Show what is in a snapshot.

    Its servers are listed, with how often and when each was observed.

    Example: srvstat snapshot info snapshot.db
    """
    form = choose_form(json=json, table=table)
    named = snapshot_argument(path, snapshot)
    if form is Form.JSON:
        from srvstat.cli.info_json import info_json

        return Outcome(info_json(named))

    from srvstat.cli.tables import info_table

    with closing(open_file(named)) as file:
        view = file.view()
    return Outcome([info_table(view)])


def verify(
    path: PathArgument = None,
    snapshot: SnapshotOption = None,
    expect: Annotated[
        str | None,
        typer.Option(
            metavar="ROOT", help="The root that the snapshot must have, from whoever built it."
        ),
    ] = None,
    json: JsonOption = False,
    table: TableOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> Outcome:
    """Check all of a snapshot, and print its root.

    Whatever is derived is made anew from the observations. Exit code 3 for damage, 5 for another
    root than the one expected.

    Example: srvstat snapshot verify snapshot.db
    """
    from srvstat.snapshot.read.verify import verify as verify_snapshot

    form = choose_form(json=json, table=table)
    expected = _root_of(expect)
    named = snapshot_argument(path, snapshot)
    with _checking(quiet=quiet) as progress:
        found = verify_snapshot(named, progress)
    if form is Form.JSON:
        body = {
            "root": found.root,
            "asOf": format_instant(found.as_of),
            "servers": found.servers,
            "observations": found.observations,
            "days": found.days,
        }
        answer = json_output(wire.encode(body))
    else:
        from srvstat.cli.tables import verification_table

        answer = verification_table(found)
    if expected not in (None, found.root):
        report(f"error: the root is not the one expected, {expected}")
        return Outcome([answer], DifferenceError.exit_code)
    return Outcome([answer])


def _root_of(text: str | None) -> str | None:
    """Return the root that an option names, in lower case.

    Raises UsageError.
    """
    if text is None or re.fullmatch("[0-9A-Fa-f]{64}", text):
        return text and text.lower()
    raise UsageError("--expect: a root is 64 hexadecimal digits, as `snapshot info` shows it")


def _limit_of(text: str | None) -> "RejectLimit | None":
    """Return the limit that --max-rejected names.

    Raises UsageError.
    """
    from srvstat.snapshot.write.rules import RejectLimit

    try:
        return None if text is None else RejectLimit.parse(text)
    except ValueError as error:
        raise UsageError(f"--max-rejected: {error}") from None


@contextmanager
def _progress(
    sources: "Sequence[Source]", *, quiet: bool
) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar to whoever is there to see it, until the build is done or interrupted."""
    if not _is_watched(quiet=quiet):
        with allow_cleanup():
            yield lambda _step, _bytes, _rows: None
        return
    from srvstat.render.progress import progress_bar

    sizes = [source.size() for source in sources]
    known = None if None in sizes else sum(size for size in sizes if size)
    with allow_cleanup(), progress_bar(known) as progress:
        yield progress


@contextmanager
def _checking(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar to whoever is there to see it."""
    if not _is_watched(quiet=quiet):
        yield lambda _rows, _total: None
        return
    from srvstat.render.progress import checking_bar

    with allow_cleanup(), checking_bar() as progress:
        yield progress


def _is_watched(*, quiet: bool) -> bool:
    return not quiet and os.isatty(STDERR) and os.environ.get("TERM") != "dumb"
