"""Write a fleet as Parquet files and a text file, and compute its results with DuckDB."""

import subprocess
import sys
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa
from pyarrow import parquet

_NAMES = ("serverId", "observedAt", "players")
_START = 1_767_225_600_000
_MINUTES = 5
_ROWS = 2000
_TEXT_ROWS = 60_000
"""Enough for the task that reads them to be interrupted."""


class Fleet(NamedTuple):
    """A directory with sources, and the results and the warning of DuckDB."""

    directory: Path
    results: bytes
    warning: str


SOURCES = ("days", "more.csv")
"""A folder of Parquet files, which Spark reads itself, and a file that our own reader reads."""


def write_clustered_fleet(directory: Path) -> Fleet:
    """Write a fleet with repeated and conflicting observations to a directory."""
    drawn = Random(17)  # noqa: S311 - not a secret
    folder, text = (directory / name for name in SOURCES)
    folder.mkdir()
    for day in range(3):
        rows = [_draw(drawn) for _ in range(_ROWS)]
        columns = [list(column) for column in zip(*rows, strict=True)]
        parquet.write_table(pa.table(columns, list(_NAMES)), folder / f"day {day}.parquet")
    lines = (",".join(map(str, _draw(drawn))) for _ in range(_TEXT_ROWS))
    text.write_text("\n".join([",".join(_NAMES), *lines, ""]), encoding="utf-8")
    command = ["fleet", *SOURCES, "--game=game_a", "--range=30d", "--output=duckdb.ndjson"]
    program = [sys.executable, "-m", "srvstat", *command, "--quiet"]
    ran = subprocess.run(program, check=True, capture_output=True, cwd=directory)
    return Fleet(directory, (directory / "duckdb.ndjson").read_bytes(), ran.stderr.decode())


def _draw(drawn: Random) -> tuple[str, int, int]:
    minutes = _MINUTES * drawn.randrange(20 * 24 * 60 // _MINUTES)
    return f"server-{drawn.randrange(20)}", _START + minutes * 60_000, drawn.randrange(300)
