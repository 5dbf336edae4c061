"""`integrity`: what rules find about the player counts of servers."""

from contextlib import closing
from typing import Annotated

import typer

from srvstat.analysis.integrity.check import DEFAULT_RANGE, check_integrity
from srvstat.analysis.selection import FilterOptions, build_references
from srvstat.analysis.windows import choose_window, find_zone
from srvstat.cli.analyzer_options import (
    AllOption,
    FromOption,
    GameOption,
    OfflineOption,
    RegionOption,
    SeenWithinOption,
    ServersArgument,
    TagOption,
    TextOption,
    ToOption,
    build_window_query,
    check_selection,
    complete_window_range,
    report_missing_data,
    select_servers,
)
from srvstat.cli.hints import add_hint
from srvstat.cli.options import (
    ByOption,
    FormatOption,
    JsonOption,
    SnapshotOption,
    TableOption,
    find_snapshot,
)
from srvstat.cli.output import Outcome, choose_form
from srvstat.cli.show import show, show_error
from srvstat.contract.errors import ApiError
from srvstat.snapshot.read.snapshot import open_snapshot

RangeOption = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="Nh|Nd|1y|all",
        help=f"The length of the window: hours, days, a year, or all [default: {DEFAULT_RANGE}].",
        autocompletion=complete_window_range,
    ),
]
ZoneOption = Annotated[
    str,
    typer.Option(
        "--tz",
        metavar="ZONE",
        help="The time zone of dates and of the hours of the day, such as Europe/Berlin.",
    ),
]


def integrity(
    identifiers: ServersArgument = None,
    by: ByOption = None,
    all: AllOption = False,
    text: TextOption = None,
    game: GameOption = None,
    region: RegionOption = None,
    tag: TagOption = None,
    offline: OfflineOption = None,
    seen_within: SeenWithinOption = None,
    range: RangeOption = None,
    start: FromOption = None,
    end: ToOption = None,
    tz: ZoneOption = "UTC",
    snapshot: SnapshotOption = None,
    json: JsonOption = False,
    table: TableOption = False,
    format: FormatOption = None,
) -> Outcome:
    """Find unusual patterns in player counts.

    Each rule passes, is suspect, or is not evaluated for lack of data. Shows the evidence, the
    threshold and innocent causes. The results describe numbers: they prove nothing, and they are
    not probabilities. Exits with 0 whatever they are.

    Example: srvstat integrity srv-1 --range 30d
    """
    form = choose_form(json=json, table=table, format=format)
    filters = FilterOptions(
        text=text, game=game, region=region, tags=tag, offline=offline, seen_within=seen_within
    )
    check_selection(identifiers, filters, by=by, all=all)
    query = build_window_query(range, start, end, tz, DEFAULT_RANGE)
    zone = find_zone(tz)
    try:
        references = build_references(identifiers, by)
        with closing(open_snapshot(find_snapshot(snapshot))) as file, add_hint(file):
            window = choose_window(file, query)
            servers = select_servers(file, references, filters, all=all)
            report_missing_data(file, window, () if all else servers, tz)
            found = check_integrity(file, servers, window, zone)
    except ApiError as error:
        return show_error(error, form)
    return show(found, form)
