"""A real PostgreSQL server as a source: its types and errors; passwords never appear."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from conftest import Cli
from sources.readings import read_table
from srvstat.contract.errors import SourceError
from srvstat.files.reading import format_title
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.source import IN_MEMORY, Source
from support.markdown import read_command, read_marked_block
from support.postgresql import DATABASE, PASSWORD, USER, Server, start_postgresql

pytestmark = pytest.mark.slow

SECRETS = (PASSWORD, quote(PASSWORD, safe=""), "ss/w", "wörd")

_ROWS = """
    CREATE TABLE observations (serverId varchar, observedAt timestamptz, players int);
    INSERT INTO observations
        SELECT 'a', timestamptz '2026-03-01 12:00Z' + i * interval '1 second', i
        FROM generate_series(1, 50000) i;
    CREATE SEQUENCE numbers;
    CREATE VIEW series AS SELECT i FROM generate_series(1, 50000) i;
    CREATE TABLE polls (
        "Server Name" text, at timestamp, day date, unix bigint, big numeric, small real
    );
    INSERT INTO polls VALUES
        ('MAIN "LOBBY", 1' || chr(10) || 'x', '2026-03-01 12:00:00.9999', '2026-03-01',
         1772366400, 12.00, 5),
        ('b', 'infinity', '-infinity', NULL, 'NaN', 'NaN'),
        ('', '0044-03-15 BC', '294276-01-01', -1, 1.5, 1e20),
        (NULL, NULL, NULL, NULL, NULL, NULL);
"""

_READER = """
    CREATE ROLE reader LOGIN PASSWORD '{password}';
    CREATE SCHEMA reader AUTHORIZATION reader;
    CREATE TABLE reader.polls (polled_at timestamptz, name text, online int);
    ALTER TABLE reader.polls OWNER TO reader;
    INSERT INTO reader.polls VALUES
        ('2026-03-01 10:00Z', 'PVP_ARENA', 12), ('2026-03-01 12:00Z', 'PVP_ARENA', 15);
"""
"""The table of the example in docs/how-to/import-data.md."""

_NOON = 1772366400000
_INSTANTS = [
    datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(1970, 1, 1, 0, 30, tzinfo=UTC),
    datetime(2026, 3, 29, 2, 30, tzinfo=UTC),  # as local times of Berlin, never and twice
    datetime(2026, 10, 25, 2, 30, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
]
_IDS = ["a", "play.example.net:1", 'q"uo,te\n', "", "NULL", r"\N", "é", None]
_TIMES: dict[str, tuple[Any, list[Any]]] = {
    "timestamp": (pa.timestamp("us"), [each.replace(tzinfo=None) for each in _INSTANTS]),
    "timestamptz": (pa.timestamp("us", "UTC"), _INSTANTS),
    "date": (pa.date32(), [each.date() for each in _INSTANTS]),
    "bigint": (pa.int64(), [_NOON, -1, 0, 1_700_000_000, 253_402_300_800_000, 2**63 - 1]),
    "float8": (pa.float64(), [_NOON + 0.75, -1.0, 1e300, float("nan"), float("inf")]),
    "text": (pa.string(), ["2026-03-01 12:00", "2026-03-01T12:00:00.9999Z", "2026-02-30", ""]),
}
_COUNTS: dict[str, tuple[Any, list[Any]]] = {
    "bigint": (pa.int64(), [0, 5, -1, 2**53 - 1, 2**53, 2**63 - 1]),
    "float8": (pa.float64(), [-0.0, 5.0, 2.5, -1.0, float("nan"), float("inf"), 1e300]),
    "numeric(20, 2)": (pa.decimal128(20, 2), [Decimal("5.00"), Decimal("2.50"), Decimal(2**53)]),
    "text": (pa.string(), ["5", "5.0", "x", "", "NaN", "-1", "+3", "٣"]),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Start a server with a table `observations` and a table with columns of many types."""
    with start_postgresql() as server:
        server.connection.execute(_ROWS)
        yield server


@pytest.fixture
def url(server: Server) -> str:
    """Return the URL with the password."""
    return f"postgresql://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{server.port}/{DATABASE}"


def read_polls(url: str, at: str, players: str, **options: str) -> list[tuple[object, ...]]:
    """Read a table, and return the kept rows and the place and reason of the rejected ones."""
    mapping = ColumnMapping(id="Server Name", at=at, players=players, **options)  # type: ignore[arg-type] # text options only
    table = read_table(Source(url, "postgresql", mapping, "SELECT * FROM polls -- all\n;"))
    return [*table.kept, *(reject[:2] for reject in table.rejects), tuple(table.skipped.values())]


