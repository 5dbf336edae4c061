"""Define the options that say what to read and how, and convert their values to sources."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Annotated, Literal, NamedTuple

import srvstat.snapshot.write  # noqa: F401 - adds the kind "snapshot"
from srvstat.analysis.parameters import Parameter
from srvstat.cli.options import check_ending
from srvstat.cli.output import report, show_progress
from srvstat.cli.process import allow_cleanup
from srvstat.contract.errors import ParameterError, UsageError
from srvstat.contract.responses import GAMES
from srvstat.files.reading import STDIN
from srvstat.files.writing import check_destination, check_name, write_atomically
from srvstat.snapshot.write.intake import Inputs, RejectLimit
from srvstat.sources import registry
from srvstat.sources.mapping import (
    STRICT,
    ColumnMapping,
    MappingOptions,
    build_options,
    format_mapping_file,
    parse_columns,
    read_mapping_file,
)
from srvstat.sources.source import IN_MEMORY, Source, check_stdin_once, expand_name
from srvstat.sources.values import TimeUnit


@dataclass(frozen=True)
class RejectOptions:
    """What to do with rejected rows."""

    rejects: Annotated[
        str | None, Parameter("Write rejected and conflicting rows to this file as NDJSON.", "FILE")
    ] = None
    max_rejected: Annotated[
        str | None,
        Parameter(
            "Fail if more than N rows, or more than P% of rows, are rejected [default: more than 10"
            " rows that are also more than 1% of a source].",
            "N|P%",
        ),
    ] = None
    strict: Annotated[bool, Parameter("Stop at the first rejected or conflicting row.")] = False

    def parse_limit(self) -> RejectLimit | None:
        """Return the limit of --max-rejected. Raises ParameterError."""
        try:
            return None if self.max_rejected is None else RejectLimit.parse(self.max_rejected)
        except ValueError as error:
            raise ParameterError("{max_rejected}: {problem}", problem=str(error)) from None


def report_summary(lines: Iterable[str], warnings: Iterable[str], *, quiet: bool) -> None:
    """Report the lines of a summary unless `quiet`, and its warnings in any case."""
    if not quiet:
        report(*lines)
    report(*(f"warning: {line}" for line in warnings))


@contextmanager
def show_build_progress(inputs: Inputs, *, quiet: bool) -> Iterator[Inputs]:
    """Show the progress of reading sources and storing their rows; see `show_progress`.

    Yield inputs that report it.
    """
    sizes = [source.get_size() for source in inputs.observations]
    total = None if None in sizes else sum(size for size in sizes if size)
    with show_progress(lambda bars: bars.show_build_progress(total), quiet=quiet) as progress:
        yield replace(inputs, progress=progress)


@dataclass(frozen=True)
class SourceOptions:
    """The values of the options that say what to read and how."""

    servers: Annotated[
        str | None,
        Parameter(
            "Server records as NDJSON, one per line; in an update, each adds a server or replaces"
            " its record. Without them, records are made from the identifiers.",
            "FILE|-",
        ),
    ] = None
    files: Annotated[
        list[str] | None,
        Parameter(
            "Files of observations, folders or patterns; a URL of a database; - for standard"
            " input.",
            "FILE",
            is_argument=True,
        ),
    ] = None
    observations: Annotated[
        list[str] | None, Parameter("The same as FILE; repeatable.", "FILE|URL|-")
    ] = None
    format: Annotated[
        Literal["csv", "ndjson"] | None,
        Parameter(
            "The format of standard input and of files with an extension other than"
            f" {', '.join(registry.EXTENSIONS)} (with or without .gz)."
        ),
    ] = None
    from_: Annotated[
        str | None,
        Parameter(
            f"The kind of the sources: {', '.join(registry.list_choices())}.",
            "KIND",
            ("--from",),
            completes=registry.list_choices(),
        ),
    ] = None
    query: Annotated[
        str | None,
        Parameter(
            "A query whose columns are serverId, observedAt and players, for the database that is"
            " named, else for DuckDB.",
            "SQL",
        ),
    ] = None
    columns: Annotated[
        str | None,
        Parameter("The names of the columns of the observations.", "id=NAME,at=NAME,players=NAME"),
    ] = None
    wide: Annotated[
        str | None,
        Parameter(
            "Read one column for each server, and the times from this column; columns after except="
            " are no servers.",
            "at=NAME[,except=NAME+NAME]",
        ),
    ] = None
    id: Annotated[
        str | None,
        Parameter(
            "The server of all rows of files without a column of identifiers; {file} and {folder}"
            " are the names of a file and of its folder.",
            "NAME",
        ),
    ] = None
    table: Annotated[
        str | None, Parameter("The table or sheet to read, of a file that has several.", "NAME")
    ] = None
    encoding: Annotated[
        str | None, Parameter("The encoding of text that is not UTF-8, such as cp1252.", "NAME")
    ] = None
    time_zone: Annotated[
        str | None,
        Parameter(
            "The zone of times without an offset, such as UTC. With :first or :second after it, it"
            " chooses one of two equal times when the clock is set back.",
            "ZONE",
        ),
    ] = None
    time_unit: Annotated[TimeUnit | None, Parameter("The unit of times that are integers.")] = None
    time_format: Annotated[
        str | None,
        Parameter(
            "How times are written: day-first, month-first, or a format of strptime such as"
            " %d.%m.%y.",
            "FORM",
            completes=("day-first", "month-first"),
        ),
    ] = None
    thousands: Annotated[
        str | None,
        Parameter("The character between the thousands of counts: , . ' or a space.", "CHAR"),
    ] = None
    round: Annotated[
        bool, Parameter("Round fractions. Averages are no counts, so figures of them differ.")
    ] = False
    hold: Annotated[
        bool, Parameter("A count lasts until the next one, as in data that has changes only.")
    ] = False
    mapping: Annotated[str | None, Parameter("Read these options from a TOML file.", "FILE")] = None
    save_mapping: Annotated[
        str | None, Parameter("Write these options to a TOML file.", "FILE")
    ] = None
    ids: Annotated[
        Literal["slug"] | None,
        Parameter(
            "Convert identifiers to a form that the API allows: slug turns MAIN_LOBBY into"
            " main-lobby."
        ),
    ] = None
    game: Annotated[
        str | None,
        Parameter(
            "The game of servers whose record does not name one.", "|".join(GAMES), completes=GAMES
        ),
    ] = None


class Sources(NamedTuple):
    """The sources of a build, how to complete its servers, and the mapping to save.

    `options` are those of --save-mapping, whose file is `save_mapping`.
    """

    inputs: Inputs
    options: MappingOptions
    save_mapping: str | None


def parse_sources(
    options: SourceOptions,
    *,
    needs_observations: bool = True,
    reads_servers: bool = True,
    name: str = "FILE",
    remembered: MappingOptions | None = None,
) -> Sources:
    """Return the sources that the options name.

    Without `reads_servers`, there is no source of server records. `name` is that of the option or
    argument that names observations. `remembered` options are used where none is given.

    Raises UsageError, OutputError for the file of --save-mapping, and SourceError for the file of
    --mapping or a folder of sources.
    """
    options = replace(options, observations=[*(options.files or ()), *(options.observations or ())])
    if needs_observations and not options.observations and options.query is None:
        raise UsageError(f"{name}: missing; name a file, a URL, or - for standard input")
    check_stdin_once(
        filter(None, (options.mapping, options.servers, *(options.observations or ())))
    )
    found = _parse_mapping_options(options)
    if options.mapping is not None:
        _check_name(options.mapping)
        found = found.merge(read_mapping_file(options.mapping))
    is_declared = not found.build_mapping().is_strict
    if remembered is not None:
        found = found.merge(remembered)
    if options.save_mapping is not None:
        check_name("--save-mapping", options.save_mapping)
        check_destination(options.save_mapping, overwrite=False)
        check_ending(options.save_mapping, ".toml")
    options = replace(options, from_=found.from_)
    mapping = found.build_mapping()
    parse = partial(_parse_observations, options=options, mapping=mapping, is_declared=is_declared)
    names = _list_names(options, name)
    if options.from_ and registry.KINDS[options.from_].is_whole:  # a snapshot may be a folder
        observations = [*map(parse, names)]
    else:
        found_in = (expand_name(each, parse, _warn, options.servers) for each in names)
        observations = [source for sources in found_in for source in sources]
    kinds = [found.from_] if found.from_ else [each.kind for each in observations]
    uses_slugs = found.ids == "slug" or any(registry.KINDS[kind].uses_slugs for kind in kinds)
    own = (kind for kind in kinds if registry.KINDS[kind].records and kind != "ndjson")
    options = replace(options, from_=next(own, None), ids="slug" if uses_slugs else None)
    inputs = Inputs(
        _parse_servers(options) if reads_servers else None, observations, uses_slugs, found.game
    )
    return Sources(inputs, found, options.save_mapping)


def _warn(line: str) -> None:
    report(f"warning: {line}")


def save_mapping(sources: Sources) -> None:
    """Write the file of --save-mapping, if it is given. Call this when the sources were read.

    Raises UsageError if the file exists, OutputError.
    """
    if sources.save_mapping is not None:
        data = format_mapping_file(sources.options)
        with allow_cleanup():
            write_atomically(sources.save_mapping, data, overwrite=False)


def _parse_mapping_options(options: SourceOptions) -> MappingOptions:
    """Return the options of a mapping on the command line.

    Raises UsageError.
    """
    values = {each.name: getattr(options, each.name) for each in fields(MappingOptions)}
    values |= {name: _parse_columns(name, values[name]) for name in ("columns", "wide")}
    if options.time_zone == "ZONE":
        raise UsageError(
            '--time-zone: "ZONE" stands for your time zone; write it, such as Europe/Berlin or UTC'
        )
    given = {
        name.rstrip("_").replace("_", "-"): value
        for name, value in values.items()
        if value not in (None, False)
    }
    found = build_options(given, lambda name, reason: UsageError(f"--{name}: {reason}"))
    if found.from_ and registry.KINDS[found.from_].observations is None and options.servers is None:
        raise UsageError(
            f"--from {found.from_}: reads server records only; name their file with --servers"
        )
    return found


def _parse_columns(name: str, text: str | None) -> dict[str, str] | None:
    try:
        return None if text is None else parse_columns(text)
    except ValueError as error:
        raise UsageError(f"--{name}: {error}") from None


def _list_names(options: SourceOptions, name: str) -> list[str]:
    """Return the names of the sources of observations, if any; a query alone is one in memory."""
    if options.observations:
        return options.observations
    if options.query is None:
        return []
    if options.from_ not in {None, "duckdb"}:
        raise UsageError(f"{name}: missing; name a source of the kind {options.from_}")
    return [IN_MEMORY]


def _parse_observations(
    name: str, options: SourceOptions, mapping: ColumnMapping, *, is_declared: bool
) -> Source:
    """Return the source of observations with a name.

    A kind without observations, such as that of server records only, leaves names their meaning.
    One of a fixed form is read without a mapping, which may not be declared on the command line.
    """
    _check_name(name)
    kind = "duckdb" if name == IN_MEMORY else options.from_
    if kind is None or registry.KINDS[kind].observations is None:
        source = Source.from_name(name, options.format, mapping)
    else:
        registry.load_reader(kind)
        source = Source(name, kind, mapping)
    if options.query is not None:
        if not registry.KINDS[source.kind].takes_query:
            raise UsageError(
                f"--query: {source.title} is not a database; leave it out, and name the file in"
                " the query"
            )
        source = replace(source, query=options.query)
    if not registry.KINDS[source.kind].is_fixed:
        return source
    if is_declared:
        raise UsageError(
            f"--from {source.kind}: has a form of its own; leave out --columns, --wide, --time-zone"
            " and --time-unit"
        )
    return replace(source, mapping=STRICT)


def _parse_servers(options: SourceOptions) -> Source | None:
    """Return the source of server records: NDJSON unless the kind has records of its own."""
    name = options.from_ or "ndjson"
    kind = registry.KINDS[name]
    if options.servers is None:
        return _find_whole_source(options, name) if kind.is_whole else None
    _check_name(options.servers)
    if kind.records is None or kind.is_whole:
        name = "ndjson"
    registry.load_record_reader(name)
    # With --ids, an id in the servers file may have any form, as in the observations.
    return Source(options.servers, name, accepts_any_id=options.ids is not None)


def _find_whole_source(options: SourceOptions, kind: str) -> Source:
    """Return the source of observations that has the records of their servers.

    Raises UsageError for several, because their records can differ, and for standard input.
    """
    if not options.observations or len(options.observations) > 1:
        raise UsageError(
            f"--servers: missing, but needed for several sources of the kind {kind},"
            " whose server records can differ"
        )
    (name,) = options.observations
    if name == STDIN:
        raise UsageError("standard input: can't be read twice; name a file")
    registry.load_record_reader(kind)
    return Source(name, kind)


def _check_name(name: str) -> None:
    if not name:
        raise UsageError("input file: the name is empty; name a file, or - for standard input")
