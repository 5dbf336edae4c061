"""`snapshot upgrade`: rewrite a snapshot of an older format."""

from typing import Annotated

import typer

from srvstat.cli.build_options import QuietOption
from srvstat.cli.output import Outcome, report
from srvstat.cli.output_file import SNAPSHOT_ENDINGS, OverwriteOption, check_ending
from srvstat.cli.row_progress import show_row_progress
from srvstat.render.summary import format_upgrade_summary, format_upgrade_warnings
from srvstat.snapshot.format.schema import FORMAT_VERSION
from srvstat.snapshot.write.upgrade import upgrade as upgrade_snapshot

PathArgument = Annotated[str, typer.Argument(metavar="PATH", help="The snapshot to upgrade.")]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write the new snapshot here, and keep PATH."
    ),
]


def upgrade(
    path: PathArgument,
    output: OutputOption = None,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
) -> Outcome:
    """Rewrite a snapshot of an older format.

    This needs no sources. The file is replaced when the new one is complete, and gives the same
    answers. A damaged file is refused. A snapshot of the current format stays as it is.

    Example: srvstat snapshot upgrade snapshot.db
    """
    check_ending(output, *SNAPSHOT_ENDINGS)
    with show_row_progress("upgrading", quiet=quiet) as progress:
        summary = upgrade_snapshot(path, output, overwrite=overwrite, progress=progress)
    if summary is None:
        lines = [f"{path} has format {FORMAT_VERSION} already"]
    else:
        report(*(f"warning: {line}" for line in format_upgrade_warnings(path, summary)))
        lines = format_upgrade_summary(path, output, summary)
    if not quiet:
        report(*lines)
    return Outcome()
