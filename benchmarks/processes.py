"""Time whole processes: answers, builds, updates and verifications."""

import gzip
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from itertools import islice
from statistics import median
from typing import NamedTuple

from benchmarks.data import HOURLY, QUARTER, FleetFiles, count_observations
from benchmarks.measure import Run, print_progress, run
from benchmarks.questions import (
    WrongAnswerError,
    check_answers,
    compute_answers,
    draw_requests,
    read_body,
)
from srvstat.snapshot.read.file import open_file

SETUPS = {
    "build": "The rows are sorted by time. The time includes verifying the snapshot.",
    "sqlite-utils": "`insert --csv` inserts a quarter of the rows of 20 servers. We compare rows"
    " per second.",
    "verify": "The loop hashes each row of each table with SHA-256. `verify` also derives all"
    " blocks and totals again from the observations and compares them. This takes several times as"
    " long as hashing, which explains the low ratio.",
}
"""The setup of each command, for the page."""

_HASH_ROWS = """
import hashlib, sqlite3, sys
file = sqlite3.connect(sys.argv[1])
for name, in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
    for row in file.execute(f'SELECT * FROM "{name}"'):
        values = [one if isinstance(one, bytes) else str(one).encode() for one in row]
        hashlib.sha256(b"".join(values)).digest()
"""

_CALL = """
import sys

class Hiding:
    def find_spec(name, path=None, target=None):
        if name in {hidden}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hiding)
from {module} import {function}
{function}()
"""

_LONG = ("--columns", "id=server,at=time,players=players")
TEXTS = {
    "quoted.csv": (
        (
            *("--columns", "id=Server,at=Date,players=Players", "--time-format", "day-first"),
            *("--time-zone", "UTC", "--thousands", ","),
        ),
        ("--csv", "--silent"),
    ),
    "wide.csv": (
        ("--wide", "at=Datum+Uhrzeit", "--time-zone", "UTC"),
        ("--csv", "--delimiter", ";", "--silent"),
    ),
    "rows.ndjson": (_LONG, ("--nl",)),
    "array.json": (_LONG, ()),
}
"""The options that read each shape of text: of srvstat, and of sqlite-utils."""

MILLIONS_OF_REPEATS = 6

_IMPORTS = [sys.executable, "-c", "import typer; from pydantic import BaseModel"]


class Loads(NamedTuple):
    """What builds and verifications of a fleet take."""

    csv: float
    """Rows per second as a multiple of those of `sqlite-utils insert`, like `parquet`."""
    parquet: float
    csv_mib: float
    verify: float
    """The rate as a multiple of that of the loop that reads and hashes the rows."""


class Update(NamedTuple):
    """What an update with a day takes."""

    share: float
    """Its seconds as a multiple of those of a build."""
    mib: float


def call_without(*modules: str, program: str = "srvstat.__main__:run") -> list[str]:
    """Return a command line that calls a program as if some modules were not installed.

    sqlite-utils imports pandas and numpy if they are, and so does a program that imports it.
    """
    module, _, function = program.partition(":")
    script = _CALL.format(hidden=modules, module=module, function=function)
    return [sys.executable, "-c", script]


def time_compare(files: FleetFiles, *, rounds: int) -> float:
    """Check answers over 1y, and return the time of a process as a multiple of two imports.

    Raises WrongAnswerError, FailedError.
    """
    print_progress(f"timing processes of srvstat compare, {rounds} rounds")
    compare = [*call_without(), "compare", "--snapshot", files.snapshot, "--by=id", "--range=1y"]
    ours, imports = [], []
    for number in range(rounds + 1):
        (request, *_) = draw_requests(f"compare {number}", files, "1y")
        ran = run([*compare, *request.ids, "--json"])
        check_answers("srvstat compare", request, read_body(ran.output), compute_answers(request))
        ours.append(ran.seconds)
        imports.append(run(_IMPORTS).seconds)
    # The first round compiles modules.
    return median(ours[1:]) / median(imports[1:])


def time_loads(files: FleetFiles, small: FleetFiles, *, rounds: int) -> Loads:
    """Build the snapshot of a fleet from CSV and from Parquet, and verify it.

    Raises WrongAnswerError, FailedError.
    """
    builds, parquets, inserts, verifications, loops = [], [], [], [], []
    recorded = files.recorded_paths("csv")
    with tempfile.TemporaryDirectory(dir=files.directory) as directory:
        path = os.path.join(directory, "1.db")
        for number in range(rounds):
            print_progress(f"building and verifying, round {number + 1} of {rounds}")
            builds.append(build(files.snapshot, files, *recorded, without=("pandas", "pyarrow")))
            parquets.append(build(path, files, *files.recorded_paths("parquet")).seconds)
            _check_root(path, files)
            verify = [*call_without("pandas"), "snapshot", "verify", files.snapshot]
            verifications.append(run(verify).seconds)
            loops.append(run([sys.executable, "-c", _HASH_ROWS, files.snapshot]).seconds)
            inserts.append(_insert(os.path.join(directory, f"insert-{number}.db"), small))
    insert = median(inserts)
    return Loads(
        files.observation_count / median(each.seconds for each in builds) / insert,
        files.observation_count / median(parquets) / insert,
        max(each.peak_mib for each in builds),
        median(loops) / median(verifications),
    )


