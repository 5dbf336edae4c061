"""`report`: an HTML report about servers, or its data."""

from contextlib import closing
from typing import Annotated

import typer

from srvstat.analysis.drawing import check_server_count
from srvstat.analysis.integrity.check import DEFAULT_RANGE
from srvstat.analysis.report import build_report, check_title, describe_origin
from srvstat.analysis.selection import build_references, find_references
from srvstat.analysis.windows import choose_window, find_zone
from srvstat.cli.analyzer_options import (
    FromOption,
    ServersArgument,
    ToOption,
    build_window_query,
    report_missing_data,
)
from srvstat.cli.hints import add_hint
from srvstat.cli.integrity import RangeOption
from srvstat.cli.options import ByOption, SnapshotOption, find_snapshot
from srvstat.cli.output import Form, Outcome
from srvstat.cli.output_file import (
    STDOUT_NAME,
    OverwriteOption,
    check_ending,
    check_output,
    check_snapshot_is_kept,
    describe_contents,
    write_output,
)
from srvstat.cli.peak_hours import ZoneOption
from srvstat.cli.show import show, show_error
from srvstat.contract.errors import ApiError, UsageError
from srvstat.render.report.page import render_report
from srvstat.snapshot.read.snapshot import open_snapshot

OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE|-",
        help="The file to write, such as report.html; - is standard output.",
    ),
]
TitleOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", help="The title of the report [default: from the names of the servers]."
    ),
]
DataOption = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Write the data that the page shows, as JSON, to -o or else to standard output.",
    ),
]


def report(
    identifiers: ServersArgument = None,
    output: OutputOption = None,
    by: ByOption = None,
    range: RangeOption = None,
    start: FromOption = None,
    end: ToOption = None,
    tz: ZoneOption = "UTC",
    title: TitleOption = None,
    snapshot: SnapshotOption = None,
    json: DataOption = False,
    overwrite: OverwriteOption = False,
) -> Outcome:
    """Write an HTML report of up to five servers.

    The file needs no network. It has a summary, statistics, players over time, the hours of the
    week, the distribution, growth, integrity, coverage and the source of the data. The same command
    writes the same bytes for the same snapshot.

    Example: srvstat report srv-1 srv-2 --range 90d --tz Europe/Berlin -o report.html
    """
    if output is None and not json:
        raise UsageError("give -o FILE for the page, or --json for the data that it shows")
    check_ending(output, *((".json",) if json else (".html", ".htm")))
    query = build_window_query(range, start, end, tz, DEFAULT_RANGE)
    zone = find_zone(tz)
    check_title(title)
    check_server_count(len(set(identifiers or ())))
    target = STDOUT_NAME if output is None else output
    check_output(target, overwrite=overwrite)
    try:
        references = build_references(identifiers, by)
        with closing(open_snapshot(find_snapshot(snapshot))) as file, add_hint(file):
            check_snapshot_is_kept(target, file.path)
            window = choose_window(file, query)
            servers = find_references(file, references)
            report_missing_data(file, window, servers, tz)
            origin = describe_origin(servers, query, title)
            found = build_report(file, servers, window, zone, origin)
    except ApiError as error:
        return show_error(error, Form.JSON if json else Form.TABLE)
    if json and target == STDOUT_NAME:
        return show(found, Form.JSON)
    data = found.to_json() + b"\n" if json else render_report(found)
    contents = describe_contents(len(servers), found.window, zone)
    return write_output(target, data, contents=contents, overwrite=overwrite)
