"""Read what trackers store: SQLite, Minetrack, BattleMetrics, Prometheus and Cfx.re."""

import gzip
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import AS_OF, SHARED_DATA, Cli, Ran
from sources.readings import read_rows, read_table
from srvstat.contract.errors import SourceError, UsageError
from srvstat.sources import sqlite
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.servers import PartialRecord
from srvstat.sources.source import Source, read_batches
from srvstat.sources.trackers import read_cfx_records, read_prometheus_sample

REAL = SHARED_DATA / "minetrack" / "database_copy_1-8-2021.sql"
SCHEMA = "timestamp BIGINT NOT NULL, ip TINYTEXT, playerCount MEDIUMINT"
SCHEMA_NAMES = "timestamp, ip, playerCount"
RULE = "must be a whole number from 0 to 2^53 - 1"


def write_database(
    path: Path, rows: Sequence[Sequence[Any]], columns: str = SCHEMA, settings: str = ""
) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(f"{settings}; CREATE TABLE pings ({columns})")
        marks = ", ".join("?" * (columns.count(",") + 1))
        connection.executemany(f"INSERT INTO pings VALUES ({marks})", rows)  # noqa: S608 - our own names
    return path


def test_a_failed_ping_is_no_observation(tmp_path: Path) -> None:
    rows = [(AS_OF, "mc.example.net", 5), (AS_OF, "b:25566", None), (AS_OF + 3, "b:25566", 0)]

    found = read_rows(write_database(tmp_path / "database.sql", rows), "minetrack")

    assert found.rows == {1: ("mc.example.net", AS_OF, 5), 3: ("b:25566", AS_OF + 3, 0)}
    assert found.skipped == {"failed ping": 1}
    assert not found.reasons


def test_the_columns_of_2015_are_read_in_the_order_of_rows(tmp_path: Path) -> None:
    # SQLite prefers an index with all columns that are read if the table has more.
    columns = "id INTEGER PRIMARY KEY, timestamp BIGINT, ip TINYTEXT, player MEDIUMINT, more TEXT"
    rows = [(7, AS_OF, "a", 5, None), (8, AS_OF, "b", None, None)]

    path = write_database(tmp_path / "database.sql", rows, columns)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE INDEX of_three ON pings (player, ip, timestamp)")

    found = read_rows(path, "minetrack")

    assert found.rows == {1: ("a", AS_OF, 5)}
    assert found.skipped == {"failed ping": 1}


def test_a_malformed_row_is_rejected_with_its_column(tmp_path: Path) -> None:
    rows = [
        (AS_OF, "a", 5),
        (AS_OF, None, 5),
        (-1, "a", None),
        ("soon", "a", 5),
        (AS_OF, "a", 2.5),
        (AS_OF, "a", -1),
        (AS_OF, "a", 1 << 60),
        (AS_OF + 1, "a", None),
        (AS_OF // 1000, "a", 5),
    ]

    found = read_rows(write_database(tmp_path / "database.sql", rows), "minetrack")

    assert found.rows == {1: ("a", AS_OF, 5), 2: ("", AS_OF, 5)}  # a build rejects the second
    assert found.reasons == {
        **dict.fromkeys((3, 4), "observedAt: unknown time format; set it with --time-format"),
        5: "players: fractional count; add --round to round it",
        **dict.fromkeys((6, 7), f"players: {RULE}"),
        9: "observedAt: before 2001 as milliseconds; it looks like Unix seconds",
    }
    assert found.skipped == {"failed ping": 1}


def test_a_database_that_is_written_to_is_read_as_of_one_moment(tmp_path: Path) -> None:
    settings = "PRAGMA journal_mode = WAL"
    path = write_database(tmp_path / "database.sql", [(AS_OF, "a", 5)], settings=settings)
    assert [each.name for each in tmp_path.iterdir()] == ["database.sql"]

    assert len(read_rows(path, "minetrack").rows) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["database.sql"]
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("INSERT INTO pings VALUES (1772366400001, 'a', 1)")
        assert len(read_rows(path, "minetrack").rows) == 1
        writer.commit()
        link = tmp_path / "link.sql"
        link.symlink_to(path)
        assert [len(read_rows(each, "minetrack").rows) for each in (path, link)] == [2, 2]


def test_a_database_that_changes_while_it_is_read_without_a_lock_is_refused(tmp_path: Path) -> None:
    settings = "PRAGMA journal_mode = WAL"
    path = write_database(tmp_path / "database.sql", [(AS_OF, "a", 5)], settings=settings)
    batches = read_batches(Source(str(path), "minetrack"))
    next(batches)

    with closing(sqlite3.connect(path)) as writer, writer:
        writer.execute("INSERT INTO pings VALUES (1, 'a', 1)")

    with pytest.raises(SourceError, match=f"{path}: changed while it was read; read a copy"):
        list(batches)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DROP TABLE pings", 'no table "pings"; the tables are none'),
        *(
            (
                f"DROP TABLE pings; CREATE VIRTUAL TABLE {name} USING fts5({SCHEMA_NAMES}); {rest}",
                'no table "pings"; the tables are none',
            )
            for name, rest in (("pings", ""), ("t", "CREATE VIEW pings AS SELECT * FROM t"))
        ),
        (
            "ALTER TABLE pings RENAME playerCount TO players",
            'no column "playerCount"; the columns are "timestamp", "ip", "players"',
        ),
        ("UPDATE pings SET playerCount = x'ff'", 'the column "playerCount" has binary values; '),
        ("DELETE FROM pings", 'table "pings" has no rows'),
        ("UPDATE pings SET ip = CAST(x'ff' AS TEXT)", "can't be read as a SQLite database: "),
    ],
)
def test_another_database_is_refused(sql: str, reason: str, tmp_path: Path) -> None:
    path = write_database(tmp_path / "database.sql", [(AS_OF, "a", 5)])
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)

    with pytest.raises(SourceError, match=f"{path}: {reason}"):
        read_rows(path, "minetrack")


