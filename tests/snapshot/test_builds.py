"""Keep, skip or reject each row of observations."""

import gzip
import json
import re
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, SERVERS, Cli, csv, few_examples, ndjson, server
from srvstat.cli.app import main
from srvstat.snapshot.read.file import open_file
from support.snapshots import (
    COMMAND,
    WEEK,
    expect_conflict,
    format_row,
    parse_summary,
    read_observations,
    read_rejects,
    read_root,
)

pytestmark = pytest.mark.usefixtures("here")


FALLBACKS = "2 current counts taken from the last observation (0 if there is none)"
ALL_KINDS = f"""\
serverId,observedAt,players
a,{AS_OF},1
a,{AS_OF},1
a,{AS_OF},2
nonsense
unknown,{AS_OF},5
hidden,{AS_OF},5
b,{AS_OF + 1},5
unknown,{AS_OF},x
b,{AS_OF - DAY},3

hidden,soon,5
a,2026-03-01T12:00Z,2
"a",2026-03-01T13:00+01:00,"1"
"""


def test_every_row_is_kept_repeated_conflicting_rejected_or_skipped(cli: Cli) -> None:
    Path("week.csv").write_text(ALL_KINDS)

    ran = cli(*WEEK, "--at", str(AS_OF), "--rejects", "rejects.ndjson")

    summary = parse_summary(ran)
    assert (ran.exit_code, ran.stdout) == (0, b"")
    assert ran.stderr.startswith("built out.db\n")
    read = re.fullmatch(r"12 rows in (\d+\.\d+) s, ([\d,]+) per second", summary.pop("read"))
    assert read
    assert int(read[2].replace(",", "")) == round(12 / float(read[1]))
    assert summary == {
        "servers": "2 (1 not public, omitted)",
        "kept": "2",
        "repeated": "2",
        "conflicting": "2",
        "rejected": "3",
        "skipped": "3 (1 after the as-of time, 1 not in the servers file, 1 not public)",
        "span": "2026-02-28 12:00:00 UTC to 2026-03-01 12:00:00 UTC",
        "as of": "2026-03-01 12:00:00 UTC",
        "fallbacks": FALLBACKS,
    }
    assert read_observations("out.db") == [("a", AS_OF, 1), ("b", AS_OF - DAY, 3)]
    assert (
        "first: week.csv, line 4: players: conflicts with an earlier row for the same server and"
        " time, which has 1\n" in ran.stderr
    )


@pytest.mark.parametrize(("first", "second"), [("x.csv", "y.ndjson"), ("y.ndjson", "x.csv")])
def test_files_are_read_in_the_order_of_the_command_line(first: str, second: str, cli: Cli) -> None:
    Path("x.csv").write_text(f"serverId,observedAt,players\na,{AS_OF},1\n")
    row = f'{{"serverId":"a","observedAt":{AS_OF},"players":2}}'
    Path("y.ndjson").write_text(f"\n\n\n{row}\n")
    sources = ["--observations", first, "--observations", second]

    assert cli(*COMMAND, *sources, "--rejects", "rejects.ndjson").exit_code == 0

    players = {"x.csv": 1, "y.ndjson": 2}
    kept_players = players[first]
    line = {"x.csv": 2, "y.ndjson": 4}[second]
    assert read_observations("out.db") == [("a", AS_OF, kept_players)]
    assert read_rejects() == [
        expect_conflict(second, line, kept_players, ("a", AS_OF, players[second]))
    ]
    assert cli("snapshot", "info", "out.db").json["sources"] == [first, second]


def test_the_rejects_file_is_written_even_when_empty(cli: Cli) -> None:
    assert cli(*WEEK, "--rejects", "rejects.ndjson").exit_code == 0

    assert Path("rejects.ndjson").read_bytes() == b""


def test_strict_accepts_repeated_and_skipped_rows(cli: Cli) -> None:
    rows = [("a", AS_OF, 1), ("a", AS_OF, 1), ("unknown", AS_OF, 1), ("a", AS_OF + 1, 1)]
    Path("week.csv").write_bytes(csv(rows))

    assert cli(*WEEK, "--strict", "--at", str(AS_OF)).exit_code == 0


