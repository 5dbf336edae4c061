"""`snapshot bundle`: write a snapshot with some servers of another one."""

from contextlib import closing
from typing import Annotated

import typer

from srvstat.analysis.selection import build_references, find_references
from srvstat.cli.hints import add_hint
from srvstat.cli.options import (
    RANGES,
    ByOption,
    SnapshotOption,
    complete_identifier,
    complete_range,
    find_snapshot,
)
from srvstat.cli.output import Form, Outcome, report
from srvstat.cli.output_file import SNAPSHOT_ENDINGS, check_ending
from srvstat.cli.show import show_error
from srvstat.cli.signals import allow_cleanup
from srvstat.contract.errors import ApiError
from srvstat.contract.ranges import find_window
from srvstat.contract.requests import parse_range
from srvstat.operations import check_coverage
from srvstat.render.summary import format_bundle_summary
from srvstat.snapshot.read.snapshot import open_snapshot
from srvstat.snapshot.write.copies import write_bundle

IdentifiersArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="IDENTIFIER",
        help="The servers to include: ID, name, id:ID or cfxId:ID.",
        autocompletion=complete_identifier,
    ),
]
OutputOption = Annotated[
    str, typer.Option("--output", "-o", metavar="PATH", help="The bundle to write.")
]
RangeOption = Annotated[
    str,
    typer.Option(
        metavar="|".join(RANGES),
        help="The longest range that the bundle answers.",
        show_default=True,
        autocompletion=complete_range,
    ),
]
RedactOption = Annotated[
    bool,
    typer.Option(
        "--redact",
        help="Replace hostnames, project names, descriptions and links, and drop the names of"
        " source files. Identifiers, tags, flags, regions and counts stay.",
    ),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace PATH if it exists.")]


def bundle(
    identifiers: IdentifiersArgument,
    output: OutputOption,
    by: ByOption = None,
    range: RangeOption = "1y",
    redact: RedactOption = False,
    snapshot: SnapshotOption = None,
    overwrite: OverwriteOption = False,
) -> Outcome:
    """Write a small snapshot with some servers.

    It has the days that the range needs, and answers as the whole snapshot does. It refuses, with
    exit code 3, a window that begins earlier and a server that it lacks.

    Example: srvstat snapshot bundle srv-1 srv-2 --range 30d -o case.db
    """
    check_ending(output, *SNAPSHOT_ENDINGS)
    try:
        references = build_references(identifiers, by)
        longest = parse_range(range)
        with closing(open_snapshot(find_snapshot(snapshot))) as parent:
            check_coverage(parent, find_window(longest, parent.as_of))
            with add_hint(parent):
                servers = find_references(parent, references)
            with allow_cleanup():
                summary = write_bundle(
                    output, parent, servers, longest, redact=redact, overwrite=overwrite
                )
    except ApiError as error:
        return show_error(error, Form.TABLE)
    report(*format_bundle_summary(output, summary))
    return Outcome()