@pytest.mark.skipif(not REAL.exists(), reason="the real data is not here")
def test_a_real_database_is_read() -> None:
    with closing(sqlite3.connect(f"file:{REAL}?mode=ro&immutable=1", uri=True)) as connection:
        rows = connection.execute("SELECT ip, timestamp, playerCount FROM pings").fetchall()

    found = read_rows(REAL, "minetrack")

    expected = dict(enumerate(rows, 1))
    assert found.rows == {at: row for at, row in expected.items() if row[2] is not None}
    assert found.skipped == {"failed ping": sum(row[2] is None for row in rows)}


LONG = ColumnMapping(id="server", at="at", players="n")


def write_tables(path: Path, *scripts: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(";".join(scripts))
    return path


COUNTS = """
CREATE TABLE counts (server TEXT, at INTEGER, n);
INSERT INTO counts VALUES
  ('b', 1772366400000, 5), ('a', 1772366400000, '7'), ('a', 1772366460000, NULL);
"""
COPY = "CREATE TABLE more AS SELECT * FROM counts"
VIEW = "CREATE VIEW v AS SELECT * FROM counts"
NAMES = """
CREATE TABLE servers (id INTEGER PRIMARY KEY, name TEXT, port INTEGER);
INSERT INTO servers VALUES (1, 'Lobby', 7), (2, 'Süd', 8)
"""
POLLS = """
CREATE TABLE polls (server_id, at INTEGER, n INTEGER);
INSERT INTO polls VALUES (2, 1772366400000, 5), (1, 1772366400000, 6), (3, 1772366400000, 7)
"""
DECLARED = POLLS.replace("server_id", "s INTEGER REFERENCES servers")


@pytest.mark.parametrize(
    ("scripts", "names", "options"),
    [
        ([COUNTS], ["server", "at", "n"], {}),
        ([COUNTS, "CREATE INDEX i ON counts (server, at, n)"], ["server", "at", "n"], {}),
        ([COUNTS, NAMES], ["server", "at", "n"], {"input-table": "counts"}),
        ([COUNTS, VIEW], ["server", "at", "n"], {}),
        ([POLLS], ["server_id", "at", "n"], {}),
        ([POLLS, NAMES], ["server_id", "at", "n", "servers.name"], {"input-table": "polls"}),
        ([DECLARED, NAMES], ["s", "at", "n", "servers.name"], {"input-table": "polls"}),
        (
            [POLLS, NAMES.replace(" PRIMARY KEY", "")],
            ["server_id", "at", "n"],
            {"input-table": "polls"},
        ),
    ],
)
def test_the_only_table_with_times_and_counts_is_found(
    scripts: list[str], names: list[str], options: dict[str, str], tmp_path: Path
) -> None:
    path = write_tables(tmp_path / "polls.db", *scripts)

    sample = sqlite.read_sample(Source(str(path), "sqlite"))

    assert (sample.table.names, sample.options, sample.is_whole) == (names, options, True)


@pytest.mark.parametrize(
    ("table", "query"),
    [
        ("counts", None),
        ("v", None),
        (None, "SELECT server, at, n FROM counts; "),
        (None, "SELECT server, at, n FROM counts -- all of them"),
    ],
)
def test_a_table_a_view_or_a_query_is_read_in_order(
    table: str | None, query: str | None, tmp_path: Path
) -> None:
    path = write_tables(tmp_path / "polls.db", COUNTS, COPY, VIEW)

    found = read_table(Source(str(path), "sqlite", replace(LONG, table=table), query))

    assert found.rows == {1: ("b", AS_OF, 5), 2: ("a", AS_OF, 7)}
    assert found.skipped == {"without a player count": 1}


def test_a_name_in_another_table_is_a_column(tmp_path: Path) -> None:
    path = write_tables(tmp_path / "polls.db", POLLS, NAMES)

    found = read_rows(path, "sqlite", ColumnMapping(id="servers.name", at="at", players="n"))

    assert [server_id for server_id, *_ in found.rows.values()] == ["Süd", "Lobby", ""]


@pytest.mark.parametrize(
    ("script", "mapping", "query", "reason"),
    [
        (
            "CREATE VIEW v AS SELECT 1",
            LONG,
            None,
            'the tables are "v"; choose one with --input-table',
        ),
        (
            COUNTS + COPY,
            LONG,
            None,
            'the tables with times and counts are "counts", "more"; choose one with --input-table',
        ),
        (COUNTS, replace(LONG, table="x"), None, 'no table "x"; the tables are "counts"'),
        (COUNTS, replace(LONG, players="x"), None, 'no column "x"; the columns are "server", '),
        (COUNTS, LONG, "DELETE FROM counts", "can't be read as a SQLite database: near "),
    ],
)
def test_rows_that_are_not_clear_are_refused(
    script: str, mapping: ColumnMapping, query: str | None, reason: str, tmp_path: Path
) -> None:
    path = write_tables(tmp_path / "polls.db", script)

    with pytest.raises(SourceError) as caught:
        read_table(Source(str(path), "sqlite", mapping, query))

    assert caught.value.reason.startswith(f"{path}: {reason}")


def test_a_database_that_would_lose_rows_silently_is_refused(tmp_path: Path) -> None:
    path = write_tables(tmp_path / "polls.db", COUNTS)
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = [("a", AS_OF + at, at) for at in range(10_000)]
        connection.executemany("INSERT INTO counts VALUES (?, ?, ?)", rows)
    data = bytearray(path.read_bytes())
    page = len(data) // 2 // 4096 * 4096
    data[page + 4] -= 9  # the number of cells of a page
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(n) FROM counts").fetchone() < (10_000,)

    with pytest.raises(SourceError, match=f"{path}: damaged: "):
        read_rows(path, "sqlite", LONG)


def test_a_database_is_read_in_the_state_that_was_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "polls.db"
    check = sqlite._check_pages  # noqa: SLF001 - it still runs
    with closing(sqlite3.connect(path)) as writer:
        writer.executescript(f"PRAGMA journal_mode = WAL; {COUNTS}")
        before = read_rows(path, "sqlite", LONG)

        def check_and_write(source: Source, *of: Any) -> None:
            check(source, *of)
            with writer:
                writer.execute("UPDATE counts SET n = n + 1")

        monkeypatch.setattr(sqlite, "_check_pages", check_and_write)

        assert read_rows(path, "sqlite", LONG) == before


def build(directory: Path, cli: Cli, servers: str, rows: Sequence[Sequence[Any]]) -> Ran:
    """Build a snapshot from a database and a servers.json."""
    (directory / "servers.json").write_text(servers)
    path = write_database(directory / "database.sql", rows)
    return cli(
        *(
            "snapshot",
            "build",
            str(directory / "s.db"),
            "--source",
            "minetrack",
            "--game",
            "game_a",
        ),
        *("--observations", str(path), "--servers", str(directory / "servers.json")),
    )


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ("{}", ": must be an array of servers, as in Minetrack's servers.json"),
        ("[] []", ": must be an array of servers, as in Minetrack's servers.json"),
        ('[{"name": "a"}]', ", server 1: ip: required, but missing"),
        ('[{"name": "a", "ip": "a"}, 5]', ", server 2: must be an object"),
        (
            '[{"name": "a", "ip": "a"}',
            ", line 1, column 26: cut off, or not JSON: Expecting ',' delimiter",
        ),
    ],
)
def test_another_servers_json_is_refused(
    servers: str, message: str, tmp_path: Path, cli: Cli
) -> None:
    ran = build(tmp_path, cli, servers, [(AS_OF, "a", 5)])

    assert (ran.exit_code, ran.stderr) == (6, f"error: {tmp_path}/servers.json{message}\n")


