"""`snapshot diff` on the command line: its exit codes, identifiers, bundles and damaged files."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, Build, Cli, server

HOURS = range(AS_OF - 40 * DAY, AS_OF + 1, DAY // 24)
ROWS = [(name, at, at // DAY % 7) for name in ("a", "b") for at in HOURS]
ALTERED = AS_OF - 3 * DAY
CHANGED = [
    (name, at, 6 - players if (name, at) == ("a", ALTERED) else players)
    for name, at, players in ROWS
]


@pytest.fixture
def old(build: Build) -> str:
    """Build the old snapshot: servers a and b."""
    return build([server("a"), server("b", cfxId="one")], ROWS)


@pytest.fixture
def new(build: Build) -> str:
    """Build the new snapshot: a differs on one day and in its tags; c has the former cfxId of b."""
    records = [server("a", tags=["t"]), server("b"), server("c", cfxId="one")]
    return build(records, [*CHANGED, ("c", AS_OF, 1)])


def change_players(path: str) -> None:
    """Change the players of the first server, and keep the digest."""
    with closing(sqlite3.connect(path)) as connection, connection:
        query = "UPDATE blocks SET players = zeroblob(length(players)) WHERE server_block = ?"
        assert connection.execute(query, (10**9,)).rowcount == 1


def test_differences_exit_with_5(cli: Cli, old: str, new: str) -> None:
    ran = cli("snapshot", "diff", old, new)

    assert (ran.exit_code, ran.stderr) == (5, "")
    assert ran.json["servers"] == {
        "added": ["c"],
        "removed": [],
        "changed": [
            {"serverId": "a", "fields": ["tags"], "days": ["2026-02-26"]},
            {"serverId": "b", "fields": ["cfxId"], "days": []},
        ],
    }
    assert [(one["serverId"], one["range"]) for one in ran.json["answers"]] == [
        *(("a", name) for name in ("7d", "30d", "90d", "1y")),
        *(("b", name) for name in ("24h", "7d", "30d", "90d", "1y")),
    ]
    (cfx_id,) = ran.json["answers"][-1]["differences"]
    assert (cfx_id["pointer"], cfx_id["recorded"], cfx_id["recomputed"]) == ("/cfxId", "one", "x-b")


@pytest.mark.parametrize(
    ("identifiers", "changed"),
    [
        (["a", "id:a"], ["a"]),
        (["cfxId:x-b"], ["b"]),
        (["--by", "cfxId", "x-a"], ["a"]),
        (["c"], []),
    ],
)
def test_identifiers_restrict_the_comparison(
    cli: Cli, old: str, new: str, identifiers: list[str], changed: list[str]
) -> None:
    servers = cli("snapshot", "diff", old, new, *identifiers).json["servers"]

    assert [one["serverId"] for one in servers["changed"]] == changed
    assert servers["added"] == (["c"] if identifiers == ["c"] else [])


def test_an_identifier_can_name_another_server_in_each_snapshot(
    cli: Cli, old: str, new: str
) -> None:
    servers = cli("snapshot", "diff", old, new, "cfxId:one").json["servers"]

    assert [one["serverId"] for one in servers["changed"]] == ["b"]
    assert servers["added"] == ["c"]


def test_a_name_is_that_of_a_server_in_the_later_snapshot(cli: Cli, old: str, build: Build) -> None:
    records = [server("a", hostname="b"), server("b"), server("c", hostname="^1The Lobby")]
    new = build(records, [*CHANGED, ("c", AS_OF, 1)])

    def find(*identifiers: str) -> tuple[list[str], list[str]]:
        servers = cli("snapshot", "diff", old, new, *identifiers).json["servers"]
        return servers["added"], [one["serverId"] for one in servers["changed"]]

    assert find("the lobby") == (["c"], [])
    assert find("b") == ([], ["b"])  # an id wins
    ran = cli("snapshot", "diff", old, new, "a lobby")
    assert (ran.exit_code, ran.stdout[:9]) == (40, b'{"error":')
    assert ran.stderr.endswith(', and no server has this name; similar: c ("The Lobby")\n')


def test_an_invalid_identifier_is_refused_before_the_files_are_read(cli: Cli) -> None:
    assert cli("snapshot", "diff", "none.db", "none.db", "id:a b").exit_code == 40


def test_answers_are_as_of_the_given_time(cli: Cli, old: str, new: str) -> None:
    past = ALTERED + 7 * DAY
    for at, is_listed in ((ALTERED, True), (ALTERED - 1, False), (past - 1, True), (past, False)):
        ran = cli("snapshot", "diff", old, new, "a", "--at", str(at))
        ranges = [one["range"] for one in ran.json["answers"]]
        assert ("7d" in ranges) is is_listed
        late = f"later than {old}, which ends 2026-03-01 12:00:00 UTC"
        assert (late in ran.stderr) is (at > AS_OF)


@pytest.mark.usefixtures("empty_directory")
def test_a_missing_or_damaged_file_is_named(cli: Cli, old: str, new: str) -> None:
    ran = cli("snapshot", "diff", old, "none.db")
    assert (ran.exit_code, ran.stdout) == (3, b"")
    assert ran.stderr.startswith("error: none.db: no such file")

    change_players(new)
    for arguments in ([old, new], [new, old]):
        ran = cli("snapshot", "diff", *arguments)
        assert (ran.exit_code, ran.stdout) == (3, b"")
        assert ran.stderr.startswith(f"error: {new}: damaged (observations of server a from ")


def test_equal_blocks_before_the_first_difference_are_not_read(cli: Cli, build: Build) -> None:
    rows = [("a", at, at % 7) for at in range(AS_OF - 3000 * 60_000, AS_OF + 1, 60_000)]
    old, new = (build([server("a", tags=tags)], rows) for tags in ([], ["t"]))
    altered = build([server("a")], [*rows[:-1], ("a", AS_OF, 8)])
    for path in (new, altered):
        change_players(path)
        assert cli("snapshot", "diff", old, path, "--at", str(AS_OF - 1)).exit_code == 5


def test_a_bundle_is_compared_where_it_has_data(cli: Cli, build: Build, tmp_path: Path) -> None:
    early = [("a", AS_OF - 20 * DAY, 5), ("a", AS_OF - 2 * DAY, 6)]
    old = build([server("a"), server("b")], [*ROWS[:100], *early, ("b", AS_OF, 1)])
    new = build([server("a"), server("b")], [*early, ("a", AS_OF - DAY, 6), ("b", AS_OF, 1)])
    case = str(tmp_path / "case.db")
    bundle = ["snapshot", "bundle", "a", "--range", "7d", "--snapshot", old, "-o", case]
    assert cli(*bundle).exit_code == 0

    ran = cli("snapshot", "diff", case, new)

    assert ran.json["comparedFrom"] == "2026-02-22T00:00:00.000Z"
    assert ran.json["servers"] == {
        "added": [],
        "removed": [],
        "changed": [
            {"serverId": "a", "fields": ["firstSeenAt", "updatedAt"], "days": ["2026-02-28"]}
        ],
    }
    assert {one["range"] for one in ran.json["answers"]} == {"7d"}
    ran = cli("snapshot", "diff", case, new, "--at", "2026-03-01T00:00Z")
    assert {one["range"] for one in ran.json["answers"]} == {"24h", "7d"}
    assert cli("snapshot", "diff", old, case).exit_code == 0
    ran = cli("snapshot", "diff", case, new, "b")
    assert (ran.exit_code, "a bundle without id b" in ran.stderr) == (3, True)


def test_all_days_with_a_difference_are_found(cli: Cli, build: Build) -> None:
    midnight = AS_OF // DAY * DAY
    old, new = (
        build([server("a")], [("a", midnight - day * DAY, day + more) for day in range(600)])
        for more in (0, 1)
    )

    found = cli("snapshot", "diff", old, new, "--at", str(midnight - 599 * DAY)).json

    assert len(found["servers"]["changed"][0]["days"]) == 600
    assert [one["range"] for one in found["answers"]] == ["24h", "7d", "30d", "90d", "1y"]


def test_long_lists_are_cut(cli: Cli, build: Build) -> None:
    names = [f"s-{number:02}" for number in range(45)]
    rows = [(name, AS_OF - at * 2 * DAY, 1) for name in names for at in range(9)]
    old = build(map(server, names[:35]), rows)
    new = build(map(server, names[10:]), [(name, at, 2) for name, at, _ in rows if name != "s-44"])

    shown = cli("snapshot", "diff", old, new, "--table").stdout.decode()

    assert shown.startswith("25 servers changed, 10 added, 10 removed; 125 answers change\n")
    assert "and 5 more changed servers; --json lists all\n" in shown
    assert "and 105 more answers; --json lists all\n" in shown
    assert "2026-02-21, 2026-02-23, and 3 more" in shown
    assert f"removed  {', '.join(names[:10])}\n" in shown
