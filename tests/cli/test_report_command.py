"""`srvstat report`: its data, its file, options and errors."""

import json
import shlex
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from conftest import AS_OF, DAY, Build, Cli, server
from srvstat.analysis.growth import choose_growth_step
from srvstat.cli.demo import IDS
from srvstat.contract.time import Window

NAMES = ["harbor-city", "hostile-host", "empty-plains", "old-guard"]
QUANTILES = [f"--quantile=0.{digits}" for digits in ("05", "25", "75", "95")]
WINDOWS = [
    ["--range=90d", "--tz=Europe/Berlin"],
    ["--range=all"],
    ["--from=2026-02-01", "--to=2026-02-11T12:00Z", "--tz=Asia/Tokyo"],
]


@pytest.fixture
def here(demo_snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty directory; the default snapshot is that of the demo."""
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("window", WINDOWS)
def test_a_report_has_the_documents_of_the_other_commands(cli: Cli, window: list[str]) -> None:
    report = cli("report", *NAMES, *window, "--json").json
    assert cli(*shlex.split(report["command"])[1:-2], "--json").json == report
    versus = [] if "--range=all" in window else ["--versus=previous"]

    assert report["stats"] == cli("stats", *NAMES, *window, *QUANTILES, *versus).json
    assert report["peakHours"] == cli("peak-hours", *NAMES, *window).json
    step = report["growth"]["step"]
    assert report["growth"] == cli("growth", *NAMES, *window, f"--step={step}").json
    assert report["integrity"] == cli("integrity", *NAMES, *window).json
    assert list_steps(report["timeline"]) == read_history(cli, window, report["timeline"])
    for shown, counted in zip(
        report["stats"]["servers"], report["distribution"]["servers"], strict=True
    ):
        names = ("serverId", "sampleCount", "lowestPlayers", "medianPlayers", "peakPlayers")
        assert [shown[name] for name in names] == [counted[name] for name in names]
        assert sum(counted["counts"]) == counted["sampleCount"]
    for name in ("timeline", "distribution", "report"):
        schema = json.loads(cli("schema", name).stdout)
        jsonschema_rs.Draft202012Validator(schema).validate(report.get(name, report))


def list_steps(timeline: Any) -> list[tuple[str, int, float | None]]:
    return [
        (one["serverId"], count, average)
        for one in timeline["servers"]
        for count, average in zip(one["sampleCounts"], one["averages"], strict=True)
    ]


def read_history(cli: Cli, window: list[str], timeline: Any) -> list[tuple[str, int, float | None]]:
    """Return the means of the steps of a timeline."""
    shown = timeline["window"]
    edges = (
        window if "--range=all" in window else [f"--from={shown['from']}", f"--to={shown['to']}"]
    )
    options = [f"--step={timeline['step']}", f"--tz={timeline['timeZone']}"]
    lines = cli("history", *NAMES, *options, *edges).stdout.splitlines()
    rows = map(json.loads, lines)
    return [(row["serverId"], row["sampleCount"], row["players"]) for row in rows]


def test_the_command_in_a_report_repeats_its_bytes(
    cli: Cli, build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build([server("-a"), server("b")], [("-a", AS_OF, 1), ("b", AS_OF - DAY, 2)])
    monkeypatch.chdir(tmp_path)
    options = ["--to=2026-03-01", "--range=36h", "--tz=Asia/Tokyo", "--title=-x 'y' \"z\" $é"]
    asked = ["report", "cfxId:x--a", "b", "cfxId:x-b", *options, "-s", path]

    ran = cli(*asked, "-o", "mine.html")
    data = cli(*asked, "--json")
    command = shlex.split(data.json["command"])
    repeated = cli(*command[1:], "-s", path)

    assert (ran.exit_code, ran.stdout, repeated.exit_code) == (0, b"", 0)
    window = "after 2026-02-27 12:00:00, to 2026-03-01 00:00:00 inclusive (Asia/Tokyo)"
    assert f"wrote mine.html: 2 servers, {window}, " in ran.stderr
    assert Path("mine.html").read_bytes() == Path("report.html").read_bytes()
    assert cli(*asked, "-o", "-").stdout == Path("mine.html").read_bytes()
    assert path not in data.stdout.decode()
    cli(*asked, "--json", "-o", "data.json")
    assert Path("data.json").read_bytes() == data.stdout


@pytest.mark.usefixtures("here")
def test_a_report_chooses_a_range_a_title_and_steps(cli: Cli) -> None:
    one = cli("report", "empty-plains", "--json")
    three = cli("report", *NAMES[:3], "--range=all", "--json").json
    steps = [choose_growth_step(Window(0, days * DAY)) for days in (1, 62, 63, 366, 367)]

    assert one.stderr == "note: server empty-plains: no observation in the snapshot\n"
    assert one.json["window"]["from"] == "2025-12-01T12:00:00.000Z"  # 90 days before the end
    assert (one.json["title"], three["title"]) == (
        "Players of Empty Plains",
        "Players of 3 servers",
    )
    assert three["growth"]["step"] == "week"  # of 75 days
    assert steps == ["day", "day", "week", "week", "month"]


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["old-guard"], 2, "error: give -o FILE for the page, or --json for the data"),
        (["-o", "new.html"], 2, "error: no server; give IDENTIFIER…\n"),
        ([*IDS[:6], "--json"], 2, "error: servers: 6 given, at most 5 can be drawn\n"),
        (["old-guard", "--json", "--range=8"], 2, '--range: "8" is not a number of hours'),
        (["old-guard", "--json", "--range=7d", "--from=1"], 2, "can't be combined"),
        (
            ["old-guard", "--json", "--from=1970-01-01", "--to=9999-12-31"],
            2,
            "more than 1,000,000 steps",
        ),
        (["old-guard", "--json", "--tz=Mars"], 2, '--tz: no time zone "Mars"'),
        (["old-guard", "--json", "--title= "], 2, "error: --title: is empty"),
        (["old-guard", "--json", "--title=\udcff"], 2, "error: --title: is not UTF-8\n"),
        (["a b", "-o", "old.html"], 2, "error: old.html: exists; --overwrite replaces it\n"),
        (["a b", "-o", ""], 2, "error: -o: the name is empty; name a file\n"),
        (["a b", "-o", "."], 2, "error: .: not a regular file"),
        (["a b", "-o", "new/"], 2, "error: -o new/: names a directory; name a file\n"),
        (["old-guard", "-o", "absent/new.html"], 4, "error: absent/new.html: No such file"),
        (["a b", "-o", "new.html"], 40, "error: INVALID_REQUEST: Invalid request\n"),
        (["old-gard", "-o", "new.html"], 44, "no id old-gard; similar: old-guard\n"),
        (["old-guard", "-o", "new.html", "-s", "absent.db"], 3, "absent.db"),
    ],
)
def test_invalid_usage_writes_nothing(
    arguments: list[str], code: int, reason: str, cli: Cli, here: Path
) -> None:
    (here / "old.html").write_bytes(b"old")

    ran = cli("report", *arguments)

    assert (ran.exit_code, ran.stdout) == (code, b"")
    assert reason in ran.stderr
    assert {path.name: path.read_bytes() for path in here.iterdir()} == {"old.html": b"old"}


def test_an_existing_file_is_replaced_only_on_request(cli: Cli, here: Path) -> None:
    (here / "old.html").write_bytes(b"old")

    ran = cli("report", "old-guard", "-o", "old.html", "--overwrite")

    assert ran.exit_code == 0
    assert (here / "old.html").read_bytes().startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize(("command", "output"), [("report", "linked"), ("plot", "linked.svg")])
def test_the_snapshot_is_never_replaced_by_a_report_or_a_picture(
    cli: Cli, here: Path, demo_snapshot: str, command: str, output: str
) -> None:
    (here / output).symlink_to(demo_snapshot)

    ran = cli(command, "old-guard", "-o", output, "--overwrite")

    assert (ran.exit_code, ran.stderr) == (
        2,
        f"error: {output}: is the snapshot to read; name another file\n",
    )


@pytest.mark.usefixtures("here")
def test_an_api_error_under_json_is_the_body_of_the_api(cli: Cli) -> None:
    ran = cli("report", "nobody", "--json")

    assert (ran.exit_code, ran.json["error"]["code"]) == (44, "SERVER_NOT_FOUND")


@pytest.mark.usefixtures("here")
def test_a_bundle_reports_what_it_covers(cli: Cli) -> None:
    cli("snapshot", "bundle", "harbor-city", "-o", "bundle.db", "--range=7d")
    asked = ["report", "harbor-city", "-s", "bundle.db", "--json"]

    short, whole, rest = (cli(*asked, f"--range={length}").json for length in ("3d", "7d", "all"))

    assert short["stats"]["previousWindow"] == short["growth"]["previousWindow"]
    assert short["stats"]["servers"][0]["previous"]["sampleCount"] > 0
    for report in (whole, rest):
        assert report["stats"]["previousWindow"] is report["growth"]["previousWindow"] is None
    assert cli(*asked, "--range=30d").exit_code == 3
    assert cli("report", "old-guard", "-s", "bundle.db", "--json").exit_code == 3
