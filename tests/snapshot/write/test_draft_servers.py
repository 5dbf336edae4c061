"""Draft a servers file from observations."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import AS_OF, Cli, csv, ndjson
from support.snapshots import read_root

pytestmark = pytest.mark.usefixtures("here")

DRAFT = ["snapshot", "draft-servers", "--game", "game_a"]
BUILD = ["snapshot", "build", "--overwrite", "--observations", "week.csv"]
BLANK = [
    *("projectName", "projectDescription", "region", "players", "tags", "flags"),
    *("chatUrl", "iconUrl", "offline", "firstSeenAt", "updatedAt"),
]


def test_a_draft_of_servers_has_a_record_per_identifier(cli: Cli) -> None:
    Path("week.csv").write_bytes(csv([("b", 5, 5), ("a", 5, 5), ("b", 6, 5), ("c_d", 5, 5)]))
    row = {"serverId": "z", "observedAt": AS_OF, "players": 5}
    Path("more.ndjson.gz").write_bytes(gzip.compress(ndjson([row])))
    sources = ["--observations", "week.csv", "--observations", "more.ndjson.gz"]

    ran = cli(*DRAFT, *sources)

    records = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.exit_code == 0
    assert list(records[0]) == ["id", "game", "cfxId", "hostname", *BLANK, "completed"]
    blank = dict.fromkeys(BLANK) | {"completed": ["cfxId", "game", "hostname"]}
    assert records == [
        blank | {"id": name, "game": "game_a", "cfxId": name, "hostname": name} for name in "abz"
    ]
    assert (
        "warning: 1 malformed row ignored: 1 serverId: must be 1 to 128 letters, digits and hyphens"
        ' (first: week.csv, line 5, serverId: "c_d"); add --ids slug to convert the identifiers\n'
    ) in ran.stderr


def test_a_build_with_a_draft_equals_one_without_records(cli: Cli) -> None:
    rows = [("MAIN_LOBBY", 5, 5), ("play.example.net:30120", 6, 5), ("lobby", 7, 5)]
    Path("week.csv").write_bytes(csv(rows))
    drafted = cli(*DRAFT, "--ids", "slug", "--observations", "week.csv")
    Path("drafted.ndjson").write_bytes(drafted.stdout)

    assert cli(*BUILD, "one.db", "--servers", "drafted.ndjson").exit_code == 0
    assert cli(*BUILD, "two.db", "--ids", "slug", "--game", "game_a").exit_code == 0

    assert read_root("one.db") == read_root("two.db")


def test_a_draft_without_usable_rows_is_refused_with_the_reasons(cli: Cli) -> None:
    rows: list[tuple[str, int | str, int]]
    rows = [("a_b", 5, 5), ("a", "2026-03-01 12:00", 5), ("c_d", 6, 5)]
    Path("week.csv").write_bytes(csv(rows))

    ran = cli(*DRAFT, "--observations", "week.csv")

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr == (
        "error: no server was found: 2 rejected, serverId: must be 1 to 128 letters, digits and"
        ' hyphens (first: week.csv, line 2, serverId: "a_b"); 1 rejected, observedAt: no time zone:'
        " end it with Z or an offset such as +02:00 (first: week.csv, line 3, observedAt:"
        ' "2026-03-01 12:00"); add --ids slug to convert the identifiers; add --time-zone UTC if'
        " the times are in UTC\n"
    )


@pytest.mark.parametrize(
    ("options", "exit_code"),
    [
        ([], 2),
        (["--observations", "week.txt"], 2),
        (["--observations", "-", "--observations", "-", "--format", "csv"], 2),
        (["--observations", "week.csv", "--game", "chess"], 2),
        (["--observations", "week.csv", "--ids", "hash"], 2),
        (["--observations", "gone.csv"], 6),
        (["--observations", "servers.ndjson", "--observations", "gone.csv"], 6),
        (["--observations", "header.csv"], 6),
    ],
)
def test_draft_servers_refuses_unreadable_sources(
    options: list[str], exit_code: int, cli: Cli
) -> None:
    Path("header.csv").write_bytes(b"a,5,7\n")

    ran = cli(*DRAFT, *options)

    assert (ran.exit_code, ran.stdout) == (exit_code, b"")
    assert ran.stderr.startswith("error: ")


def test_a_draft_of_a_table_judges_its_identifiers(cli: Cli) -> None:
    columns = {"serverId": ["hub", "MAIN_LOBBY", "hub"], "observedAt": [AS_OF, AS_OF, AS_OF + 1]}
    draft = [*DRAFT, "--observations", "rows.parquet"]
    pq.write_table(pa.table({**columns, "players": pa.nulls(3, pa.int64())}), "rows.parquet")

    assert cli(*draft).stderr == "error: no server was found: 3 without a player count\n"

    pq.write_table(pa.table({**columns, "players": [7, 8, 9]}), "rows.parquet")
    ran = cli(*draft)
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == ["hub"]
    assert '(first: rows.parquet, row 2, serverId: "MAIN_LOBBY"); add --ids slug' in ran.stderr

    ran = cli(*draft, "--ids", "slug")
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == ["hub", "main-lobby"]
