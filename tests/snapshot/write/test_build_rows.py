"""Building: what becomes of each row and each record."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, SERVERS, Cli, csv, ndjson, server
from srvstat.snapshot.write.build import build as build_snapshot
from srvstat.sources.source import Source
from support.building import COMMAND, WEEK, conflict, content, rejects, stored, told

pytestmark = pytest.mark.usefixtures("here")


FALLBACKS = "2 servers without players.current: the last observation, or 0"
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


def test_every_row_is_kept_repeated_conflicting_rejected_or_left_out(cli: Cli) -> None:
    Path("week.csv").write_text(ALL_KINDS)

    ran = cli(*WEEK, "--as-of", str(AS_OF), "--rejects", "rejects.ndjson")

    summary = told(ran)
    assert (ran.exit_code, ran.stdout) == (0, b"")
    assert ran.stderr.startswith("built out.db\n")
    read = re.fullmatch(r"12 rows in (\d+\.\d+) s, ([\d,]+) a second", summary.pop("read"))
    assert read
    assert int(read[2].replace(",", "")) == round(12 / float(read[1]))
    assert summary == {
        "servers": "2 (1 not publishable, skipped)",
        "kept": "2",
        "repeated": "2",
        "conflicting": "2",
        "rejected": "3",
        "skipped": "3 (1 after as_of, 1 not in the servers file, 1 not publishable)",
        "span": "2026-02-28 12:00:00 UTC to 2026-03-01 12:00:00 UTC",
        "as of": "2026-03-01 12:00:00 UTC",
        "fallbacks": FALLBACKS,
    }
    assert stored("out.db") == [("a", AS_OF, 1), ("b", AS_OF - DAY, 3)]
    assert "first of the rejects: week.csv, line 4: conflicts with 1 players" in ran.stderr


def test_the_rejects_name_file_line_reason_and_text_in_the_order_of_the_lines(cli: Cli) -> None:
    Path("week.csv").write_text(ALL_KINDS)

    cli(*WEEK, "--rejects", "rejects.ndjson")

    assert [list(reject) for reject in rejects()] == [["file", "line", "reason", "text"]] * 5
    assert rejects() == [
        conflict("week.csv", 4, 1, f"a,{AS_OF},2"),
        {
            "file": "week.csv",
            "line": 5,
            "reason": "3 fields are needed, not 1",
            "text": "nonsense",
        },
        {
            "file": "week.csv",
            "line": 9,
            "reason": "players: a whole number from 0 to 9007199254740991 is needed,"
            " in digits alone",
            "text": f"unknown,{AS_OF},x",
        },
        {
            "file": "week.csv",
            "line": 12,
            "reason": "observedAt: not Unix milliseconds and not YYYY-MM-DDTHH:MM:SSZ",
            "text": "hidden,soon,5",
        },
        conflict("week.csv", 13, 1, "a,2026-03-01T12:00Z,2"),
    ]


ROW = st.tuples(
    st.sampled_from(["a", "b", "hidden", "unknown"]),
    st.integers(0, 4),
    st.sampled_from([0, 1, 2, "x"]),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.lists(st.lists(ROW, max_size=8), min_size=1, max_size=3))
def test_the_first_row_read_stands_whatever_the_rows(
    files: list[list[tuple[str, int, int | str]]],
) -> None:
    stands: dict[tuple[str, int], int | str] = {}
    turned_away: list[tuple[str, int]] = []
    counts = {"kept": 0, "repeated": 0, "conflicting": 0, "rejected": 0, "skipped": 0}
    for number, rows in enumerate(files):
        Path(f"{number}.csv").write_bytes(csv(rows))
        for line, (server_id, at, players) in enumerate(rows, 2):
            if players == "x":
                kind = "rejected"
            elif server_id not in ("a", "b") or at > 3:
                kind = "skipped"
            elif (server_id, at) not in stands:
                kind = "kept"
                stands[server_id, at] = players
            else:
                kind = "repeated" if stands[server_id, at] == players else "conflicting"
            counts[kind] += 1
            if kind in ("rejected", "conflicting"):
                turned_away.append((f"{number}.csv", line))

    summary = build_snapshot(
        "out.db",
        servers_source=Source("servers.ndjson", "ndjson"),
        observation_sources=[Source(f"{number}.csv", "csv") for number in range(len(files))],
        as_of=3,
        allow_empty=True,
        rejects="rejects.ndjson",
        overwrite=True,
    )

    assert counts == {
        "kept": summary.kept,
        "repeated": summary.repeated,
        "conflicting": summary.conflicting,
        "rejected": summary.rejected,
        "skipped": sum(summary.skipped.values()),
    }
    assert summary.read == sum(counts.values())
    assert stored("out.db") == sorted((*key, players) for key, players in stands.items())
    assert [(reject["file"], reject["line"]) for reject in rejects()] == turned_away


@pytest.mark.parametrize(("first", "second"), [("x.csv", "y.ndjson"), ("y.ndjson", "x.csv")])
def test_first_read_follows_the_order_of_files_on_the_command_line(
    first: str, second: str, cli: Cli
) -> None:
    texts = {
        "x.csv": f"a,{AS_OF},1",
        "y.ndjson": f'{{"serverId":"a","observedAt":{AS_OF},"players":2}}',
    }
    Path("x.csv").write_text(f"serverId,observedAt,players\n{texts['x.csv']}\n")
    Path("y.ndjson").write_text(f"\n\n\n{texts['y.ndjson']}\n")
    sources = ["--observations", first, "--observations", second]

    assert cli(*COMMAND, *sources, "--rejects", "rejects.ndjson").exit_code == 0

    stands = {"x.csv": 1, "y.ndjson": 2}[first]
    line = {"x.csv": 2, "y.ndjson": 4}[second]
    assert stored("out.db") == [("a", AS_OF, stands)]
    assert rejects() == [conflict(second, line, stands, texts[second])]
    assert cli("snapshot", "info", "out.db").json["sources"] == [first, second]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_reject_far_below_has_its_own_line_and_text(end: str, cli: Cli) -> None:
    rows = [f"a,{AS_OF + at},1" for at in range(120_000)]
    just_before_a_block_ends = (1 << 20) // len(rows[0] + end) - 100
    rows[just_before_a_block_ends] = '"a'
    rows[100_000] = f"a,{AS_OF},2"
    rows[118_000] = f'"a",{AS_OF},"3"'
    data = end.join(["serverId,observedAt,players", *rows])
    Path("week.csv").write_bytes(data.encode())

    assert cli(*WEEK, "--rejects", "rejects.ndjson").exit_code == 0

    assert len(data) > 2 << 20
    assert rejects() == [
        {
            "file": "week.csv",
            "line": just_before_a_block_ends + 2,
            "reason": "a quote is opened and not closed",
            "text": '"a',
        },
        conflict("week.csv", 100_002, 1, rows[100_000]),
        conflict("week.csv", 118_002, 1, rows[118_000]),
    ]


def test_conflicts_take_no_more_time_than_other_rows(cli: Cli) -> None:
    rows = [("a", AS_OF + at, players) for players in (1, 2) for at in range(30_000)]
    Path("week.csv").write_bytes(csv(rows[:36_000]))
    started = time.monotonic()

    assert told(cli(*WEEK))["conflicting"] == "6,000"
    assert time.monotonic() - started < 3


def test_a_row_that_no_text_can_hold_is_rejected_like_any_other(cli: Cli) -> None:
    line = r'{"\ud800":1,"\ud800":2}'
    Path("odd.ndjson").write_text(f"{line}\n")

    ran = cli(*WEEK, "--observations", "odd.ndjson", "--rejects", "rejects.ndjson")

    assert (ran.exit_code, told(ran)["rejected"]) == (0, "1")
    assert [(reject["line"], reject["text"]) for reject in rejects()] == [(1, line)]


def test_the_rejects_are_written_even_when_there_are_none(cli: Cli) -> None:
    assert cli(*WEEK, "--rejects", "rejects.ndjson").exit_code == 0

    assert Path("rejects.ndjson").read_bytes() == b""


def test_the_rejects_replace_those_of_another_build(cli: Cli) -> None:
    Path("rejects.ndjson").write_text("old")
    Path("mine.ndjson").symlink_to("rejects.ndjson")

    assert cli(*WEEK, "--rejects", "mine.ndjson").exit_code == 0

    assert Path("mine.ndjson").is_symlink()
    assert Path("rejects.ndjson").read_bytes() == b""


def test_a_build_without_rejects_writes_the_snapshot_alone(here: Path, cli: Cli) -> None:
    Path("week.csv").write_text(ALL_KINDS)
    before = content(here)

    assert cli(*WEEK).exit_code == 0

    assert content(here).keys() - before.keys() == {"out.db"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("nonsense", "3 fields are needed, not 1"),
        (f"a,{AS_OF},9", "conflicts with 6 players, read before for this server and instant"),
    ],
)
def test_strict_stops_at_the_first_reject(row: str, reason: str, here: Path, cli: Cli) -> None:
    Path("odd.csv").write_text(f"serverId,observedAt,players\na,5,1\n{row}\nworse\n")
    Path("rejects.ndjson").write_text("old")
    before = content(here)

    ran = cli(*WEEK, "--observations", "odd.csv", "--strict", "--rejects", "rejects.ndjson")

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr == f"error: odd.csv, line 3: {reason}\n"
    assert content(here) == before


def test_strict_lets_repeated_and_left_out_rows_pass(cli: Cli) -> None:
    rows = [("a", AS_OF, 1), ("a", AS_OF, 1), ("unknown", AS_OF, 1), ("a", AS_OF + 1, 1)]
    Path("week.csv").write_bytes(csv(rows))

    assert cli(*WEEK, "--strict", "--as-of", str(AS_OF)).exit_code == 0


def test_servers_that_are_not_publishable_leave_no_trace(cli: Cli) -> None:
    rows = [("a", AS_OF, 5), ("a", AS_OF - 1, 4)]
    hidden = [("hidden", AS_OF + at, at % 2) for at in range(100)]
    Path("week.csv").write_bytes(csv([*rows, *hidden, *hidden]))
    assert told(cli(*WEEK))["skipped"] == "200 (200 not publishable)"
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
def test_observations_after_as_of_are_left_out_before_defaults_are_derived(
    as_of: str, cli: Cli
) -> None:
    rows = [("a", AS_OF - DAY, 1), ("a", AS_OF + DAY, 9), ("a", AS_OF, 2), ("b", AS_OF + 1, 9)]
    Path("week.csv").write_bytes(csv(rows))

    ran = cli(*WEEK, "--as-of", as_of)

    assert told(ran)["skipped"] == "2 (2 after as_of)"
    info = cli("snapshot", "info", "out.db").json
    assert info["asOf"] == info["lastObservedAt"] == "2026-03-01T12:00:00.000Z"
    a, b = (cli("get", name, "-s", "out.db").json["data"] for name in ("a", "b"))
    assert a["players"]["current"] == 2
    assert a["firstSeenAt"] == "2026-02-28T12:00:00.000Z"
    assert a["updatedAt"] == "2026-03-01T12:00:00.000Z"
    assert b["players"]["current"] == 0
    assert b["firstSeenAt"] == b["updatedAt"] == "2026-03-01T12:00:00.000Z"


def test_as_of_may_lie_after_all_observations(cli: Cli) -> None:
    assert cli(*WEEK, "--as-of", "2027-01-01T00:00Z").exit_code == 0

    info = cli("snapshot", "info", "out.db").json
    assert info["asOf"] == "2027-01-01T00:00:00.000Z"
    assert info["lastObservedAt"] == "2026-03-01T12:00:00.000Z"
    assert cli("get", "a", "-s", "out.db").json["data"]["updatedAt"] == info["lastObservedAt"]


NOTHING_KEPT = [
    b"serverId,observedAt,players\n",
    csv([("unknown", AS_OF, 5), ("hidden", AS_OF, 5)]),
    csv([("a", AS_OF, "x")]),
]


@pytest.mark.parametrize("data", NOTHING_KEPT)
def test_a_snapshot_without_observations_needs_permission_and_as_of(data: bytes, cli: Cli) -> None:
    Path("week.csv").write_bytes(data)

    for options in ([], ["--as-of", str(AS_OF)], ["--allow-empty"]):
        refused = cli(*WEEK, *options)
        assert (refused.exit_code, Path("out.db").exists()) == (6, False)
        assert refused.stderr.startswith("error: no observation was kept: ")

    assert cli(*WEEK, "--allow-empty", "--as-of", str(AS_OF)).exit_code == 0
    info = cli("snapshot", "info", "out.db").json
    assert (info["observations"], info["firstObservedAt"], info["lastObservedAt"]) == (
        0,
        None,
        None,
    )
    assert info["asOf"] == "2026-03-01T12:00:00.000Z"


def test_an_empty_ndjson_file_is_no_observation(cli: Cli) -> None:
    Path("empty.ndjson").touch()
    command = [*COMMAND, "--observations", "empty.ndjson"]

    assert cli(*command).exit_code == 6
    assert cli(*command, "--allow-empty", "--as-of", str(AS_OF)).exit_code == 0


def test_what_a_record_leaves_open_has_its_default(cli: Cli) -> None:
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


def test_what_a_record_says_is_what_is_answered(cli: Cli) -> None:
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


def test_fallbacks_are_counted_in_the_summary_and_shown_by_info(cli: Cli) -> None:
    records = [server("a", players={"current": 0}), server("b", players={"max": 5}), server("c")]
    Path("servers.ndjson").write_bytes(ndjson(records))

    summary = told(cli(*WEEK))

    assert summary["fallbacks"] == FALLBACKS
    assert cli("snapshot", "info", "out.db", "--json").json["fallbacks"] == 2
    assert b"\nfallbacks     2 " in cli("snapshot", "info", "out.db", "--table").stdout
    current = {
        name: cli("get", name, "-s", "out.db").json["data"]["players"]["current"] for name in "abc"
    }
    assert current == {"a": 0, "b": 7, "c": 0}


SECONDS = (
    "warning: week.csv: every integer instant lies before 2001; are these seconds?"
    " They are read as milliseconds"
)


@pytest.mark.parametrize(
    ("times", "warns"),
    [
        ([AS_OF // 1000, AS_OF // 1000 - 300], True),
        ([0], True),
        ([978_307_199_999], True),
        ([978_307_200_000], False),
        ([AS_OF // 1000, AS_OF], False),
        ([AS_OF // 1000, "2026-03-01T12:00Z"], True),
        (["1999-12-31T23:59Z"], False),
        (["soon"], False),
        ([], False),
    ],
)
def test_integers_that_all_fall_before_2001_look_like_seconds(
    times: list[int | str], warns: bool, cli: Cli
) -> None:
    Path("week.csv").write_bytes(csv([("a", at, 5) for at in times]))

    ran = cli(*WEEK, "--allow-empty", "--as-of", str(AS_OF))

    assert ran.exit_code == 0
    assert (SECONDS in ran.stderr.splitlines()) is warns


def test_seconds_are_looked_for_in_each_file(cli: Cli) -> None:
    Path("seconds.csv").write_bytes(csv([("a", AS_OF // 1000, 5)]))

    ran = cli(*WEEK, "--observations", "seconds.csv")

    assert [line for line in ran.stderr.splitlines() if line.startswith("warning")] == [
        SECONDS.replace("week", "seconds")
    ]