def test_servers_that_are_not_publishable_leave_no_trace(cli: Cli) -> None:
    rows = [("a", AS_OF, 5), ("a", AS_OF - 1, 4)]
    hidden = [("hidden", AS_OF + at, at % 2) for at in range(100)]
    Path("week.csv").write_bytes(csv([*rows, *hidden, *hidden]))
    assert parse_summary(cli(*WEEK))["skipped"] == "200 (200 not public)"
    with_hidden = Path("out.db").read_bytes()

    Path("week.csv").write_bytes(csv(rows))
    Path("servers.ndjson").write_bytes(ndjson(SERVERS[:2]))
    assert cli(*WEEK, "--overwrite").exit_code == 0

    assert Path("out.db").read_bytes() == with_hidden
    assert b"secret" not in with_hidden
    assert cli("get", "hidden", "-s", "out.db").exit_code == 44


def test_as_of_is_the_latest_observation_kept(cli: Cli) -> None:
    rows = [("a", AS_OF, 5), ("b", AS_OF - 1, 5), ("hidden", AS_OF + 9, 5), ("c", AS_OF + 8, 5)]
    Path("week.csv").write_bytes(csv([*rows, ("a", AS_OF + 7, "x")]))

    assert cli(*WEEK).exit_code == 0

    assert cli("snapshot", "info", "out.db").json["asOf"] == "2026-03-01T12:00:00.000Z"


@pytest.mark.parametrize("as_of", [str(AS_OF), "2026-03-01T12:00Z", "2026-03-01 13:00:00+01:00"])
def test_observations_after_as_of_are_skipped_before_defaults_are_derived(
    as_of: str, cli: Cli
) -> None:
    rows = [("a", AS_OF - DAY, 1), ("a", AS_OF + DAY, 9), ("a", AS_OF, 2), ("b", AS_OF + 1, 9)]
    Path("week.csv").write_bytes(csv(rows))

    ran = cli(*WEEK, "--at", as_of)

    assert parse_summary(ran)["skipped"] == "2 (2 after the as-of time)"
    info = cli("snapshot", "info", "out.db").json
    assert info["asOf"] == info["lastObservedAt"] == "2026-03-01T12:00:00.000Z"
    a, b = (cli("get", name, "-s", "out.db").json["data"] for name in ("a", "b"))
    assert a["players"]["current"] == 2
    assert a["firstSeenAt"] == "2026-02-28T12:00:00.000Z"
    assert a["updatedAt"] == "2026-03-01T12:00:00.000Z"
    assert b["players"]["current"] == 0
    assert b["firstSeenAt"] == b["updatedAt"] == "2026-03-01T12:00:00.000Z"


NOTHING_KEPT = [
    b"serverId,observedAt,players\n",
    csv([("unknown", AS_OF, 5), ("hidden", AS_OF, 5)]),
    csv([("a", AS_OF, "x")]),
]


@pytest.mark.parametrize("data", NOTHING_KEPT)
def test_a_snapshot_without_observations_needs_allow_empty_and_as_of(data: bytes, cli: Cli) -> None:
    Path("week.csv").write_bytes(data)

    for options in ([], ["--at", str(AS_OF)], ["--allow-empty"]):
        refused = cli(*WEEK, *options)
        assert (refused.exit_code, Path("out.db").exists()) == (6, False)
        assert refused.stderr.startswith("error: no observations kept: ")

    assert cli(*WEEK, "--allow-empty", "--at", str(AS_OF)).exit_code == 0
    info = cli("snapshot", "info", "out.db").json
    assert (info["observations"], info["firstObservedAt"], info["lastObservedAt"]) == (
        0,
        None,
        None,
    )
    assert info["asOf"] == "2026-03-01T12:00:00.000Z"


def test_missing_fields_of_a_record_have_defaults(cli: Cli) -> None:
    assert cli(*WEEK).exit_code == 0

    assert cli("get", "a", "-s", "out.db").json["data"] == {
        "id": "a",
        "game": "game_a",
        "cfxId": "x-a",
        "hostname": "a",
        "projectName": "",
        "projectDescription": "",
        "region": "",
        "players": {"current": 6, "max": 0},
        "tags": [],
        "flags": [],
        "chatUrl": "",
        "iconUrl": None,
        "offline": False,
        "firstSeenAt": "2026-02-28T12:00:00.000Z",
        "updatedAt": "2026-03-01T12:00:00.000Z",
    }


