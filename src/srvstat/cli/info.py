"""`snapshot info`: describe a snapshot."""

from contextlib import closing

from srvstat.analysis.info import describe_snapshot
from srvstat.analysis.selection import FilterOptions
from srvstat.cli.analyzer_options import (
    GameOption,
    LimitOption,
    OfflineOption,
    RegionOption,
    SeenWithinOption,
    TagOption,
    TextOption,
    parse_limit,
    report_no_match,
)
from srvstat.cli.options import (
    JsonOption,
    PathArgument,
    SnapshotOption,
    TableOption,
    choose_snapshot,
)
from srvstat.cli.output import Outcome, choose_form
from srvstat.cli.show import show
from srvstat.snapshot.read.snapshot import open_snapshot


def info(
    path: PathArgument = None,
    snapshot: SnapshotOption = None,
    text: TextOption = None,
    game: GameOption = None,
    region: RegionOption = None,
    tag: TagOption = None,
    offline: OfflineOption = None,
    seen_within: SeenWithinOption = None,
    limit: LimitOption = None,
    json: JsonOption = False,
    table: TableOption = False,
) -> Outcome:
    """Show what is in a snapshot.

    Prints totals, and the servers that match the options, with their observations.

    Example: srvstat snapshot info snapshot.db
    """
    form = choose_form(json=json, table=table)
    options = FilterOptions(
        text=text,
        game=game,
        region=region,
        tags=tag,
        offline=offline,
        seen_within=seen_within,
    )
    most = parse_limit(limit, form)
    with closing(open_snapshot(choose_snapshot(path, snapshot))) as file:
        wanted = options.build_filter(file.as_of)
        found = describe_snapshot(file, wanted, limit=most)
        if found.servers and not found.matched:
            report_no_match(file, wanted)
        return show(found, form)
