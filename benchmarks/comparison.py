"""Time the comparison of five servers in this process: srvstat, and its peers on the same rows.

Each engine is warm: its file is open and cached, and its statement is prepared or parsed.
"""

import asyncio
import gc
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from math import ceil
from statistics import median
from typing import Any, NamedTuple, TypeVar

import duckdb
import pandas as pd
import polars as pl
from datasette.app import Datasette

from benchmarks import queries
from benchmarks.data import FleetFiles
from benchmarks.measure import print_progress, time_calls
from benchmarks.questions import (
    Answer,
    Request,
    Row,
    check_answers,
    compute_answers,
    draw_requests,
    read_body,
    read_objects,
    read_rows,
)
from srvstat import operations
from srvstat.contract.requests import parse_compare_request
from srvstat.contract.windows import Range
from srvstat.snapshot.read.reader import open_file

SRVSTAT = "srvstat"
DUCKDB = ("DuckDB, median()", "DuckDB, histogram")
POLARS, PANDAS, DATASETTE = "polars", "pandas", "Datasette"
TIMED: tuple[Range, ...] = ("24h", "1y")

SETUPS = {
    SRVSTAT: "From the bytes of a request body to the bytes of the answer.",
    " and ".join(DUCKDB): "A native table with 16-bit servers and players, sorted by server and"
    " time; two threads; one prepared statement for all five servers, executed with literals. The"
    " figures use the faster of the two forms.",
    POLARS: "All observations in memory, one sorted series a server; binary search for the window.",
    PANDAS: "`read_sql` on a SQLite table by server and time, one query a server.",
    DATASETTE: "`Datasette.client` without a network, SQL in the calling thread, the table as an"
    " immutable file, a canned query with a histogram, 64 MiB of cache.",
}
"""The setup of each engine, for the page."""

_CHECKED = 10
_MAX_CALLS = 200


class Engine(NamedTuple):
    """A program or library that answers requests in this process.

    `ask` answers in the engine's own form and is timed; `read` reads the answers from its result.
    """

    name: str
    ask: Callable[[Request], Any]
    read: Callable[[Any, Request], list[Answer]]


def time_engines(
    files: FleetFiles, *, rounds: int, seconds: float
) -> dict[tuple[str, Range], float]:
    """Check the answers of each engine, and return its median seconds for each range.

    Raises WrongAnswerError.
    """
    times: dict[tuple[str, Range], list[float]] = defaultdict(list)
    with _open_engines(files) as engines:
        print_progress(f"comparing the answers of {len(engines)} engines")
        for range, engine in ((range, engine) for range in TIMED for engine in engines):
            for request in draw_requests("check", files, range, _CHECKED):
                answers = engine.read(engine.ask(request), request)
                check_answers(engine.name, request, answers, compute_answers(request))
        freeze_garbage()
        for number, turn in enumerate(rotate_order(engines, rounds)):
            print_progress(f"timing {len(engines)} engines, round {number + 1} of {rounds}")
            files.warm_cache()
            for range, engine in ((range, engine) for range in TIMED for engine in turn):
                *_, taken = time_calls(engine.ask, draw_requests("warm", files, range, 2))
                calls = ceil(min(_MAX_CALLS, seconds / taken) / rounds)
                requests = draw_requests(f"round {number}", files, range, calls)
                times[engine.name, range] += time_calls(engine.ask, requests)
    return {key: median(found) for key, found in times.items()}


def freeze_garbage() -> None:
    """Keep the garbage collector from scanning existing objects in the middle of a call."""
    gc.collect()
    gc.freeze()


_Some = TypeVar("_Some")


def rotate_order(some: Sequence[_Some], rounds: int) -> Iterator[Sequence[_Some]]:
    """Yield the items once per round, each time rotated by one: the load of a machine varies."""
    for number in range(rounds):
        first = number % len(some)
        yield [*some[first:], *some[:first]]


