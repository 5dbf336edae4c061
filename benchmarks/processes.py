"""Time whole processes: answers, builds, an update and a verification."""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from statistics import median
from typing import NamedTuple

from benchmarks import fleet, queries
from benchmarks.comparison import rotate_order
from benchmarks.data import FleetFiles
from benchmarks.measure import find_program, print_progress, run
from benchmarks.questions import (
    Answer,
    Request,
    WrongAnswerError,
    check_answers,
    compute_answers,
    draw_requests,
    read_body,
    read_objects,
)
from srvstat.snapshot.read.reader import open_file

SRVSTAT = "srvstat compare"
START_UP = "python, two imports"
SQLITE_UTILS = "sqlite-utils query"
DATASETTE = "datasette --get"
BUILD, BUILD_PARQUET = "srvstat snapshot build", "srvstat snapshot build, Parquet"
INSERT, UPDATE, VERIFY = "sqlite-utils insert", "srvstat snapshot update", "srvstat snapshot verify"

SETUPS = {
    SRVSTAT: "`srvstat compare --json --by id` with five ids over 1y.",
    START_UP: '`python -c "import typer; from pydantic import BaseModel"`: the start of any'
    " program with these two libraries. It answers nothing.",
    SQLITE_UTILS: "A table by server and time, one SELECT with `GROUP BY server, players`. pandas"
    " and numpy are hidden, because sqlite-utils imports them if they are installed.",
    DATASETTE: "The same table as an immutable file, the same SQL as a canned query.",
    BUILD: "From the servers file and the CSV in order of time, as a collector writes them; reads"
    " the snapshot back.",
    BUILD_PARQUET: "The same rows from Parquet, written by Polars.",
    INSERT: "`--csv` into an empty file with the default options, of the first 20 servers.",
    UPDATE: "Adds the last day to all earlier ones. The result must be the snapshot of the fleet.",
}
"""The setup of each command, for the page."""


class _Command(NamedTuple):
    name: str
    line: Callable[[Request], list[str]]
    read: Callable[[bytes, Request], list[Answer]] | None
    """Reads the answers from its output; None if it answers nothing."""


def call_without_pandas(module: str, function: str) -> list[str]:
    """Return a command line that calls a function with pandas and numpy hidden.

    sqlite-utils imports both if they are installed, and so does a program that imports
    sqlite-utils; Datasette imports numpy. They are installed only because the benchmark needs them.
    """
    script = "import sys; sys.modules.update(dict.fromkeys(('numpy', 'pandas'))); "
    return [sys.executable, "-c", f"{script}from {module} import {function}; {function}()"]


_SRVSTAT = call_without_pandas("srvstat.__main__", "run")
_SQLITE_UTILS = call_without_pandas("sqlite_utils.cli", "cli")


def build_datasette_line(files: FleetFiles) -> list[str]:
    """Return the command line of Datasette on a fleet's observations; without `--get` it serves."""
    metadata = os.path.join(files.directory, "datasette.json")
    with open(metadata, "w", encoding="utf-8") as file:
        json.dump(queries.DATASETTE, file)
    line = [*call_without_pandas("datasette.cli", "cli"), "--immutable", files.sqlite_path()]
    line += ["--metadata", metadata]
    for name, value in queries.DATASETTE_SETTINGS.items():
        line += ["--setting", name, str(value)]
    return line


def time_commands(files: FleetFiles, *, rounds: int) -> dict[str, float]:
    """Check the answers of each command over 1y, and return its median seconds.

    Raises WrongAnswerError, FailedError.
    """
    compare = [find_program("srvstat"), "compare", "--snapshot", files.snapshot, "--by", "id"]
    query = [*_SQLITE_UTILS, "query", files.sqlite_path()]
    datasette = build_datasette_line(files)
    imports = [sys.executable, "-c", "import typer; from pydantic import BaseModel"]
    commands = [
        _Command(SRVSTAT, lambda one: [*compare, *one.ids, "--range=1y", "--json"], read_body),
        _Command(START_UP, lambda _: imports, None),
        _Command(
            SQLITE_UTILS,
            lambda one: [*query, queries.build_sqlite_one_select(one.keys, *one.window)],
            read_objects,
        ),
        _Command(
            DATASETTE,
            lambda one: [*datasette, "--get", queries.build_datasette_path(one)],
            read_objects,
        ),
    ]
    seconds: dict[str, list[float]] = {command.name: [] for command in commands}
    for number, turn in enumerate(rotate_order(commands, rounds + 1)):
        print_progress(f"timing {len(commands)} commands, round {number} of {rounds}")
        (request,) = draw_requests(f"commands {number}", files, "1y", 1)
        for command in turn:
            ran = run(command.line(request))
            if command.read:
                answers = command.read(ran.output, request)
                check_answers(command.name, request, answers, compute_answers(request))
            if number:  # the first round compiles modules
                seconds[command.name].append(ran.seconds)
    return {name: median(found) for name, found in seconds.items()}


def build_snapshot(files: FleetFiles) -> float:
    """Build the snapshot of a fleet from CSV, and return the rows per second."""
    files.recorded_path()
    print_progress(f"building the snapshot of {files.size:,} servers")
    seconds = _build(files, files.snapshot, files.recorded_path())
    return files.observation_count / seconds


def time_loads(files: FleetFiles, small: FleetFiles) -> dict[str, float]:
    """Return the rows per second of loading Parquet, of sqlite-utils, of an update and of verify.

    The update's are those of the whole snapshot. Raises WrongAnswerError, FailedError.
    """
    rates = {}
    with tempfile.TemporaryDirectory(dir=files.directory) as directory:
        path, inserted, day = (os.path.join(directory, name) for name in ("1.db", "2.db", "d.csv"))
        print_progress("building from Parquet")
        parquet = _build(files, path, files.recorded_parquet_path())
        rates[BUILD_PARQUET] = files.observation_count / parquet
        _check_root(path, files)
        print_progress("inserting with sqlite-utils")
        insert = ["insert", inserted, "observations", small.recorded_path(), "--csv", "--silent"]
        rows = _count_lines(small.recorded_path())
        rates[INSERT] = rows / run([*_SQLITE_UTILS, *insert]).seconds
        print_progress("updating with a day")
        for days in (range(fleet.DAYS - 1), range(fleet.DAYS - 1, fleet.DAYS)):
            with open(day, "wb") as file:
                file.writelines(fleet.generate_recorded_csv(files.size, days))
            if days.start == 0:
                _build(files, path, day)
        update = [*_SRVSTAT, "snapshot", "update", path, "--quiet", "--observations", day]
        rates[UPDATE] = files.observation_count / run(update).seconds
        _check_root(path, files)
        print_progress("verifying")
        verify = [*_SRVSTAT, "snapshot", "verify", path]
        rates[VERIFY] = files.observation_count / run(verify).seconds
    return rates


def _build(files: FleetFiles, path: str, source: str) -> float:
    build = [*_SRVSTAT, "snapshot", "build", path, "--overwrite", "--quiet"]
    return run([*build, "--servers", files.servers_path(), "--observations", source]).seconds


def _check_root(path: str, files: FleetFiles) -> None:
    with closing(open_file(path)) as one, closing(open_file(files.snapshot)) as other:
        if one.root != other.root:
            raise WrongAnswerError(f"{path}: its root is not that of {files.snapshot}")


def _count_lines(path: str) -> int:
    with open(path, "rb") as file:
        return sum(1 for _ in file) - 1
