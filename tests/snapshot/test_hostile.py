"""Run commands on a snapshot, and measure the time and memory of each.

Each set of commands runs in a fork of one process that has already imported srvstat, so that a
set does not include the start of Python. In a fork, the peak of memory only grows, so the value
after a command is the peak of that command and those before it.
"""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from campaigns.small_snapshots import PUBLISHED, build_small_snapshot
from conftest import AS_OF, Build, server
from srvstat.contract.windows import DAY_MS
from srvstat.snapshot.rows import APPLICATION_ID, FORMAT_VERSION, read_schema
from support.snapshots import PAGE_SIZE, change, forge
from support.snapshots import PAGE_SIZE as PAGE

# The first set runs in the process itself, so that it imports all modules.
_FORKS = """
import gc, json, os, resource, sys, time
from srvstat.cli.process import start_lean
start_lean()
from srvstat.cli.app import main

MAX_SECONDS = 30
UNITS_PER_MIB = 1 << 20 if sys.platform == "darwin" else 1 << 10
answers = os.fdopen(os.dup(1), "w", buffering=1)

def run(directory, commands):
    os.chdir(directory)
    for command in commands:
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
            os.close(file)
        started = time.process_time()
        exit_code = main(command)
        seconds = time.process_time() - started
        gc.collect()  # a command runs without; its garbage must not count for the next one
        texts = [open(name, "rb").read(100_000) for name in ("stdout", "stderr")]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNITS_PER_MIB
        shown = [text.decode("utf-8", "replace") for text in texts]
        print(json.dumps([exit_code, *shown, seconds, peak]), file=answers)

run(*json.loads(sys.stdin.readline()))
print(file=answers)
for line in sys.stdin:
    if child := os.fork():
        os.waitpid(child, 0)
        print(file=answers)
    else:
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
        run(*json.loads(line))
        os._exit(0)
"""
# The peak of a process includes what its parent held when it started it, so a shell starts it.
_FROM_SHELL = ["sh", "-c", '"$@"; exit $?', "sh"]


class Measured(NamedTuple):
    """The outcome of a command, its processor time in seconds, and the peak of memory in MiB."""

    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    memory: float


class Forks:
    """A process that runs each set of commands in a fork."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, commands: Sequence[Sequence[str]], directory: Path) -> list[Measured]:
        """Run commands in a directory, one after another."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([str(directory), commands]) + "\n")
        self._process.stdin.flush()
        lines = iter(self._process.stdout.readline, "\n")
        found = [Measured(*json.loads(line)) for line in lines]
        assert len(found) == len(commands), found
        return found


@contextmanager
def start_forks() -> Iterator[Forks]:
    """Start the process."""
    command = [*_FROM_SHELL, sys.executable, "-c", _FORKS]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Forks(process)


Harm = Callable[[Path], None]

_INTERIOR = b"\x05"

_TABLES = ("snapshot", "directory", "servers", "blocks")


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        yield connection


def run_sql(*statements: str) -> Harm:
    """Run statements, which may also change `sqlite_schema`."""

    def harm(path: Path) -> None:
        for statement in statements:
            with _open(path) as connection:
                connection.execute(statement)

    return harm


def replace_table(table: str, sql: str) -> Harm:
    """Replace a table by an entry of the schema with its name, without checks by SQLite."""
    entry = f"INSERT INTO sqlite_schema VALUES ('table', '{table}', '{table}', 0, '{sql}')"
    return run_sql(f"DROP TABLE {table}", entry)


def change_rows(sql: str) -> Harm:
    """Change rows without the checks of their tables."""
    return lambda path: change(str(path), sql)


def run_without_indexes(statement: str) -> Harm:
    """Run a statement without indexes, and restore the old indexes."""

    def harm(path: Path) -> None:
        with _open(path) as connection:
            entries = connection.execute("SELECT * FROM sqlite_schema").fetchall()
            connection.execute("DELETE FROM sqlite_schema WHERE type = 'index'")
            connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'UNIQUE', '')")
        with _open(path) as connection:
            connection.execute(statement)
        with _open(path) as connection:
            connection.execute("DELETE FROM sqlite_schema")
            connection.executemany("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", entries)

    return harm


def overwrite_header(at: int, data: bytes) -> Harm:
    """Overwrite a part of the file's header."""

    def harm(path: Path) -> None:
        _overwrite(path, at, data)

    return harm


