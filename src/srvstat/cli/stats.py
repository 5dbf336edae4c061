"""`stats` and `top`: the statistics of servers, as asked for or ranked."""

from collections.abc import Iterable
from contextlib import closing
from itertools import islice
from typing import Annotated

import typer

from srvstat.analysis.distribution import compute_distribution
from srvstat.analysis.drawing import check_server_count
from srvstat.analysis.selection import FilterOptions, build_references
from srvstat.analysis.statistics import compute_stats, parse_quantile
from srvstat.analysis.top import TOP_KEYS, parse_top_key, rank_servers
from srvstat.analysis.windows import WindowQuery, check_previous, choose_window
from srvstat.cli.analyzer_options import (
    AllOption,
    FromOption,
    GameOption,
    OfflineOption,
    RegionOption,
    SeenWithinOption,
    ServersArgument,
    TagOption,
    TextArgument,
    TextOption,
    ToOption,
    WindowRangeOption,
    ZoneOption,
    build_window_query,
    check_selection,
    report_missing_data,
    report_no_match,
    select_servers,
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
    parse_count,
)
from srvstat.cli.output import Outcome, choose_form
from srvstat.cli.show import show, show_error
from srvstat.contract import wire
from srvstat.contract.errors import ApiError, UsageError
from srvstat.contract.requests import MAX_SERVERS
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import open_snapshot


def _complete_key(incomplete: str) -> list[str]:
    return [key for key in TOP_KEYS if key.startswith(incomplete)]


QuantileOption = Annotated[
    list[str] | None,
    typer.Option(metavar="Q", help="Add a quantile, such as 0.95 (repeatable)."),
]
AboveOption = Annotated[
    str | None,
    typer.Option(metavar="N", help="Add the hours with more than N players."),
]
VersusOption = Annotated[
    str | None,
    typer.Option(
        metavar="previous",
        help="Add the figures of the window of equal length before.",
        autocompletion=lambda: ["previous"],
    ),
]
KeyOption = Annotated[
    str,
    typer.Option(
        "--by",
        metavar="|".join(TOP_KEYS),
        help="The figure that ranks servers, the greatest first; change and growth are in players.",
        autocompletion=_complete_key,
    ),
]
LimitOption = Annotated[
    str, typer.Option("--limit", "-n", metavar="N", help="The number of servers to show.")
]


def stats(
    identifiers: ServersArgument = None,
    by: ByOption = None,
    all: AllOption = False,
    text: TextOption = None,
    game: GameOption = None,
    region: RegionOption = None,
    tag: TagOption = None,
    offline: OfflineOption = None,
    seen_within: SeenWithinOption = None,
    range: WindowRangeOption = None,
    start: FromOption = None,
    end: ToOption = None,
    tz: ZoneOption = "UTC",
    quantile: QuantileOption = None,
    above: AboveOption = None,
    versus: VersusOption = None,
    snapshot: SnapshotOption = None,
    json: JsonOption = False,
    table: TableOption = False,
    format: FormatOption = None,
    chart: ChartOption = False,
) -> Outcome:
    """Show the statistics of servers in any window.

    Besides the figures of compare, shows how the average changed since the window of equal length
    before, when the peak was reached, quantiles, the hours above a number of players, and the share
    of the window that was observed.

    Example: srvstat stats srv-1 --range 7d --quantile 0.95 --versus previous
    """
    form = choose_form(json=json, table=table, format=format, chart=chart)
    query = build_window_query(range, start, end, tz)
    filters = FilterOptions(
        text=text, game=game, region=region, tags=tag, offline=offline, seen_within=seen_within
    )
    check_selection(identifiers, filters, by=by, all=all)
    quantiles = [parse_quantile(text) for text in quantile or ()]
    players = None if above is None else parse_count("--above", above, least=0)
    is_versus = _parse_versus(versus, query)
    try:
        references = build_references(identifiers, by)
        with closing(open_snapshot(find_snapshot(snapshot))) as file, add_hint(file):
            window = choose_window(file, query)
            servers = select_servers(file, references, filters, all=all)
            drawn = _list_drawn(servers) if chart else []
            report_missing_data(file, window, () if all else servers, tz)
            found = compute_stats(
                file,
                drawn or servers,
                window,
                quantiles=quantiles,
                above=players,
                versus_previous=is_versus,
                zone=tz,
            )
            distribution = compute_distribution(file, drawn, window) if drawn else None
    except ApiError as error:
        return show_error(error, form)
    return show(found, form, chart=distribution)


def top(
    text: TextArgument = None,
    by: KeyOption = "average",
    limit: LimitOption = "20",
    game: GameOption = None,
    region: RegionOption = None,
    tag: TagOption = None,
    offline: OfflineOption = None,
    seen_within: SeenWithinOption = None,
    range: WindowRangeOption = None,
    start: FromOption = None,
    end: ToOption = None,
    tz: ZoneOption = "UTC",
    quantile: QuantileOption = None,
    above: AboveOption = None,
    versus: VersusOption = None,
    snapshot: SnapshotOption = None,
    json: JsonOption = False,
    table: TableOption = False,
    format: FormatOption = None,
) -> Outcome:
    """Show the servers with the greatest figures.

    Ranks all servers that match by one figure, and shows the statistics of the first.

    Example: srvstat top --by peak --range 7d -n 10
    """
    form = choose_form(json=json, table=table, format=format)
    query = build_window_query(range, start, end, tz)
    filters = FilterOptions(
        text=" ".join(text or ()),
        game=game,
        region=region,
        tags=tag,
        offline=offline,
        seen_within=seen_within,
    )
    quantiles = [parse_quantile(text) for text in quantile or ()]
    players = None if above is None else parse_count("--above", above, least=0)
    is_versus = _parse_versus(versus, query)
    key, count = parse_top_key(by), parse_count("--limit", limit, least=1)
    with closing(open_snapshot(find_snapshot(snapshot))) as file:
        window = choose_window(file, query)
        report_missing_data(file, window, zone=tz)
        wanted = filters.build_filter(file.as_of)
        found = rank_servers(
            file,
            wanted,
            window,
            key,
            count,
            quantiles=quantiles,
            above=players,
            versus_previous=is_versus,
            zone=tz,
        )
        if not found.server_count:
            report_no_match(file, wanted)
    return show(found, form)


def _list_drawn(servers: Iterable[ServerRow]) -> list[ServerRow]:
    """Return the servers of a chart; none if no server matches.

    Raises UsageError if they are too many.
    """
    rest = iter(servers)
    drawn = list(islice(rest, MAX_SERVERS))
    if drawn:
        check_server_count(len(drawn) + sum(1 for _ in rest))
    return drawn


def _parse_versus(text: str | None, query: WindowQuery) -> bool:
    if text not in {None, "previous"}:
        raise UsageError(f"--versus: {wire.quote_value(text)} is not known; use previous")
    if text is not None:
        check_previous(query)
    return text is not None
