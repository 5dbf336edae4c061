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

_NOT_REPEATED = ("servers", "observations", "query", "save_mapping")


def show_dry_run(
    found: DryRun, output: str, options: SourceOptions, sources: Sources, as_of: str | None
) -> Outcome:
    """Return the outcome of a dry run: a table.

    Raises SourceError if nothing would be kept; the table is then on standard error.
    """
    if found.missing_options:
        words = [
            *("srvstat", "snapshot", "build", output),
            *_list_options(options, sources),
            *([] if as_of is None else ["--as-of", as_of]),
            *found.missing_options,
        ]
        found = replace(found, command=shlex.join(words))
    if found.kept:
        return show(found, Form.TABLE)
    # Imported here, because Rich takes 40 ms.
    from srvstat.render.screen import Screen  # noqa: PLC0415
    from srvstat.render.tables import render_table  # noqa: PLC0415

    width = shutil.get_terminal_size().columns if os.isatty(STDERR) else None
    report(*render_table(found, Screen(width)).splitlines())
    raise SourceError("no observation would be kept")


def _list_options(options: SourceOptions, sources: Sources) -> Iterator[str]:
    """Yield the words of the options. The titles of sources don't have passwords of URLs."""
    if sources.servers is not None:
        yield from ("--servers", sources.servers.title)
    given = [each.given_title for each in sources.observations if not each.is_in_memory]
    for title in dict.fromkeys(given):
        yield from ("--observations", title)
    if options.query is not None:
        yield from ("--query", "…")  # it may have a password
    for name, value in options._asdict().items():
        if value is not None and name not in _NOT_REPEATED:
            yield from (f"--{name.rstrip('_').replace('_', '-')}", value)
