"""`servers`: find servers."""

from contextlib import closing
from typing import Annotated

import typer

from srvstat.analysis.selection import FilterOptions
from srvstat.analysis.server_list import SORT_KEYS, list_servers, parse_sort_key
from srvstat.cli.analyzer_options import (
    GameOption,
    LimitOption,
    OfflineOption,
    RegionOption,
    SeenWithinOption,
    TagOption,
    TextArgument,
    parse_limit,
    report_no_match,
)
from srvstat.cli.options import (
    FormatOption,
    JsonOption,
    SnapshotOption,
    TableOption,
    find_snapshot,
)
from srvstat.cli.output import Outcome, choose_form
from srvstat.cli.show import show
from srvstat.snapshot.read.snapshot import open_snapshot


def _complete_sort_key(incomplete: str) -> list[str]:
    return [key for key in SORT_KEYS if key.startswith(incomplete)]


SortOption = Annotated[
    str,
    typer.Option(
        metavar="KEY",
        help=f"Sort by {', '.join(SORT_KEYS)}; the greatest number and the latest time is first.",
        autocompletion=_complete_sort_key,
    ),
]


def servers(
    text: TextArgument = None,
    game: GameOption = None,
    region: RegionOption = None,
    tag: TagOption = None,
    offline: OfflineOption = None,
    seen_within: SeenWithinOption = None,
    sort: SortOption = "id",
    limit: LimitOption = None,
    snapshot: SnapshotOption = None,
    json: JsonOption = False,
    table: TableOption = False,
    format: FormatOption = None,
) -> Outcome:
    """Find servers in a snapshot.

    Lists the servers that contain all words and match all options, with their usual interval and
    their coverage. Case does not matter.

    Example: srvstat servers roleplay --region EU --sort current
    """
    form = choose_form(json=json, table=table, format=format)
    key = parse_sort_key(sort)
    options = FilterOptions(
        text=" ".join(text or ()),
        game=game,
        region=region,
        tags=tag,
        offline=offline,
        seen_within=seen_within,
    )
    most = parse_limit(limit, form)
    with closing(open_snapshot(find_snapshot(snapshot))) as file:
        wanted = options.build_filter(file.as_of)
        found = list_servers(file, wanted, sort=key, limit=most)
        if not found.matched:
            report_no_match(file, wanted)
        return show(found, form)
