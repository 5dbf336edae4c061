"""Command lines that answer a request in a process of their own."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import queries
from benchmarks.data import FleetFiles
from benchmarks.measure import find_program
from benchmarks.questions import Answer, Request, read_body, read_objects

SRVSTAT = "srvstat compare"
START_UP = "python, two imports"
SQLITE_UTILS = "sqlite-utils query, histogram"
SQLITE_UTILS_TUNED = "sqlite-utils query, histogram per server"
DUCKDB = ("DuckDB's CLI, median()", "DuckDB's CLI, histogram")

SETUPS = {
    SRVSTAT: "`srvstat compare --json --by id` with five ids, on the snapshot.",
    START_UP: '`python -c "import typer; from pydantic import BaseModel"`: the start-up time of any'
    " program with these two libraries. It answers nothing.",
    SQLITE_UTILS: "The snapshot's `observations`, with the straightforward SQL: one SELECT with"
    " `server IN (…)` and `GROUP BY server, players`, and literals for the parameters. pandas and"
    " numpy are hidden, because sqlite-utils imports them if they are installed.",
    SQLITE_UTILS_TUNED: "The same with one SELECT per server, joined by `UNION ALL`, so that SQLite"
    " does not sort by server: the fastest SQL that we found.",
    DUCKDB[0]: "A native file with the same table as for the Python module.",
    DUCKDB[1]: "The same file; counts each value.",
    "sqlite3's CLI, histogram": "The snapshot's `observations`, read-only.",
    "sqlite3's CLI, window function": "The same with `row_number()`.",
    "datasette --get": "The snapshot as an immutable file, the histogram SQL as a canned query,"
    " without threads for SQL. numpy is hidden, because Datasette imports it if it is installed.",
}
"""The setup of each command, for the report."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line that answers a request."""

    name: str
    line: Callable[[Request], list[str]]
    read: Callable[[bytes, Request], list[Answer]] | None
    """Reads the answers from its output; None if it answers nothing."""


def list_commands(files: FleetFiles) -> list[Command]:
    """Return the commands for a fleet whose programs are installed."""
    duckdb = [find_program("duckdb"), "-readonly", "-json", files.duckdb_cli_path(), "-c"]
    utils = [*call_without_pandas("sqlite_utils.cli", "cli"), "query", files.sqlite_path()]
    found = [
        Command(SRVSTAT, lambda request: _build_srvstat_line(files, request), read_body),
        Command(START_UP, lambda _: [sys.executable, "-c", _IMPORTS], None),
        _make_sql_command(SQLITE_UTILS, utils, queries.build_sqlite_one_select),
        _make_sql_command(SQLITE_UTILS_TUNED, utils, queries.build_sqlite_histogram),
        _make_sql_command(DUCKDB[0], duckdb, queries.build_duckdb_median),
        _make_sql_command(DUCKDB[1], duckdb, queries.build_duckdb_histogram),
    ]
    if sqlite3 := shutil.which("sqlite3"):
        cli = [sqlite3, "-readonly", "-json", files.sqlite_path()]
        histogram, window_function = "sqlite3's CLI, histogram", "sqlite3's CLI, window function"
        found.append(_make_sql_command(histogram, cli, queries.build_sqlite_histogram))
        found.append(_make_sql_command(window_function, cli, queries.build_sqlite_window_function))
    one_request = build_datasette_line(files)
    found.append(
        Command(
            "datasette --get",
            lambda request: [*one_request, "--get", queries.build_datasette_path(request)],
            read_objects,
        )
    )
    return found


def call_without_pandas(module: str, function: str) -> list[str]:
    """Return a command line that calls a function with pandas and numpy hidden.

    sqlite-utils imports both if they are installed, and so does a program that imports
    sqlite-utils; Datasette imports numpy. They are installed only because the benchmark needs them.
    """
    script = "import sys; sys.modules.update(dict.fromkeys(('numpy', 'pandas'))); "
    return [sys.executable, "-c", f"{script}from {module} import {function}; {function}()"]


_IMPORTS = "import typer; from pydantic import BaseModel"


def _build_srvstat_line(files: FleetFiles, request: Request) -> list[str]:
    line = [find_program("srvstat"), "compare", "--snapshot", files.snapshot, "--by", "id"]
    return [*line, *request.ids, "--range", request.range, "--json"]


def _make_sql_command(name: str, start: list[str], query: queries.Query) -> Command:
    return Command(
        name,
        lambda request: [*start, query(request.keys, *request.window)],
        read_objects,
    )


def build_datasette_line(files: FleetFiles) -> list[str]:
    """Return the command line of Datasette on a fleet's observations; without `--get` it serves."""
    metadata = os.path.join(files.directory, "datasette.json")
    with open(metadata, "w", encoding="utf-8") as file:
        json.dump(queries.DATASETTE, file)
    line = [
        *call_without_pandas("datasette.cli", "cli"),
        "--immutable",
        files.sqlite_path(),
        "--metadata",
        metadata,
    ]
    for name, value in queries.DATASETTE_SETTINGS.items():
        line += ["--setting", name, str(value)]
    return line