def test_the_fields_of_a_record_are_returned_unchanged(cli: Cli) -> None:
    record = {
        "id": "a",
        "game": "game_b",
        "cfxId": "abc123",
        "hostname": "Härbor 夜 😀",
        "projectName": "Harbor",
        "projectDescription": "A city\nby the sea",
        "region": "EU",
        "players": {"current": 0, "max": 2**53 - 1},
        "tags": ["one", "two", "one", ""],
        "flags": ["PREMIUM"],
        "chatUrl": "https://chat.example/harbor",
        "iconUrl": "https://icons.example/harbor.png",
        "offline": True,
        "firstSeenAt": "2017-01-01T00:00:00.000Z",
        "updatedAt": "2030-01-01T00:00:00.001Z",
    }
    Path("servers.ndjson").write_bytes(ndjson([record]))

    assert cli(*WEEK).exit_code == 0

    assert cli("get", "a", "-s", "out.db").json == {"data": record}
    assert cli("snapshot", "info", "out.db").json["fallbacks"] == 0


BUILD = ["snapshot", "build", "out.db", "--overwrite", "--observations", "week.csv"]
NEW = [*BUILD, "--game", "game_a"]
LISTED = [*BUILD, "--servers", "servers.ndjson"]
SLUGS = ["--slug-ids"]


def write(rows: list[tuple[str, int | str, int | str]], records: list[Any] = []) -> None:  # noqa: B006 - never changed
    Path("week.csv").write_bytes(csv(rows))
    Path("servers.ndjson").write_bytes(ndjson(records))


def test_without_records_each_identifier_becomes_a_server(cli: Cli) -> None:
    rows: list[tuple[str, int | str, int | str]] = [("b", 5, 2), ("a", 5, 1), ("b", 6, 3)]
    write([*rows, ("late", AS_OF, 1), ("", 5, 1)])

    ran = cli(*NEW, "--at", "6")

    assert ran.exit_code == 0
    summary = parse_summary(ran)
    assert (summary["servers"], summary["rejected"], summary["skipped"]) == (
        "2",
        "1",
        "1 (1 after the as-of time)",
    )
    assert "completed" not in summary
    detail = cli("get", "cfxId:b", "-s", "out.db").json["data"]
    assert (detail["id"], detail["game"], detail["hostname"]) == ("b", "game_a", "b")
    assert cli("get", "late", "-s", "out.db").exit_code == 44


def test_an_identifier_that_is_its_own_slug_is_not_stored_twice(cli: Cli) -> None:
    write([("main-lobby", 5, 5)])

    assert cli(*NEW).exit_code == 0
    root = read_root("out.db")
    assert cli(*NEW, *SLUGS).exit_code == 0
    assert read_root("out.db") == root


def test_slugs_are_the_ids_of_servers_and_the_originals_their_hostnames(cli: Cli) -> None:
    write([("MAIN_LOBBY", 5, 5), ("play.example.net:30120", 6, 5), ("MAIN_LOBBY", 7, 5)])

    assert cli(*NEW, *SLUGS).exit_code == 0

    servers = cli("servers", "-s", "out.db", "--json").json["servers"]
    assert [[one[name] for name in ("id", "sourceId", "hostname")] for one in servers] == [
        ["main-lobby", "MAIN_LOBBY", "MAIN_LOBBY"],
        ["play-example-net-30120", *["play.example.net:30120"] * 2],
    ]
    assert sorted(read_observations("out.db"))[:2] == [("main-lobby", 5, 5), ("main-lobby", 7, 5)]


NAMES = st.text("Aaé_. 異0😀", min_size=1, max_size=3) | st.text("a", min_size=125, max_size=130)
IDS = {
    "main-lobby": "main-lobby",
    "MAIN_LOBBY": "main-lobby-305fc9",
    "Süd": "sud",
    "Lobby #1": "lobby-1-64cc4a",
    "lobby 1": "lobby-1-c495f8",
    "異環": "yihuan",
    "!?": "server-8faf838e",
    "K" * 300: "k" * 128,
}


