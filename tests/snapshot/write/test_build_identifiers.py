"""Build from identifiers of any form, without server records or with partial ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import AS_OF, Cli, csv, few_examples, ndjson, server
from srvstat.cli.app import main
from srvstat.sources.servers import make_slug
from support.snapshots import parse_summary, read_observations, read_rejects, read_root

pytestmark = pytest.mark.usefixtures("here")

BUILD = ["snapshot", "build", "out.db", "--overwrite", "--observations", "week.csv"]
NEW = [*BUILD, "--game", "game_a"]
LISTED = [*BUILD, "--servers", "servers.ndjson"]
SLUGS = ["--ids", "slug"]


def write(rows: list[tuple[str, int | str, int | str]], records: list[Any] = []) -> None:  # noqa: B006 - never changed
    Path("week.csv").write_bytes(csv(rows))
    Path("servers.ndjson").write_bytes(ndjson(records))


def test_without_records_each_identifier_becomes_a_server(cli: Cli) -> None:
    rows: list[tuple[str, int | str, int | str]] = [("b", 5, 2), ("a", 5, 1), ("b", 6, 3)]
    write([*rows, ("late", AS_OF, 1), ("not_one", 5, 1)])

    ran = cli(*NEW, "--as-of", "6")

    assert ran.exit_code == 0
    summary = parse_summary(ran)
    assert (summary["servers"], summary["rejected"], summary["skipped"]) == (
        "2",
        "1",
        "1 (1 after the as-of time)",
    )
    completed = "cfxId, game, hostname of 2 servers"
    assert summary["completed"] == completed
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


@settings(max_examples=few_examples())
@given(st.sets(st.text("Ab_. é", min_size=1, max_size=3), min_size=1, max_size=3))
def test_two_identifiers_with_one_slug_are_refused_and_others_are_kept(names: set[str]) -> None:
    write([(name, 5, 5) for name in sorted(names)])
    usable = [name for name in names if name.isascii() and name.strip("_. ")]
    slugs = {make_slug(name) for name in usable}

    exit_code = main([*NEW, *SLUGS, "--quiet"])

    if len(slugs) < len(names):
        assert exit_code == 6
    else:
        assert exit_code == 0
        assert {name for name, *_ in read_observations("out.db")} == slugs


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["A_B", "a-b"], '--ids slug: "A_B" and "a-b" both become a-b'),
        (["a-b", "A_B"], '--ids slug: "a-b" and "A_B" both become a-b'),
        (["x", "Zürich"], '"Zürich" has a letter or digit that is not ASCII'),
    ],
)
def test_a_slug_that_is_no_answer_is_refused_by_name(
    names: list[str], message: str, cli: Cli
) -> None:
    write([(name, 5, 5) for name in names])

    ran = cli(*NEW, *SLUGS)

    assert (ran.exit_code, ran.stderr.startswith(f"error: {message}")) == (6, True)
    assert not Path("out.db").exists()


def test_a_row_without_an_identifier_is_rejected(cli: Cli) -> None:
    write([("A_B", 5, 5), ("", AS_OF, 6)])

    assert cli(*NEW, *SLUGS, "--rejects", "rejects.ndjson").exit_code == 0

    assert [(each["reason"], each["text"]) for each in read_rejects()] == [
        ("serverId: empty", f",{AS_OF},6")
    ]
    drafted = cli("snapshot", "draft-servers", *BUILD[-2:], "--game", "game_a", *SLUGS)
    assert drafted.stderr.startswith(
        "warning: 1 malformed row ignored: 1 serverId: empty (first: week.csv, line 3, "
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
        *[("other", 6, 6)],
    ]
    write([*rows, ("C_D", AS_OF, 7)], records)
    found = [("UPPER", 3, 3), ("a", 1, 1), ("a", 2, 2)]

    ran = cli(*LISTED, "--rejects", "rejects.ndjson")

    assert sorted(read_observations("out.db")) == found
    assert parse_summary(ran)["skipped"] == "2 (1 not in the servers file, 1 not publishable)"
    assert [reject["text"] for reject in read_rejects()] == [
        f"not listed,{AS_OF},5",
        f"C_D,{AS_OF},7",
    ]

    ran = cli(*LISTED, *SLUGS)

    assert sorted(read_observations("out.db")) == [*found, ("c-d", AS_OF, 7)]
    assert parse_summary(ran)["skipped"] == "3 (2 not in the servers file, 1 not publishable)"


def test_a_partial_record_is_completed(cli: Cli) -> None:
    records = [
        {"id": "a", "sourceId": "MAIN:1"},
        {"id": "b", "game": "game_b", "hostname": "Bay"},
        server("c"),
    ]
    write([(name, 5, 5) for name in "abc"], records)
    assert cli(*LISTED).stderr == (
        "error: --game: missing, but 1 server has no game in servers.ndjson; add --game game_a or"
        " --game game_b\n"
    )

    ran = cli(*LISTED, "--game", "game_a")

    completed = "cfxId of 2 servers; game, hostname of 1 server"
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
                'servers.ndjson: the servers a and b have the same cfxId: "a"; the id replaces'
                " a cfxId that is missing"
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
        (
            [{"id": "A_B"}, {"id": "a-b"}],
            'servers.ndjson: two servers have the id "a-b", made from "A_B"',
        ),
    ],
)
def test_an_identifier_of_two_servers_is_refused_by_name(
    records: list[Any], message: str, cli: Cli
) -> None:
    write([("a", 5, 5)], records)

    ran = cli(*LISTED, "--game", "game_a", *SLUGS)

    assert (ran.exit_code, ran.stderr) == (6, f"error: {message}\n")


def test_the_order_of_identifiers_does_not_change_the_root(cli: Cli) -> None:
    rows: list[tuple[str, int | str, int | str]] = [("B_1", 5, 5), ("A_1", 6, 5), ("c", 4, 3)]
    roots = set()
    for order in (rows, rows[::-1]):
        write(order)
        assert cli(*NEW, *SLUGS).exit_code == 0
        roots.add(read_root("out.db"))

    assert len(roots) == 1
    assert json.loads(cli("servers", "-s", "out.db", "--json").stdout)["matched"] == 3


def test_a_new_server_can_not_take_the_cfx_id_of_another(cli: Cli) -> None:
    write([("a", 5, 5)], [server("a", cfxId="b")])
    assert cli(*NEW).exit_code == 0
    assert cli("snapshot", "update", "out.db", "--servers", "servers.ndjson").exit_code == 0
    write([("b", 6, 5)])
    before = Path("out.db").read_bytes()

    ran = cli("snapshot", "update", "out.db", "--observations", "week.csv", "--game", "game_a")

    assert (ran.exit_code, Path("out.db").read_bytes()) == (6, before)
    assert ran.stderr == (
        "error: server b: its cfxId, taken from the id, is that of server a; give it another cfxId"
        " in a servers file\n"
    )