TIME = "2026-03-01T12:00:00.000Z"


def build_history(*points: dict[str, Any]) -> bytes:
    data = [{"type": "dataPoint", "attributes": point} for point in points]
    return json.dumps({"data": data}).encode()


@pytest.mark.parametrize("name", ["1234567.json", "1234567.JSON.gz", "1234567"])
def test_the_file_names_the_server_and_holds_any_number_of_answers(
    name: str, tmp_path: Path
) -> None:
    content = b"\xef\xbb\xbf" + b"\n".join(
        [
            build_history({"timestamp": TIME, "value": 5, "min": 1, "max": 9}),
            build_history(),
            build_history({"timestamp": "2026-03-01T13:00:00+01:00", "value": 7}),
        ]
    )
    path = tmp_path / name
    path.write_bytes(gzip.compress(content, mtime=0) if name.endswith("gz") else content)

    found = read_rows(path, "battlemetrics")

    assert found.rows == {1: ("1234567", AS_OF, 5), 2: ("1234567", AS_OF, 7)}


def test_a_point_without_a_count_is_skipped_and_a_malformed_one_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    points: list[dict[str, Any]] = [
        {"timestamp": TIME, "value": None},
        {"timestamp": TIME, "value": 2.5},
        {"timestamp": TIME},
        {"timestamp": "soon", "value": 5},
        {"timestamp": "2026-03-01T12:00:00", "value": 5},
        {"value": 5},
    ]
    path.write_bytes(build_history(*points))

    found = read_rows(path, "battlemetrics")

    assert (found.rows, found.skipped) == ({}, {"without a player count": 2})
    assert {at: reason.partition(":")[0] for at, reason in found.reasons.items()} == {
        2: "players",
        **dict.fromkeys((4, 5, 6), "observedAt"),
    }