@settings(max_examples=few_examples())
@given(st.sets(NAMES, min_size=1, max_size=5), st.sampled_from([[], SLUGS]), st.randoms())
def test_each_name_is_a_server_with_an_id_whatever_the_order(
    names: set[str], options: list[str], random: Random
) -> None:
    names -= {" ", "  ", "   "}
    roots = set[bytes]()
    for _ in range(2):
        drawn = random.sample(sorted(names), len(names))
        write([*[(name, 5, 5) for name in drawn], ("a", 5, 5), ("late a", AS_OF, 5)])
        assert main([*NEW, *options, "--quiet", "--at=6"]) == 0
        roots.add(read_root("out.db"))

    assert len(roots) == 1
    with closing(open_file("out.db")) as snapshot:
        found = {row.source_id or row.id: row.id for row in snapshot.iter_servers()}
    assert found.keys() == {*names, "a"}
    assert all(re.fullmatch("[A-Za-z0-9-]{1,128}", server_id) for server_id in found.values())
    kept = {name for name, server_id in found.items() if name == server_id}
    allowed = "[a-z0-9]{1,128}" if options else "[A-Za-z0-9-]{1,128}"
    assert kept == {name for name in found if re.fullmatch(allowed, name)}


def test_ids_are_short_and_readable(cli: Cli) -> None:
    write([(name, 5, 5) for name in IDS])

    ran = cli(*NEW)

    assert ran.exit_code == 0
    servers = cli("servers", "-s", "out.db", "--json").json["servers"]
    assert {one["hostname"]: one["id"] for one in servers} == IDS


def test_a_name_that_can_not_be_stored_rejects_its_rows_only(cli: Cli) -> None:
    rows = [{"serverId": "x" * 513}, {"serverId": "\0"}, {"serverId": " "}, {"serverId": "a_b"}]
    Path("week.ndjson").write_bytes(
        ndjson([{**row, "observedAt": AS_OF, "players": 5} for row in rows])
    )

    ran = cli(*BUILD[:-1], "week.ndjson", "--rejects=rejects.ndjson")

    assert ran.exit_code == 0
    rule = "serverId: must be 1 to 512 characters of Unicode without U+0000"
    assert [each["reason"] for each in read_rejects()] == [rule, rule, "serverId: empty"]
    assert read_observations("out.db") == [("a-b", AS_OF, 5)]


def test_a_row_without_an_identifier_is_rejected(cli: Cli) -> None:
    write([("A_B", 5, 5), ("", AS_OF, 6)])

    assert cli(*NEW, *SLUGS, "--rejects", "rejects.ndjson").exit_code == 0

    assert [(each["reason"], each["text"]) for each in read_rejects()] == [
        ("serverId: empty", format_row("", AS_OF, 6))
    ]
    drafted = cli("snapshot", "draft-servers", *BUILD[-2:], "--game", "game_a", *SLUGS)
    assert drafted.stderr.startswith(
        "warning: 1 malformed row ignored: 1 serverId: empty (first: week.csv, line 3: "
    )


def test_rows_are_those_of_a_record_by_its_source_id_its_id_or_a_slug(cli: Cli) -> None:
    records = [
        server("a", sourceId="MAIN:1"),
        server("UPPER"),
        server("c-d"),
        server("hidden", sourceId="SECRET", publishable=False),
    ]
    rows: list[tuple[str, int | str, int | str]] = [
        *[("MAIN:1", 1, 1), ("a", 2, 2), ("UPPER", 3, 3), ("SECRET", 4, 4)],
        ("not listed", AS_OF, 5),
        *[("other", 6, 6), ("HIDDEN", 7, 7)],
    ]
    write([*rows, ("C_D", AS_OF, 7)], records)
    found = [("UPPER", 3, 3), ("a", 1, 1), ("a", 2, 2)]

    ran = cli(*LISTED, "--rejects", "rejects.ndjson")

    assert sorted(read_observations("out.db")) == found
    assert parse_summary(ran)["skipped"] == "3 (2 not in the servers file, 1 not public)"
    assert [reject["text"] for reject in read_rejects()] == [
        format_row("not listed", AS_OF, 5),
        format_row("C_D", AS_OF, 7),
    ]

    ran = cli(*LISTED, *SLUGS)

    assert sorted(read_observations("out.db")) == [*found, ("c-d", AS_OF, 7)]
    assert parse_summary(ran)["skipped"] == "4 (2 not in the servers file, 2 not public)"

    write([("C_D", 5, 5), ("c d", 6, 5)], records)
    both = 'error: --slug-ids: "C_D" and "c d" both become c-d; '
    assert cli(*LISTED, *SLUGS).stderr.startswith(both)


