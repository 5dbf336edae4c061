"""Define the options that say what to read and how, and convert their values to sources."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from inspect import Signature, signature
from typing import Annotated, Any, NamedTuple

import typer

import srvstat.snapshot.write  # noqa: F401 - adds the kind "snapshot"
from srvstat.cli.output import Outcome
from srvstat.cli.output_file import check_ending, write_file
from srvstat.contract import wire
from srvstat.contract.errors import UsageError
from srvstat.files.atomic import check_name, check_target
from srvstat.files.reading import STDIN
from srvstat.sources.mapping import (
    ColumnMapping,
    MappingOptions,
    build_options,
    format_mapping_file,
    parse_columns,
    read_mapping_file,
)
from srvstat.sources.observations import split_folder
from srvstat.sources.registry import (
    EXTENSIONS,
    KINDS,
    TEXT_KINDS,
    Kind,
    load_reader,
    load_record_reader,
)
from srvstat.sources.server_records import GAMES
from srvstat.sources.source import IN_MEMORY, Source, check_stdin_once

ServersOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|-",
        help="Server records as NDJSON, one per line [default: records made from the identifiers].",
    ),
]
ObservationsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--observations",
        metavar="FILE|URL|-",
        help="Rows of serverId, observedAt and players; repeatable.",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="|".join(TEXT_KINDS),
        help="The format of standard input and of files with an extension other than"
        f" {', '.join(EXTENSIONS)} (with or without .gz).",
    ),
]
FromOption = Annotated[
    str | None,
    typer.Option("--from", metavar="KIND", help=f"The kind of the sources: {', '.join(KINDS)}."),
]
QueryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SQL",
        help="A query whose columns are serverId, observedAt and players, for the database that is"
        " named, else for DuckDB.",
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="id=NAME,at=NAME,players=NAME", help="The names of the columns of the observations."
    ),
]
WideOption = Annotated[
    str | None,
    typer.Option(
        metavar="at=NAME", help="Read one column for each server, and the times from this column."
    ),
]
TimeZoneOption = Annotated[
    str | None,
    typer.Option(metavar="ZONE", help="The zone of times without an offset, such as UTC."),
]
TimeUnitOption = Annotated[
    str | None, typer.Option(metavar="s|ms", help="The unit of times that are integers.")
]
MappingOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="Read these options from a TOML file.")
]
SaveMappingOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write these options to a TOML file.")
]
IdsOption = Annotated[
    str | None,
    typer.Option(
        metavar="slug",
        help="Convert identifiers to a form that the API allows: slug turns MAIN_LOBBY into"
        " main-lobby.",
    ),
]
GameOption = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(GAMES), help="The game of servers whose record does not name one."
    ),
]


class SourceOptions(NamedTuple):
    """The values of the options that say what to read and how."""

    servers: ServersOption = None
    observations: ObservationsOption = None
    format: FormatOption = None
    from_: FromOption = None
    query: QueryOption = None
    columns: ColumnsOption = None
    wide: WideOption = None
    time_zone: TimeZoneOption = None
    time_unit: TimeUnitOption = None
    mapping: MappingOption = None
    save_mapping: SaveMappingOption = None
    ids: IdsOption = None
    game: GameOption = None


def take_source_options(
    *left_out: str,
) -> Callable[[Callable[..., Outcome]], Callable[..., Outcome]]:
    """Return a decorator that gives a command the options of SourceOptions.

    The command takes their values as its first parameter. Its other parameters are options and
    arguments of its own. Options that are left out have no value.
    """
    taken = [
        parameter
        for name, parameter in signature(SourceOptions).parameters.items()
        if name not in left_out
    ]

    def decorate(command: Callable[..., Outcome]) -> Callable[..., Outcome]:
        @wraps(command)
        def run(**values: Any) -> Outcome:
            options = SourceOptions(**{each.name: values.pop(each.name) for each in taken})
            return command(options, **values)

        _, *own = signature(command).parameters.values()
        arguments = [each for each in own if each.default is each.empty]
        rest = [each for each in own if each.default is not each.empty]
        parameters = [each.replace(kind=each.KEYWORD_ONLY) for each in (*arguments, *taken, *rest)]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined] # Typer reads it
        return run

    return decorate


class Sources(NamedTuple):
    """The sources of a build, and how to complete its servers.

    `options` are those of --save-mapping, whose file is `save_mapping`.
    """

    servers: Source | None
    observations: list[Source]
    ids: str | None
    game: str | None
    options: MappingOptions
    save_mapping: str | None


def parse_sources(
    options: SourceOptions,
    *others: str | None,
    needs_observations: bool = True,
    reads_servers: bool = True,
    name: str = "--observations",
) -> Sources:
    """Return the sources that the options name. `others` are files that the command also writes.

    Without `reads_servers`, there is no source of server records. `name` is that of the option or
    argument that names observations.

    Raises UsageError, and SourceError for the file of --mapping or a folder of sources.
    """
    if options.format is not None and options.format not in TEXT_KINDS:
        raise UsageError(
            f"--format: {wire.quote_value(options.format)} is not one of {', '.join(TEXT_KINDS)}"
        )
    if needs_observations and not options.observations and options.query is None:
        raise UsageError(f"{name}: missing; name a file, a URL, or - for standard input")
    check_stdin_once(
        filter(None, (options.mapping, options.servers, *(options.observations or ())))
    )
    found = _parse_mapping_options(options)
    if options.mapping is not None:
        _check_name(options.mapping)
        found = found.merge(read_mapping_file(options.mapping))
    if options.save_mapping is not None:
        _check_mapping_target(options.save_mapping, others)
    ids = found.ids
    if found.from_ is not None and KINDS[found.from_].uses_slugs:
        ids = "slug"
    options = options._replace(from_=found.from_, ids=ids, game=found.game)
    mapping = found.build_mapping()
    return Sources(
        _parse_servers(options) if reads_servers else None,
        [
            part
            for title in _list_names(options, name)
            for part in split_folder(_parse_observations(title, options, mapping))
        ],
        ids,
        found.game,
        found,
        options.save_mapping,
    )


def _check_mapping_target(path: str, others: Sequence[str | None]) -> None:
    """Check that the file of --save-mapping is a new one, and not also another output.

    Raises UsageError, OutputError.
    """
    check_name("--save-mapping", path)
    check_target(path, overwrite=False)
    if path in others:
        raise UsageError(f"{path}: is also another output; name another file for the mapping")
    check_ending(path, ".toml")


def save_mapping(sources: Sources) -> None:
    """Write the file of --save-mapping, if it is given. Call this when the sources were read.

    Raises UsageError if the file exists, OutputError.
    """
    if sources.save_mapping is not None:
        write_file(sources.save_mapping, format_mapping_file(sources.options), overwrite=False)


def _parse_mapping_options(options: SourceOptions) -> MappingOptions:
    """Return the options of a mapping on the command line.

    Raises UsageError.
    """
    values = {
        "from": options.from_,
        "columns": _parse_columns("--columns", options.columns),
        "wide": _parse_columns("--wide", options.wide),
        "time-zone": options.time_zone,
        "time-unit": options.time_unit,
        "ids": options.ids,
        "game": options.game,
    }
    given = {name: value for name, value in values.items() if value is not None}
    found = build_options(given, lambda name, reason: UsageError(f"--{name}: {reason}"))
    if found.from_ and KINDS[found.from_].observations is None and options.servers is None:
        raise UsageError(
            f"--from {found.from_}: reads server records only; name their file with --servers"
        )
    return found


def _parse_columns(option: str, text: str | None) -> dict[str, str] | None:
    try:
        return None if text is None else parse_columns(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def _list_names(options: SourceOptions, name: str) -> list[str]:
    """Return the names of the sources of observations, if any; a query alone is one in memory."""
    if options.observations:
        return options.observations
    if options.query is None:
        return []
    if options.from_ not in {None, "duckdb"}:
        raise UsageError(f"{name}: missing; name a source of the kind {options.from_}")
    return [IN_MEMORY]


def _parse_observations(name: str, options: SourceOptions, mapping: ColumnMapping) -> Source:
    """Return the source of observations with a name.

    A kind without observations, such as that of server records only, leaves names their meaning.
    """
    _check_name(name)
    if name == IN_MEMORY:
        load_reader("duckdb")
        source = Source(name, "duckdb", mapping)
    elif options.from_ is None or KINDS[options.from_].observations is None:
        source = Source.from_name(name, options.format, mapping)
    else:
        load_reader(options.from_)
        source = Source(name, options.from_, mapping)
    if options.query is not None:
        if not KINDS[source.kind].takes_query:
            raise UsageError(
                f"--query: {source.title} is not a database; leave it out, and name the file in"
                " the query"
            )
        source = replace(source, query=options.query)
    if not mapping.is_strict and KINDS[source.kind].is_fixed:
        raise UsageError(
            f"--from {source.kind}: has a form of its own; leave out --columns, --wide, --time-zone"
            " and --time-unit"
        )
    return source


def _parse_servers(options: SourceOptions) -> Source | None:
    """Return the source of server records: NDJSON unless the kind has records of its own."""
    kind = None if options.from_ is None else KINDS[options.from_]
    if options.servers is None:
        return _find_whole_source(options, kind)
    _check_name(options.servers)
    name = "ndjson"
    if options.from_ is not None and kind and kind.records is not None and not kind.is_whole:
        name = options.from_
    load_record_reader(name)
    # With --ids, an id in the servers file may have any form, as in the observations.
    return Source(options.servers, name, accepts_any_id=options.ids is not None)


def _find_whole_source(options: SourceOptions, kind: Kind | None) -> Source | None:
    """Return the source of observations that has the records of their servers; None without one.

    Raises UsageError for several, because their records can differ, and for standard input.
    """
    if options.from_ is None or kind is None or not kind.is_whole:
        return None
    if not options.observations or len(options.observations) > 1:
        raise UsageError(
            f"--servers: missing, but needed for several sources of the kind {options.from_},"
            " whose server records can differ"
        )
    (name,) = options.observations
    if name == STDIN:
        raise UsageError("standard input: can't be read twice; name a file")
    load_record_reader(options.from_)
    return Source(name, options.from_)


def _check_name(name: str) -> None:
    if not name:
        raise UsageError("input file: the name is empty; name a file, or - for standard input")
