"""Define the options for inputs, and convert their values to sources."""

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
    """Options for rejected rows."""

    panel = "Rejected rows"

    rejects: Annotated[
        str | None,
        Parameter(
            "Write rejected and conflicting rows to this file as NDJSON; replaced if it exists.",
            "FILE",
        ),
    ] = None
    max_rejected: Annotated[
        str | None,
        Parameter(
            "Fail if more than N rows, or more than P% of the rows, are rejected [default: fail"
            " above 10 rows and 1% of a source].",
            "N|P%",
        ),
    ] = None
    strict: Annotated[bool, Parameter("Stop at the first rejected or conflicting row.")] = False

    def parse_limit(self) -> RejectLimit | None:
        """Return the limit of --max-rejected. Raises ParameterError if it is invalid."""
        try:
            return None if self.max_rejected is None else RejectLimit.parse(self.max_rejected)
        except ValueError as error:
            raise ParameterError("{max_rejected}: {problem}", problem=str(error)) from None


def report_summary(lines: Iterable[str], warnings: Iterable[str], *, quiet: bool) -> None:
    """Report the lines of a summary unless `quiet`, and always its warnings."""
    if not quiet:
        report(*lines)
    report(*(f"warning: {line}" for line in warnings))


@contextmanager
def show_build_progress(inputs: Inputs, *, quiet: bool) -> Iterator[Inputs]:
    """Show the progress of reading sources and storing their rows; see `show_progress`.

    Yields inputs that report their progress.
    """
    sizes = [source.get_size() for source in inputs.observations]
    total = None if None in sizes else sum(size for size in sizes if size)
    with show_progress(lambda bars: bars.show_build_progress(total), quiet=quiet) as progress:
        yield replace(inputs, progress=progress)


@dataclass(frozen=True)
class SourceOptions:
    """Options for the inputs, and how to read them."""

    panel = "Input"

    servers: Annotated[
        str | None,
        Parameter(
            "A file of server metadata, one JSON object per line. Without it, servers have only"
            " identifiers.",
            "FILE|-",
        ),
    ] = None
    files: Annotated[
        list[str] | None,
        Parameter(
            "Observation files, folders, glob patterns, a database URL, or - for standard input.",
            "FILE",
            is_argument=True,
        ),
    ] = None
    observations: Annotated[
        list[str] | None, Parameter("Same as FILE; repeatable.", "FILE|URL|-")
    ] = None
    input_format: Annotated[
        Literal["csv", "ndjson"] | None,
        Parameter(
            "The format of standard input, or of files with an unknown extension. Known extensions:"
            f" {', '.join(registry.EXTENSIONS)}, each also with .gz.",
            names=("--input-format", "--format"),
        ),
    ] = None
    source: Annotated[
        str | None,
        Parameter(
            f"The program that wrote the files, or their format:"
            f" {', '.join(registry.list_choices())}.",
            "KIND",
            ("--source", "--from"),
            completes=registry.list_choices(),
        ),
    ] = None
    query: Annotated[
        str | None,
        Parameter(
            "A query with the columns serverId, observedAt and players, for the named database or"
            " else for DuckDB.",
            "SQL",
        ),
    ] = None
    columns: Annotated[
        str | None,
        Parameter(
            "The columns of identifiers, times and counts: id=NAME,at=NAME,players=NAME.",
            "KEY=NAME,...",
        ),
    ] = None
    wide: Annotated[
        str | None,
        Parameter(
            "Read a table that has a time column, NAME, and one column per server. To ignore"
            " columns: at=NAME,except=NAME+NAME.",
            "at=NAME[,...]",
        ),
    ] = None
    id: Annotated[
        str | None,
        Parameter(
            "Assign all rows to this server. {file} and {folder} insert the file's and folder's"
            " names.",
            "NAME",
        ),
    ] = None
    input_table: Annotated[
        str | None, Parameter("Read this table or sheet.", "NAME", ("--input-table", "--table"))
    ] = None
    encoding: Annotated[
        str | None, Parameter("The text encoding, such as cp1252 [default: utf-8].", "NAME")
    ] = None
    time_zone: Annotated[
        str | None,
        Parameter(
            "The time zone of times without an offset, such as UTC. When clocks go back, :first or"
            " :second selects the first or second occurrence.",
            "ZONE",
        ),
    ] = None
    time_unit: Annotated[TimeUnit | None, Parameter("The unit of Unix times.")] = None
    time_format: Annotated[
        str | None,
        Parameter(
            "How to parse times: day-first, month-first, or a strptime format such as %d.%m.%y.",
            "FORM",
            completes=("day-first", "month-first"),
        ),
    ] = None
    thousands: Annotated[
        str | None,
        Parameter(
            "The thousands separator in counts: a comma, point, space or apostrophe.", "CHAR"
        ),
    ] = None
    round: Annotated[
        bool, Parameter("Round fractional counts. Statistics are then approximate.")
    ] = False
    hold: Annotated[
        bool,
        Parameter(
            "Keep each count valid until the next one. Use this for data that records only changes."
        ),
    ] = False
    mapping: Annotated[str | None, Parameter("Read these options from a TOML file.", "FILE")] = None
    save_mapping: Annotated[
        str | None, Parameter("Write these options to a TOML file.", "FILE")
    ] = None
    slug_ids: Annotated[
        bool, Parameter("Convert identifiers to valid API ids, such as MAIN_LOBBY to main-lobby.")
    ] = False
    ids: Annotated[Literal["slug"] | None, Parameter("See --slug-ids.", is_hidden=True)] = None
    game: Annotated[
        str | None,
        Parameter(
            "The game of servers without one in their metadata.", "|".join(GAMES), completes=GAMES
        ),
    ] = None


