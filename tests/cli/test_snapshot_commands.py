"""`snapshot info`, `verify`, `bundle` and `update`: what they show, change and refuse."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from conftest import AS_OF, DAY, Build, Cli, Ran, build_in, csv, ndjson, server, srvstat
from srvstat import open_snapshot
from srvstat.contract.errors import SnapshotError
from srvstat.contract.time import format_instant
from support.snapshots import change, expect_conflict, parse_summary, read_directory, read_rejects


@pytest.mark.parametrize("command", ["info", "verify"])
@pytest.mark.parametrize("option", ["-s", "--snapshot"])
def test_an_option_names_the_snapshot(
    cli: Cli, build: Build, monkeypatch: pytest.MonkeyPatch, command: str, option: str
) -> None:
    path = build([server("a")], [("a", AS_OF, 1)])
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", "elsewhere.db")

    by_option = cli("snapshot", command, option, path)

    assert by_option.exit_code == 0
    assert by_option.stdout == cli("snapshot", command, path).stdout
    both = cli("snapshot", command, path, option, path)
    assert (both.exit_code, both.stdout) == (2, b"")
    assert both.stderr == "error: PATH and --snapshot can't be combined\n"


@pytest.mark.parametrize("count", [1, 100, 101, 1_000])
def test_servers_are_listed_once_in_the_order_of_their_ids(
    cli: Cli, build: Build, count: int
) -> None:
    names = [f"s-{number:04}" for number in range(count)]
    path = build(map(server, reversed(names)), [("s-0000", AS_OF, 1)])

    info = cli("snapshot", "info", path).json

    assert [one["id"] for one in info["identifiers"]] == names
    assert info["servers"] == count
    assert list(info)[-1] == "identifiers"


CASE = ["snapshot", "bundle", "a", "-o", "case.db"]
NOT_COVERED = (
    "error: case.db: a bundle that covers 2026-02-22T00:00:00.000Z and later, but the window begins"
    " at 2026-01-30T12:00:00.000Z; use a shorter range, or the snapshot that the bundle comes"
    " from\n"
)


@pytest.fixture
def three_servers_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a directory with a snapshot of the servers a, ab and old, the default one."""
    rows = [
        *(("a", AS_OF - day * DAY, day) for day in range(50)),
        ("ab", AS_OF, 3),
        ("old", AS_OF - 20 * DAY, 4),
    ]
    build_in(tmp_path, [server("a"), server("ab"), server("old")], rows)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SRVSTAT_SNAPSHOT", raising=False)
    return tmp_path


@pytest.fixture
def case(three_servers_here: Path, cli: Cli) -> str:
    """Write a bundle of the servers a and old that covers 7d."""
    assert cli(*CASE, "old", "--range", "7d").exit_code == 0
    assert (three_servers_here / "case.db").is_file()
    return "case.db"


@pytest.mark.usefixtures("three_servers_here")
def test_the_summary_names_the_commands_that_check_and_use_the_bundle(cli: Cli) -> None:
    whole = cli("snapshot", "info").json

    ran = cli(*CASE, "cfxId:x-a", "cfxId:x-ab", "--range", "30d", "-o", "my case.db")

    assert (ran.exit_code, ran.stdout) == (0, b"")
    lines = ran.stderr.splitlines()
    shown = dict(line.split(maxsplit=1) for line in lines[1:3])
    assert (lines[0], shown) == ("wrote my case.db", {"servers": "2", "observations": "32"})
    verify, use = (line.partition("srvstat ")[2] for line in lines[-2:])
    assert verify == "snapshot verify 'my case.db'"
    assert use == "compare a ab --range 30d --snapshot 'my case.db'"
    arguments = use.replace("'", "").replace("my case.db", "my-case.db").split()
    Path("my case.db").rename("my-case.db")
    assert cli(*arguments, "--json").stdout == cli(*arguments[:-2], "--json").stdout
    info = cli("snapshot", "info", "my-case.db").json
    assert (info["parentRoot"], whole["parentRoot"]) == (whole["root"], None)
    assert (info["coveredFrom"], whole["coveredFrom"]) == ("2026-01-30T00:00:00.000Z", None)
    assert f"root          {info['root']}" in ran.stderr
    assert cli("snapshot", "verify", "my-case.db").json["root"] == info["root"]
    table = cli("snapshot", "info", "my-case.db", "--table").stdout.decode()
    assert f"parent root   {whole['root']}\ncovered from  2026-01-30 00:00:00 UTC\n" in table
    assert "covered from" not in cli("snapshot", "info", "--table").stdout.decode()


