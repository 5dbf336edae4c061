"""`snapshot build`: build a snapshot from files and databases."""

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
from srvstat.cli.output_file import NDJSON_ENDINGS, SNAPSHOT_ENDINGS, check_ending
from srvstat.cli.source_options import (
    SourceOptions,
    parse_sources,
    save_mapping,
    take_source_options,
)
from srvstat.render.summary import format_build_summary
from srvstat.snapshot.write.build import build as build_snapshot

OutputArgument = Annotated[str, typer.Argument(metavar="OUTPUT", help="The snapshot to write.")]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="The instant at which the snapshot ends; later observations are skipped [default: the"
        " latest observation].",
    ),
]
AllowEmptyOption = Annotated[
    bool,
    typer.Option(
        "--allow-empty", help="Build without servers or, with --as-of, without observations."
    ),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT if it exists.")]
DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Write nothing; show what would be built, which rows would not, and why."
    ),
]


@take_source_options()
def build(
    options: SourceOptions,
    output: OutputArgument,
    as_of: AsOfOption = None,
    rejects: RejectsOption = None,
    max_rejected: MaxRejectedOption = None,
    strict: StrictOption = False,
    allow_empty: AllowEmptyOption = False,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
    dry_run: DryRunOption = False,
) -> Outcome:
    """Build a snapshot from files or databases.

    Example: srvstat snapshot build snapshot.db --servers servers.ndjson --observations week.csv.gz
    """
    check_ending(output, *SNAPSHOT_ENDINGS)
    check_ending(rejects, *NDJSON_ENDINGS)
    sources = parse_sources(options, output, rejects)
    instant = parse_instant_option("--as-of", as_of)
    limit = parse_limit(max_rejected)
    if dry_run:
        # Other builds don't need this module.
        from srvstat.cli.dry_run import show_dry_run  # noqa: PLC0415

        return show_dry_run(
            output,
            options,
            sources,
            instant,
            limit,
            as_of=as_of,
            rejects=rejects,
            max_rejected=max_rejected,
            strict=strict,
            allow_empty=allow_empty,
            overwrite=overwrite,
            quiet=quiet,
        )
    started = time.monotonic()
    with show_progress(sources.observations, quiet=quiet) as progress:
        summary = build_snapshot(
            output,
            servers_source=sources.servers,
            observation_sources=sources.observations,
            uses_slugs=sources.ids == "slug",
            game=sources.game,
            as_of=instant,
            rejects=rejects,
            strict=strict,
            max_rejected=limit,
            allow_empty=allow_empty,
            overwrite=overwrite,
            progress=progress,
        )
    lines = format_build_summary(output, summary, time.monotonic() - started)
    report_summary(summary, lines, quiet=quiet)
    save_mapping(sources)
    return Outcome()
