"""Engines that answer in this process: srvstat, and its peers on the same observations.

Each engine is warm: its file is open and cached, and its statement is prepared or parsed.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pandas as pd
import polars as pl
from datasette.app import Datasette

from benchmarks import queries
from benchmarks.data import FleetFiles
from benchmarks.questions import (
    Answer,
    Request,
    Row,
    read_body,
    read_objects,
    read_rows,
)
from srvstat import operations
from srvstat.contract.requests import parse_compare_request
from srvstat.snapshot.read.reader import open_file
from srvstat.stats import Statistics

SRVSTAT = "srvstat, request to bytes"
STATISTICS = "srvstat, statistics only"
DUCKDB = ("DuckDB, median()", "DuckDB, histogram")
"""Two forms, because neither is faster for all ranges."""

SETUPS = {
    SRVSTAT: "From the bytes of a request body to the bytes of the answer: decode, validate, find"
    " the servers, compute, encode.",
    STATISTICS: "`find_servers` and `compute_statistics` on the same snapshot, without validation"
    " and JSON.",
    DUCKDB[0]: "A native table with 16-bit servers and players, sorted by server and time; two"
    " threads; one prepared statement for all five servers, with `median`, `arg_min` and"
    " `arg_max`. Executed with literals, which is faster here than bound parameters.",
    DUCKDB[1]: "The same, but counts each value and ranks the counts: slower for short ranges,"
    " faster for long ones. The requirements use the faster form for each range.",
    "sqlite3, histogram": "The Python module on a table of observations, a B-tree by server"
    " and time; 64 MiB of cache, memory-mapped. One `GROUP BY players` per server, joined by"
    " `UNION ALL`: twice as fast as `server IN (…)`.",
    "sqlite3, window function": "The same with `row_number() OVER (ORDER BY players)`.",
    "polars, in memory": "All observations in memory, as one sorted series per server; binary"
    " search for the window, then a slice without a copy. Faster than a filter with `group_by`.",
    "polars, Parquet": "`scan_parquet` of a file sorted by server and time, with about one row"
    " group per server, then filter, `group_by` and aggregates in one lazy query.",
    "pandas.read_sql": "The same table with the same connection settings, one query"
    " per server: faster than one query with `groupby`.",
    "Datasette, in process": "`Datasette.client` without a network, SQL in the calling thread, the"
    " table as an immutable file, the histogram SQL as a canned query, 64 MiB of cache.",
}
"""The setup of each engine, for the report."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A program or library that answers requests in this process."""

    name: str
    files: FleetFiles
    """The fleet that it queries."""
    ask: Callable[[Request], Any]
    """Answers a request in the engine's own form; this is timed."""
    read: Callable[[Any, Request], list[Answer]]
    """Reads the answers from the result of `ask`; this is not timed."""


@contextmanager
def open_engines(files: FleetFiles) -> Iterator[list[Engine]]:
    """Open srvstat and every peer on one fleet."""
    families = (
        open_srvstat,
        _open_duckdb,
        _open_sqlite3,
        _open_polars,
        _open_pandas,
        _open_datasette,
    )
    with ExitStack() as stack:
        yield [engine for family in families for engine in stack.enter_context(family(files))]


@contextmanager
def open_srvstat(files: FleetFiles) -> Iterator[list[Engine]]:
    """Open srvstat: from request to bytes, and only its statistics."""
    with closing(open_file(files.snapshot)) as snapshot:

        def ask(request: Request) -> bytes:
            return operations.compare(snapshot, parse_compare_request(request.body)).to_json()

        def ask_statistics(request: Request) -> list[Statistics]:
            servers = [server for server in snapshot.find_servers(request.references) if server]
            return snapshot.compute_statistics(servers, request.window)

        yield [
            Engine(SRVSTAT, files, ask, read_body),
            Engine(STATISTICS, files, ask_statistics, _read_statistics),
        ]


def _read_statistics(found: list[Statistics], _request: Request) -> list[Answer]:
    return [
        Answer(
            one.observations,
            one.mean,
            one.median,
            one.peak,
            one.lowest,
            one.growth.players,
            one.growth.percentage,
        )
        for one in found
    ]


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

            return Engine(name, files, ask, read_rows)

        yield [
            make_engine(name, f"form_{place}", form(parameters[:5], *parameters[5:]))
            for place, (name, form) in enumerate(zip(DUCKDB, forms, strict=True))
        ]


@contextmanager
def _open_sqlite3(files: FleetFiles) -> Iterator[list[Engine]]:
    with _connect(files) as connection:

        def make_engine(name: str, query: str) -> Engine:
            def ask(request: Request) -> list[Row]:
                return connection.execute(query, queries.build_parameters(request)).fetchall()

            return Engine(name, files, ask, read_rows)

        yield [
            make_engine("sqlite3, histogram", queries.build_sqlite_histogram(*queries.NAMED)),
            make_engine(
                "sqlite3, window function", queries.build_sqlite_window_function(*queries.NAMED)
            ),
        ]


@contextmanager
def _open_polars(files: FleetFiles) -> Iterator[list[Engine]]:
    whole, lazy = pl.read_parquet(files.parquet_path()), pl.scan_parquet(files.parquet_path())
    parts = {key: part for (key,), part in whole.partition_by("server", as_dict=True).items()}
    columns = {key: (part["observed_at"], part["players"]) for key, part in parts.items()}
    players = pl.col("players")
    figures = {
        "count": pl.len(),
        "mean": players.mean(),
        "median": players.median(),
        "peak": players.max(),
        "lowest": players.min(),
        "first": players.first(),
        "last": players.last(),
    }

    def ask_memory(request: Request) -> list[Row]:
        rows: list[Row] = []
        for key in request.keys:
            instants, values = columns[key]
            start, end = (instants.search_sorted(at, "right") for at in request.window)
            part = values.slice(start, end - start)
            if len(part):
                mean, median, peak, lowest = part.mean(), part.median(), part.max(), part.min()
                rows.append((key, len(part), mean, median, peak, lowest, part[0], part[-1]))
        return rows

    def ask_parquet(request: Request) -> list[Row]:
        inside = lazy.filter(
            pl.col("server").is_in(request.keys),
            pl.col("observed_at") > request.window.start,
            pl.col("observed_at") <= request.window.end,
        )
        return list(inside.group_by("server").agg(**figures).collect().rows())

    yield [
        Engine("polars, in memory", files, ask_memory, read_rows),
        Engine("polars, Parquet", files, ask_parquet, read_rows),
    ]


@contextmanager
def _open_pandas(files: FleetFiles) -> Iterator[list[Engine]]:
    query = (
        "SELECT players FROM observations"
        " WHERE server = ? AND observed_at > ? AND observed_at <= ? ORDER BY observed_at"
    )
    with _connect(files) as connection:

        def ask(request: Request) -> list[Row]:
            rows: list[Row] = []
            for key in request.keys:
                part = pd.read_sql(query, connection, params=(key, *request.window))["players"]
                if len(part):
                    mean, median, peak, lowest = part.mean(), part.median(), part.max(), part.min()
                    ends = part.iloc[0], part.iloc[-1]
                    rows.append((key, len(part), mean, median, peak, lowest, *ends))
            return rows

        yield [Engine("pandas.read_sql", files, ask, read_rows)]


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

        yield [Engine("Datasette, in process", files, ask, read_objects)]


@contextmanager
def _connect(files: FleetFiles) -> Iterator[sqlite3.Connection]:
    location = f"file:{files.sqlite_path()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(location, uri=True)) as connection:
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute(f"PRAGMA mmap_size = {1 << 36}")
        yield connection
