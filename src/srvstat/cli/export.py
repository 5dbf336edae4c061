"""`snapshot export`: write a snapshot to files that a build and other tools read."""

from collections.abc import Iterable
from contextlib import closing
from functools import partial
from typing import Annotated

import typer

from srvstat.analysis.history import read_history
from srvstat.analysis.selection import build_references, find_references
from srvstat.cli.analyzer_options import ServersArgument
from srvstat.cli.hints import add_hint
from srvstat.cli.options import ByOption, SnapshotOption, find_snapshot
from srvstat.cli.output import Form, Outcome, report
from srvstat.cli.output_file import check_ending
from srvstat.cli.show import show_error
from srvstat.cli.signals import allow_cleanup
from srvstat.contract import wire
from srvstat.contract.errors import ApiError, UsageError
from srvstat.contract.ranges import Window
from srvstat.documents.rows import import_pyarrow
from srvstat.files.atomic import check_new_folder
from srvstat.render.rows import encode_rows
from srvstat.render.summary import format_export_summary
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot, open_snapshot
from srvstat.snapshot.write.copies import write_export

FORMATS = ("csv", "ndjson", "parquet")

ExportFormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="|".join(FORMATS),
        help="The format of the observations.",
        show_default=True,
        autocompletion=lambda: list(FORMATS),
    ),
]
FolderOption = Annotated[
    str, typer.Option("--output", "-o", metavar="FOLDER", help="The new folder to write.")
]
PartitionOption = Annotated[
    str | None,
    typer.Option(
        metavar="month",
        help="Write a folder for each month (UTC), as partitions of Hive; needs --format parquet.",
    ),
]


def export(
    output: FolderOption,
    identifiers: ServersArgument = None,
    by: ByOption = None,
    format: ExportFormatOption = FORMATS[0],
    partition: PartitionOption = None,
    snapshot: SnapshotOption = None,
) -> Outcome:
    """Write servers and observations to files.

    The files are in a new folder. Without identifiers, they have all servers, and a snapshot that
    is built from them has the same root, unless the exported one has shards.

    Example: srvstat snapshot export --format parquet -o export
    """
    _check_format(format, partition)
    check_ending(output)
    check_new_folder("-o", output)
    try:
        references = build_references(identifiers, by) if identifiers else None
        with closing(open_snapshot(find_snapshot(snapshot))) as file:
            servers = file.iter_servers
            if references is not None:
                with add_hint(file):
                    chosen = find_references(file, references)
                servers = chosen.__iter__
            with allow_cleanup():
                summary = write_export(
                    output,
                    file,
                    servers,
                    partial(_encode, file, format),
                    format=format,
                    by_month=partition is not None,
                )
    except ApiError as error:
        return show_error(error, Form.TABLE)
    report(*format_export_summary(output, summary))
    return Outcome()


def _check_format(format: str, partition: str | None) -> None:
    """Check the options that need no snapshot, and import what the format needs.

    Raises UsageError, MissingLibraryError.
    """
    if format not in FORMATS:
        raise UsageError(f"--format: {wire.quote_value(format)} is not one of {', '.join(FORMATS)}")
    if partition not in (None, "month"):
        raise UsageError(f"--partition: {wire.quote_value(partition)} is not month")
    if partition is not None and format != "parquet":
        raise UsageError("--partition: needs --format parquet")
    if format == "parquet":
        # Nothing may be imported while signals raise exceptions.
        import_pyarrow()


def _encode(
    snapshot: Snapshot, format: str, servers: Iterable[ServerRow], window: Window
) -> Iterable[bytes]:
    return encode_rows(read_history(snapshot, servers, window), format)