@pytest.mark.usefixtures("three_servers_here")
def test_one_server_is_shown_with_get_and_a_leading_hyphen_with_its_namespace(
    tmp_path: Path, cli: Cli
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    path = str(build_in(other, [server("-a")], [("-a", AS_OF, 1)]))

    ran = cli("snapshot", "bundle", "id:-a", "-o", "case.db", "-s", path)

    use = ran.stderr.splitlines()[-1].partition("srvstat ")[2]
    assert use == "get id:-a --snapshot case.db"
    assert cli(*use.split()).exit_code == 0


def test_an_invalid_request_and_the_plan_come_before_the_bundle(
    case: str, three_servers_here: Path, cli: Cli
) -> None:
    plan = '[plans.short]\noperations = ["compare-servers"]\nranges = ["24h"]\n'
    (three_servers_here / "access.toml").write_text(plan)
    access = ("--plan", "short", "--access", "access.toml")

    assert cli("compare", "a", "nobody", "--range", "8d", "-s", case).exit_code == 40
    assert cli("compare", "a", "nobody", "-s", case, *access).exit_code == 43
    assert cli("compare", "a", "nobody", "--range", "24h", "-s", case, *access).exit_code == 3


def test_a_batch_stops_at_a_line_that_the_bundle_lacks(
    case: str, three_servers_here: Path, cli: Cli
) -> None:
    servers = [{"identifier": name, "by": "id"} for name in ("a", "old")]
    bodies = [{"servers": servers, "range": each} for each in ("7d", "30d", "7d")]
    (three_servers_here / "batch").write_bytes(
        b"".join(json.dumps(body).encode() + b"\n" for body in bodies)
    )

    ran = cli("compare", "--batch", "batch", "-s", case)

    assert (ran.exit_code, ran.stderr) == (3, NOT_COVERED)
    assert ran.stdout == cli("compare", "a", "old", "--range", "7d").stdout


def test_the_python_api_refuses_what_a_bundle_lacks(case: str) -> None:
    with open_snapshot(case) as snapshot:
        assert snapshot.compare(["a", "old"], range="7d").range == "7d"
        with pytest.raises(SnapshotError, match="a bundle that covers"):
            snapshot.compare(["a", "old"])
        with pytest.raises(SnapshotError, match="a bundle without id ab"):
            snapshot.get("ab")


STEP = DAY // 8
COUNT = 2100
"""Enough observations for two blocks."""

FIRST = AS_OF - COUNT * STEP
ROWS = [("a", FIRST + number * STEP, number % 50) for number in range(COUNT)]
LAST = ROWS[-1][1]
UPDATE = ["snapshot", "update", "snapshot.db", "--observations", "day.csv"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a snapshot of the servers a, with many observations, and b."""
    directory = tmp_path_factory.mktemp("base")
    hidden = server("hidden", publishable=False)
    build_in(directory, [server("a"), server("b"), hidden], [*ROWS, ("b", LAST - 5, 4)])
    return directory


@pytest.fixture
def base_here(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a directory with the snapshot and a file of later rows."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(base / "snapshot.db", tmp_path)
    Path("day.csv").write_bytes(csv([("a", LAST + STEP, 7), ("hidden", LAST, 1)]))
    return tmp_path


@pytest.fixture
def unchanged(base_here: Path) -> Iterator[None]:
    """Check that a test leaves the snapshot and the names of the files as they are."""
    before = read_directory(base_here)
    yield
    after = read_directory(base_here)
    assert after["snapshot.db"] == before["snapshot.db"]
    assert [name for name in after if name.startswith(".")] == []


@pytest.mark.usefixtures("base_here")
def test_the_summary_tells_what_was_added(cli: Cli) -> None:
    Path("servers.ndjson").write_bytes(ndjson([server("new"), server("b", publishable=False)]))
    Path("more.csv").write_bytes(csv([("new", LAST, 3), ("a", LAST, ROWS[-1][2])]))

    ran = cli(*UPDATE, "--observations", "more.csv", "--servers", "servers.ndjson")

    assert (ran.exit_code, ran.stdout) == (0, b"")
    assert ran.stderr.startswith("updated snapshot.db\n")
    lines = parse_summary(ran)
    assert lines["servers"] == "2 (1 added, 1 removed)"
    assert lines["total"] == f"{COUNT + 2:,} observations"
    assert (lines["kept"], lines["repeated"]) == ("2", "1")
    info = cli("snapshot", "info", "snapshot.db").json
    assert info["root"] == lines["root"]
    assert info["sources"] == ["observations.csv", "day.csv", "more.csv"]
    assert info["repeated"] == 1
    assert [one["id"] for one in info["identifiers"]] == ["a", "new"]
    assert cli("snapshot", "verify", "snapshot.db").exit_code == 0


@pytest.mark.usefixtures("base_here")
def test_rows_of_the_snapshot_were_read_first(cli: Cli) -> None:
    again = ("a", LAST, ROWS[-1][2])
    Path("day.csv").write_bytes(
        csv([("a", LAST, 99), again, ("a", LAST + 1, 8), ("a", LAST + 1, 9)])
    )

    ran = cli(*UPDATE, "--rejects", "rejects.ndjson")

    assert ran.exit_code == 0
    lines = parse_summary(ran)
    assert [lines[name] for name in ("kept", "repeated", "conflicting")] == ["1", "1", "2"]
    assert read_rejects() == [
        expect_conflict("day.csv", 2, again[2], ("a", LAST, 99)),
        expect_conflict("day.csv", 5, 8, ("a", LAST + 1, 9)),
    ]


@pytest.mark.usefixtures("base_here")
def test_rows_that_are_not_kept_are_counted_over_all_updates(cli: Cli) -> None:
    again = ("a", LAST, ROWS[-1][2])
    Path("day.csv").write_bytes(csv([again, ("a", LAST, 99), ("a", LAST, -1)]))

    assert [cli(*UPDATE).exit_code for _ in range(2)] == [0, 0]

    info = cli("snapshot", "info", "snapshot.db").json
    counts = [info[name] for name in ("repeated", "conflicting", "rejected", "observations")]
    assert counts == [2, 2, 2, COUNT + 1]


def test_an_update_with_later_rows_reads_only_the_last_rows(base_here: Path, cli: Cli) -> None:
    change("snapshot.db", "UPDATE blocks SET times = x'00' WHERE server_block % 1000000000 = 0")
    damaged = (base_here / "snapshot.db").read_bytes()
    Path("late.csv").write_bytes(csv([("a", FIRST + 1, 3)]))

    late = cli("snapshot", "update", "snapshot.db", "--observations", "late.csv")

    assert (late.exit_code, "damaged (observations of server a from " in late.stderr) == (3, True)
    assert (base_here / "snapshot.db").read_bytes() == damaged
    assert cli(*UPDATE).exit_code == 0
    assert cli("snapshot", "verify", "snapshot.db").exit_code == 3


@pytest.mark.usefixtures("base_here")
def test_records_alone_are_an_update(cli: Cli) -> None:
    Path("servers.ndjson").write_bytes(ndjson([server("b", hostname="renamed", cfxId="b-2")]))

    ran = cli("snapshot", "update", "snapshot.db", "--servers", "servers.ndjson")

    assert ran.exit_code == 0, ran.stderr
    found = cli("get", "b-2", "--by", "cfxId", "--json", "--snapshot", "snapshot.db")
    assert found.exit_code == 0, found.stderr
    record = found.json["data"]
    assert (record["hostname"], record["players"]["current"]) == ("renamed", 4)


@pytest.mark.usefixtures("base_here")
def test_as_of_never_goes_back(cli: Cli) -> None:
    later = format_instant(LAST + DAY)
    assert cli(*UPDATE, "--at", later).exit_code == 0
    Path("day.csv").write_bytes(csv([("a", LAST + 2 * STEP, 7), ("a", LAST + 2 * DAY, 7)]))

    refused = cli(*UPDATE, "--at", format_instant(LAST))
    same = cli(*UPDATE, "--at", later)

    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"error: --at: snapshot.db ends at {later}; give ")
    assert parse_summary(same)["skipped"] == "1 (1 after the as-of time)"
    assert cli("snapshot", "info", "snapshot.db").json["asOf"] == later
    Path("day.csv").write_bytes(csv([("a", LAST + 3 * STEP, 7)]))
    assert cli(*UPDATE).exit_code == 0
    assert cli("snapshot", "info", "snapshot.db").json["asOf"] == later


@pytest.mark.usefixtures("base_here")
def test_identifiers_of_the_snapshot_keep_their_servers(cli: Cli) -> None:
    options = ["--slug-ids", "--quiet"]
    Path("first.csv").write_bytes(csv([("MAIN_LOBBY", LAST, 3), ("sky-wars", LAST, 3)]))
    Path("servers.ndjson").write_bytes(ndjson([server("main-lobby"), server("sky-wars")]))
    build = ["snapshot", "build", "own.db", "--observations", "first.csv", *options]
    assert cli(*build, "--game", "game_a").exit_code == 0

    assert cli("snapshot", "update", "own.db", "--servers", "servers.ndjson").exit_code == 0
    updated = cli("snapshot", "info", "own.db").json
    Path("day.csv").write_bytes(csv([("SKY_WARS", LAST + 1, 4)]))
    assert cli("snapshot", "update", "own.db", "day.csv", *options).exit_code == 0
    added = cli("snapshot", "info", "own.db").json["identifiers"]

    assert cli(*build, "--servers", "servers.ndjson", "--overwrite").exit_code == 0
    assert updated["root"] == cli("snapshot", "info", "own.db").json["root"]
    assert [one["id"] for one in added] == ["main-lobby", "sky-wars", "sky-wars-8aed49"]


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["day.csv", "--observations", "snapshot.db", "--source", "csv"], 3, "day.csv: not a snap"),
        (
            ["snapshot.db", "--source", "snapshot", "--observations", "./snapshot.db"],
            2,
            "snapshot.db: same file as an input; choose another",
        ),
        (
            ["snapshot.db", "--observations", "other.csv"],
            6,
            (
                "no observations kept: 1 not in the snapshot (first: other.csv, line 2);"
                ' 1 identifier is not in the snapshot: "other"; add the records with --servers'
            ),
        ),
        (["snapshot.db", "--observations", "bad.csv", "--strict"], 6, "bad.csv, line 2: "),
        (
            ["snapshot.db", "--servers", "crossed.ndjson", "--observations", "day.csv"],
            6,
            "crossed.ndjson and snapshot.db: the servers a and b have the same cfxId",
        ),
    ],
)
def test_an_update_is_refused_before_it_changes_anything(
    arguments: list[str], code: int, message: str, cli: Cli
) -> None:
    Path("other.csv").write_bytes(csv([("other", LAST, 1)]))
    Path("bad.csv").write_bytes(csv([("a", "soon", 1)]))
    Path("crossed.ndjson").write_bytes(ndjson([server("b", cfxId="x-a")]))

    ran = cli("snapshot", "update", *arguments)

    assert (ran.exit_code, ran.stdout) == (code, b"")
    assert ran.stderr.startswith(f"error: {message}"), ran.stderr
    assert ran.stderr.count("\n") == 1


def run_meanwhile(action: Callable[[], object]) -> Thread:
    """Start a thread that acts once an update reads its rows, and lets the update go on then."""
    os.mkfifo("fifo.csv")

    def write() -> None:
        with open("fifo.csv", "wb") as fifo:
            action()
            fifo.write(csv([("a", LAST + 2 * STEP, 9)]))

    thread = Thread(target=write)
    thread.start()
    return thread


def test_of_two_updates_at_once_the_second_is_refused(base_here: Path, cli: Cli) -> None:
    second: list[Ran] = []
    thread = run_meanwhile(lambda: second.append(srvstat(*UPDATE)))

    first = cli("snapshot", "update", "snapshot.db", "--observations", "fifo.csv")

    thread.join()
    assert first.exit_code == 0
    assert [(ran.exit_code, ran.stderr) for ran in second] == [
        (4, "error: snapshot.db: another update of it is running; try again when that has ended\n")
    ]
    assert parse_summary(first)["total"] == f"{COUNT + 2:,} observations"
    assert cli("snapshot", "info", "snapshot.db").json["observations"] == COUNT + 2
    assert {path.name for path in base_here.iterdir()} == {"snapshot.db", "day.csv", "fifo.csv"}


def test_a_snapshot_that_is_replaced_meanwhile_stays(base_here: Path, cli: Cli) -> None:
    Path("other.db").write_bytes(b"another build")
    thread = run_meanwhile(lambda: os.replace("other.db", "snapshot.db"))

    ran = cli("snapshot", "update", "snapshot.db", "--observations", "fifo.csv")

    thread.join()
    assert (ran.exit_code, ran.stderr) == (
        4,
        "error: snapshot.db: changed during the update; try again\n",
    )
    assert (base_here / "snapshot.db").read_bytes() == b"another build"
    assert {path.name for path in base_here.iterdir()} == {"snapshot.db", "day.csv", "fifo.csv"}