class Sources(NamedTuple):
    """The sources of a build, and the mapping to save.

    - `options`: the options that --save-mapping writes.
    - `save_mapping`: the file of --save-mapping, or None.
    """

    inputs: Inputs
    options: MappingOptions
    save_mapping: str | None


def parse_sources(
    options: SourceOptions,
    *,
    needs_observations: bool = True,
    reads_servers: bool = True,
    remembered: MappingOptions | None = None,
) -> Sources:
    """Return the sources that the options name.

    - `needs_observations`: whether observations are required.
    - `reads_servers`: whether to read server records.
    - `remembered`: options of the snapshot, used where the command line gives none.

    Raises UsageError for an invalid option, OutputError if the file of --save-mapping can't be
    written, and SourceError for an invalid --mapping file or an unreadable folder of sources.
    """
    options = replace(options, observations=[*(options.files or ()), *(options.observations or ())])
    if needs_observations and not options.observations and options.query is None:
        raise UsageError("no input; give a file, a URL, or - for standard input")
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
    options = replace(options, source=found.source)
    mapping = found.build_mapping()
    parse = partial(_parse_observations, options=options, mapping=mapping, is_declared=is_declared)
    names = _list_names(options)
    if options.source and registry.KINDS[options.source].is_whole:  # a snapshot may be a folder
        observations = [*map(parse, names)]
    else:
        found_in = (expand_name(each, parse, _warn, options.servers) for each in names)
        observations = [source for sources in found_in for source in sources]
    kinds = [found.source] if found.source else [each.kind for each in observations]
    uses_slugs = bool(found.slug_ids) or any(registry.KINDS[kind].uses_slugs for kind in kinds)
    own = (kind for kind in kinds if registry.KINDS[kind].records and kind != "ndjson")
    options = replace(options, source=next(own, None), slug_ids=uses_slugs)
    inputs = Inputs(
        _parse_servers(options) if reads_servers else None, observations, uses_slugs, found.game
    )
    return Sources(inputs, found, options.save_mapping)


def _warn(line: str) -> None:
    report(f"warning: {line}")


def save_mapping(sources: Sources) -> None:
    """Write the --save-mapping file, if requested. Call this after reading the sources.

    Raises UsageError if the file exists, and OutputError if it can't be written.
    """
    if sources.save_mapping is not None:
        data = format_mapping_file(sources.options)
        with allow_cleanup():
            write_atomically(sources.save_mapping, data, overwrite=False)


