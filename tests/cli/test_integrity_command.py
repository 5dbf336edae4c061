"""`srvstat integrity`: options, errors, forms and tables."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from analysis.honest_series import MODES, Shape, change_series, draw_series
from conftest import AS_OF, DAY, Build, Cli, build_in, server
from srvstat.analysis.integrity import check_integrity
from srvstat.contract.ranges import Window
from srvstat.documents.integrity import Integrity
from srvstat.render.screen import Screen
from srvstat.render.tables import render_table
from srvstat.snapshot.read.reader import open_file
from support.snapshots import forge

HOUR = DAY // 24
RULES = [
    *("flatLine", "floor", "jitter", "missingValues"),
    *("stepChange", "noDailyCycle", "aboveMaximum", "gaps"),
]


@pytest.fixture(scope="module")
def changed_servers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build a snapshot of an honest server and of one for each change of its counts.

    The server `add` has observations on six of seven days, and a maximum that it exceeds.
    """
    shape = Shape(30, 18, 10, 1)
    honest = draw_series(shape)
    servers = {"honest": honest} | {mode: change_series(honest, mode, shape) for mode in MODES}
    rows = [
        (name, at, players)
        for name, series in servers.items()
        for at, players in zip(series.instants, series.players, strict=True)
        if name != "add" or at // DAY % 7
    ]
    records = [server(name, hostname=f"The {name} server") for name in servers]
    records[1]["players"] = {"max": 75}
    return str(build_in(tmp_path_factory.mktemp("changed"), records, rows))


def list_suspect(document: Any) -> dict[str, set[str]]:
    return {
        one["serverId"]: {rule["rule"] for rule in one["rules"] if rule["result"] == "suspect"}
        for one in document["servers"]
    }


def test_each_changed_server_is_suspect_by_its_rules(cli: Cli, changed_servers: str) -> None:
    ran = cli("integrity", "--all", "-s", changed_servers)

    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.json["timeZone"] == "UTC"
    assert [rule["rule"] for rule in ran.json["servers"][0]["rules"]] == RULES
    assert list_suspect(ran.json) == {
        "add": {"aboveMaximum", "gaps"},
        "constant": {"flatLine", "floor", "noDailyCycle"},
        "honest": set(),
        "minimum": {"flatLine", "floor"},
        "percent": {"missingValues"},
        "random": {"jitter"},
        "step": {"missingValues", "stepChange"},
    }


def test_the_evidence_names_times_and_numbers(cli: Cli, build: Build) -> None:
    times = range(AS_OF - 10 * DAY + HOUR, AS_OF + 1, HOUR)
    path = build([server("a")], [("a", at, 40) for at in times])
    ran = cli("integrity", "a", "a", "--range", "5d", "--tz", "Asia/Tokyo", "-s", path)

    (found,) = ran.json["servers"]
    names = ["rule", "result", "reason", "evidence", "threshold", "innocentCauses"]
    assert [*found["rules"][0]] == names
    rules = {rule.pop("rule"): rule for rule in found.pop("rules")}
    assert found == {"serverId": "a", "cfxId": "x-a", "hostname": "a"}
    assert ran.json["window"] == {"from": "2026-02-24T12:00:00.000Z", "to": ran.json["asOf"]}
    assert rules["flatLine"].pop("innocentCauses")
    assert rules["flatLine"] == {
        "result": "suspect",
        "reason": None,
        "evidence": {
            "longestRun": 120,
            "players": 40,
            "from": "2026-02-24T13:00:00.000Z",
            "to": "2026-03-01T12:00:00.000Z",
        },
        "threshold": {"longestRun": 12, "hours": 12},
    }
    assert rules["jitter"]["evidence"] is None
    assert rules["jitter"]["reason"] == "needs 500 counts above 0, has 120"