def test_standard_input_is_refused_because_it_names_no_server() -> None:
    with pytest.raises(SourceError, match="name a file like the server's identifier"):
        list(read_batches(Source("-", "battlemetrics")))


SECONDS = AS_OF // 1000
BY_SERVER = ColumnMapping(id="server")

# The example of "Range queries" in the documentation of Prometheus' HTTP API.
DOCUMENTED = b"""{"status": "success", "data": {"resultType": "matrix", "result": [
{"metric": {"__name__": "up", "job": "prometheus", "instance": "localhost:9090"},
 "values": [[1435781430.781, "1"], [1435781445.781, "1"], [1435781460.781, "1"]]},
{"metric": {"__name__": "up", "job": "node", "instance": "localhost:9091"},
 "values": [[1435781430.781, "0"], [1435781445.781, "0"], [1435781460.781, "1"]]}]}}"""


def build_series(labels: dict[str, str], *values: Any, **members: Any) -> dict[str, Any]:
    return {"metric": labels, "values": values, **members}


def build_answer(*series: Any, **members: Any) -> bytes:
    data = {"resultType": "matrix", "result": series}
    return json.dumps({"status": "success", "data": data, **members}).encode()


def test_the_documented_example_is_read_exactly(tmp_path: Path) -> None:
    path = tmp_path / "range.json"
    path.write_bytes(DOCUMENTED)

    found = read_rows(path, "prometheus", ColumnMapping(id="instance"))

    times = [1435781430781, 1435781445781, 1435781460781]
    assert list(found.rows.values()) == [
        *(("localhost:9090", at, 1) for at in times),
        *(("localhost:9091", at, count) for at, count in zip(times, (0, 0, 1), strict=True)),
    ]


def test_the_only_label_names_the_server_and_answers_can_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    vector = {"metric": {"job": "a"}, "value": [SECONDS + 60, "7"]}
    matrix = build_series({"__name__": "players", "job": "a"}, [SECONDS, "5"], histograms=[[1, {}]])
    path.write_bytes(build_answer(matrix) + build_answer() + build_answer(vector))

    found = read_rows(path, "prometheus")

    assert found.rows == {1: ("a", AS_OF, 5), 2: ("a", AS_OF + 60_000, 7)}
    path.write_bytes(build_answer(matrix))
    by_metric = read_rows(path, "prometheus", ColumnMapping(id="__name__"))
    assert by_metric.rows == {1: ("players", AS_OF, 5)}