def test_a_partial_record_is_completed(cli: Cli) -> None:
    records = [
        {"id": "a", "sourceId": "MAIN:1"},
        {"id": "b", "game": "game_b", "hostname": "Bay"},
        server("c"),
    ]
    write([(name, 5, 5) for name in "abc"], records)

    ran = cli(*LISTED, "--game", "game_a")

    completed = "cfxId for 2 servers; game, hostname for 1 server"
    assert parse_summary(ran)["completed"] == completed
    servers = cli("servers", "-s", "out.db", "--json").json["servers"]
    fields = ("cfxId", "game", "hostname", "sourceId", "completed")
    assert [[one[name] for name in fields] for one in servers] == [
        ["a", "game_a", "MAIN:1", "MAIN:1", ["cfxId", "game", "hostname"]],
        ["b", "game_b", "Bay", None, ["cfxId"]],
        ["x-c", "game_a", "c", None, []],
    ]
    info = cli("snapshot", "info", "out.db", "--json").json
    assert info["completed"] == {"cfxId": 2, "game": 1, "hostname": 1}


def test_a_servers_file_may_have_ids_to_make_slugs_of(cli: Cli) -> None:
    write([("MAIN_LOBBY", 5, 5)], [{"id": "MAIN_LOBBY", "hostname": "Main"}])

    assert cli(*LISTED, "--game", "game_a").exit_code == 6
    assert cli(*LISTED, "--game", "game_a", *SLUGS).exit_code == 0

    assert cli("get", "main-lobby", "-s", "out.db").json["data"]["hostname"] == "Main"


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (
            [{"id": "a"}, server("b", cfxId="a")],
            (
                'servers.ndjson: the servers a and b have the same cfxId: "a"; a missing cfxId'
                " defaults to the id"
            ),
        ),
        (
            [server("a", sourceId="X"), server("b", sourceId="X")],
            "servers.ndjson, line 2: sourceId: the same as in line 1",
        ),
        (
            [server("a", sourceId="b"), server("b")],
            'servers.ndjson: the sourceId of server a is the id of another server: "b"',
        ),
    ],
)
def test_an_identifier_of_two_servers_is_refused_by_name(
    records: list[Any], message: str, cli: Cli
) -> None:
    write([("a", 5, 5)], records)

    ran = cli(*LISTED, "--game", "game_a", *SLUGS)

    assert (ran.exit_code, ran.stderr) == (6, f"error: {message}\n")


def test_a_new_server_does_not_take_the_cfx_id_of_another(cli: Cli) -> None:
    write([("a", 5, 5)], [server("a", cfxId="b")])
    assert cli(*NEW).exit_code == 0
    assert cli("snapshot", "update", "out.db", "--servers", "servers.ndjson").exit_code == 0
    write([("b", 6, 5)])

    ran = cli("snapshot", "update", "out.db", "--observations", "week.csv")

    assert ran.exit_code == 0
    assert read_observations("out.db") == [("a", 5, 5), ("b-3e23e8", 6, 5)]


