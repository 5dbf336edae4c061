"""`snapshot update`: add observations and servers to a snapshot."""

import time
from typing import Annotated

import typer

from srvstat.cli.build_options import (
    MaxRejectedOption,
    QuietOption,
    RejectsOption,
    StrictOption,
    parse_limit,
    report_summary,
    show_progress,
)
from srvstat.cli.options import parse_instant_option
from srvstat.cli.output import Outcome
from srvstat.cli.output_file import NDJSON_ENDINGS, check_ending
from srvstat.cli.source_options import (
    SourceOptions,
    parse_sources,
    save_mapping,
    take_source_options,
)
from srvstat.render.summary import format_update_summary
from srvstat.snapshot.write.update import update as update_snapshot

PathArgument = Annotated[str, typer.Argument(metavar="PATH", help="The snapshot to update.")]
ServersOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|-",
        help="Server records as NDJSON, one per line: each adds a server or replaces its record.",
    ),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="The instant at which the snapshot ends from now on; later observations are skipped"
        " [default: the latest observation, or that of the snapshot if it is later].",
    ),
]


@take_source_options("servers")
def update(
    options: SourceOptions,
    path: PathArgument,
    servers: ServersOption = None,
    as_of: AsOfOption = None,
    rejects: RejectsOption = None,
    max_rejected: MaxRejectedOption = None,
    strict: StrictOption = False,
    quiet: QuietOption = False,
) -> Outcome:
    """Add observations and servers to a snapshot.

    The file is replaced when the new one is complete, and has the root of a build from all sources.

    Example: srvstat snapshot update snapshot.db --observations today.csv
    """
    check_ending(rejects, *NDJSON_ENDINGS)
    # New records alone are an update, too.
    options = options._replace(servers=servers)
    sources = parse_sources(options, path, rejects, needs_observations=servers is None)
    instant = parse_instant_option("--as-of", as_of)
    limit = parse_limit(max_rejected)
    started = time.monotonic()
    with show_progress(sources.observations, quiet=quiet) as progress:
        summary = update_snapshot(
            path,
            servers_source=sources.servers,
            observation_sources=sources.observations,
            uses_slugs=sources.ids == "slug",
            game=sources.game,
            as_of=instant,
            rejects=rejects,
            strict=strict,
            max_rejected=limit,
            progress=progress,
        )
    seconds = time.monotonic() - started
    report_summary(summary.rows, format_update_summary(path, summary, seconds), quiet=quiet)
    save_mapping(sources)
    return Outcome()