def time_texts(small: FleetFiles) -> dict[str, float]:
    """Build snapshots from texts of several shapes with the rows of a fleet.

    Return, for each shape, the rate as a multiple of that of `sqlite-utils insert`.

    Raises WrongAnswerError, FailedError.
    """
    found = {}
    with tempfile.TemporaryDirectory(dir=small.directory) as directory:
        paths = {name: os.path.join(directory, name) for name in TEXTS}
        rows = _write_texts(small.recorded_path("csv", QUARTER), paths)
        for name, (options, form) in TEXTS.items():
            print_progress(f"building from {name}, and inserting it")
            snapshot, table = f"{paths[name]}.db", f"{paths[name]}.sqlite"
            build = [*call_without("pandas"), "snapshot", "build", snapshot, paths[name], "--quiet"]
            ours = run([*build, *options])
            program = call_without("numpy", "pandas", program="sqlite_utils.cli:cli")
            insert = run([*program, "insert", table, "rows", paths[name], *form])
            if count_observations(snapshot) != rows:
                raise WrongAnswerError(f"{name}: {rows} rows were not all kept")
            found[name] = insert.seconds / ours.seconds
    return found


def _write_texts(source: str, paths: Mapping[str, str]) -> int:
    """Write the rows of a CSV file in all shapes, and return their number."""
    polls: dict[datetime, dict[str, int]] = {}
    with ExitStack() as stack:
        quoted, wide, lines, array = (
            stack.enter_context(open(paths[name], "w", encoding="utf-8")) for name in TEXTS
        )
        quoted.write('"Server","Date","Players"\n')
        separator = "["
        for line in islice(stack.enter_context(open(source, encoding="utf-8")), 1, None):
            server, instant, players = line.split(",")
            at = datetime.fromtimestamp(int(instant) // 1000, UTC)
            polls.setdefault(at, {})[server] = int(players)
            quoted.write(f'"{server}","{at:%d/%m/%Y %H:%M:%S}","{int(players):,}"\n')
            row = f'{{"server": "{server}", "time": "{at:%FT%TZ}", "players": {int(players)}}}'
            lines.write(f"{row}\n")
            array.write(f"{separator}{row}")
            separator = ","
        array.write("]")
        servers = sorted({server for counts in polls.values() for server in counts})
        wide.write(f"Datum;Uhrzeit;{';'.join(servers)}\n")
        for at, counts in polls.items():
            cells = ";".join(str(counts.get(server, "")) for server in servers)
            wide.write(f"{at:%d.%m.%Y;%H:%M:%S};{cells}\n")
    return sum(map(len, polls.values()))


def time_update(files: FleetFiles, *, rounds: int) -> Update:
    """Build the snapshot of a fleet, and time updates of all but the last day with this day.

    Raises WrongAnswerError, FailedError.
    """
    print_progress(f"building and updating {files.size:,} servers")
    earlier, day = files.recorded_paths("csv")
    whole = build(files.snapshot, files, earlier, day)
    updates = []
    with tempfile.TemporaryDirectory(dir=files.directory) as directory:
        before, path = (os.path.join(directory, name) for name in ("before.db", "after.db"))
        build(before, files, earlier)
        update = [*call_without("pandas"), "snapshot", "update", path, "--quiet"]
        for _ in range(rounds):
            shutil.copyfile(before, path)
            updates.append(run([*update, "--observations", day]))
            _check_root(path, files)
    seconds = median(each.seconds for each in updates)
    return Update(seconds / whole.seconds, max(each.peak_mib for each in updates))


def measure_hourly_bytes(files: FleetFiles) -> float:
    """Return the bytes per observation of a snapshot of the fleet with a poll each hour."""
    with tempfile.TemporaryDirectory(dir=files.directory) as directory:
        path = os.path.join(directory, "hourly.db")
        build(path, files, files.recorded_path("parquet", HOURLY))
        return os.path.getsize(path) / count_observations(path)


def measure_repeats(small: FleetFiles) -> float:
    """Return the peak memory, in MiB, of a build from a compressed file that repeats a row."""
    print_progress(f"building from {MILLIONS_OF_REPEATS} million repeats")
    with tempfile.TemporaryDirectory(dir=small.directory) as directory:
        source = os.path.join(directory, "repeats.csv.gz")
        with gzip.open(source, "wb", compresslevel=1) as file:
            file.write(b"serverId,observedAt,players\n")
            for _ in range(100 * MILLIONS_OF_REPEATS):
                file.write(b"srv-1,2026-03-01T00:00:00Z,5\n" * 10_000)
        path = os.path.join(directory, "repeats.db")
        ran = run([*call_without("pandas"), "snapshot", "build", path, source, "--quiet"])
        if (kept := count_observations(path)) != 1:
            raise WrongAnswerError(f"repeats: {kept} observations, not 1")
        return ran.peak_mib


def build(
    path: str, files: FleetFiles, *sources: str, without: tuple[str, ...] = ("pandas",)
) -> Run:
    """Build a snapshot of the servers of a fleet; raises FailedError."""
    line = [*call_without(*without), "snapshot", "build", path, "--overwrite", "--quiet"]
    observations = [f"--observations={source}" for source in sources]
    return run([*line, "--servers", files.servers_path(), *observations])


def _insert(path: str, small: FleetFiles) -> float:
    """Insert rows with sqlite-utils, and return the rows per second."""
    program = call_without("numpy", "pandas", program="sqlite_utils.cli:cli")
    source = small.recorded_path("csv", QUARTER)
    ran = run([*program, "insert", path, "observations", source, "--csv", "--silent"])
    with open(source, "rb") as file:
        rows = sum(1 for _ in file) - 1
    return rows / ran.seconds


def _check_root(path: str, files: FleetFiles) -> None:
    with closing(open_file(path)) as one, closing(open_file(files.snapshot)) as other:
        if one.root != other.root:
            raise WrongAnswerError(f"{path}: its root is not that of {files.snapshot}")
