"""Run queries in an embedded DuckDB, with limits, progress and signals."""

import json
import re
import tempfile
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDoneError
from contextlib import closing, contextmanager, suppress
from json import JSONDecodeError
from typing import TypeVar

import duckdb
import pyarrow as pa

from srvstat.contract.errors import EngineError
from srvstat.fleet.counts import Progress
from srvstat.sources.sql import quote_text

_Result = TypeVar("_Result")

_MORE = re.compile(r"\n\nLINE |\.?\n+This limit was set by|\n+Possible solutions")
_SECONDS_PER_REPORT = 0.2
_ROWS_PER_BATCH = 1 << 16

_OPTIONS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "preserve_insertion_order": "false",
}


class Session:
    """A connection to a database in memory, whose queries a signal can interrupt."""

    def __init__(
        self,
        connection: "duckdb.DuckDBPyConnection",
        executor: ThreadPoolExecutor,
        progress: Progress,
    ) -> None:
        self._connection = connection
        self._executor = executor
        self._progress = progress
        ((self.threads,),) = connection.execute("SELECT current_setting('threads')").fetchall()

    def execute(self, step: str, query: str, part: tuple[int, int] = (0, 1)) -> None:
        """Run a statement and report its progress under the name of a step.

        `part` is the number of the statement, counted from 0, and of all statements of the step.
        """
        self._wait(step, self._executor.submit(self._connection.execute, query), part)

    def fetch(self, step: str, query: str) -> pa.Table:
        """Return the rows of a query."""
        connection = self._connection
        return self._wait(
            step, self._executor.submit(lambda: connection.sql(query).to_arrow_table())
        )

    def stream(self, step: str, query: str) -> Generator[pa.RecordBatch]:
        """Return the rows of a query, a batch at a time."""
        connection = self._connection
        reader = self._wait(
            step,
            self._executor.submit(lambda: connection.sql(query).to_arrow_reader(_ROWS_PER_BATCH)),
        )
        while (batch := self._wait(step, self._executor.submit(next, reader, None))) is not None:
            if batch.num_rows:
                yield batch

    def create_table(self, name: str, rows: pa.Table) -> None:
        """Store rows in a new temporary table."""
        self._read_given(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM given", rows)

    def insert(self, name: str, rows: pa.Table) -> None:
        """Add rows to a table with the same columns."""
        self._read_given(f"INSERT INTO {name} SELECT * FROM given", rows)

    def _read_given(self, query: str, given: pa.Table) -> None:
        """Run a statement that reads rows under the name `given`."""

        def run() -> None:
            self._connection.register("given", given)
            try:
                self._connection.execute(query)
            finally:
                self._connection.unregister("given")

        self._wait(None, self._executor.submit(run))

    def _wait(
        self, step: str | None, future: "Future[_Result]", part: tuple[int, int] = (0, 1)
    ) -> _Result:
        try:
            while True:
                try:
                    return future.result(_SECONDS_PER_REPORT)
                except NotDoneError:
                    if future.done():  # the query raised such an error itself
                        raise
                if step:
                    share = max(self._connection.query_progress(), 0) / 100
                    self._progress(step, (part[0] + share) / part[1], "")
        except BaseException:
            self._connection.interrupt()
            raise


@contextmanager
def open_session(
    *, memory: str | None, threads: int | None, progress: Progress
) -> Iterator[Session]:
    """Open a session with a limit of memory, such as `4GiB`, and of threads.

    Queries that need more memory use temporary files, which are removed at the end.

    Raises EngineError.
    """
    with tempfile.TemporaryDirectory(prefix="srvstat-fleet-") as folder:
        try:
            connection = duckdb.connect(config=_OPTIONS)
        except duckdb.Error as error:
            raise EngineError(f"DuckDB: {describe_error(error)}") from None
        with closing(connection), ThreadPoolExecutor(1) as executor:
            _configure(connection, folder, memory, threads)
            yield Session(connection, executor, progress)


def _configure(
    connection: "duckdb.DuckDBPyConnection", folder: str, memory: str | None, threads: int | None
) -> None:
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"SET temp_directory = {quote_text(folder)}")
    if memory is not None:
        connection.execute(f"SET memory_limit = {quote_text(memory)}")
    if threads is not None:
        connection.execute(f"SET threads = {threads}")
    # The progress is computed only with a bar, which is not printed.
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")


def describe_error(error: Exception) -> str:
    """Return the message of an error in one line, without the query and advice on settings."""
    message = str(error)
    # A write in another thread gives an error as JSON.
    _, start, detail = message.partition('{"exception_type"')
    with suppress(JSONDecodeError):
        message = json.loads(start + detail)["exception_message"] if start else message
    return " ".join(_MORE.split(message)[0].split())
