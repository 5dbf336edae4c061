"""What answers as a whole process: a command line that starts, opens, computes, prints and ends."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import queries
from benchmarks.data import FleetFiles
from benchmarks.measure import program
from benchmarks.questions import Answer, Request, answers_of_body, answers_of_objects

SRVSTAT = "srvstat compare"
START_UP = "python, two imports"
SQLITE_UTILS = "sqlite-utils query, histogram"
SQLITE_UTILS_TUNED = "sqlite-utils query, a histogram a server"
DUCKDB = ("DuckDB's CLI, its own median", "DuckDB's CLI, a histogram")

GIVEN = {
    SRVSTAT: "`srvstat compare --json --by id` with five ids, on the snapshot.",
    START_UP: '`python -c "import typer; from pydantic import BaseModel"`: what a program with'
    " these two libraries takes before it does anything. It answers nothing.",
    SQLITE_UTILS: "The snapshot's `observations`, the histogram SQL with its numbers filled in: one"
    " SELECT with `server IN (…)` and `GROUP BY server, players`, as one writes it first. pandas"
    " and numpy are hidden from it: it imports them where they are installed.",
    SQLITE_UTILS_TUNED: "The same with a SELECT for each server, joined by `UNION ALL`, so that"
    " SQLite need not sort by server: the fastest we found.",
    DUCKDB[0]: "A native file of its own, with the same table as the module's.",
    DUCKDB[1]: "The same file, counting each value.",
    "sqlite3's CLI, histogram": "The snapshot's `observations`, read-only.",
    "sqlite3's CLI, window function": "The same with `row_number()`.",
    "datasette --get": "The snapshot as an immutable file, the histogram SQL as a canned query. SQL"
    " runs without threads. numpy is hidden from it for the same reason.",
}
"""What each command was given, for the report."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line that answers a request."""

    name: str
    line: Callable[[Request], list[str]]
    read: Callable[[bytes, Request], list[Answer]] | None
    """Reads what it printed; None where it answers nothing."""


def commands(files: FleetFiles) -> list[Command]:
    """Return every command that can be run here, on one fleet."""
    duckdb = [program("duckdb"), "-readonly", "-json", files.duckdb_cli(), "-c"]
    utils = [*without_pandas("sqlite_utils.cli", "cli"), "query", files.snapshot]
    found = [
        Command(SRVSTAT, lambda request: _srvstat(files, request), answers_of_body),
        Command(START_UP, lambda _: [sys.executable, "-c", _IMPORTS], None),
        _sql(SQLITE_UTILS, utils, queries.sqlite_one_select),
        _sql(SQLITE_UTILS_TUNED, utils, queries.sqlite_histogram),
        _sql(DUCKDB[0], duckdb, queries.duckdb_median),
        _sql(DUCKDB[1], duckdb, queries.duckdb_histogram),
    ]
    if sqlite3 := shutil.which("sqlite3"):
        cli = [sqlite3, "-readonly", "-json", files.snapshot]
        histogram, window_function = "sqlite3's CLI, histogram", "sqlite3's CLI, window function"
        found.append(_sql(histogram, cli, queries.sqlite_histogram))
        found.append(_sql(window_function, cli, queries.sqlite_window_function))
    one_request = datasette(files)
    found.append(
        Command(
            "datasette --get",
            lambda request: [*one_request, "--get", queries.datasette_path(request)],
            answers_of_objects,
        )
    )
    return found


def without_pandas(module: str, function: str) -> list[str]:
    """Return the command that calls a function with pandas and numpy hidden from it.

    sqlite-utils imports both where it finds them, so does whatever imports sqlite-utils, and
    Datasette imports numpy. They are here because the benchmark needs them.
    """
    script = "import sys; sys.modules.update(dict.fromkeys(('numpy', 'pandas'))); "
    return [sys.executable, "-c", f"{script}from {module} import {function}; {function}()"]


_IMPORTS = "import typer; from pydantic import BaseModel"


def _srvstat(files: FleetFiles, request: Request) -> list[str]:
    line = [program("srvstat"), "compare", "--snapshot", files.snapshot, "--by", "id"]
    return [*line, *request.ids, "--range", request.range, "--json"]


def _sql(name: str, start: list[str], query: queries.Query) -> Command:
    return Command(
        name,
        lambda request: [*start, query(request.keys, *request.window)],
        answers_of_objects,
    )


def datasette(files: FleetFiles) -> list[str]:
    """Return the start of a Datasette on a fleet's snapshot; without `--get` it is a server."""
    metadata = os.path.join(files.directory, "datasette.json")
    with open(metadata, "w", encoding="utf-8") as file:
        json.dump(queries.DATASETTE, file)
    line = [
        *without_pandas("datasette.cli", "cli"),
        "--immutable",
        files.snapshot,
        "--metadata",
        metadata,
    ]
    for name, value in queries.DATASETTE_SETTINGS.items():
        line += ["--setting", name, str(value)]
    return line