@contextmanager
def _open_engines(files: FleetFiles) -> Iterator[list[Engine]]:
    families = (_open_srvstat, _open_duckdb, _open_polars, _open_pandas, _open_datasette)
    with ExitStack() as stack:
        yield [engine for family in families for engine in stack.enter_context(family(files))]


@contextmanager
def _open_srvstat(files: FleetFiles) -> Iterator[list[Engine]]:
    with closing(open_file(files.snapshot)) as snapshot:

        def ask(request: Request) -> bytes:
            return operations.compare(snapshot, parse_compare_request(request.body)).to_json()

        yield [Engine(SRVSTAT, ask, read_body)]


@contextmanager
def _open_duckdb(files: FleetFiles) -> Iterator[list[Engine]]:
    parameters = [f"${place}" for place in range(1, len(queries.PARAMETERS) + 1)]
    forms = (queries.build_duckdb_median, queries.build_duckdb_histogram)
    with duckdb.connect(files.duckdb_path(), read_only=True, config={"threads": 2}) as connection:

        def make_engine(name: str, statement: str, query: str) -> Engine:
            connection.execute(f"PREPARE {statement} AS {query}")

            def ask(request: Request) -> list[Row]:
                literals = ", ".join(map(str, (*request.keys, *request.window)))
                return list(connection.execute(f"EXECUTE {statement}({literals})").fetchall())

            return Engine(name, ask, read_rows)

        yield [
            make_engine(name, f"form_{place}", form(parameters[:5], *parameters[5:]))
            for place, (name, form) in enumerate(zip(DUCKDB, forms, strict=True))
        ]


@contextmanager
def _open_polars(files: FleetFiles) -> Iterator[list[Engine]]:
    whole = pl.read_parquet(files.parquet_path())
    parts = {key: part for (key,), part in whole.partition_by("server", as_dict=True).items()}
    columns = {key: (part["observed_at"], part["players"]) for key, part in parts.items()}

    def ask(request: Request) -> list[Row]:
        rows: list[Row] = []
        for key in request.keys:
            instants, values = columns[key]
            start, end = (instants.search_sorted(at, "right") for at in request.window)
            part = values.slice(start, end - start)
            if len(part):
                mean, middle, peak, lowest = part.mean(), part.median(), part.max(), part.min()
                rows.append((key, len(part), mean, middle, peak, lowest, part[0], part[-1]))
        return rows

    yield [Engine(POLARS, ask, read_rows)]


@contextmanager
def _open_pandas(files: FleetFiles) -> Iterator[list[Engine]]:
    query = (
        "SELECT players FROM observations"
        " WHERE server = ? AND observed_at > ? AND observed_at <= ? ORDER BY observed_at"
    )
    location = f"file:{files.sqlite_path()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(location, uri=True)) as connection:
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute(f"PRAGMA mmap_size = {1 << 36}")

        def ask(request: Request) -> list[Row]:
            rows: list[Row] = []
            for key in request.keys:
                part = pd.read_sql(query, connection, params=(key, *request.window))["players"]
                if len(part):
                    mean, middle, peak, lowest = part.mean(), part.median(), part.max(), part.min()
                    ends = part.iloc[0], part.iloc[-1]
                    rows.append((key, len(part), mean, middle, peak, lowest, *ends))
            return rows

        yield [Engine(PANDAS, ask, read_rows)]


@contextmanager
def _open_datasette(files: FleetFiles) -> Iterator[list[Engine]]:
    with closing(asyncio.new_event_loop()) as loop:
        service = Datasette(
            immutables=[files.sqlite_path()],
            metadata=queries.DATASETTE,
            settings=queries.DATASETTE_SETTINGS,
        )

        def ask(request: Request) -> bytes:
            got = loop.run_until_complete(service.client.get(queries.build_datasette_path(request)))
            return bytes(got.raise_for_status().content)

        yield [Engine(DATASETTE, ask, read_objects)]
