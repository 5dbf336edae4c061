"""Compare `srvstat fleet` with a plain DuckDB query for the same figures.

`python -m benchmarks.fleets --rows 20000000` writes a year of observations of 1,000 servers as
Parquet files, lets both compute the figures in processes of their own, with two threads and the
same limit of memory, compares the figures, and prints the ratio of their times.
"""

import argparse
import os
import sys
import tempfile
from math import isclose
from statistics import median

import duckdb

from benchmarks.measure import find_program, print_progress, run

_LAST = 1_767_225_600_000
_YEAR_MS = 365 * 86_400_000
_FILES = 12
_ROUNDS = 3
_LAST_BIT = 2.0**-52

_CREATE = """
COPY (
    SELECT 'server-' || i % 1000 AS "serverId", {start} + i * {length} // {rows} AS "observedAt",
        (hash(i) % 300)::BIGINT AS players
    FROM range({first}, {last}) AS numbers(i)
) TO '{path}' (FORMAT parquet, COMPRESSION zstd)"""

_QUERY = """
SET threads = 2; SET memory_limit = '{memory}'; SET temp_directory = '{folder}/spilled';
COPY (
    WITH resolved AS (
        SELECT "serverId", "observedAt",
            arg_min(players, file_index << 40 | file_row_number) AS players
        FROM read_parquet('{folder}/rows/*.parquet', file_row_number = true)
        WHERE "observedAt" > {start} AND players >= 0 GROUP BY ALL
    )
    SELECT "serverId", avg(players) AS "averagePlayers", median(players) AS "medianPlayers",
        max(players) AS "peakPlayers", min(players) AS "lowestPlayers",
        arg_max(players, "observedAt") - arg_min(players, "observedAt") AS "growthPlayers",
        count(*) AS "sampleCount"
    FROM resolved GROUP BY ALL ORDER BY "serverId"
) TO '{folder}/query.parquet'"""


def main() -> None:
    """Measure both, and print the medians of their seconds, their memory and the ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleets", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--memory", default="4GiB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _write_rows(folder, options.rows)
        query = _QUERY.format(memory=options.memory, folder=folder, start=_LAST - _YEAR_MS)
        rows, output = os.path.join(folder, "rows"), os.path.join(folder, "fleet.parquet")
        limits = ["--memory", options.memory, "--threads", "2", "--game", "game_a", "--quiet"]
        fleet = [find_program("srvstat"), "fleet", rows, "--range", "1y", "-o", output, *limits]
        commands = {
            "srvstat fleet": [*fleet, "--overwrite"],
            "plain query": [sys.executable, "-c", f"import duckdb; duckdb.execute({query!r})"],
        }
        seconds = {}
        for name, command in commands.items():
            print_progress(f"measuring {name}")
            runs = [run(command) for _ in range(_ROUNDS)]
            seconds[name] = median(each.seconds for each in runs)
            mib = median(each.peak_mib for each in runs)
            print(f"{name:15}{seconds[name]:8.1f} s {mib:8,.0f} MiB")
        _check_equal(folder)
    print(f"ratio          {seconds['srvstat fleet'] / seconds['plain query']:8.2f}")


def _write_rows(folder: str, rows: int) -> None:
    os.mkdir(os.path.join(folder, "rows"))
    for number in range(_FILES):
        print_progress(f"writing file {number + 1} of {_FILES}")
        first, last = (rows * each // _FILES for each in (number, number + 1))
        path = os.path.join(folder, "rows", f"{number:02}.parquet")
        duckdb.execute(
            _CREATE.format(
                start=_LAST - _YEAR_MS + 1, length=_YEAR_MS, rows=rows, first=first, last=last,
                path=path,
            )
        )  # fmt: skip


def _check_equal(folder: str) -> None:
    """Compare the figures; DuckDB's averages may differ in the last bit."""
    names = '"serverId", "medianPlayers", "peakPlayers", "lowestPlayers", "growthPlayers"'
    ours, theirs = (
        duckdb.sql(
            f'SELECT "averagePlayers", {names}, "sampleCount"'
            f" FROM read_parquet('{folder}/{name}.parquet') ORDER BY \"serverId\""
        ).fetchall()
        for name in ("fleet", "query")
    )
    for (average, *others), (rounded, *expected) in zip(ours, theirs, strict=True):
        if others != expected or not isclose(average, rounded, rel_tol=_LAST_BIT):
            raise SystemExit(f"different figures: {average} {others}, {rounded} {expected}")


if __name__ == "__main__":
    main()
