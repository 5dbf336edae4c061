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
from srvstat.documents.snapshot import DryRun
from srvstat.files.reading import STDIN
from srvstat.render.text import format_count
from srvstat.snapshot.write.dry_run import Search, list_missing, run_dry, search_options
from srvstat.snapshot.write.rules import RejectLimit
from srvstat.sources.mapping import MappingOptions
from srvstat.sources.registry import KINDS
from srvstat.sources.server_records import GAMES
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

        def attempt(changed: MappingOptions) -> DryRun:
            return run_dry(
                servers_source=sources.servers,
                observation_sources=_change_mapping(sources, changed),
                uses_slugs="slug" in (sources.ids, changed.ids),
                game=sources.game,
                as_of=instant,
                max_rejected=limit,
                progress=progress,
            )

        search = search_options(attempt, sources.observations, sources.options)
    found = search.found
    if isinstance(found, SourceError):
        raise _join_errors(search)
    missing = list_missing(sources.options, search.options)
    if found.needs_game:
        missing["--game"] = GAMES[0]
    # Without another trial, it is not known what the command keeps.
    is_untried = bool(search.adopted) and search.found is search.given
    if is_untried or not found.kept:
        found = replace(found, max_rejected=None)
    if found.max_rejected:
        missing["--max-rejected"] = found.max_rejected
    command = None
    if missing and (found.kept or is_untried):
        given = {**options._asdict(), **others, "quiet": quiet}
        command = _build_command(output, sources, given, missing)
    is_in_the_way = os.path.lexists(output) and not others["overwrite"]
    found = replace(
        found,
        obstacles=[] if is_untried else [each.obstacle for each in search.adopted],
        advice=_list_advice(search, found, output if is_in_the_way else None),
        command=command,
    )
    given_run = search.given if isinstance(search.given, DryRun) else None
    if given_run and given_run.kept and not given_run.refusal:
        return show(found, Form.TABLE)
    # Imported here, because Rich takes 40 ms.
    from srvstat.render.screen import Screen  # noqa: PLC0415
    from srvstat.render.tables import render_table  # noqa: PLC0415

    width = shutil.get_terminal_size().columns if os.isatty(STDERR) else None
    report(*render_table(found, Screen(width)).splitlines())
    if given_run and given_run.kept and given_run.refusal:
        raise SourceError(given_run.refusal)
    if found.kept and found.refusal and not found.max_rejected:
        raise SourceError(found.refusal)
    without = " without these options" if found.kept else ""
    raise SourceError(f"no observation would be kept{without}")


def _change_mapping(sources: Sources, options: MappingOptions) -> list[Source]:
    """Return the sources with the mapping of other options, except those with a form of their own.

    The given mapping stays if the options are those of the command line.
    """
    mapping = options.build_mapping()
    return [
        source if KINDS[source.kind].is_fixed else replace(source, mapping=mapping)
        for source in sources.observations
    ]


def _join_errors(search: Search) -> SourceError:
    """Return the error of a source that no option helps to read: the first one, and the last."""
    first, last = search.given, search.found
    assert isinstance(last, SourceError)  # noqa: S101 - the caller checks it
    if search.notes:
        return SourceError("; ".join([last.reason, *search.notes]))
    if first is last or not isinstance(first, SourceError):
        return last
    return SourceError(f"{first.reason}; {search.adopted[-1].advice}; then: {last.reason}")


def _list_advice(search: Search, found: DryRun, in_the_way: str | None) -> list[str]:
    """Return the sentences about the options of the command, and about those that do not help."""
    advice = [change.advice for change in search.adopted]
    remedies = (each.remedy for each in found.dropped if each.remedy)
    advice += [remedy.text for remedy in remedies if remedy.option is None][:1]
    advice += search.notes
    if found.max_rejected:
        kept = format_count(found.kept, "row")
        rejected = format_count(found.rejected, "rejected row")
        advice.append(
            f"add --max-rejected {found.max_rejected} to keep the other {kept}"
            f" (without the {rejected})"
        )
    if found.needs_game:
        advice.append(f"add the game of servers without one: --game {' or '.join(GAMES)}")
    if in_the_way is not None:
        advice.append(f"{in_the_way} exists: add --overwrite to replace it")
    return advice


def _build_command(
    output: str, sources: Sources, given: Mapping[str, Any], missing: Mapping[str, str | None]
) -> str:
    """Return the command with the given options, by parameter name, and the missing ones."""
    values = {
        _format_option(name): value
        for name, value in given.items()
        if name not in _NAMES_OF_SOURCES
    } | {**missing}
    words = ["srvstat", "snapshot", "build", output, *_list_sources(sources, given)]
    for option, value in values.items():
        words += [option] if value is True else [option, value] if value else []
    return shlex.join(words)


def _list_sources(sources: Sources, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of the options that name sources."""
    if sources.servers is not None and given["servers"] is not None:
        yield from ("--servers", _name_source(sources.servers))
    named = [_name_source(each) for each in sources.observations if not each.is_in_memory]
    for name in dict.fromkeys(named):
        yield from ("--observations", name)
    if given["query"] is not None:
        yield from ("--query", "…")  # it may have a password


def _name_source(source: Source) -> str:
    """Return the name of a source on a command line. The title of a URL has no password."""
    return STDIN if source.name == STDIN else source.given_title


def _format_option(name: str) -> str:
    return f"--{name.rstrip('_').replace('_', '-')}"