def _parse_mapping_options(options: SourceOptions) -> MappingOptions:
    """Return the mapping options of the command line. Raises UsageError for an invalid option."""
    values = {each.name: getattr(options, each.name) for each in fields(MappingOptions)}
    values |= {name: _parse_columns(name, values[name]) for name in ("columns", "wide")}
    values["slug_ids"] = options.slug_ids or options.ids is not None
    if options.time_zone == "ZONE":
        raise UsageError(
            '--time-zone: "ZONE" stands for your time zone; write it, such as Europe/Berlin or UTC'
        )
    given = {
        name.replace("_", "-"): value
        for name, value in values.items()
        if value not in (None, False)
    }
    found = build_options(given, lambda name, reason: UsageError(f"--{name}: {reason}"))
    kind = found.source and registry.KINDS[found.source]
    if kind and kind.observations is None and options.servers is None:
        raise UsageError(
            f"--source {found.source}: reads server metadata only; name the file with --servers"
        )
    return found


_FORMS = {
    "columns": 'write id=NAME,at=NAME,players=NAME; quote a name with a comma: at="NAME"',
    "wide": "write at=NAME or at=NAME,except=NAME+NAME",
}


def _parse_columns(name: str, text: str | None) -> dict[str, str] | None:
    try:
        return None if text is None else parse_columns(text)
    except ValueError as error:
        raise UsageError(f"--{name}: {error}; {_FORMS[name]}") from None


def _list_names(options: SourceOptions) -> list[str]:
    """Return the names of the observation sources. A query alone is a source in memory."""
    if options.observations:
        return options.observations
    if options.query is None:
        return []
    if options.source not in {None, "duckdb"}:
        raise UsageError(f"no input; give a {options.source} source")
    return [IN_MEMORY]


def _parse_observations(
    name: str, options: SourceOptions, mapping: ColumnMapping, *, is_declared: bool
) -> Source:
    """Return the source of observations with this name.

    If the kind of --source has only server records, the name determines the kind. Raises UsageError
    if the command line declares a mapping for a kind with a fixed form.
    """
    _check_name(name)
    kind = "duckdb" if name == IN_MEMORY else options.source
    if kind is None or registry.KINDS[kind].observations is None:
        source = Source.from_name(name, options.input_format, mapping)
    else:
        registry.load_reader(kind)
        source = Source(name, kind, mapping)
    if options.query is not None:
        if not registry.KINDS[source.kind].takes_query:
            raise UsageError(
                f"--query: {source.title} is not a database; omit FILE and name it in the query"
            )
        source = replace(source, query=options.query)
    if not registry.KINDS[source.kind].is_fixed:
        return source
    if is_declared:
        raise UsageError(
            f"--source {source.kind}: has a fixed form; omit --columns, --wide, --time-zone"
            " and --time-unit"
        )
    return replace(source, mapping=STRICT)


def _parse_servers(options: SourceOptions) -> Source | None:
    """Return the source of server records: NDJSON, unless the kind has its own records."""
    name = options.source or "ndjson"
    kind = registry.KINDS[name]
    if options.servers is None:
        return _find_whole_source(options, name) if kind.is_whole else None
    _check_name(options.servers)
    if kind.records is None or kind.is_whole:
        name = "ndjson"
    registry.load_record_reader(name)
    # With --slug-ids, ids in the servers file may have any form, as in the observations.
    return Source(options.servers, name, accepts_any_id=options.slug_ids)


def _find_whole_source(options: SourceOptions, kind: str) -> Source:
    """Return the source of observations that also contains its servers' records.

    Raises UsageError for several sources, because their records can differ, and for standard input.
    """
    if not options.observations or len(options.observations) > 1:
        raise UsageError(
            f"--servers: missing, but needed for several sources of the kind {kind},"
            " whose server metadata can differ"
        )
    (name,) = options.observations
    if name == STDIN:
        raise UsageError("standard input can be read only once; use a file")
    registry.load_record_reader(kind)
    return Source(name, kind)


def _check_name(name: str) -> None:
    if not name:
        raise UsageError("input file: empty; give a file name, or - for standard input")