def test_the_example_of_the_documentation_prints_the_shown_output(
    server: Server, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.connection.execute(_READER.format(password=PASSWORD))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    build, history, *shown = read_marked_block("how-to/import-data.md", "postgresql")

    built = cli(*read_command(build.replace(":5432/", f":{server.port}/")))

    assert (built.exit_code, built.stderr) == (0, "")
    assert cli(*read_command(history)).stdout.decode().splitlines() == shown


def test_a_build_stores_neither_user_nor_password(
    url: str, server: Server, tmp_path: Path, cli: Cli
) -> None:
    path = tmp_path / "s.db"
    built = cli("snapshot", "build", str(path), f"--observations={url}", "--game=game_a")

    assert built.exit_code == 0, built.stderr
    info = cli("snapshot", "info", str(path), "--json").json
    assert (info["sources"], info["observations"]) == ([server.address], 50_000)
    stored = path.read_bytes().decode("latin-1") + built.stderr
    assert not [secret for secret in (*SECRETS, USER) if secret in stored]


def test_columns_have_many_types(url: str) -> None:
    lobby = 'MAIN "LOBBY", 1\nx'
    local = read_polls(url, "at", "big", time_zone="Asia/Tokyo")
    days = read_polls(url, "day", "small", time_zone="UTC")
    unix = read_polls(url, "unix", "small", time_unit="s")

    noon = 1772366400000
    unknown = "observedAt: unknown time format; set it with --time-format"
    others = [(2, unknown), (3, unknown), (4, "observedAt: missing"), ()]
    assert local == [(1, lobby, noon + 999 - 9 * 3_600_000, 12), *others]
    assert days == [(1, lobby, noon - 12 * 3_600_000, 5), *others]
    assert unix[:2] == [(1, lobby, noon, 5), (2, "observedAt: missing")]


@pytest.mark.parametrize("time_type", _TIMES)
def test_rows_are_read_as_those_of_other_sources(
    time_type: str, url: str, server: Server, tmp_path: Path
) -> None:
    mapping = ColumnMapping(time_zone="Europe/Berlin")
    arrow_time, times = _TIMES[time_type]
    count_types = _COUNTS if time_type == "timestamptz" else ["bigint"]
    for count_type in count_types:
        arrow_count, counts = _COUNTS[count_type]
        rows = [*product(_IDS, [*times, None], [*counts, None])]
        columns = zip(zip(*rows, strict=True), (pa.string(), arrow_time, arrow_count), strict=True)
        names = ["serverId", "observedAt", "players"]
        table = pa.table([pa.array(values, kind) for values, kind in columns], names)
        parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=100)
        path = str(tmp_path / f"{count_type}.duckdb")
        with duckdb.connect(path) as connection:
            connection.from_arrow(table).create("observations")
        server.connection.execute(
            "DROP TABLE IF EXISTS rows; CREATE TABLE rows"
            f" (serverId text, observedAt {time_type}, players {count_type})"
        )
        with server.connection.cursor() as cursor, cursor.copy("COPY rows FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

        first, *others = (
            read_table(source)
            for source in (
                Source(str(tmp_path / "rows.parquet"), "parquet", mapping),
                Source(path, "duckdb", mapping),
                Source(IN_MEMORY, "duckdb", mapping, f"FROM '{tmp_path}/rows.parquet'"),
                Source(url, "postgresql", mapping, "TABLE rows"),
            )
        )
        rejected = [place for place, *_ in first.rejects]
        assert first.kept
        assert len(first.kept) + len(rejected) + first.skipped.total() == len(rows)
        for other in others:
            assert other.kept == first.kept
            assert [place for place, *_ in other.rejects] == rejected
            assert other.skipped == first.skipped


def test_a_query_can_not_write(url: str) -> None:
    query = "SELECT 'a' AS serverId, nextval('numbers') AS observedAt, 1 AS players"

    with pytest.raises(SourceError, match="in a read-only transaction"):
        read_table(Source(url, "postgresql", STRICT, query))
    several = "SELECT 1) AS x; COMMIT; DROP TABLE observations; SELECT * FROM (SELECT 1 AS y"
    with pytest.raises(SourceError, match="multiple commands"):
        read_table(Source(url, "postgresql", STRICT, several))


def test_a_row_can_be_longer_than_a_block(url: str) -> None:
    query = "SELECT repeat('x', 3000000) AS serverId, 1772366400000 AS observedAt, 1 AS players"
    ((_, name, *_),) = read_table(Source(url, "postgresql", STRICT, query)).kept

    assert len(name) == 3_000_000


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELEC 1", 'syntax error at or near "1"'),
        ("SELECT * FROM nothing", 'relation "nothing" does not exist'),
        (
            "SELECT 1 AS x, 2 AS y",
            'no columns "serverId", "observedAt", "players"; the columns are "x", "y"',
        ),
        ("SELECT 1/(i-40000) AS serverId, i AS observedAt, i AS players FROM series", "by zero"),
    ],
)
def test_a_query_that_fails_is_refused_in_one_line(query: str, reason: str, url: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_table(Source(url, "postgresql", STRICT, query))

    assert reason in caught.value.reason
    assert "\n" not in caught.value.reason


def test_a_database_without_the_table_needs_a_query(url: str) -> None:
    other = url.replace(f"/{DATABASE}", "/postgres")

    with pytest.raises(SourceError, match=r"/postgres: no table observations; name .* --query"):
        read_table(Source(other, "postgresql"))


def test_a_password_is_in_no_message(url: str, server: Server, cli: Cli, tmp_path: Path) -> None:
    escaped = quote(PASSWORD, safe="")
    wrong_user = url.replace(USER, "nobody")
    urls = [
        wrong_user,
        f"{server.address}?user=nobody&password={escaped}",
        url.replace("127.0.0.1", "127.0.0.1:x"),
        url.replace(escaped, PASSWORD),
        url.replace(escaped, f"{escaped}%"),
        url.replace(escaped, "p@wörd"),
        url.replace(escaped, "p/wörd"),
        url.replace("postgresql", "mysql"),
        f"{url}?nonsense={escaped}",
        url.replace(DATABASE, "none"),
    ]
    for each in urls:
        ran = cli(
            "snapshot", "build", f"{tmp_path}/s.db", "--game=game_a", f"--observations={each}"
        )
        assert ran.exit_code in {2, 6}, ran.stderr
        assert "://" in ran.stderr
        assert not [secret for secret in SECRETS if secret in ran.stderr], ran.stderr
    other = f"--observations=host=127.0.0.1 password='{PASSWORD}'"
    ran = cli(
        "snapshot", "build", f"{tmp_path}/s.db", "--game=game_a", "--source=postgresql", other
    )
    assert "needs a URL; use postgresql://" in ran.stderr
    assert not [secret for secret in SECRETS if secret in ran.stderr], ran.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://u:p@host:1/db?password=x#y", "postgresql://host:1/db"),
        ("postgresql://u:p@[::1]:1/db", "postgresql://[::1]:1/db"),
        ("postgres:///db", "postgres:///db"),
        ("hdfs://u@host:1/month=1/a.parquet", "hdfs://host:1/month=1/a.parquet"),
        ("s3a://key:a/b=@bucket/a.parquet", "s3a://…"),
        ("postgresql://u:a/b@host/db", "postgresql://…"),
        ("postgresql://u:a@b@host/db", "postgresql://…"),
        ("postgresql://u:a?b@host/db", "postgresql://…"),
        ("postgresql://host/db?password=a@b", "postgresql://…"),
        ("postgresql://u:p\n@host/db", "postgresql://host/db"),
    ],
)
def test_the_title_of_a_url_has_no_user_or_password(name: str, title: str) -> None:
    assert format_title(name) == title


def test_a_database_that_goes_away_leaves_no_file(url: str, server: Server, tmp_path: Path) -> None:
    slow = "SELECT 'a' AS serverId, i AS observedAt, 1 AS players FROM generate_series(1, 1e9) i"
    command = [sys.executable, "-m", "srvstat", "snapshot", "build", "s.db", "--game=game_a"]
    process = subprocess.Popen(
        [*command, f"--observations={url}", f"--query={slow}"], cwd=tmp_path, stderr=subprocess.PIPE
    )
    find = (
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'srvstat' AND query LIKE 'COPY%'"
    )
    while not (found := server.connection.execute(find).fetchall()):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.2)
    for (backend,) in found:
        os.kill(int(str(backend)), signal.SIGKILL)

    _, errors = process.communicate(timeout=30)
    assert (process.returncode, b"Traceback" in errors) == (6, False)
    assert f"error: {server.address}: ".encode() in errors
    assert os.listdir(tmp_path) == []
