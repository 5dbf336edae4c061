"""What the commands that build and update snapshots share: options, progress, and summaries."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from srvstat.cli.output import is_progress_shown, report
from srvstat.cli.signals import allow_cleanup
from srvstat.contract.errors import UsageError
from srvstat.documents.snapshot import BuildSummary
from srvstat.render.summary import format_dropped_rows
from srvstat.snapshot.write.rules import RejectLimit
from srvstat.sources.source import Source

RejectsOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Write rejected and conflicting rows to this file as NDJSON."
    ),
]
MaxRejectedOption = Annotated[
    str | None,
    typer.Option(
        metavar="N|P%",
        help="Fail if more than N rows, or more than P% of rows, are rejected [default: more than"
        " 10 rows that are also more than 1% of a source].",
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Stop at the first rejected or conflicting row.")
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show only warnings: no progress bar and no summary.")
]


def report_summary(summary: BuildSummary, lines: Sequence[str], *, quiet: bool) -> None:
    """Report the lines of a summary unless `quiet`, and warn of what was not kept."""
    if not quiet:
        report(*lines)
    report(*(f"warning: {line}" for line in (*format_dropped_rows(summary), *summary.warnings)))


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
