"""Integer times before 2001 in each shape of a source: dates, or rejected with their value."""

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from conftest import AS_OF, Cli
from support.snapshots import read_observations, read_rejects

MIDNIGHT = 1_416_700_800_000
"""2014-11-23T00:00Z."""

NUMBERS = (AS_OF, 20141123, 20149923, 978_307_199_999, AS_OF // 1000)

LONG = ["--columns", "id=name,at=when,players=online"]
WIDE = ["--wide", "at=when"]
UTC = ["--time-zone", "UTC"]


def write_text(path: str, header: str, row: str) -> None:
    lines = [row.format(at) for at in NUMBERS]
    Path(path).write_text("\n".join(filter(None, [header, *lines, ""])))


def write_sources() -> Mapping[str, list[str]]:
    """Write a source of each shape with the same rows; return the options that read it."""
    write_text("strict.csv", "serverId,observedAt,players", "a,{},5")
    write_text("long.csv", "when;name;online", "{};a;5")
    write_text("wide.csv", "when,a", "{},5")
    write_text("strict.ndjson", "", '{{"serverId":"a","observedAt":{},"players":5}}')
    write_text("long.ndjson", "", '{{"name":"a","when":"{}","online":5}}')
    write_text("wide.ndjson", "", '{{"when":{},"a":5}}')
    columns = {"serverId": ["a"] * len(NUMBERS), "observedAt": NUMBERS, "players": [5] * 5}
    parquet.write_table(pa.table(columns), "strict.parquet")
    parquet.write_table(
        pa.table({"when": pa.array(NUMBERS, pa.float64()), "a": [5] * 5}), "w.parquet"
    )
    with closing(duckdb.connect("rows.duckdb")) as connection:
        connection.execute(
            'CREATE TABLE observations ("serverId" TEXT, "observedAt" BIGINT, players INT)'
        )
        rows = [(at,) for at in NUMBERS]
        connection.executemany("INSERT INTO observations VALUES ('a', ?, 5)", rows)
    points = [{"attributes": {"timestamp": at, "value": 5}} for at in NUMBERS]
    Path("a.json").write_text(json.dumps({"data": points}))
    return {
        "strict.csv": [], "long.csv": LONG, "wide.csv": WIDE, "strict.ndjson": [],
        "long.ndjson": LONG, "wide.ndjson": WIDE, "strict.parquet": [], "w.parquet": WIDE,
        "rows.duckdb": [], "a.json": ["--from", "battlemetrics"],
    }  # fmt: skip


BUILD = ["snapshot", "build", "out.db", "--game", "game_a", "--overwrite"]
BUILD += ["--rejects", "rejects.ndjson", "--max-rejected", "100%"]


@pytest.mark.usefixtures("here")
def test_an_integer_before_2001_is_rejected_in_every_shape(cli: Cli) -> None:
    for name, options in write_sources().items():
        ran = cli(*BUILD, *options, "--observations", name)

        assert (name, ran.exit_code) == (name, 0)
        assert (name, read_observations("out.db")) == (name, [("a", AS_OF, 5)])
        rejects = read_rejects()
        assert [each["reason"] for each in rejects] == [
            "observedAt: no time zone: end it with Z or an offset such as +02:00",
            "observedAt: before 2001 as milliseconds",
            "observedAt: before 2001 as milliseconds",
            "observedAt: before 2001 as milliseconds, so it looks like seconds",
        ], name
        assert all(str(at) in each["text"] for at, each in zip(NUMBERS[1:], rejects, strict=True))


@pytest.mark.usefixtures("here")
def test_eight_digits_are_a_date_of_the_declared_zone_in_every_shape(cli: Cli) -> None:
    for name, options in write_sources().items():
        if "--from" in options:
            continue
        ran = cli(*BUILD, *options, *UTC, "--observations", name)

        assert (name, ran.exit_code) == (name, 0)
        assert sorted(read_observations("out.db")) == [("a", MIDNIGHT, 5), ("a", AS_OF, 5)]
        assert len(read_rejects()) == len(NUMBERS) - 2


@pytest.mark.usefixtures("here")
def test_a_text_before_2001_is_a_time(cli: Cli) -> None:
    Path("old.csv").write_text("serverId,observedAt,players\na,1999-12-31T23:59Z,5\n")

    assert cli(*BUILD, "--observations", "old.csv").exit_code == 0
    assert read_observations("out.db") == [("a", 946_684_740_000, 5)]