def test_rows_of_all_source_ids_are_those_of_one_server(cli: Cli) -> None:
    joined = ["Room 1", "Room 2"]
    write(
        [("Room 1", 5, 5), ("Room 2", 5, 6), ("room", 6, 7), ("Room 2", 7, 8)],
        [{"id": "room", "sourceId": joined}],
    )

    ran = cli(*LISTED, "--rejects", "rejects.ndjson")

    assert ran.exit_code == 0
    assert read_observations("out.db") == [("room", 5, 5), ("room", 6, 7), ("room", 7, 8)]
    conflict = "players: conflicts with an earlier row for the same server and time, which has 5"
    assert [each["reason"] for each in read_rejects()] == [conflict]
    (listed,) = cli("servers", "-s", "out.db", "--json").json["servers"]
    assert (listed["sourceId"], listed["otherSourceIds"]) == ("Room 1", ["Room 2"])

    root = read_root("out.db")
    assert cli("snapshot", "export", "-s", "out.db", "-o", "exported").exit_code == 0
    assert json.loads(Path("exported/servers.ndjson").read_bytes())["sourceId"] == joined
    exported = ["--servers=exported/servers.ndjson", "--observations=exported/observations.csv"]
    assert cli(*BUILD[:-2], *exported).exit_code == 0
    assert read_root("out.db") == root

    Path("new.csv").write_bytes(csv([("Room 2", 8, 9)]))
    assert cli("snapshot", "update", "out.db", "--observations=new.csv").exit_code == 0
    assert read_observations("out.db")[-1] == ("room", 8, 9)


DRAFTED = ["snapshot", "build", "--overwrite", "--observations", "week.csv"]
DRAFT = ["snapshot", "draft-servers", "--game", "game_a"]
BLANK = [
    *("projectName", "projectDescription", "region", "players", "tags", "flags"),
    *("chatUrl", "iconUrl", "offline", "firstSeenAt", "updatedAt"),
]


def test_a_draft_of_servers_has_a_record_per_identifier(cli: Cli) -> None:
    Path("week.csv").write_bytes(csv([("b", 5, 5), ("a", 5, 5), ("b", 6, 5), ("", 5, 5)]))
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
        'warning: 1 malformed row ignored: 1 serverId: empty (first: week.csv, line 5: "")\n'
    ) in ran.stderr


def test_a_draft_of_servers_warns_of_a_source_without_a_last_newline(cli: Cli) -> None:
    Path("week.csv").write_bytes(csv([("a", 5, 5)]).removesuffix(b"\n"))

    ran = cli(*DRAFT, "--observations", "week.csv")

    assert ran.exit_code == 0
    assert "warning: week.csv, line 2: the last line has no newline" in ran.stderr


def test_a_build_with_a_draft_equals_one_without_records(cli: Cli) -> None:
    rows = [("MAIN_LOBBY", 5, 5), ("play.example.net:30120", 6, 5), ("lobby", 7, 5)]
    Path("week.csv").write_bytes(csv(rows))
    drafted = cli(*DRAFT, "--slug-ids", "--observations", "week.csv")
    Path("drafted.ndjson").write_bytes(drafted.stdout)

    assert cli(*DRAFTED, "one.db", "--servers", "drafted.ndjson").exit_code == 0
    assert cli(*DRAFTED, "two.db", "--slug-ids", "--game", "game_a").exit_code == 0

    assert read_root("one.db") == read_root("two.db")


def test_a_draft_without_usable_rows_is_refused_with_the_reasons(cli: Cli) -> None:
    rows: list[tuple[str, int | str, int]]
    rows = [("", 5, 5), ("a", "2026-03-01 12:00", 5), ("", 6, 5)]
    Path("week.csv").write_bytes(csv(rows))

    ran = cli(*DRAFT, "--observations", "week.csv")

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr == (
        "error: no server was found: 2 rejected, serverId: empty (first: week.csv, line 2:"
        ' ""); 1 rejected, observedAt: no time zone; add Z or an offset such as'
        ' +02:00 (first: week.csv, line 3: "2026-03-01 12:00"); add --time-zone UTC if'
        " the times are in UTC\n"
    )


def test_a_draft_of_a_table_judges_its_identifiers(cli: Cli) -> None:
    columns = {"serverId": ["hub", "MAIN_LOBBY", "hub"], "observedAt": [AS_OF, AS_OF, AS_OF + 1]}
    draft = [*DRAFT, "--observations", "rows.parquet"]
    pq.write_table(pa.table({**columns, "players": pa.nulls(3, pa.int64())}), "rows.parquet")

    assert cli(*draft).stderr == "error: no server was found: 3 without a player count\n"

    pq.write_table(pa.table({**columns, "players": [7, 8, 9]}), "rows.parquet")
    ran = cli(*draft)
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == ["hub", "main-lobby"]
