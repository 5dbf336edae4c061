"""Show what a build would do, for `snapshot build --dry-run`."""

import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace

from srvstat.cli.output import STDERR, Form, Outcome, report
from srvstat.cli.show import show
from srvstat.cli.source_options import SourceOptions, Sources
from srvstat.contract.errors import SourceError
from srvstat.documents.dry_run import DryRun
from srvstat.files.reading import STDIN
from srvstat.sources.source import Source

_NAMES_OF_SOURCES = ("servers", "observations", "query")


def show_dry_run(
    found: DryRun,
    output: str,
    options: SourceOptions,
    sources: Sources,
    **others: str | bool | None,
) -> Outcome:
    """Return the outcome of a dry run: a table. `others` are the other options of the build.

    Raises SourceError if nothing would be kept; the table is then on standard error.
    """
    if found.missing_options:
        given = {**options._asdict(), **others}
        values = {
            _format_option(name): value
            for name, value in given.items()
            if name not in _NAMES_OF_SOURCES
        } | dict(found.missing_options)
        words = ["srvstat", "snapshot", "build", output, *_list_sources(options, sources)]
        for option, value in values.items():
            words += [option] if value is True else [option, value] if value else []
        found = replace(found, command=shlex.join(words))
    if found.kept:
        return show(found, Form.TABLE)
    # Imported here, because Rich takes 40 ms.
    from srvstat.render.screen import Screen  # noqa: PLC0415
    from srvstat.render.tables import render_table  # noqa: PLC0415

    width = shutil.get_terminal_size().columns if os.isatty(STDERR) else None
    report(*render_table(found, Screen(width)).splitlines())
    raise SourceError("no observation would be kept")


def _list_sources(options: SourceOptions, sources: Sources) -> Iterator[str]:
    """Yield the words of the options that name sources."""
    if sources.servers is not None:
        yield from ("--servers", _name_source(sources.servers))
    named = [_name_source(each) for each in sources.observations if not each.is_in_memory]
    for name in dict.fromkeys(named):
        yield from ("--observations", name)
    if options.query is not None:
        yield from ("--query", "…")  # it may have a password


def _name_source(source: Source) -> str:
    """Return the name of a source on a command line. The title of a URL has no password."""
    return STDIN if source.name == STDIN else source.given_title


def _format_option(name: str) -> str:
    return f"--{name.rstrip('_').replace('_', '-')}"
