"""`growth`: how the players of servers change from step to step."""

from contextlib import closing
from typing import Annotated

import typer

from srvstat.analysis.drawing import check_server_count
from srvstat.analysis.growth import GROWTH_STEPS, compute_growth, parse_growth_step
from srvstat.analysis.selection import build_references, find_references
from srvstat.analysis.windows import choose_window, find_zone
from srvstat.cli.analyzer_options import (
    FromOption,
    ServersArgument,
    StepZoneOption,
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


def _complete_step(incomplete: str) -> list[str]:
    return [name for name in GROWTH_STEPS if name.startswith(incomplete)]


StepOption = Annotated[
    str,
    typer.Option(
        metavar="|".join(GROWTH_STEPS),
        help="The length of a step: a calendar day, an ISO week or a month.",
        autocompletion=_complete_step,
    ),
]


def growth(
    identifiers: ServersArgument = None,
    by: ByOption = None,
    step: StepOption = "day",
    range: WindowRangeOption = None,
    start: FromOption = None,
    end: ToOption = None,
    tz: StepZoneOption = "UTC",
    snapshot: SnapshotOption = None,
    json: JsonOption = False,
    table: TableOption = False,
    format: FormatOption = None,
    chart: ChartOption = False,
) -> Outcome:
    """Show growth by day, week or month.

    Shows how the average changed since the window of equal length before, the trend in players a
    week, and for each step the average and how it changed since the step before.

    Example: srvstat growth srv-1 --step week --range 90d
    """
    form = choose_form(json=json, table=table, format=format, chart=chart)
    name = parse_growth_step(step)
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
            found = compute_growth(file, servers, window, name, zone)
    except ApiError as error:
        return show_error(error, form)
    return show(found, form, chart=found if chart else None)
