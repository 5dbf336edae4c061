"""Commands of the analyzer: rows, documents, schemas, names, filters, charts and pictures."""

import csv
import io
import itertools
import json
import shlex
import sqlite3
import struct
import sys
import zlib
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema_rs
import pyarrow.parquet as pq
import pytest

import srvstat
from conftest import AS_OF, DAY, Build, Cli, server
from srvstat.analysis.growth import choose_growth_step
from srvstat.contract import wire
from srvstat.contract.errors import InvalidRequestError, ServerNotFoundError
from srvstat.contract.windows import Window
from srvstat.documents import load_documents
from support.markdown import make_visible, parse_table

HOUR = DAY // 24


def read_rows(cli: Cli, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in cli(*arguments, "--format=ndjson").stdout.splitlines()]


def flatten(part: dict[str, Any]) -> dict[str, Any]:
    """Return figures as the columns of a row."""
    flat = {name: value for name, value in part.items() if name != "previous"}
    if "change" in flat:
        flat["change"] = flat["change"] or {"players": None, "percentage": None}
    for name in {"growth", "change", "above"} & flat.keys():
        flat |= {f"{name}{key.capitalize()}": value for key, value in flat.pop(name).items()}
    flat |= {f"quantile{one['quantile']}": one["players"] for one in flat.pop("quantiles", ())}
    return flat


def test_a_row_of_statistics_has_the_values_of_the_document(cli: Cli, demo_snapshot: str) -> None:
    asked = ["top", "-n3", "--rank-by=growth", "-s", demo_snapshot]
    asked += ["--quantile=.95", "--above=40", "--versus=previous"]

    assert read_rows(cli, *asked) == [
        flatten(one)
        | {
            f"previous{key[0].upper()}{key[1:]}": value
            for key, value in flatten(one["previous"]).items()
        }
        for one in cli(*asked).json["servers"]
    ]


@pytest.mark.parametrize(
    ("command", "field"), [(["growth", "--step=month"], "steps"), (["peak-hours"], "cells")]
)
def test_a_row_of_steps_or_hours_has_the_values_of_the_document(
    command: list[str], field: str, cli: Cli, demo_snapshot: str
) -> None:
    asked = [*command, "old-guard", "cfxId:hc4x2k", "id:old-guard", "-s", demo_snapshot]

    assert read_rows(cli, *asked) == [
        {"serverId": shown["serverId"], **flatten(part)}
        for shown in cli(*asked).json["servers"]
        for part in shown[field]
    ]


def test_a_row_of_integrity_has_what_a_rule_has(cli: Cli, demo_snapshot: str) -> None:
    asked = ["integrity", "old-guard", "-s", demo_snapshot]
    (found,) = cli(*asked).json["servers"]

    for row, rule in zip(read_rows(cli, *asked), found["rules"], strict=True):
        parts = {name: row[name] and json.loads(row[name]) for name in ("evidence", "threshold")}
        names = {name: found[name] for name in ("serverId", "cfxId", "hostname")}
        causes = {"innocentCauses": " ".join(rule["innocentCauses"])}
        assert row | parts == names | rule | causes


def test_a_bundle_without_the_previous_window_shows_or_compares_none(
    cli: Cli, demo_snapshot: str, tmp_path: Path
) -> None:
    bundle = str(tmp_path / "bundle.db")
    cli("snapshot", "bundle", "harbor-city", "-s", demo_snapshot, "-o", bundle, "--range=7d")
    compared = ["stats", "harbor-city", "-s", bundle, "--versus=previous"]

    assert [cli(*compared, f"--range={length}").exit_code for length in ("3d", "7d")] == [0, 3]
    short, whole = (
        cli("growth", "harbor-city", "-s", bundle, f"--range={length}").json
        for length in ("3d", "7d")
    )
    assert short["previousWindow"]["to"] == short["window"]["from"]
    assert short["servers"][0]["previousGrowth"]["players"] is not None
    assert whole["previousWindow"] is whole["servers"][0]["previousGrowth"] is None


