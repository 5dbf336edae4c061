"""Build and update snapshots from data frames of pandas, polars, Arrow, DuckDB and others."""

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from os import PathLike, fsdecode
from typing import Any, TypedDict, Unpack

from srvstat.api.arguments import Time, parse_time, warn_of_old_name
from srvstat.contract import wire
from srvstat.contract.errors import SnapshotError, SourceError, SrvstatError, UsageError
from srvstat.documents.rows import import_pyarrow
from srvstat.documents.snapshot import BuildSummary, UpdateSummary
from srvstat.render.summary import format_dropped_rows
from srvstat.snapshot.write.build import build as build_snapshot
from srvstat.snapshot.write.intake import Inputs, RejectLimit
from srvstat.snapshot.write.update import update as update_snapshot
from srvstat.sources.mapping import MappingOptions, build_options, list_options
from srvstat.sources.registry import KINDS, Kind
from srvstat.sources.source import IN_MEMORY, Batch, Source
from srvstat.sources.tables import check_columns

KINDS["frame"] = Kind((), f"{__name__}:read", extra="parquet", is_object=True)

_OPTION = re.compile("--([a-z][a-z-]+)")


class ReadingArguments(TypedDict, total=False):
    """Options for reading a data frame. They match the options of `srvstat snapshot build`."""

    columns: Mapping[str, str]
    wide: Mapping[str, str]
    id: str
    time_zone: str
    time_unit: str
    time_format: str
    thousands: str
    round: bool
    hold: bool
    slug_ids: bool
    ids: str
    game: str


class BuildArguments(ReadingArguments, total=False):
    """Options for reading a data frame, the servers file, and the handling of bad rows."""

    servers: str | PathLike[str] | None
    at: Time | None
    as_of: Time | None
    rejects: str | PathLike[str] | None
    max_rejected: int | str | None
    strict: bool


@dataclass(frozen=True, slots=True)
class _Frame(Source):
    """A data frame as a source."""

    name: str = IN_MEMORY
    kind: str = "frame"
    data: Any = None

    @property
    def is_in_memory(self) -> bool:
        """Always true: a data frame is not a file."""
        return True

    @property
    def title(self) -> str:
        """The name of the source, in messages and in the snapshot."""
        return "data frame"


def read(source: _Frame) -> Iterator[Batch]:
    """Read the observations of a data frame, in row order.

    Raises SourceError if Arrow can't represent the data or a mapped column is missing, and
    MissingLibraryError if pyarrow is missing.
    """
    pa = import_pyarrow()
    from srvstat.sources import parquet  # noqa: PLC0415 - it needs pyarrow too

    try:
        with pa.RecordBatchReader.from_stream(source.data) as reader:
            stored = reader.schema.names
            wanted = check_columns(source, parquet.list_names(stored))
            most = parquet.count_rows_per_batch(len(wanted))
            chosen = [name for name in stored if name in wanted]
            tables = (pa.Table.from_batches([batch]).select(chosen) for batch in reader)
            parts = chain.from_iterable(table.to_batches(most) for table in tables)
            yield from parquet.convert_batches(source, parts)
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())
        raise SourceError(f"{source.title}: can't convert to Arrow: {reason}") from None


def build(
    data: Any,
    path: str | PathLike[str],
    *,
    overwrite: bool = False,
    allow_empty: bool = False,
    **arguments: Unpack[BuildArguments],
) -> BuildSummary:
    """Build a snapshot from a data frame, as `srvstat snapshot build` does.

    - `data`: any object with an Arrow C stream, such as a pandas or polars data frame. It must have
      the columns `serverId`, `observedAt` and `players`, unless `columns` or `wide` specifies
      different ones.
    - `path`: the file to write.
    - `overwrite`: whether to replace an existing file. Default: false.
    - `allow_empty`: whether to allow a snapshot without servers or observations. Default: false.
    - `columns`: column names, such as `{"id": "server", "at": "time", "players": "online"}`.
    - `wide`: `{"at": "time"}` for a frame with one column per server.
    - `time_zone`: the time zone of times that have no UTC offset, such as `UTC` or `Europe/Berlin`.
    - `servers`: the path of a servers file.
    - `at`: the end of the snapshot. Default: the latest observation.
    - `rejects`: the path of a file for rejected rows.
    - `max_rejected`: the maximum number or share of malformed rows, such as `100` or `"2.5%"`.
    - `strict`: whether to fail on the first malformed or conflicting row. Default: false.
    - `id`: the server of all rows, for a frame without a column of identifiers.
    - `time_unit`: the unit of numeric times: `s`, `ms`, `us` or `ns`.
    - `time_format`: `day-first`, `month-first`, or a strptime format such as `%d.%m.%y`.
    - `thousands`: the thousands separator in counts: a comma, point, space or apostrophe.
    - `round`: whether to round fractional counts. Default: false.
    - `hold`: whether each count is valid until the next one. Default: false.
    - `slug_ids`: whether to convert identifiers to valid API ids. Default: false.
    - `game`: `game_a` or `game_b`, the game of servers without one in the servers file.
    - `as_of`, `ids`: deprecated names of `at` and `slug_ids`.

    Returns a BuildSummary: `kept` and `rejected` are numbers of rows, and `servers` is the number
    of servers. Issues a warning if rows are not kept.

    Raises SourceError if the data can't be read or too many rows are rejected, UsageError for an
    invalid argument, OutputError if the file can't be written, ImportError if pyarrow is not
    installed, and TypeError if `data` is not a data frame.

    >>> polls = {"serverId": ["lobby"], "observedAt": ["2026-03-01T12:00Z"], "players": [40]}
    >>> srvstat.build(polars.DataFrame(polls), "games.db")
    <BuildSummary 1 of 1 rows kept, 1 server>
    """
    with _name_arguments():
        inputs = replace(_describe(data, arguments), allow_empty=allow_empty)
        rejects = _find_path(arguments.get("rejects"))
        summary = build_snapshot(fsdecode(path), inputs, rejects=rejects, overwrite=overwrite)
    _warn(summary, 3)
    return summary


