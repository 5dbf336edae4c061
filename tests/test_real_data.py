"""Real data sets: their builds and updates, and figures recomputed from the raw rows."""

import gzip
import json
import re
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

import srvstat
from analysis.definitions import (
    Row,
    Window,
    compute_change_naively,
    compute_figures,
    compute_growth_naively,
    compute_trend_naively,
    describe_growth_steps,
    select,
    split_naively,
)
from analysis.test_events import Fleet, describe_naively
from conftest import DAY, SHARED_DATA, Cli
from replay.explained import explain_naively, find_contradictions, format_naively
from srvstat.contract.time import parse_instant
from srvstat.contract.windows import DAYS
from support.markdown import read_command, read_marked_block

pytestmark = pytest.mark.slow

Ask = Callable[..., list[Any]]
Rows = dict[str, list[Row]]
"""The instant and the players of each row, by the id of its server."""


def test_real_answers_have_the_expected_bytes_and_follow_from_the_raw_rows(
    war_brokers: Path,
    war_brokers_snapshot: str,
    war_brokers_rows: Rows,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = json.loads((war_brokers / "expected.json").read_bytes())
    answers = [json.loads(case["stdout"])["data"] for case in expected["cases"]]
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", war_brokers_snapshot)

    assert cli("snapshot", "info").json["asOf"] == expected["asOf"]
    assert len(answers) == 7
    for case, answer in zip(expected["cases"], answers, strict=True):
        ran = cli(*case["argv"])
        assert (ran.exit_code, ran.stdout.decode(), ran.stderr) == (0, case["stdout"], "")
        ran = cli(*case["argv"], "--explain")
        assert (ran.exit_code, ran.stderr) == (0, "")
        assert ran.stdout.decode().endswith(f',"answer":{case["stdout"].rstrip()}}}\n')
        check_servers(ran.json, answer, war_brokers_rows, parse_instant(expected["asOf"]))


def check_servers(explained: Any, answer: Any, rows: Rows, end: int) -> None:
    """Compare the explained figures with those of the raw rows and with the expected answer."""
    is_comparison = isinstance(answer, list)
    ids = [one["serverId"] for one in answer] if is_comparison else [answer["id"]]
    assert [found["serverId"] for found in explained["servers"]] == ids
    for found in explained["servers"]:
        start = end - DAYS[explained["range"]] * DAY if is_comparison else None
        assert found == found | explain_naively(rows[found["serverId"]], start, end)
    if is_comparison:
        for found, result in zip(explained["servers"], answer, strict=True):
            assert find_contradictions(found, result) == []


BERLIN = ZoneInfo("Europe/Berlin")
IDS = ["wb-usa", "wb-europe", "wb-asia-clan"]
CLOCK_CHANGES = [("2025-10-20", "2025-11-03"), ("2026-03-25", "2026-04-01")]
"""Days of Berlin between which the clocks change, in either direction."""


@pytest.fixture
def ask(war_brokers_snapshot: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run a command on the snapshot of the rows, and return its lines of JSON."""
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", war_brokers_snapshot)

    def run(*arguments: str) -> list[Any]:
        ran = cli(*arguments)
        assert (ran.exit_code, ran.stderr) == (0, "")
        return [json.loads(line) for line in ran.stdout.splitlines()]

    return run


@pytest.fixture
def rows(war_brokers_rows: Rows) -> Rows:
    """Return all rows of each server."""
    return war_brokers_rows


def find_end(rows: Rows) -> int:
    return max(at for at, _ in rows[IDS[0]])


def find_midnights(days: tuple[str, str]) -> tuple[int, int]:
    start, end = (datetime.fromisoformat(day).replace(tzinfo=BERLIN) for day in days)
    return int(start.timestamp()) * 1000, int(end.timestamp()) * 1000


def build_options(days: tuple[str, str]) -> list[str]:
    return ["--from", days[0], "--to", days[1], "--tz", "Europe/Berlin"]


FIGURES = ["--quantile", "0", "--quantile", "0.95", "--quantile", "0.999", "--above", "20"]


def compute_real_figures(ask: Ask, name: str, kept: Sequence[Row], window: Window) -> Any:
    """Return the figures of a server, whose record has the maximum that the API answers."""
    (answer,) = ask("get", name)
    return compute_figures(kept, window, most=answer["data"]["players"]["max"])


@pytest.mark.parametrize("days", CLOCK_CHANGES)
def test_stats_of_days_and_of_the_days_before_follow_from_the_raw_rows(
    rows: Rows, ask: Ask, days: tuple[str, str]
) -> None:
    start, end = find_midnights(days)

    (found,) = ask("stats", *IDS, *build_options(days), *FIGURES, "--versus", "previous")

    assert found["window"] == {"from": format_naively(start), "to": format_naively(end)}
    assert [server["serverId"] for server in found["servers"]] == IDS
    for name, server in zip(IDS, found["servers"], strict=True):
        assert server == server | compute_real_figures(ask, name, rows[name], (start, end))
        assert server["previous"] == compute_real_figures(
            ask, name, rows[name], (2 * start - end, start)
        )


@pytest.mark.parametrize("range", ["1y", "all"])
def test_stats_of_long_ranges_follow_from_the_raw_rows(rows: Rows, ask: Ask, range: str) -> None:
    end = find_end(rows)

    (found,) = ask("stats", "wb-usa", "--range", range, *FIGURES)

    (server,) = found["servers"]
    start = None if range == "all" else end - 365 * DAY
    assert server == server | compute_real_figures(ask, "wb-usa", rows["wb-usa"], (start, end))


def test_top_orders_all_servers_by_the_means_of_the_raw_rows(rows: Rows, ask: Ask) -> None:
    end = find_end(rows)
    kept = {name: select(of_server, (end - 30 * DAY, end)) for name, of_server in rows.items()}
    means = {name: mean(Fraction(row[1]) for row in some) for name, some in kept.items()}
    names = sorted(means, key=lambda name: (-means[name], name))

    (found,) = ask("top", "--range", "30d", "-n", "31", *FIGURES)

    assert [server["serverId"] for server in found["servers"]] == names
    for server in found["servers"][:5]:
        name = server["serverId"]
        assert server == server | compute_real_figures(ask, name, kept[name], (end - 30 * DAY, end))


def test_the_page_for_the_morning_follows_from_the_raw_rows(rows: Rows, ask: Ask) -> None:
    end = find_end(rows)
    kept = {
        name: list(select(of_server, (end - 40 * DAY, end))) for name, of_server in rows.items()
    }

    (found,) = ask("today", "--tz", "Europe/Berlin")

    assert found["total"]["players"] == 91
    assert found == found | describe_naively(Fleet(kept, end, BERLIN), hold=False)


@pytest.mark.parametrize(
    ("name", "step", "days"),
    [("wb-usa", "day", 30), ("wb-europe", "week", 60), ("wb-asia-clan", "month", 90)],
)
def test_growth_by_local_steps_follows_from_the_raw_rows(
    rows: Rows, ask: Ask, name: str, step: str, days: int
) -> None:
    end = find_end(rows)
    of_one, window = rows[name], (end - days * DAY, end)
    options = ["--step", step, "--range", f"{days}d", "--tz", "Europe/Berlin"]

    (found,) = ask("growth", name, *options)

    (server,) = found["servers"]
    steps = split_naively(of_one, window, step, BERLIN)
    whole_days = steps if step == "day" else split_naively(of_one, window, "day", BERLIN)
    values, previous = (
        [players for _, players in select(of_one, some)]
        for some in (window, (end - 2 * days * DAY, end - days * DAY))
    )
    assert server["growth"] == compute_growth_naively(values)
    assert server["previousGrowth"] == compute_growth_naively(previous)
    assert (server["change"], server["previousCoverage"]) == compute_change_naively(of_one, window)
    assert server["playersPerWeek"] == compute_trend_naively(whole_days)
    assert server["steps"] == describe_growth_steps(steps)


def test_history_without_steps_is_the_raw_rows(rows: Rows, ask: Ask) -> None:
    assert ask("history", *IDS, *build_options(CLOCK_CHANGES[0])) == [
        {"serverId": name, "observedAt": format_naively(at), "players": players}
        for name in IDS
        for at, players in select(rows[name], find_midnights(CLOCK_CHANGES[0]))
    ]


def test_servers_have_the_intervals_and_the_coverage_of_their_raw_rows(
    rows: Rows, ask: Ask
) -> None:
    end = find_end(rows)

    (found,) = ask("servers")
    servers = {server["id"]: server for server in found["servers"]}

    assert servers.keys() == rows.keys()
    for name, of_server in rows.items():
        assert servers[name]["sampleCount"] == len(of_server)
        assert servers[name]["firstObservedAt"] == format_naively(of_server[0][0])
        assert servers[name]["lastObservedAt"] == format_naively(of_server[-1][0])
    for name in IDS:
        figures = compute_figures(rows[name], (None, end))
        for figure in ("usualIntervalSeconds", "coverage"):
            assert servers[name][figure] == figures[figure]


COMMANDS = {
    words[2]: words
    for words in map(read_command, read_marked_block("how-to/import-data.md", "real"))
}
"""The arguments of each build in the documentation, by its output."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with links to the files of the real data; skip without them."""
    monkeypatch.chdir(tmp_path)
    for data_set in ("warbrokers", "hypixel-hourly", "minetrack"):
        if not (SHARED_DATA / data_set).is_dir():
            pytest.skip("the real data is not beside the repository")
        for path in (SHARED_DATA / data_set).iterdir():
            target = tmp_path / (path.name if path.name != "servers.ndjson" else "records.ndjson")
            target.symlink_to(path)
    return tmp_path


def run(cli: Cli, *words: str) -> str:
    """Run a command that succeeds, and return the root of the snapshot that it writes."""
    ran = cli(*words)
    assert ran.exit_code == 0, ran.stderr
    return read_root(words[2])


def read_root(path: str) -> str:
    with srvstat.open_snapshot(path) as snapshot:
        return snapshot.root


def read_rows(path: str) -> Rows:
    """Return the observations of each server, by its id."""
    rows = defaultdict(list)
    with srvstat.open_snapshot(path) as snapshot:
        for name, at, players in snapshot.history(range="all"):
            rows[name].append((at, players))
    return rows


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("output", ["war-brokers.db", "hypixel.db"])
def test_the_command_of_the_documentation_is_proposed(output: str, cli: Cli) -> None:
    words = COMMANDS[output]

    ran = cli(*words[:4])

    (proposed,) = re.findall(r"^  (srvstat .*)$", ran.stderr, re.MULTILINE)
    assert ran.exit_code == 2
    assert [word.replace("ZONE", "UTC") for word in read_command(proposed)] == words


@pytest.mark.usefixtures("here")
def test_war_brokers_wide_has_the_observations_of_the_long_file(
    war_brokers_rows: Rows, cli: Cli
) -> None:
    words = COMMANDS["war-brokers.db"]
    run(cli, *words)

    found = {f"wb-{name.lower()}": rows for name, rows in read_rows(words[2]).items()}
    assert found == war_brokers_rows


@pytest.mark.usefixtures("here")
def test_hypixel_has_the_hours_with_a_value_and_so_has_its_export(cli: Cli) -> None:
    words = COMMANDS["hypixel.db"]
    run(cli, *words)

    with gzip.open("player_counts.csv.gz", "rt", encoding="utf-8") as file:
        values = [line.rstrip().split(",")[1] for line in file][1:]
    (rows,) = read_rows(words[2]).values()
    assert [players for _, players in rows] == [int(value) for value in values if value]
    assert (rows[0][0], rows[-1][0]) == (1_487_311_200_000, 1_773_529_200_000)
    check_export(cli, words[2], "csv")


@pytest.mark.usefixtures("here")
def test_minetrack_has_the_answered_pings_and_so_has_its_export(cli: Cli) -> None:
    words = COMMANDS["minetrack.db"]
    run(cli, *words)

    query = "SELECT ip, timestamp, playerCount FROM pings WHERE playerCount IS NOT NULL"
    answered: dict[str, set[tuple[int, int]]] = defaultdict(set)
    with closing(sqlite3.connect("database_copy_1-8-2021.sql")) as connection:
        for address, at, players in connection.execute(query):
            answered[address.replace(".", "-")].add((at, players))
    assert {name: set(rows) for name, rows in read_rows(words[2]).items()} == answered
    check_export(cli, words[2], "ndjson")


def check_export(cli: Cli, path: str, form: str) -> None:
    """Check that an export of a snapshot builds one with the same root."""
    assert (
        cli("snapshot", "export", f"--snapshot={path}", f"--format={form}", "-o", "e").exit_code
        == 0
    )
    sources = ["--servers=e/servers.ndjson", f"--observations=e/observations.{form}"]
    assert run(cli, "snapshot", "build", "again.db", *sources) == read_root(path)


def split_lines(path: Path, earlier: Path, later: Path) -> None:
    """Write most rows of a CSV file to one file, and the last ones with some others to another."""
    header, *rows = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    at = len(rows) * 19 // 20
    earlier.write_bytes(b"".join([header, *rows[:at]]))
    later.write_bytes(b"".join([header, *rows[at - 50 :]]))


def split_pings(path: Path, earlier: Path, later: Path) -> None:
    """Copy a Minetrack database without its last pings, and with only these."""
    for copy, operator in ((earlier, ">"), (later, "<=")):
        shutil.copyfile(path, copy)
        with closing(sqlite3.connect(copy)) as connection, connection:
            split = "(SELECT max(timestamp) - 3600000 FROM pings)"
            connection.execute(f"DELETE FROM pings WHERE timestamp {operator} {split}")  # noqa: S608 - our own text


class RealData(NamedTuple):
    """A real data set: its file, how to split it, and the options that read it."""

    file: str
    split: Callable[[Path, Path, Path], None]
    options: list[str]
    ending: str = ".csv"
    servers: str | None = None


DATA = {
    "Hypixel": RealData(
        "hypixel-hourly/player_counts.csv.gz",
        split_lines,
        ["--wide", "at=Timestamp", "--time-zone", "UTC"],
    ),
    "Minetrack": RealData(
        "minetrack/database_copy_1-8-2021.sql",
        split_pings,
        ["--source", "minetrack"],
        ending=".sql",
        servers="minetrack/servers.json",
    ),
}


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_an_update_of_real_data_has_the_root_of_a_build(
    data: RealData, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (SHARED_DATA / data.file).exists():
        pytest.skip("the data is not beside the repository")
    monkeypatch.chdir(tmp_path)
    parts = [f"{name}{data.ending}" for name in ("earlier", "later")]
    data.split(SHARED_DATA / data.file, *map(Path, parts))
    servers = [] if data.servers is None else ["--servers", str(SHARED_DATA / data.servers)]
    earlier, later = (["--observations", part] for part in parts)
    build = ["snapshot", "build", *data.options, *servers, "--quiet"]
    assert cli(*build, "u.db", *earlier).exit_code == 0
    assert cli(*build, "all.db", "--observations", str(SHARED_DATA / data.file)).exit_code == 0

    ran = cli("snapshot", "update", "u.db", *later)

    assert ran.exit_code == 0, ran.stderr
    root = cli("snapshot", "info", "all.db").json["root"]
    assert cli("snapshot", "verify", "u.db", "--expect", root).exit_code == 0
