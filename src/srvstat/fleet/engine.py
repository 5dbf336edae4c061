"""Count the observations of a fleet with an embedded DuckDB.

DuckDB only counts, in integers; `srvstat.contract.stats` computes the statistics.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDoneError
from contextlib import closing, contextmanager, suppress
from itertools import groupby
from json import JSONDecodeError
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import duckdb
import pyarrow as pa

from srvstat.contract import read_package_file
from srvstat.contract.errors import EngineError, SourceError, SrvstatError
from srvstat.contract.stats import Growth, Statistics, compute_growth, compute_histogram_statistics
from srvstat.contract.time import LATEST, format_instant
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.files.paths import Identity, identify_file
from srvstat.files.reading import CHANGED
from srvstat.fleet.rows import (
    ROWS,
    Conflicts,
    NativeColumns,
    find_native_columns,
    has_order,
    judge_rows,
    read_rows,
)
from srvstat.snapshot.write.intake import PLACES_PER_SOURCE, Intake
from srvstat.sources.parquet import read_metadata
from srvstat.sources.source import Reject, Source, quote_identifier, quote_text, read_batches
from srvstat.sources.values import MAX_PLAYERS, is_utf8

Progress = Callable[[str, float, str], None]
"""Called with the name of a step, the share of the step that is done, and a detail."""

_Result = TypeVar("_Result")

_MORE = re.compile(r"\n\nLINE |\.?\n+This limit was set by|\n+Possible solutions")
_SECONDS_PER_REPORT = 0.2
_ROWS_PER_BATCH = 1 << 16
_ROWS_PER_INSERT = 1 << 18
_GLOB_CHARACTERS = str.maketrans({each: f"[{each}]" for each in "*?["})


_, *_PARTS = re.split(
    r"^-- name: (\w+)$", read_package_file("fleet/engine.sql").decode(), flags=re.MULTILINE
)
_SQL = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))
"""The statements of engine.sql by name, with placeholders in braces."""


class Identified(NamedTuple):
    """Row counts of one source identifier.

    - `rows`: the number of rows.
    - `late`: the number of rows after the as-of time.
    - `last_at`, `last_position`, `last_players`: the row that is kept for the latest time up to the
      as-of time, or None if there is none.
    """

    identifier: str
    rows: int
    late: int
    last_at: int | None
    last_position: int | None
    last_players: int | None


class Servers(NamedTuple):
    """The public servers, and a map from identifiers to servers.

    - `ids`: the servers' ids in ascending order. A server's number is its position here.
    - `numbers`: identifier → server number, for the identifiers to keep.
    - `shards`: the shard of each server, or empty if there are no shards.
    """

    ids: Sequence[str]
    numbers: Mapping[str, int]
    shards: Sequence[int] = ()


class Resolved(NamedTuple):
    """The result of resolving repeated and conflicting observations (D16).

    `conflict` describes one of the conflicts, for messages.
    """

    kept: int
    repeated: int
    conflicting: int
    conflict: str | None = None

    @property
    def rows(self) -> int:
        """The number of rows in the window."""
        return self.kept + self.repeated + self.conflicting


class Session:
    """A connection to an in-memory database, whose queries a signal can interrupt."""

    def __init__(
        self,
        connection: "duckdb.DuckDBPyConnection",
        executor: ThreadPoolExecutor,
        progress: Progress,
    ) -> None:
        self._connection = connection
        self._executor = executor
        self._progress = progress

    def execute(self, step: str, query: str) -> None:
        """Run a statement, and report its progress under the name of a step."""
        self._wait(step, self._executor.submit(self._connection.execute, query))

    def stream(self, step: str, query: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query in batches."""

        def read() -> pa.RecordBatchReader:
            return self._connection.sql(query).to_arrow_reader(_ROWS_PER_BATCH)

        reader = self._wait(step, self._executor.submit(read))
        while (batch := self._wait(step, self._executor.submit(next, reader, None))) is not None:
            yield batch

    def read(self, step: str, query: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query as tuples."""
        for batch in self.stream(step, query):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def insert(self, table: str, rows: pa.Table) -> None:
        """Add rows to a table with the same columns."""

        def run() -> None:
            self._connection.register("given", rows)
            try:
                self._connection.execute(f"INSERT INTO {table} SELECT * FROM given")
            finally:
                self._connection.unregister("given")

        self._wait(None, self._executor.submit(run))

    def fill(self, table: str, *columns: pa.Array) -> None:
        """Replace the rows of a table."""
        self._wait(None, self._executor.submit(self._connection.execute, f"TRUNCATE {table}"))
        self.insert(table, pa.table([*columns], [*map(str, range(len(columns)))]))

    def _wait(self, step: str | None, future: "Future[_Result]") -> _Result:
        try:
            while True:
                try:
                    return future.result(_SECONDS_PER_REPORT)
                except NotDoneError:
                    if future.done():  # the query itself raised such an error
                        raise
                if step:
                    share = max(self._connection.query_progress(), 0) / 100
                    self._progress(step, share, "")
        except BaseException:
            self._connection.interrupt()
            raise


@contextmanager
def open_engine(
    intake: Intake,
    conflicts: Conflicts,
    *,
    memory: int | None,
    threads: int | None,
    progress: Progress,
) -> Iterator["Engine"]:
    """Open DuckDB with limits on memory, in bytes, and on threads.

    Reads all sources except Parquet immediately. Queries that need more memory use temporary files,
    which are removed at the end.

    Raises SourceError if a source can't be read, EngineError if DuckDB fails, and
    MissingLibraryError if a format's library is missing.
    """
    with tempfile.TemporaryDirectory(prefix="srvstat-fleet-") as folder:
        config = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "preserve_insertion_order": "false",
            "temp_directory": folder,
            **({} if memory is None else {"memory_limit": f"{memory}B"}),
            **({} if threads is None else {"threads": str(threads)}),
        }
        try:
            connection = duckdb.connect(config=config)
        except duckdb.Error as error:
            raise EngineError(f"DuckDB: {_describe_error(error)}") from None
        with closing(connection), ThreadPoolExecutor(1) as executor:
            engine = Engine(Session(connection, executor, progress), intake, conflicts)
            with engine.convert_errors():
                engine.prepare(progress)
            yield engine


class Engine:
    """Counts the rows of a job's sources.

    `intake`: after the survey, holds the rows that are not observations.

    All methods raise SourceError if a source can't be read or has changed, or if conflicting
    observations have no order; and EngineError if DuckDB fails.
    """

    def __init__(self, session: Session, intake: Intake, conflicts: Conflicts) -> None:
        self.intake = intake
        self.conflicts = conflicts
        self._session = session
        self._sources = intake.inputs.observations
        self._files: dict[NativeColumns, list[tuple[int, Source]]] = {}
        self._rows = 0  # the number of rows in `_files`
        self._identities: dict[str, Identity] = {}
        names = ("players", "position") if conflicts == "lowest" else ("position", "players")
        self._order = "struct_pack({})".format(", ".join(f"{name} := {name}" for name in names))

    def prepare(self, progress: Progress) -> None:
        """Find the files that DuckDB can read, and read all other sources into a table."""
        self._session.execute("reading", _SQL["prepare"])
        others = [
            (number, source)
            for number, source in enumerate(self._sources)
            if not self._add_native(number, source)
        ]
        parts = [_select(columns, files) for columns, files in self._files.items()]
        rows = "\nUNION ALL\n".join([*parts, "SELECT * FROM staged"])
        self._session.execute("reading", f"CREATE TEMP VIEW rows AS {rows}")
        for done, (number, source) in enumerate(others):
            progress("reading", done / len(others), source.title)
            self._stage(number, source)

    def _add_native(self, number: int, source: Source) -> bool:
        """Add a file if DuckDB can read it. Return whether it can."""
        if source.kind != "parquet" or not _can_be_named(source.name):
            return False
        identity = identify_file(source.name)
        metadata = read_metadata(source)
        columns = find_native_columns(source, metadata)
        if columns is None:
            return False
        self._identities[source.name] = identity
        self._files.setdefault(columns, []).append((number, source))
        self.intake.rows_of[number] += metadata.num_rows
        self._rows += metadata.num_rows
        return True

    def _stage(self, number: int, source: Source) -> None:
        """Read a source with our own reader, and store its rows."""
        batches: list[pa.RecordBatch] = []
        for batch in read_rows(source, number, self.intake):
            batches.append(batch)
            if sum(each.num_rows for each in batches) >= _ROWS_PER_INSERT:
                self._session.insert("staged", pa.Table.from_batches(batches))
                batches = []
        self._session.insert("staged", pa.Table.from_batches(batches, ROWS))

    def survey(self) -> list[Identified]:
        """Read all rows, and return their identifiers in order."""
        as_of, rejects = self.intake.inputs.as_of, self.intake.rejects
        end = LATEST if as_of is None else as_of
        with self.convert_errors():
            self._session.execute("survey", _SQL["survey"].format(end=end))
            query = _SQL["last_rows"].format(order=self._order)
            found = [Identified(*row) for row in self._session.read("survey", query)]
            ((staged,),) = self._session.read("survey", "SELECT count(*) FROM staged")
            malformed = self._rows + staged - sum(each.rows for each in found)
            before = rejects.malformed + self.intake.skipped.total()
            if malformed:
                for columns, files in self._files.items():
                    batches = self._session.stream("survey", _select_malformed(columns, files))
                    judge_rows(files[0][1], columns, batches, self.intake)
            if malformed != rejects.malformed + self.intake.skipped.total() - before:
                raise EngineError(
                    "internal error: DuckDB read a row twice or not at all; please report this"
                )
        return found

    def reject(self, identifiers: Sequence[str], reason: str) -> None:
        """Reject the rows of these identifiers."""
        with self.convert_errors():
            self._session.fill("named", pa.array(identifiers, pa.string()))
            query = _SQL["locate"].format(places=PLACES_PER_SOURCE)
            for rows, first, name in self._session.read("survey", query):
                self.intake.rejects.add(first, Reject(0, reason, name, name, rows=rows))

    def count(self, servers: Servers, window: Window) -> tuple[dict[int, Statistics], Resolved]:
        """Count observations in a window, and compute statistics by server number."""
        with self.convert_errors():
            resolved = self._resolve(servers, window)
            rows = self._session.read("finishing", _SQL["histograms"])
            groups = groupby(rows, itemgetter(0))
            figures = {number: _compute_figures([*group]) for number, group in groups}
        return figures, resolved

    def write_rows(self, servers: Servers, until: int, folder: str) -> Resolved:
        """Write the resolved observations up to a time as Parquet files, by shard.

        `folder`: a new folder. The files of shard 3 are `folder/shard=3/*.parquet`, with the
        columns `serverId` (the id of the server), `observedAt` (Unix milliseconds) and `players`.
        """
        window = Window(BEFORE_ALL, until)
        numbers = pa.array([*range(len(servers.ids))], pa.int32())
        with self.convert_errors():
            resolved = self._resolve(servers, window)
            shards = pa.array(servers.shards, pa.int32())
            self._session.fill("servers", numbers, pa.array(servers.ids, pa.string()), shards)
            query = _SQL["write"].format(groups=_format_groups(window), folder=quote_text(folder))
            self._session.execute("writing", query)
        return resolved

    def _resolve(self, servers: Servers, window: Window) -> Resolved:
        """Resolve the rows of servers in a window, and count the kept rows."""
        names = pa.array([*servers.numbers], pa.string())
        self._session.fill("numbers", names, pa.array([*servers.numbers.values()], pa.int32()))
        self._session.execute("counting", _SQL["count"].format(groups=_format_groups(window)))
        ((kept, read, contested),) = self._session.read("counting", _SQL["totals"])
        query = _SQL["contested"].format(has_conflict="true" if contested else "false")
        self._session.execute("resolving conflicts", query)
        self._session.execute("resolving conflicts", _SQL["resolve"].format(order=self._order))
        sources = enumerate(self._sources)
        unordered = [number for number, source in sources if not has_order(source)]
        if unordered and self.conflicts == "first":
            condition = (
                f"position = first_position AND position // {PLACES_PER_SOURCE} IN {unordered}"
            )
            if conflict := self._find_conflict(servers, condition):
                raise SourceError(
                    f"{conflict}; the rows of a database have no order in which one is the first:"
                    " add --conflicts lowest, or remove one of them"
                )
        query = "SELECT count(*) FROM conflicts"
        ((conflicting,),) = self._session.read("resolving conflicts", query)
        conflict = self._find_conflict(servers, "true") if conflicting else None
        return Resolved(kept, read - kept - conflicting, conflicting, conflict)

    def _find_conflict(self, servers: Servers, condition: str) -> str | None:
        """Describe the first observation that conflicts with a kept observation, or return None."""
        query = f"FROM conflicts WHERE {condition} ORDER BY ALL LIMIT 1"
        for row in self._session.read("resolving conflicts", query):
            number, at, position, players, first_position, first_players = row
            place, first_place = map(self.intake.rejects.format_place, (position, first_position))
            return (
                f"{place}: server {servers.ids[number]} has {players} players at"
                f" {format_instant(at)}, but {first_players} in {first_place}"
            )
        return None

    @contextmanager
    def convert_errors(self) -> Iterator[None]:
        """Convert DuckDB's errors in a block. First checks whether a file has changed."""
        try:
            yield
        except (duckdb.Error, pa.ArrowException) as error:
            self._check_files()
            raise self._explain(error) from None
        except SrvstatError:
            self._check_files()
            raise
        self._check_files()

    def _check_files(self) -> None:
        for source in self._sources:
            identity = self._identities.get(source.name)
            if identity is not None and identify_file(source.name) != identity:
                raise SourceError(f"{source.title}: {CHANGED}")

    def _explain(self, error: Exception) -> SrvstatError:
        """Convert an error of DuckDB. If a file can't be read, our own reader finds it."""
        reason = _describe_error(error)
        if isinstance(error, duckdb.OutOfMemoryException):
            return EngineError(f"DuckDB: {reason}; raise --memory or free disk space")
        for source in self._sources:
            if source.name in self._identities:
                for _ in read_batches(source):
                    pass
        return EngineError(f"DuckDB: {reason}")


def _can_be_named(path: str) -> bool:
    """Return whether DuckDB can open exactly the file with this path.

    DuckDB treats paths as glob patterns, and its escapes do not cover every file name.
    """
    is_pattern = path.translate(_GLOB_CHARACTERS) != path
    return is_utf8(path) and not (is_pattern and "\\" in path)  # patterns can't contain backslashes


def _select(columns: NativeColumns, files: Sequence[tuple[int, Source]]) -> str:
    """Return a query for the well-formed rows of files, with the columns of ROWS."""
    identifier, players = quote_identifier(columns.id), quote_identifier(columns.players)
    return f"""
        SELECT
            coalesce({identifier}, '') AS identifier, ({columns.build_instant()})::BIGINT AS "at",
            {players}::BIGINT AS players, {_build_position(files)} AS position
        FROM {_build_table(files)} WHERE {_build_condition(columns)}"""


def _select_malformed(columns: NativeColumns, files: Sequence[tuple[int, Source]]) -> str:
    """Return a query for the malformed rows of files, as stored, with their positions."""
    names = ", ".join(map(quote_identifier, columns[:3]))
    return (
        f"SELECT {names}, {_build_position(files)} AS position FROM {_build_table(files)}"
        f" WHERE ({_build_condition(columns)}) IS NOT TRUE"
    )


def _build_condition(columns: NativeColumns) -> str:
    players = quote_identifier(columns.players)
    return f"{columns.build_condition()} AND {players} BETWEEN 0 AND {MAX_PLAYERS}"


def _build_position(files: Sequence[tuple[int, Source]]) -> str:
    numbers = [number for number, _ in files]
    return (
        f"({numbers}[file_index::BIGINT + 1]::BIGINT * {PLACES_PER_SOURCE}) + file_row_number + 1"
    )


def _build_table(files: Sequence[tuple[int, Source]]) -> str:
    names = (quote_text(source.name.translate(_GLOB_CHARACTERS)) for _, source in files)
    return f"read_parquet([{', '.join(names)}], hive_partitioning = false)"


def _format_groups(window: Window) -> str:
    return _SQL["groups"].format(first=window.first, last=window.end)


def _compute_figures(values: Sequence[tuple[int, int, int, int, int]]) -> Statistics:
    """Return the statistics of a server.

    `values`: tuples of the server number, a player count, its number of observations, and their
    first and last times.
    """
    histogram = {players: count for _, players, count, _, _ in values}
    first = min(values, key=itemgetter(3))[1]
    last = max(values, key=itemgetter(4))[1]
    is_one = sum(histogram.values()) == 1
    growth = Growth(None, None) if is_one else compute_growth(first, last)
    return compute_histogram_statistics(histogram, growth)


def _describe_error(error: Exception) -> str:
    """Return an error's message in one line, without the query and advice on settings."""
    message = str(error)
    # An error of a write in another thread is JSON.
    _, start, detail = message.partition('{"exception_type"')
    with suppress(JSONDecodeError):
        message = json.loads(start + detail)["exception_message"] if start else message
    return " ".join(_MORE.split(message)[0].split())