def update(
    path: str, reading: Mapping[str, Any], data: Any, arguments: BuildArguments
) -> UpdateSummary:
    """Add a data frame to a snapshot. `reading` holds the options of its build.

    Warns as `build` does. Raises the errors of `build`, and SnapshotError if the snapshot is
    damaged or its options are invalid.
    """
    with _name_arguments():
        remembered = build_options(
            reading, lambda name, why: SnapshotError(f"{path}: {name}: {why}")
        )
        inputs = _describe(data, arguments, remembered)
        rejects = _find_path(arguments.get("rejects"))
        summary = update_snapshot(path, inputs, rejects=rejects)
    _warn(summary.rows, 4)
    return summary


def _describe(
    data: Any, arguments: BuildArguments, remembered: MappingOptions | None = None
) -> Inputs:
    """Return the inputs of a build or an update.

    Raises UsageError for an invalid argument, and TypeError if `data` is not a data frame.
    """
    import_pyarrow()  # fail before anything is written
    if not hasattr(data, "__arrow_c_stream__"):
        raise TypeError("data: must be a data frame of pandas, polars or Arrow")
    for name, new in (("as_of", "at"), ("ids", "slug_ids")):
        level = 4 if remembered is None else 5  # of the caller to warn
        warn_of_old_name(name, {**arguments}.get(name), new, level=level)
    at = arguments.get("as_of") if arguments.get("at") is None else arguments.get("at")
    others = BuildArguments.__annotations__.keys() - ReadingArguments.__annotations__.keys()
    given = {
        name.replace("_", "-"): value
        for name, value in arguments.items()
        if name not in others and value not in (None, False)
    }
    options = build_options(given, lambda name, why: UsageError(f"{name}: {why}"))
    if remembered:
        options = options.merge(remembered)
    servers, limit = _find_path(arguments.get("servers")), arguments.get("max_rejected")
    uses_slugs = bool(options.slug_ids)
    return Inputs(
        None if servers is None else Source(servers, "ndjson", accepts_any_id=uses_slugs),
        [_Frame(mapping=options.build_mapping(), data=data)],
        uses_slugs,
        options.game,
        reading=wire.encode(list_options(options)).decode(),
        as_of=parse_time("at", at),
        strict=arguments.get("strict", False),
        max_rejected=None if limit is None else _parse_limit(str(limit)),
    )


def _parse_limit(text: str) -> RejectLimit:
    try:
        return RejectLimit.parse(text)
    except ValueError as error:
        raise UsageError(f"max_rejected: {error}") from None


def _find_path(path: str | PathLike[str] | None) -> str | None:
    return None if path is None else fsdecode(path)


@contextmanager
def _name_arguments() -> Iterator[None]:
    """Replace option names in a message with argument names, such as time_zone for --time-zone."""
    try:
        yield
    except SrvstatError as error:
        error.reason = _OPTION.sub(lambda match: match[1].replace("-", "_"), error.reason)
        error.args = (error.reason,)
        raise


def _warn(summary: BuildSummary, stacklevel: int) -> None:
    """Warn about rows that were not kept, with the command's messages."""
    for line in (*format_dropped_rows(summary), *summary.warnings):
        warnings.warn(line, stacklevel=stacklevel)
