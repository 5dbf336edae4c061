"""Draft a servers file from observations."""

import gzip
import json
from pathlib import Path

import pytest

from conftest import Cli, csv, ndjson, server
from support.snapshots import WEEK, parse_summary

pytestmark = pytest.mark.usefixtures("here")


DETAIL = [
    "id",
    "game",
    "cfxId",
    "hostname",
    "projectName",
    "projectDescription",
    "region",
    "players",
    "tags",
    "flags",
    "chatUrl",
    "iconUrl",
    "offline",
    "firstSeenAt",
    "updatedAt",
]


def test_a_draft_of_servers_has_a_record_per_identifier(cli: Cli) -> None:
    Path("week.csv").write_bytes(csv([("b", 5, 5), ("a", 5, 5), ("b", 6, 5), ("c_d", 5, 5)]))
    row = {"serverId": "z", "observedAt": 5, "players": 5}
    Path("more.ndjson.gz").write_bytes(gzip.compress(ndjson([row])))
    sources = ["--observations", "week.csv", "--observations", "more.ndjson.gz"]

    ran = cli("snapshot", "draft-servers", *sources)

    records = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.exit_code == 0
    assert [list(record.items()) for record in records] == [
        [(name, identifier if name == "id" else None) for name in DETAIL] for identifier in "abz"
    ]
    assert "warning: 1 malformed row ignored\n" in ran.stderr


def test_a_completed_draft_of_servers_can_be_built(cli: Cli) -> None:
    draft = cli("snapshot", "draft-servers", "--observations", "week.csv").stdout
    records = [json.loads(line) for line in draft.splitlines()]
    filled = [server(record["id"]) for record in records]
    Path("servers.ndjson").write_bytes(draft)
    assert cli(*WEEK).stderr == "error: servers.ndjson, line 1: cfxId: required, but null\n"

    Path("servers.ndjson").write_bytes(
        ndjson(record | full for record, full in zip(records, filled, strict=True))
    )
    assert parse_summary(cli(*WEEK))["kept"] == "3"


def test_a_draft_of_no_rows_is_empty(cli: Cli) -> None:
    Path("week.csv").write_bytes(csv([]))

    ran = cli("snapshot", "draft-servers", "--observations", "week.csv")

    assert (ran.exit_code, ran.stdout) == (0, b"")


@pytest.mark.parametrize(
    ("options", "exit_code"),
    [
        ([], 2),
        (["--observations", "week.txt"], 2),
        (["--observations", "-", "--observations", "-", "--format", "csv"], 2),
        (["--observations", "gone.csv"], 6),
        (["--observations", "servers.ndjson", "--observations", "gone.csv"], 6),
        (["--observations", "header.csv"], 6),
    ],
)
def test_draft_servers_refuses_unreadable_sources(
    options: list[str], exit_code: int, cli: Cli
) -> None:
    Path("header.csv").write_bytes(b"a,5,7\n")

    ran = cli("snapshot", "draft-servers", *options)

    assert (ran.exit_code, ran.stdout) == (exit_code, b"")
    assert ran.stderr.startswith("error: ")
