"""Show what a build would do, for `snapshot build --dry-run`."""

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from srvstat.cli.build_options import show_progress
from srvstat.cli.output import STDERR, Form, Outcome, report
from srvstat.cli.show import show
from srvstat.cli.source_options import SourceOptions, Sources
from srvstat.contract.errors import SourceError
from srvstat.files.reading import STDIN
from srvstat.snapshot.write.dry_run import run_dry
from srvstat.snapshot.write.rules import RejectLimit
from srvstat.sources.source import Source

_NAMES_OF_SOURCES = ("servers", "observations", "query")


def show_dry_run(
    output: str,
    options: SourceOptions,
    sources: Sources,
    instant: int | None,
    limit: RejectLimit | None,
    *,
    quiet: bool,
    **others: str | bool | None,
) -> Outcome:
    """Return the outcome of a dry run up to an instant, with a limit of rejected rows: a table.

    `options`, `quiet` and `others` are the options of the build, as the command line gives them.

    Raises SourceError for unusable sources, and if the build would be refused; the table is then
    on standard error.
    """
    with show_progress(sources.observations, quiet=quiet) as progress:
        found = run_dry(
            servers_source=sources.servers,
            observation_sources=sources.observations,
            uses_slugs=sources.ids == "slug",
            game=sources.game,
            as_of=instant,
            max_rejected=limit,
            progress=progress,
        )
    if found.missing_options:
        given = {**options._asdict(), **others, "quiet": quiet}
        command = _build_command(output, sources, given, found.missing_options)
        found = replace(found, command=command)
    if found.kept and not found.refusal:
        return show(found, Form.TABLE)
    # Imported here, because Rich takes 40 ms.
    from srvstat.render.screen import Screen  # noqa: PLC0415
    from srvstat.render.tables import render_table  # noqa: PLC0415

    width = shutil.get_terminal_size().columns if os.isatty(STDERR) else None
    report(*render_table(found, Screen(width)).splitlines())
    raise SourceError(
        found.refusal if found.kept and found.refusal else "no observation would be kept"
    )


def _build_command(
    output: str, sources: Sources, given: Mapping[str, Any], missing: Mapping[str, str]
) -> str:
    """Return the command with the given options, by parameter name, and the missing ones."""
    values = {
        _format_option(name): value
        for name, value in given.items()
        if name not in _NAMES_OF_SOURCES
    } | {**missing}
    has_query = given["query"] is not None
    words = ["srvstat", "snapshot", "build", output, *_list_sources(sources, has_query=has_query)]
    for option, value in values.items():
        words += [option] if value is True else [option, value] if value else []
    return shlex.join(words)


def _list_sources(sources: Sources, *, has_query: bool) -> Iterator[str]:
    """Yield the words of the options that name sources."""
    if sources.servers is not None:
        yield from ("--servers", _name_source(sources.servers))
    named = [_name_source(each) for each in sources.observations if not each.is_in_memory]
    for name in dict.fromkeys(named):
        yield from ("--observations", name)
    if has_query:
        yield from ("--query", "…")  # it may have a password


def _name_source(source: Source) -> str:
    """Return the name of a source on a command line. The title of a URL has no password."""
    return STDIN if source.name == STDIN else source.given_title


def _format_option(name: str) -> str:
    return f"--{name.rstrip('_').replace('_', '-')}"