def test_a_series_without_labels_is_of_the_server_that_is_given(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(build_answer(build_series({}, [SECONDS, "5.5"])))
    mapping = ColumnMapping(id=None, server="{file}", at="time", players="value", rounds=True)

    assert read_rows(path, "prometheus", mapping).rows == {1: ("a", AS_OF, 6)}
    sample = read_prometheus_sample(Source(str(path), "prometheus"))
    assert sample.table[:2] == (["time", "value"], [["2026-03-01T12:00:00.000Z"], ["5.5"]])
    path.write_bytes(build_answer(*[build_series({}, [SECONDS, "5"])] * 2))
    with pytest.raises(SourceError, match='series 2: the server is "a", as in series 1'):
        read_rows(path, "prometheus", mapping)


def test_a_sample_is_a_whole_number_or_is_skipped_or_rejected(tmp_path: Path) -> None:
    values = ["5", "5.0", "NaN", "5.5", "-1", "+Inf", "1e99", "x", 5]
    samples = [[SECONDS + at, value] for at, value in enumerate(values)]
    path = tmp_path / "a.json"
    path.write_bytes(build_answer(build_series({"server": "a"}, *samples, [-1, "5"], [1e300, "5"])))

    found = read_rows(path, "prometheus", BY_SERVER)

    assert found.rows == {at + 1: ("a", AS_OF + at * 1000, 5) for at in (0, 1, 8)}
    assert found.skipped == {"not a number (NaN)": 1}
    assert {at: reason.partition(":")[0] for at, reason in found.reasons.items()} == {
        **dict.fromkeys(range(4, 9), "players"),
        **dict.fromkeys((10, 11), "observedAt"),
    }


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    [
        ("1772366400.0009", 1772366400000),
        (f"1772366400.{'9' * 40}", 1772366400999),
        ("253402300799.9999", 253402300799999),
        ("1e999999999", None),
        ("253402300800", None),
        ("-0.0001", None),
    ],
)
def test_digits_beyond_milliseconds_are_cut(
    seconds: str, milliseconds: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(build_answer(build_series({"server": "a"}, ["@", "5"])))
    path.write_text(path.read_text().replace('"@"', seconds))

    found = read_rows(path, "prometheus")

    assert [at for _, at, _ in found.rows.values()] == [milliseconds] * len(found.rows)
    assert len(found.reasons) == (milliseconds is None)


def test_a_warning_of_prometheus_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(build_answer(build_series({"server": "a"}), warnings=["no store matched"]))
    warnings: list[str] = []

    list(read_batches(Source(str(path), "prometheus", on_warning=warnings.append)))

    assert warnings == [f"{path}: a warning of Prometheus: no store matched"]


@pytest.mark.parametrize(
    "mapping",
    [
        ColumnMapping(is_wide=True),
        ColumnMapping(at="time"),
        ColumnMapping(id="job", time_unit="ms"),
        ColumnMapping(time_zone="UTC"),
    ],
)
def test_a_mapping_names_a_label_only(mapping: ColumnMapping, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--source prometheus: takes --columns id=LABEL, --id and"):
        read_rows(tmp_path / "a.json", "prometheus", mapping)


NO_POINTS = 'no columns "attributes.timestamp", "attributes.value"; the columns are '
NO_SERIES = "must be a response of Prometheus to query_range or query, "
TWO = {"job": "a", "instance": "b"}
REFUSALS: dict[str, list[tuple[bytes | None, str]]] = {
    "minetrack": [
        (None, "no such file or directory"),
        (b"", "not a SQLite database"),
        (b"SQLite format 3\0" + bytes(100), "can't be read as a SQLite database: "),
    ],
    "battlemetrics": [
        (b"", "line 1, column 1: cut off, or not JSON: Expecting value"),
        (b'{"data": []}', NO_POINTS),
        (b'{"errors": [{"title": "Unauthorized"}]}', NO_POINTS),
        (gzip.compress(build_history(), mtime=0)[:-9], "the gzip data is cut off"),
    ],
    "prometheus": [
        (b"[]", NO_SERIES),
        (b"{}", NO_SERIES),
        (b'{"data": []}', NO_SERIES),
        (b'{"data": {"resultType": "scalar", "result": [1, "1"]}}', NO_SERIES),
        (
            b'{"status": "error", "errorType": "bad_data", "error": "parse error"}',
            "an error of Prometheus: parse error",
        ),
        (
            build_answer(build_series({"server": "a"}), build_series(TWO)),
            "series 2: no label server; its labels are instance, job; name the label",
        ),
        (
            build_answer(build_series({"__name__": "up"})),
            "series 1: no label server; it has no labels; ",
        ),
        (
            build_answer(build_series({"server": "a"}), build_series({"server": "a"})),
            'series 2: the server is "a", as in series 1; name another label with',
        ),
        *(
            (build_answer(build_series({"server": "a"}, sample)), "series 1: must have arrays of")
            for sample in ([SECONDS], 5, "5")
        ),
        (build_answer({"metric": []}), NO_SERIES),
    ],
}


@pytest.mark.parametrize(
    ("kind", "content", "reason"),
    [(kind, *each) for kind, refused in REFUSALS.items() for each in refused],
)
def test_another_file_is_refused(
    kind: str, content: bytes | None, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "data?base#.json"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(SourceError) as caught:
        read_rows(path, kind, BY_SERVER if kind == "prometheus" else STRICT)

    separator = ", " if reason.startswith(("series", "line")) else ": "
    assert caught.value.reason.startswith(f"{path}{separator}{reason}")


FULL: dict[str, Any] = {
    "EndPoint": "abc123",
    "Data": {
        "clients": 31,
        "svMaxclients": 64,
        "sv_maxclients": 128,
        "hostname": "^1Harbor ^5City^0 | 夜",
        "resources": ["chat", "spawn"] * 200,
        "vars": {
            "sv_projectName": "^3Harbor",
            "sv_projectDesc": "A city\nby the sea",
            "tags": "roleplay, cars,,sea ",
        },
        "players": [{"id": 1, "name": "x", "identifiers": ["steam:1"], "ping": 20}],
        "upvotePower": 12.5,
    },
}
SMALL = {"EndPoint": "q9", "Data": {"clients": 0, "svMaxclients": 48, "vars": None}}
RECORDS = [
    PartialRecord(
        id="abc123",
        cfx_id="abc123",
        hostname="^1Harbor ^5City^0 | 夜",
        project_name="^3Harbor",
        project_description="A city\nby the sea",
        players_current=31,
        players_max=128,
        tags=("roleplay", "cars", "sea"),
    ),
    PartialRecord(id="q9", cfx_id="q9", players_current=0, players_max=48),
]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([FULL, SMALL]),
        f"{json.dumps(FULL)}\n{json.dumps(SMALL)}",
        f"{json.dumps(FULL, indent=2)}[{json.dumps(SMALL)}]",
    ],
)
def test_a_file_has_an_array_of_answers_or_one_after_the_other(text: str, tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text(text, "utf-8")

    assert read_cfx_records(Source(str(path), "cfx")) == RECORDS


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("x", "after row 1: cut off, or not JSON: "),
        ('{"EndPoint": "a"', "after row 1: cut off, or not JSON: "),
        ("5", "server 2: the answer: must be an object"),
        ('{"error": "404 Not Found"}', "server 2: an error of Cfx.re: 404 Not Found"),
        ('{"EndPoint": "a", "Data": []}', "server 2: Data: must be an object"),
        ('{"EndPoint": "a", "Data": {"vars": 1}}', "server 2: vars: must be an object"),
        ('{"EndPoint": "a_b", "Data": {}}', "server 2: EndPoint: must be 1 to 128 letters"),
        ('{"EndPoint": "a", "Data": {"clients": -1}}', "server 2: clients: must be a whole"),
        ('{"EndPoint": "a", "Data": {"hostname": {}}}', "server 2: hostname: must be a string"),
        ('{"EndPoint": "a", "Data": {"hostname": 5}}', "server 2: hostname: must be a string"),
        (
            '{"EndPoint": "a", "EndPoint": "a", "Data": {}}',
            'after row 1: the key "EndPoint" is repeated',
        ),
        ('{"EndPoint": "a", "Data": {"hostname": "\\u0000"}}', "server 2: hostname: contains"),
    ],
)
def test_another_answer_is_refused_with_its_number(
    answer: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "servers.json"
    path.write_text(f"{json.dumps(SMALL)}\n{answer}", "utf-8")

    with pytest.raises(SourceError) as caught:
        read_cfx_records(Source(str(path), "cfx"))

    place, _, rest = caught.value.reason.removeprefix(str(path)).partition(" ")
    assert place in (",", ":")
    assert rest.startswith(reason)
