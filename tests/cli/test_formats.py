"""`--format` of every command with rows: all formats agree."""

import csv
import io
import json
from datetime import datetime
from typing import Any

import pyarrow.parquet as pq
import pytest

from conftest import Cli
from srvstat.contract import wire
from support.markdown import make_visible, parse_table

COMMANDS = [
    "servers",
    "stats --all --quantile=0.95 --above=9 --versus=previous",
    "top --limit=2",
    "growth harbor-city old-guard --step=week",
    "peak-hours harbor-city",
    "history harbor-city old-guard --range=2d",
    "history harbor-city old-guard --step=6h --sum",
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