def _overwrite(path: Path, at: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def _find_page(path: Path, table: str) -> int:
    """Return the offset of a table's first page."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        (page,) = connection.execute(query, (table,)).fetchone()
    return (int(page) - 1) * PAGE


def link_to_itself(table: str) -> Harm:
    """Make a table's first page an interior page that is its own only child."""

    def harm(path: Path) -> None:
        place = _find_page(path, table)
        itself = (place // PAGE + 1).to_bytes(4)
        header = _INTERIOR + bytes(4) + PAGE.to_bytes(2) + bytes(1) + itself
        _overwrite(path, place, header)

    return harm


def convert_to_utf_16(path: Path) -> None:
    """Write the same rows to a file with another text encoding."""
    with closing(sqlite3.connect(path)) as connection:
        rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in _TABLES}
    path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(f"PRAGMA encoding = 'UTF-16le'; PRAGMA page_size = {PAGE}")
        connection.executescript(read_schema())
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        for name, of_table in rows.items():
            values = ", ".join("?" * len(of_table[0]))
            connection.executemany(f"INSERT INTO {name} VALUES ({values})", of_table)


def interrupt_writer(path: Path) -> None:
    """Leave the file and the journal of a writer that was killed midway."""
    work = path.with_name("work.db")
    shutil.copy(path, work)
    with closing(sqlite3.connect(work, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("UPDATE blocks SET sum_before = x'01'")
        connection.execute("UPDATE servers SET hostname = 'secret'")
        shutil.copy(work, path)
        shutil.copy(f"{work}-journal", f"{path}-journal")
    work.unlink()


def append_empty_pages(path: Path) -> None:
    """Add 200 MB of empty pages, and count them in the header."""
    pages = path.stat().st_size // PAGE + 12_800
    os.truncate(path, pages * PAGE)
    _overwrite(path, 28, pages.to_bytes(4))


def forge_rows(sql: str) -> Harm:
    """Change rows, and recompute all digests."""
    return lambda path: forge(str(path), sql)


_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
_ROOT_OF = "(SELECT rootpage FROM sqlite_schema WHERE name = '{}')"
_OF_UNEVEN = "WHERE server_block / 1000000000 = 6"


def _change_uneven(assignment: str) -> Harm:
    """Change the row of the server `uneven`."""
    return change_rows(f"UPDATE servers SET {assignment} WHERE id = 'uneven'")


def _forge_uneven(assignment: str) -> Harm:
    return forge_rows(f"UPDATE servers SET {assignment} WHERE id = 'uneven'")


def _forge_bundle(parent_root: str, covered_from: int) -> Harm:
    return forge_rows(
        f"UPDATE snapshot SET parent_root = {parent_root}, covered_from = {covered_from}"
    )


STRUCTURES: Mapping[str, Harm] = {
    "an endless view instead of the blocks": run_sql(
        "DROP TABLE blocks", f"CREATE VIEW blocks AS {_ENDLESS} SELECT i AS server_block FROM n"
    ),
    "a generated column": run_sql(
        "ALTER TABLE servers ADD COLUMN secret INTEGER"
        " GENERATED ALWAYS AS (length(hex(zeroblob(100000000))))"
    ),
    "a virtual table instead of the directory": replace_table(
        "directory", "CREATE VIRTUAL TABLE directory USING fts5(bucket, entries, servers)"
    ),
    "a name that is not UTF-8": run_sql(
        "INSERT INTO sqlite_schema VALUES"
        " ('table', CAST(x'736563726574ff' AS TEXT), 'secret', 2, 'CREATE TABLE secret (')"
    ),
    "a CREATE TABLE of 20 MB": run_sql(
        "UPDATE sqlite_schema SET sql = sql || ' -- ' || printf('%.*c', 20000000, 'x')"
        " WHERE name = 'servers'"
    ),
    "a table beyond the end of the file": run_sql(
        "UPDATE sqlite_schema SET rootpage = 4000000000 WHERE name = 'servers'"
    ),
    "an interrupted writer": interrupt_writer,
    "a header with write-ahead logging for readers": overwrite_header(18, b"\x01\x02"),
    "a header of a later schema": overwrite_header(44, (5).to_bytes(4)),
    "a header with half the page size": overwrite_header(16, (PAGE_SIZE // 2).to_bytes(2)),
}
"""Changes that every command must refuse."""

CONTENTS: Mapping[str, Harm] = {
    "a text of 100 MB": _change_uneven("hostname = printf('%.*c', 100000000, 'x')"),
    "a text that is not UTF-8": _change_uneven("hostname = CAST(x'ff736563726574' AS TEXT)"),
    "a NUL in a text": _change_uneven("hostname = 'secret' || char(0) || 'secret'"),
    "an identifier that is a blob": _change_uneven("cfx_id = x'736563726574'"),
    "a bundle": change_rows("UPDATE snapshot SET parent_root = zeroblob(32), covered_from = 0"),
    "no server": change_rows("DELETE FROM servers"),
    "an additional server": change_rows(
        "INSERT INTO servers SELECT 8, 'secret', 'secret', game, hostname, project_name,"
        " project_description, region, players_current, players_max, tags, flags, chat_url,"
        " icon_url, offline, first_seen_at, updated_at, current_is_fallback,"
        " first_seen_is_fallback, updated_is_fallback, source_id, other_source_ids, completed, 0,"
        " NULL, NULL, NULL, player_sum, counts, block_ends, block_peaks, block_digests"
        " FROM servers WHERE id = 'once'"
    ),
    "players that are a negative number": change_rows("UPDATE blocks SET players = -1"),
    "a block of 100 MB": change_rows(
        "UPDATE blocks SET players = zeroblob(100000000), observation_count = 100000000"
        f" {_OF_UNEVEN}"
    ),
    "counts of 100 MB": change_rows(f"UPDATE blocks SET marks = zeroblob(100000000) {_OF_UNEVEN}"),
    "an index that disagrees with its table": run_without_indexes(
        "UPDATE servers SET id = CASE id WHEN 'uneven' THEN 'busy' ELSE 'uneven' END"
        " WHERE id IN ('uneven', 'busy')"
    ),
    "two swapped indexes": run_sql(
        "UPDATE sqlite_schema SET rootpage = (SELECT sum(rootpage) FROM sqlite_schema"
        " WHERE type = 'index') - rootpage WHERE type = 'index'"
    ),
    "two swapped tables": run_sql(
        f"UPDATE sqlite_schema SET rootpage = {_ROOT_OF.format('blocks')}"
        f" + {_ROOT_OF.format('directory')} - rootpage WHERE name IN ('blocks', 'directory')"
    ),
    "a table with the page of the schema": run_sql(
        "UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'servers'"
    ),
    "servers whose page is its own child": link_to_itself("servers"),
    "blocks whose page is its own child": link_to_itself("blocks"),
    "no blocks": change_rows("DELETE FROM blocks"),
    "texts in UTF-16": convert_to_utf_16,
    "a header that reserves most of each page": overwrite_header(20, b"\xff"),
    "a header with free pages": overwrite_header(32, (3).to_bytes(4) + (99).to_bytes(4)),
    "200 MB of empty pages": append_empty_pages,
}
"""Changes that a command may miss if its answer is right; `verify` must refuse them."""


FORGERIES: Mapping[str, Harm] = {
    "a text of 2 MB": _forge_uneven("hostname = printf('%.*c', 2000000, 'x')"),
    "an identifier with terminal control characters": forge_rows(
        "UPDATE servers SET id = char(27) || '[2J' || 'secret' WHERE id = 'wide';"
        " UPDATE blocks SET players = zeroblob(length(players))"
        " WHERE server_block / 1000000000 = 7"
    ),
    "tags of 400,000 lists": _forge_uneven("tags = printf('%.*c', 400000, '[')"),
    "300,000 tags": _forge_uneven(
        "tags = '[' || replace(printf('%.*c', 299999, '0'), '0', '\"\",') || '\"\"]'"
    ),
    "500,000 digests of blocks": _forge_uneven(
        "block_digests = zeroblob(8000000), block_ends = zeroblob(4000000)"
    ),
    "500,000 blocks": _forge_uneven(
        "block_digests = zeroblob(8000000), block_ends = zeroblob(4000000),"
        " observation_count = 500000 * 2048"
    ),
    "a sum of 2 MB": forge_rows("UPDATE blocks SET sum_before = randomblob(2000000)"),
    "counts and marks of 2 MB": forge_rows(
        "UPDATE blocks SET counts_before = randomblob(2000000), marks = randomblob(2000000)"
    ),
    "observations of a server that ascend by 2^62 counts": forge_rows(
        "UPDATE servers SET counts = zeroblob(16384), observation_count = 4611686018427387904"
    ),
    "a block of 500,000 observations at one instant": forge_rows(
        "UPDATE blocks SET times = zeroblob(500000), players = zeroblob(500000),"
        f" observation_count = 500000 {_OF_UNEVEN}"
    ),
    "a block of 2^62 observations": forge_rows(
        "UPDATE blocks SET times = x'', players = x'', observation_count = 4611686018427387904"
        f" {_OF_UNEVEN}"
    ),
    "a block in the years after 9999": forge_rows(
        f"UPDATE blocks SET time_unit = 4611686018427387904, first_observed_at = -1 {_OF_UNEVEN}"
    ),
    "ends of blocks in the years after 9999": _forge_uneven("block_ends = x'ffffffffffffff7f'"),
    "an as_of after the year 9999": forge_rows("UPDATE snapshot SET as_of = 9223372036854775807"),
    "a parent root without a coverage": forge_rows(
        "UPDATE snapshot SET parent_root = zeroblob(32)"
    ),
    "a coverage before the year 1": _forge_bundle("zeroblob(32)", -(2**62) // DAY_MS * DAY_MS),
    "sources of 400,000 lists": forge_rows(
        "UPDATE snapshot SET sources = printf('%.*c', 400000, '[')"
    ),
}
"""Changes with recomputed digests: answers may be wrong, but must end without harm."""


pytestmark = pytest.mark.slow

NOT_FOUND = 44
MAX_ADDED_SECONDS = 1
MAX_ADDED_MIB = 64

COMMANDS: Mapping[str, list[str]] = {
    "get": ["get", "uneven", "--json", "--snapshot"],
    "compare": ["compare", "busy", "wide", "uneven", "away", "daily", "--json", "--snapshot"],
    "table": ["compare", "busy", "uneven", "--range", "1y", "--table", "--snapshot"],
    "stats": ["stats", "busy", "daily", "--range", "1y", "--json", "--snapshot"],
    "info": ["snapshot", "info", "--json"],
    "verify": ["snapshot", "verify", "--json"],
    "bundle": [
        *("snapshot", "bundle", "uneven", "busy", "-o", "case.db", "--overwrite", "--snapshot")
    ],
}
_KNOWN = "|".join(PUBLISHED)
_TIME = r"[0-9-]{10}T[0-9:.]{12}Z"
_PARTS = (
    "the (whole file|directory of identifiers|servers|observations)",
    "the table [a-z_]+",
    "its (header|tables)",
    "the structure of the SQLite file",
    rf"(the observations of )?(a server|server ({_KNOWN}))",
    rf"observations of (a server|server ({_KNOWN})) from {_TIME} to {_TIME}",
)
REASON = re.compile(
    rf"damaged \(({'|'.join(_PARTS)})\); copy it again, or build one with"
    " `srvstat snapshot build`"
    "|damaged; copy or build it again"
    "|set to write-ahead-log mode by another program; reset it with SQLite's"
    " PRAGMA journal_mode = DELETE, or build it again"
    "|(?P<journal>[^ ]+-(journal|wal)) exists, so another program may not have finished"
    " writing; close the programs that use it, remove (?P=journal) if it still exists, and try"
    " again"
)
"""All reasons to refuse a snapshot: fixed texts, and servers that the request could name."""


class Healthy(NamedTuple):
    """An unchanged snapshot, its answers, and the process that runs all commands."""

    path: Path
    asked: Mapping[str, Measured]
    forks: Forks


def ask_all(path: Path, work: Path, forks: Forks) -> dict[str, Measured]:
    commands = [[*command, str(path)] for command in COMMANDS.values()]
    return dict(zip(COMMANDS, forks.run(commands, work), strict=True))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Healthy]:
    directory = tmp_path_factory.mktemp("healthy")
    path = build_small_snapshot(directory / "built", seed=1)
    with start_forks() as forks:
        ask_all(path, directory, forks)  # imports everything
        yield Healthy(path, ask_all(path, directory, forks), forks)


@pytest.fixture
def path(healthy: Healthy, tmp_path: Path) -> Iterator[Path]:
    """Return a copy of the healthy snapshot in a directory of its own."""
    directory = tmp_path / "here"
    directory.mkdir()
    path = directory / "snapshot.db"
    shutil.copy(healthy.path, path)
    yield path
    shutil.rmtree(directory)  # some are large


def date_files(directory: Path) -> None:
    """Set the modification times to long ago, so that any write changes them."""
    for path in directory.iterdir():
        os.utime(path, (0, 0))


def identify_files(directory: Path) -> dict[str, tuple[int, ...]]:
    """Return what changes with each file; some are too large to compare their content."""
    found = {path.name: path.stat() for path in directory.iterdir()}
    return {name: (of.st_ino, of.st_size, of.st_mtime_ns) for name, of in found.items()}


def is_refused(asked: Measured, path: Path) -> bool:
    """Check that a command refused the snapshot with one line that shows nothing of its content."""
    if asked.exit_code != 3 or asked.stdout:
        return False
    before, _, reason = asked.stderr.partition(f"error: {path}: ")
    return not before and REASON.fullmatch(reason.removesuffix("\n")) is not None


def is_right(asked: Measured, of_healthy: Measured) -> bool:
    return asked[:3] == of_healthy[:3]


def test_a_healthy_snapshot_is_answered_and_unchanged(healthy: Healthy, path: Path) -> None:
    before = path.read_bytes()

    asked = ask_all(path, path.parent.parent, healthy.forks)

    assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == {path.name: before}
    for command, found in asked.items():
        assert found.exit_code == 0
        assert is_right(found, healthy.asked[command])


def ask_within_limits(path: Path, healthy: Healthy) -> dict[str, Measured]:
    """Run all commands, and check their limits and that they change nothing."""
    date_files(path.parent)
    before = identify_files(path.parent)
    asked = ask_all(path, path.parent.parent, healthy.forks)
    assert identify_files(path.parent) == before
    for command, found in asked.items():
        assert found.seconds < MAX_ADDED_SECONDS, command
        more = found.memory - healthy.asked[command].memory
        assert more < MAX_ADDED_MIB, command
    return asked


@pytest.mark.parametrize("name", STRUCTURES)
def test_another_structure_is_refused(name: str, path: Path, healthy: Healthy) -> None:
    STRUCTURES[name](path)

    asked = ask_within_limits(path, healthy)

    assert not {
        command: found[:3] for command, found in asked.items() if not is_refused(found, path)
    }


@pytest.mark.parametrize("name", CONTENTS)
def test_content_that_no_build_writes_is_refused_unless_the_answer_is_right(
    name: str, path: Path, healthy: Healthy
) -> None:
    CONTENTS[name](path)

    asked = ask_within_limits(path, healthy)

    assert not {
        command: found[:3]
        for command, found in asked.items()
        if not is_refused(found, path) and not is_right(found, healthy.asked[command])
    }
    assert is_refused(asked["verify"], path)


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_answered_or_refused(name: str, path: Path, healthy: Healthy) -> None:
    FORGERIES[name](path)

    asked = ask_within_limits(path, healthy)

    assert not {
        command: found[:3]
        for command, found in asked.items()
        if found.exit_code not in {0, NOT_FOUND} and not is_refused(found, path)
    }


MAX_MIB_OF_PAGES = 200
QUICK_COMMANDS = {
    "get": ["get", "nobody", "-s"],
    "info": ["snapshot", "info"],
    "verify": ["snapshot", "verify"],
}

INTERIOR_OF_A_TABLE = 5


@pytest.fixture
def good(build: Build) -> Path:
    """Build a snapshot whose observations take several pages."""
    rows = [("a", AS_OF - 60_000 * number, number % 9) for number in range(6_000)]
    return Path(build([server("a"), server("b")], rows))


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    with start_forks() as forks:
        # The first set imports everything.
        forks.run([*QUICK_COMMANDS.values()], tmp_path_factory.mktemp("first"))
        yield forks


def link_pages(content: bytes, root: int) -> bytes:
    """Return a file whose table has five levels of pages; each page has one child 200 times."""
    leaf = content[(root - 1) * PAGE : root * PAGE]
    pages = len(content) // PAGE
    levels = [_build_interior_page(pages + level) for level in range(1, 6)]
    grown = content[: (root - 1) * PAGE] + levels[0] + content[root * PAGE :]
    grown += b"".join(levels[1:]) + leaf
    return grown[:28] + (len(grown) // PAGE).to_bytes(4) + grown[32:]


def _build_interior_page(child: int) -> bytes:
    cell = child.to_bytes(4) + b"\xa0\x80\x80\x80\x80\x00"  # with the highest key
    places = [PAGE - len(cell) * number for number in range(1, 201)]
    head = bytes([INTERIOR_OF_A_TABLE, 0, 0]) + (200).to_bytes(2) + places[-1].to_bytes(2)
    head += b"\0" + child.to_bytes(4) + b"".join(place.to_bytes(2) for place in places)
    return head + bytes(places[-1] - len(head)) + cell * 200


@pytest.mark.parametrize("table", ["snapshot", "servers", "directory", "blocks"])
def test_pages_that_point_to_each_other_end_in_an_error(
    table: str, good: Path, forks: Forks
) -> None:
    with closing(sqlite3.connect(good)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        ((root,),) = connection.execute(query, (table,)).fetchall()
    good.write_bytes(link_pages(good.read_bytes(), root))

    found = forks.run([[*command, str(good)] for command in QUICK_COMMANDS.values()], good.parent)

    for name, ran in zip(QUICK_COMMANDS, found, strict=True):
        assert ran.exit_code in (3, 0 if name == "info" else 44)
        assert ran.memory < MAX_MIB_OF_PAGES