def test_the_default_window_is_the_last_90_days(cli: Cli, changed_servers: str) -> None:
    whole = cli("integrity", "honest", "-s", changed_servers)
    named = cli("integrity", "honest", "--range=90d", "-s", changed_servers)
    later = cli("integrity", "honest", "--from=2026-02-20", "-s", changed_servers)

    assert whole.stdout == named.stdout
    assert later.json["window"]["from"] == "2026-02-20T00:00:00.000Z"


@pytest.mark.parametrize("window", [["--to=2020-01-01"], ["--from=2030-01-01", "--to=2031-01-01"]])
def test_a_window_without_data_evaluates_nothing(
    window: list[str], cli: Cli, changed_servers: str
) -> None:
    ran = cli("integrity", "add", *window, "-s", changed_servers)

    assert (ran.exit_code, ran.stderr[:42]) == (0, "note: no observation in the window; the sn")
    assert {rule["result"] for rule in ran.json["servers"][0]["rules"]} == {"notEvaluated"}


def test_the_time_after_the_snapshot_is_no_gap(cli: Cli, changed_servers: str) -> None:
    known = cli("integrity", "add", "--from=2026-02-01", "-s", changed_servers)
    later = cli("integrity", "add", "--from=2026-02-01", "--to=2027-01-01", "-s", changed_servers)

    assert later.stderr.startswith("note: the window ends after the snapshot")
    assert later.json["servers"] == known.json["servers"]


def test_a_row_has_what_a_rule_has_in_json(cli: Cli, changed_servers: str) -> None:
    (found,) = cli("integrity", "constant", "-s", changed_servers).json["servers"]
    ran = cli("integrity", "constant", "-s", changed_servers, "--format", "ndjson")

    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    for row, rule in zip(rows, found["rules"], strict=True):
        parts = {name: row[name] and json.loads(row[name]) for name in ("evidence", "threshold")}
        server = {name: found[name] for name in ("serverId", "cfxId", "hostname")}
        causes = {"innocentCauses": " ".join(rule["innocentCauses"])}
        assert row | parts == server | rule | causes


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ([], 2, "error: give IDENTIFIER… or --all\n"),
        (["a", "--tag", "x"], 2, "filters can't be combined with identifiers"),
        (["a", "--tz", "localtime"], 2, '--tz: no time zone "localtime"'),
        (["a", "--range", "90"], 2, '--range: "90" is not a number of hours or days'),
        (["a b"], 40, "may only contain"),
        (["hones"], 44, "no id hones; "),
        (["a", "-s", "absent.db"], 3, "absent.db"),
    ],
)
def test_invalid_usage_of_integrity_is_reported(  # noqa: PLR0913, PLR0917 - a case and its fixtures
    arguments: list[str],
    code: int,
    reason: str,
    cli: Cli,
    changed_servers: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", changed_servers)
    ran = cli("integrity", *arguments, "--table")

    assert (ran.exit_code, ran.stdout) == (code, b"")
    assert reason in ran.stderr


@pytest.mark.parametrize("value", ["zeroblob(length(times))", "x'ffffffff'", "NULL"])
def test_a_forged_snapshot_is_refused(
    value: str, two_servers: bytes, tmp_path: Path, cli: Cli
) -> None:
    path = tmp_path / "forged.db"
    path.write_bytes(two_servers)
    forge(str(path), f"UPDATE days SET times = {value};")  # noqa: S608 - a value of ours

    ran = cli("integrity", "--all", "-s", str(path))

    assert (ran.exit_code, ran.stdout) == (3, b"")


@pytest.fixture(scope="module")
def document(changed_servers: str) -> Iterator[Integrity]:
    """Return the integrity of all servers."""
    with closing(open_file(changed_servers)) as file:
        window = Window(AS_OF - 90 * DAY, AS_OF)
        yield check_integrity(file, file.iter_servers(), window, ZoneInfo("Europe/Berlin"))


def test_long_lists_end_with_the_count_of_the_rest(document: Integrity) -> None:
    many = document.model_copy(update={"servers": document.servers * 15})

    shown = render_table(many, Screen(80))

    assert "and 5 more servers; --json lists all\n" in shown
    assert "and 70 more servers with suspect results; --json lists all\n" in shown
