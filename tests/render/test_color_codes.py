"""Color codes of Cfx.re are in the data, but not in what people see."""

import json
from pathlib import Path

import pytest

from conftest import AS_OF, DAY, Cli, build_in, server
from srvstat.documents.document import remove_color_codes

RAW = "^1Harbor ^5City^0"
IDS = ["a", "b"]
TABLES = [
    ["get", "a"],
    ["compare", *IDS],
    ["compare", *IDS, "--explain"],
    ["compare", *IDS, "--chart"],
    ["servers", "harbor city"],
    ["snapshot", "info"],
    ["stats", *IDS],
    ["stats", *IDS, "--chart"],
    ["top"],
    ["growth", *IDS, "--chart"],
    ["growth", "a"],
    ["peak-hours", *IDS],
    ["peak-hours", "a", "--chart"],
    ["history", *IDS, "--step", "1d"],
    ["history", "a", "--chart", "--step", "1d"],
    ["integrity", *IDS],
    ["integrity", "a"],
]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build two servers with color codes in their names."""
    servers = [
        server(name, hostname=f"{RAW} {name}", projectName="^3Harbor^7", tags=["^2cars"])
        for name in IDS
    ]
    rows = [(name, AS_OF - day * DAY, 5 + day) for name in IDS for day in range(5)]
    return str(build_in(tmp_path_factory.mktemp("colors"), servers, rows))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (RAW, "Harbor City"),
        ("plain ^ text ^x ^", "plain ^ text ^x ^"),
        ("^^11", "^1"),
        ("^1 ^2", "^1 ^2"),
        ("^1", "^1"),
        ("", ""),
    ],
)
def test_color_codes_are_removed_unless_nothing_else_is_there(text: str, shown: str) -> None:
    assert remove_color_codes(text) == shown


@pytest.mark.parametrize("command", TABLES, ids=" ".join)
def test_no_table_shows_color_codes(command: list[str], snapshot: str, cli: Cli) -> None:
    ran = cli(*command, "--snapshot", snapshot, *([] if "--chart" in command else ["--table"]))

    assert ran.exit_code == 0, ran.stderr
    shown = ran.stdout.decode()
    assert "Harbor City" in shown
    assert "^" not in shown


def test_pictures_and_reports_show_no_color_codes(snapshot: str, tmp_path: Path, cli: Cli) -> None:
    for command, name in (("plot", "one.svg"), ("report", "one.html")):
        path = tmp_path / name
        assert cli(command, *IDS, "--snapshot", snapshot, "-o", str(path)).exit_code == 0
        text = path.read_text("utf-8")
        # The data of a report, and its commands, have the names unchanged.
        shown = text.partition('<script type="application/json"')[0]
        assert "Harbor City" in shown
        assert "^1" not in shown
        assert "^5" not in shown


def test_answers_and_documents_keep_color_codes(snapshot: str, cli: Cli) -> None:
    answer = cli("get", "a", "--snapshot", snapshot).json["data"]
    found = cli("servers", "--snapshot", snapshot, "--json").json["servers"]

    assert (answer["hostname"], answer["projectName"]) == (f"{RAW} a", "^3Harbor^7")
    assert json.dumps(found).count(RAW) == len(IDS)
