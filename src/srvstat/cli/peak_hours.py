"""`peak-hours`: how many players servers have in each hour of the week."""

from contextlib import closing
from typing import Annotated

import typer

from srvstat.analysis.drawing import check_server_count
from srvstat.analysis.peak_hours import compute_peak_hours
from srvstat.analysis.selection import build_references, find_references
from srvstat.analysis.windows import choose_window, find_zone
from srvstat.cli.analyzer_options import (
    FromOption,
    ServersArgument,
    ToOption,
    WindowRangeOption,
    build_window_query,
    report_missing_data,
)
from srvstat.cli.hints import add_hint
from srvstat.cli.options import (
    ByOption,
    ChartOption,
    FormatOption,
    JsonOption,
    SnapshotOption,
    TableOption,
    find_snapshot,
)
from srvstat.cli.output import Outcome, choose_form
from srvstat.cli.show import show, show_error
from srvstat.contract.errors import ApiError, UsageError
from srvstat.snapshot.read.snapshot import open_snapshot

ZoneOption = Annotated[
    str,
    typer.Option(
        "--tz", metavar="ZONE", help="The time zone of dates and of hours, such as Europe/Berlin."
    ),
]


def peak_hours(
    identifiers: ServersArgument = None,
    by: ByOption = None,
    range: WindowRangeOption = None,
    start: FromOption = None,
    end: ToOption = None,
    tz: ZoneOption = "UTC",
    snapshot: SnapshotOption = None,
    json: JsonOption = False,
    table: TableOption = False,
    format: FormatOption = None,
    chart: ChartOption = False,
) -> Outcome:
    """Show the busiest hours of the week.

    Shows the average and the median of each hour from Monday to Sunday on the clock of a time zone,
    and the busiest and the quietest hour.

    Example: srvstat peak-hours srv-1 --tz Europe/Berlin --range 90d
    """
    form = choose_form(json=json, table=table, format=format, chart=chart)
    query = build_window_query(range, start, end, tz)
    zone = find_zone(tz)
    if not identifiers:
        raise UsageError("no server; give IDENTIFIER…")
    try:
        references = build_references(identifiers, by)
        with closing(open_snapshot(find_snapshot(snapshot))) as file, add_hint(file):
            window = choose_window(file, query)
            servers = find_references(file, references)
            if chart:
                check_server_count(len(servers))
            report_missing_data(file, window, servers, tz)
            found = compute_peak_hours(file, servers, window, zone)
    except ApiError as error:
        return show_error(error, form)
    return show(found, form, chart=found if chart else None)