@pytest.mark.parametrize("step", [[], ["--step=1h"], ["--step=1h", "--sum"]])
def test_damage_stops_a_history_after_the_rows_before_it(
    step: list[str], build: Build, cli: Cli
) -> None:
    path = build([server("a")], [("a", AS_OF - at * HOUR, at % 7) for at in range(2_160)])
    asked = ["history", "a", "-s", path, "--range=90d", *step]
    whole = cli(*asked).stdout
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE blocks SET players = x'00' WHERE server_block % 1000000000 = 1")
    ran = cli(*asked)

    assert ran.exit_code == 3
    assert ran.stderr.startswith(f"error: {path}: damaged (observations of server a from ")
    assert step or ran.stdout.count(b"\n") >= 1000
    assert whole.startswith(ran.stdout)


def test_a_server_named_many_times_is_read_once(build: Build, cli: Cli) -> None:
    path = build([server("a"), server("b")], [("a", AS_OF, 5), ("b", AS_OF, 6)])
    ran = cli("history", *["a", "b", "cfxId:x-a", "id:b"] * 2_500, "-s", path)

    assert [json.loads(line)["serverId"] for line in ran.stdout.splitlines()] == ["a", "b"]


def test_a_comparison_has_the_chart_of_a_history_above_its_table(
    cli: Cli, demo_snapshot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    pair = ["harbor-city", "night-shift", "--range=7d"]
    compared = ["compare", *pair, "--at=2026-02-20T12:00Z"]

    chart, table = cli(*compared, "--chart").stdout.split(b"\n\n", 1)

    assert table == cli(*compared, "--table").stdout
    drawn = cli("history", *pair, "--to=2026-02-20T12:00Z", "--chart").stdout
    assert chart == drawn.split(b"\n\n", 1)[0]


def test_all_words_must_occur(cli: Cli, demo_snapshot: str) -> None:
    def find(*arguments: str) -> list[str]:
        found = cli("servers", "-s", demo_snapshot, *arguments).json
        return [one["id"] for one in found["servers"]]

    assert find("server", "slots", "PVP") == ["flaky-arena"]
    assert find("server slots  PVP") == ["flaky-arena"]
    assert find("night", "city") == []
    assert len(find()) == 9


def test_a_limit_keeps_the_count_of_matches_and_the_totals(cli: Cli, demo_snapshot: str) -> None:
    found = cli("servers", "-s", demo_snapshot, "--online", "--limit", "2").json
    info = cli("snapshot", "info", demo_snapshot, "--online", "--limit", "2").json
    whole = cli("snapshot", "info", demo_snapshot).json

    assert found["matched"] == info["matched"] == 6
    assert [one["id"] for one in found["servers"]] == ["flaky-arena", "harbor-city"]
    assert [one["id"] for one in info["identifiers"]] == ["flaky-arena", "harbor-city"]
    changed = {name for name in whole if whole[name] != info[name]}
    assert changed == {"matched", "identifiers"}


Complete = Callable[[str, str], list[str]]


@pytest.fixture
def complete(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Complete the last of some words as bash does, from a snapshot."""

    def run(path: str, words: str) -> list[str]:
        monkeypatch.setenv("_SRVSTAT_COMPLETE", "complete_bash")
        monkeypatch.setenv("SRVSTAT_SNAPSHOT", path)
        monkeypatch.setenv("COMP_WORDS", words.replace(" ", "\n"))
        monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
        return cli().stdout.decode().split()

    return run


def test_filters_are_completed_with_values_that_need_no_quotes(
    complete: Complete, demo_snapshot: str
) -> None:
    assert complete(demo_snapshot, "srvstat servers --region ") == ["EU", "US"]
    assert complete(demo_snapshot, "srvstat top --game g") == ["game_a", "game_b"]
    assert complete(demo_snapshot, "srvstat stats --all --tag p") == ["pvp"]
    assert "mods" not in complete(demo_snapshot, "srvstat snapshot info --tag ")
    assert complete(demo_snapshot, "srvstat servers --sort c") == ["coverage", "current"]
    assert complete("missing.db", "srvstat servers --region ") == []


def test_more_than_500_identifiers_are_completed_after_more_letters(
    complete: Complete, build: Build
) -> None:
    names = ["a-", *(f"a-{number:03}" for number in range(600)), "B-1", "a-x"]
    path = build(map(server, names), [("B-1", AS_OF, 1)])

    assert complete(path, "srvstat stats ") == complete(path, "srvstat stats a") == []
    assert complete(path, "srvstat stats a-01") == [f"a-01{number}" for number in range(10)]
    assert complete(path, "srvstat integrity B") == ["B-1"]
    assert complete(path, "srvstat history cfxId:x-B") == ["cfxId:x-B-1"]


NAMES = {
    "lobby": "MAIN_LOBBY",
    "eu-1": "^1Lobby^7 EU",
    "eu-2": "lobby  eu 2",
    "eu-3": "Twice",
    "eu-4": "Twice",
    "eu-5": "TWICE 2",
    "cross": "eu-1",
    "tivoli-1": "Tivoli Gardens",
    "old-guard": "The old tivoli",
}


@pytest.fixture
def named(build: Build, monkeypatch: pytest.MonkeyPatch) -> str:
    """Build a snapshot of servers with names, and make it the default one."""
    rows = [(name, AS_OF - at * DAY // 4, 5 + at) for name in NAMES for at in range(8)]
    path = build([server(name, hostname=shown) for name, shown in NAMES.items()], rows)
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", path)
    return path


def find_ids(document: Any) -> list[str]:
    return [one["serverId"] for one in document["servers"]]


def test_other_commands_accept_names_too(
    cli: Cli, empty_directory: Path, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", named)  # which the empty directory removes
    assert cli("history", "Lobby EU", "--range", "24h").stdout.startswith(b'{"serverId":"eu-1",')
    for command, output in (("report", "x.html"), ("plot", "x.svg")):
        ran = cli(command, "Lobby EU", "MAIN_LOBBY", "-o", output)
        assert (command, ran.exit_code) == (command, 0)
        assert "MAIN_LOBBY" in Path(output).read_text(encoding="utf-8")
    assert cli("snapshot", "bundle", "Lobby EU", "-o", "case.db").exit_code == 0
    assert cli("snapshot", "export", "Lobby EU", "-o", "exported").exit_code == 0
    assert find_ids(cli("stats", "eu-1", "-s", "case.db").json) == ["eu-1"]
    missing = cli("stats", "MAIN_LOBBY", "-s", "case.db")
    assert (missing.exit_code, missing.stdout) == (3, b"")
    assert 'a bundle without a server named "MAIN_LOBBY"' in missing.stderr
    assert len(list(empty_directory.iterdir())) == 4


def test_the_python_api_takes_names(named: str) -> None:
    with srvstat.open_snapshot(named) as snapshot:
        found = snapshot.stats(["Lobby EU", "main_lobby"])
        assert [one.server_id for one in found.servers] == ["eu-1", "lobby"]
        with pytest.raises(ServerNotFoundError, match="give an id: eu-3, eu-4"):
            snapshot.growth(["twice"])
        with pytest.raises(InvalidRequestError, match="no server is named"):
            snapshot.stats(["no such"])


def test_results_keep_the_order_of_the_request(cli: Cli, demo_snapshot: str) -> None:
    references = ["harbor-city", "cfxId:nf8q1z", "old-guard", "cfxId:fa9t5w", "id:night-shift"]
    ids = ["harbor-city", "new-frontier", "old-guard", "flaky-arena", "night-shift"]
    ids_by_reference = dict(zip(references, ids, strict=True))
    whole = cli("compare", *references, "-s", demo_snapshot, "--range", "24h").json["data"]
    results_by_reference = dict(zip(references, whole, strict=True))

    for order in itertools.permutations(references):
        data = cli("compare", *order, "-s", demo_snapshot, "--range", "24h").json["data"]
        assert [result["serverId"] for result in data] == [ids_by_reference[name] for name in order]
        assert data == [results_by_reference[name] for name in order]


COMMANDS = [
    "servers",
    "stats --all --quantile=0.95 --above=9 --versus=previous",
    "top --limit=2",
    "growth harbor-city old-guard --step=week",
    "peak-hours harbor-city --group-by=hour",
    "history harbor-city old-guard --range=2d",
    "history harbor-city old-guard --step=6h --sum",
    "history harbor-city old-guard --step=6h --aggregate=rank",
    "together --all",
    "integrity old-guard",
]


def format_cell(value: Any) -> str:
    """Return a value of JSON as CSV has it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(value)
    return "" if value is None else wire.encode(value).decode()


def format_value(value: Any) -> Any:
    """Return a value of Parquet as JSON has it."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value


@pytest.mark.parametrize("command", COMMANDS)
def test_all_formats_of_a_command_agree(cli: Cli, demo_snapshot: str, command: str) -> None:
    def run(format: str) -> bytes:
        ran = cli(*command.split(), "--format", format, "--snapshot", demo_snapshot)
        assert ran.exit_code == 0, ran.stderr
        return ran.stdout

    objects = [json.loads(line) for line in run("ndjson").splitlines()]
    names, *rows = csv.reader(io.StringIO(run("csv").decode(), newline=""))
    table = pq.read_table(io.BytesIO(run("parquet")))

    assert objects
    assert all(list(one) == names for one in objects)
    assert rows == [[format_cell(value) for value in one.values()] for one in objects]
    shown = [[make_visible(cell) for cell in row] for row in rows]
    assert parse_table(run("markdown").decode()) == [names, *shown]
    assert table.column_names == names
    values = [list(map(format_value, row.values())) for row in table.to_pylist()]
    assert values == [list(one.values()) for one in objects]


DOCUMENTED = {
    "servers": ["servers", "--snapshot"],
    "stats": ["stats", "--all", "--quantile=0.95", "--above=9", "--versus=previous", "--snapshot"],
    "top": ["top", "--limit=2", "--snapshot"],
    "growth": ["growth", "harbor-city", "empty-plains", "--after=2026-02-01", "--snapshot"],
    "peakHours": ["peak-hours", "harbor-city", "empty-plains", "--snapshot"],
    "together": ["together", "--all", "--snapshot"],
    "integrity": ["integrity", "--all", "--snapshot"],
    "snapshotInfo": ["snapshot", "info"],
    "verification": ["snapshot", "verify"],
}


@pytest.mark.parametrize("name", load_documents())
def test_a_schema_names_its_document(cli: Cli, name: str) -> None:
    schema = json.loads(cli("schema", name).stdout)

    jsonschema_rs.meta.validate(schema)
    assert schema["properties"]["document"]["const"] == name


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_document_matches_its_schema(cli: Cli, name: str, demo_snapshot: str) -> None:
    schema = json.loads(cli("schema", name).stdout)
    document = json.loads(cli(*DOCUMENTED[name], demo_snapshot, "--json").stdout)

    jsonschema_rs.Draft202012Validator(schema).validate(document)


DRAWN = ["harbor-city", "hostile-host", "empty-plains", "old-guard"]
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
    report = cli("report", *DRAWN, *window, "--json").json
    assert cli(*shlex.split(report["command"])[1:-2], "--json").json == report
    versus = [] if "--range=all" in window else ["--versus=previous"]

    assert report["stats"] == cli("stats", *DRAWN, *window, *QUANTILES, *versus).json
    assert report["peakHours"] == cli("peak-hours", *DRAWN, *window).json
    step = report["growth"]["step"]
    assert report["growth"] == cli("growth", *DRAWN, *window, f"--step={step}").json
    assert report["integrity"] == cli("integrity", *DRAWN, *window).json
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
    lines = cli("history", *DRAWN, *options, *edges).stdout.splitlines()
    rows = map(json.loads, lines)
    return [(row["serverId"], row["sampleCount"], row["players"]) for row in rows]


def test_the_command_in_a_report_repeats_its_bytes(
    cli: Cli, build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build([server("-a"), server("b")], [("-a", AS_OF, 1), ("b", AS_OF - DAY, 2)])
    monkeypatch.chdir(tmp_path)
    options = ["--to=2026-03-01", "--range=36h", "--tz=Asia/Tokyo", "--title=-x 'y' \"z\" $é"]
    options.append("--mark=2026-02-28 21:00=Up 'date'")
    asked = ["report", "cfxId:x--a", "b", "cfxId:x-b", *options, "-s", path]

    ran = cli(*asked, "-o", "mine.html")
    data = cli(*asked, "--json")
    command = shlex.split(data.json["command"])
    repeated = cli(*command[1:], "-s", path)

    assert (ran.exit_code, ran.stdout, repeated.exit_code) == (0, b"", 0)
    window = "2026-02-27 12:00:00 to 2026-03-01 00:00:00 (Asia/Tokyo)"
    assert f"wrote mine.html: 2 servers, {window}, " in ran.stderr
    assert Path("mine.html").read_bytes() == Path("report.html").read_bytes()
    assert cli(*asked, "-o", "-").stdout == Path("mine.html").read_bytes()
    assert path not in data.stdout.decode()
    assert data.json["timeline"]["marks"] == [
        {"at": "2026-02-28T12:00:00.000Z", "label": "Up 'date'"}
    ]
    cli(*asked, "--json", "-o", "data.json")
    assert Path("data.json").read_bytes() == data.stdout


@pytest.mark.usefixtures("demo_here")
def test_a_report_chooses_a_range_a_title_and_steps(cli: Cli) -> None:
    one = cli("report", "empty-plains", "--json")
    three = cli("report", *DRAWN[:3], "--range=all", "--json").json
    steps = [choose_growth_step(Window(0, days * DAY)) for days in (1, 62, 63, 366, 367)]

    assert one.stderr == "note: server empty-plains: no observations in the snapshot\n"
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
        (["old-guard", "--json", "--range=7d", "--from=1"], 2, "can't be combined"),
        (["old-guard", "--json", "--title= "], 2, "error: --title: empty; omit it or give a text"),
        (["old-guard", "--json", "--title=\udcff"], 2, "error: --title: not valid UTF-8\n"),
        (
            ["a b", "-o", "old.html"],
            2,
            "error: old.html: already exists; add --overwrite to replace it\n",
        ),
        (["a b", "-o", ""], 2, "error: -o: empty; give a file name\n"),
        (["a b", "-o", "."], 2, "error: .: not a regular file"),
        (["a b", "-o", "new/"], 2, "error: -o new/: is a directory; give a file name\n"),
        (
            ["old-guard", "-o", "absent/new.html"],
            4,
            "error: absent/new.html: the folder does not exist; create it first",
        ),
        (["a b", "-o", "new.html"], 40, 'error: no server is named "a b"; similar: '),
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
        f"error: {output}: is the input snapshot; choose another output\n",
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


TITLES = {
    "players": "Players of secret and b",
    "hours": "Players of secret and b by hour of the week",
    "distribution": "How often secret and b had how many players",
    "growth": "Average players of secret and b by day",
    "share": "Players of secret and b",
    "compare": "Players of secret and b",
}


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
@pytest.mark.parametrize("kind", TITLES)
def test_a_picture_is_one_svg_with_a_title_its_window_and_its_source(kind: str, cli: Cli) -> None:
    options = ["--kind", kind, "--range", "24h", "--tz", "Europe/Berlin"]
    ran = cli("plot", "a", "b", *options, "-o", "players.svg")

    assert (ran.exit_code, ran.stdout) == (0, b""), ran.stderr
    window = "2026-02-28 13:00:00 to 2026-03-01 13:00:00 (Europe/Berlin)"
    assert ran.stderr.startswith(f"wrote players.svg: 2 servers, {window}, ")
    written = Path("players.svg").read_bytes()
    assert written == cli("plot", "a", "b", *options, "-o", "-").stdout
    texts = read_texts(written)
    assert texts[0] == TITLES[kind]
    assert texts[1].startswith("1 day to 2026-03-01 13:00 Europe/Berlin")
    source = "Source: snapshot.db, which ends 2026-03-01 13:00 Europe/Berlin · srvstat"
    assert texts[-1] == source


def read_texts(picture: bytes) -> list[str]:
    """Return the lines of text of an SVG."""
    root = ET.fromstring(picture)  # noqa: S314 - our own output
    return [one.text or "" for one in root.iter() if one.tag.endswith("text")]


@pytest.mark.usefixtures("two_servers_here")
def test_a_picture_says_what_the_user_wants_and_is_as_large(cli: Cli) -> None:
    words = ["--title", "Up <again>", "--subtitle", "since\x1b[2J March", "--source", "our pollers"]
    size = ["--width", "400", "--height", "300", "--scale", "2"]
    mark = ["--mark", "2026-03-01T06:00=Update 5", "--step", "6h", "--range", "24h"]
    written = cli("plot", "a", *words, *size, *mark, "-o", "-").stdout

    root = ET.fromstring(written)  # noqa: S314 - our own output
    assert (root.get("width"), root.get("height")) == ("800", "600")
    assert root.get("viewBox") == "0 0 400 300"
    texts = read_texts(written)
    assert (texts[0], texts[1], texts[-1]) == ("Up <again>", r"since\u001b[2J March", "our pollers")
    assert "Update 5" in texts
    assert "players, averages of 6 hours" in texts[2]
    assert ".picture .paper { fill: #15181d; }" not in written.decode()
    auto = cli("plot", "a", "--theme", "auto", "-o", "-").stdout.decode()
    _, _, dark = auto.partition("@media screen and (prefers-color-scheme: dark)")
    assert ".picture .paper { fill: #15181d; }" in dark


@pytest.mark.usefixtures("two_servers_here")
def test_old_names_of_pictures_draw_the_same_and_options_that_do_not_fit_are_refused(
    cli: Cli,
) -> None:
    for old, new in (("line", "players"), ("heatmap", "hours")):
        same = [cli("plot", "a", "--kind", kind, "-o", "-").stdout for kind in (old, new)]
        assert same[0] == same[1] != b""
    for options, problem in (
        (["--kind", "bars"], '--kind: "bars" is not one of players, growth, hours, distribution'),
        (["--kind", "share"], "--kind share requires 2 to 5 servers and no --sum"),
        (
            ["--kind", "hours", "--mark", "2026-02-01=x"],
            "--mark can't be combined with --kind hours",
        ),
        (["--kind", "compare", "--step", "day"], "--step can't be combined with --kind compare"),
        (["--kind", "growth", "--step", "6h"], '--step: "6h" is not one of day, week, month'),
        (["--step", "1m", "--range", "30d"], "--step: 43,200 steps, at most 9,000 can be drawn"),
        (["--width", "4000", "--scale", "3"], "--scale: --width times --scale is more than 8,000"),
        (["--height", "200"], "--height: too low; add at least"),
        (["--title", " "], "--title: empty"),
    ):
        ran = cli("plot", "a", *options, "-o", "-")
        assert (ran.exit_code, ran.stdout) == (2, b"")
        assert ran.stderr.startswith(f"error: {problem}"), ran.stderr
    ran = cli("plot", "a", "--theme", "auto", "-o", "x.png")
    assert ran.exit_code == 2
    assert "--theme: only an SVG can be auto; choose light or dark, or write an SVG" in ran.stderr


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


def test_hours_of_a_total_leave_out_sums_in_which_a_server_is_missing(
    cli: Cli, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.csv"
    path = str(tmp_path / "total.db")
    hours = range(28 * 24)  # from Monday, 2026-02-02
    lines = [
        f"{name},{1_769_990_400_000 + hour * 3_600_000},100"
        for name in ("a", "b")
        for hour in hours
        if name == "a" or hour // 24 % 7 != 1  # nobody observed b on a Tuesday
    ]
    rows.write_text("\n".join(["serverId,observedAt,players", *lines]))
    assert cli("snapshot", "build", path, str(rows)).exit_code == 0

    (total,) = cli(
        "peak-hours", "--all", "--sum", "--group-by=weekday", "--range=all", "-s", path
    ).json["servers"]

    averages = [cell["averagePlayers"] for cell in total["cells"]]
    # A count of Monday, 23:00, is three hours old at 02:00.
    assert (averages, total["cells"][1]["sampleCount"]) == ([200] * 7, 4 * 3)
    for asked, is_told in ("a b", True), ("a b --range 7d", True), ("a", False):
        shown = cli("peak-hours", *asked.split(), "--sum", "--table", "-s", path).stdout
        assert (b"the total skips times at which a server has no count; " in shown) is is_told
    refused = cli("stats", "--all", "--sum", "--until-last-seen", "-s", path)
    assert (refused.exit_code, "--until-last-seen" in refused.stderr) == (2, True)
    chosen = [cli("top", *asked, "-s", path).json["servers"] for asked in (["--text=b"], ["b"])]
    assert [one["serverId"] for one in chosen[0]] == ["b"]
    assert chosen[0] == chosen[1]
