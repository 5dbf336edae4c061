"""`report` and `plot`: their data, their files, options and errors."""

import json
import shlex
import struct
import sys
import zlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema_rs
import pytest

from conftest import AS_OF, DAY, Build, Cli, server
from srvstat.analysis.growth import choose_growth_step
from srvstat.cli.demo import list_ids
from srvstat.contract.time import Window

NAMES = ["harbor-city", "hostile-host", "empty-plains", "old-guard"]
QUANTILES = [f"--quantile=0.{digits}" for digits in ("05", "25", "75", "95")]
WINDOWS = [
    ["--range=90d", "--tz=Europe/Berlin"],
    ["--range=all"],
    ["--from=2026-02-01", "--to=2026-02-11T12:00Z", "--tz=Asia/Tokyo"],
]


@pytest.fixture
def demo_here(demo_snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty directory; the default snapshot is that of the demo."""
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("demo_here")
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


@pytest.mark.usefixtures("demo_here")
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
        ([*list_ids()[:6], "--json"], 2, "error: servers: 6 given, at most 5 can be drawn\n"),
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
    arguments: list[str], code: int, reason: str, cli: Cli, demo_here: Path
) -> None:
    (demo_here / "old.html").write_bytes(b"old")

    ran = cli("report", *arguments)

    assert (ran.exit_code, ran.stdout) == (code, b"")
    assert reason in ran.stderr
    assert {path.name: path.read_bytes() for path in demo_here.iterdir()} == {"old.html": b"old"}


def test_an_existing_file_is_replaced_only_on_request(cli: Cli, demo_here: Path) -> None:
    (demo_here / "old.html").write_bytes(b"old")

    ran = cli("report", "old-guard", "-o", "old.html", "--overwrite")

    assert ran.exit_code == 0
    assert (demo_here / "old.html").read_bytes().startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize(("command", "output"), [("report", "linked"), ("plot", "linked.svg")])
def test_the_snapshot_is_never_replaced_by_a_report_or_a_picture(
    cli: Cli, demo_here: Path, demo_snapshot: str, command: str, output: str
) -> None:
    (demo_here / output).symlink_to(demo_snapshot)

    ran = cli(command, "old-guard", "-o", output, "--overwrite")

    assert (ran.exit_code, ran.stderr) == (
        2,
        f"error: {output}: is the snapshot to read; name another file\n",
    )


@pytest.mark.usefixtures("demo_here")
def test_an_api_error_under_json_is_the_body_of_the_api(cli: Cli) -> None:
    ran = cli("report", "nobody", "--json")

    assert (ran.exit_code, ran.json["error"]["code"]) == (44, "SERVER_NOT_FOUND")


@pytest.mark.usefixtures("demo_here")
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


KINDS = ("line", "heatmap", "distribution", "growth")


@pytest.fixture
def two_servers_here(two_servers: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with a snapshot of the servers a and b."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SRVSTAT_SNAPSHOT", raising=False)
    Path("snapshot.db").write_bytes(two_servers)


def read_png(data: bytes) -> tuple[int, int, bytes]:
    """Return the width, the height and the bytes of the filtered lines of a PNG."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, compressed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        if kind == b"IDAT":
            compressed += data[at + 8 : at + 8 + length]
        at += length + 12
    width, height = struct.unpack(">II", data[16:24])
    return width, height, zlib.decompress(compressed)


@pytest.mark.usefixtures("two_servers_here")
@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_is_one_svg_with_a_title_its_window_and_its_source(kind: str, cli: Cli) -> None:
    options = ["--kind", kind, "--range", "24h", "--tz", "Europe/Berlin"]
    ran = cli("plot", "a", "b", *options, "-o", "players.svg")

    assert (ran.exit_code, ran.stdout) == (0, b"")
    window = "after 2026-02-28 13:00:00, to 2026-03-01 13:00:00 inclusive (Europe/Berlin)"
    assert ran.stderr.startswith(f"wrote players.svg: 2 servers, {window}, ")
    written = Path("players.svg").read_bytes()
    assert written == cli("plot", "a", "b", *options, "-o", "-").stdout
    texts = [one.text or "" for one in ET.fromstring(written).iter() if one.tag.endswith("text")]  # noqa: S314 - our own output
    assert texts[0] == "Players of secret and b"
    assert "Feb 28, 2026, 13:00 to Mar 1, 2026, 13:00 · Europe/Berlin" in texts[1]
    assert texts[-1].startswith("srvstat · as of 2026-03-01 13:00 Europe/Berlin · root ")


@pytest.mark.usefixtures("two_servers_here")
def test_a_png_has_twice_the_pixels_and_the_theme_of_its_svg(cli: Cli) -> None:
    assert cli("plot", "a", "-o", "x.svg", "--width", "400").exit_code == 0
    for theme in ("light", "dark"):
        ran = cli("plot", "a", "-o", f"{theme}.png", "--width", "400", "--theme", theme)
        assert ran.exit_code == 0, ran.stderr

    width, height, lines = read_png(Path("light.png").read_bytes())
    size = ET.parse("x.svg").getroot()  # noqa: S314 - our own output
    assert (width, height) == (800, 2 * int(size.get("height", "")))
    assert len(set(lines)) > 50
    assert lines != read_png(Path("dark.png").read_bytes())[2]


@pytest.mark.usefixtures("two_servers_here")
def test_without_the_extra_a_png_is_refused_with_the_command_that_installs_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)

    ran = cli("plot", "a", "-o", "x.png")

    assert ran.exit_code == 2
    assert "run pip install 'srvstat[png]', or write an SVG" in ran.stderr
    assert cli("plot", "a", "-o", "x.svg").exit_code == 0
