"""The steps and changes of real data: averages are those that SQL gives."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from analysis.naive_steps import compute_change_naively
from conftest import DAY, Cli
from test_real_sources import COMMANDS, here, read_rows

__all__ = ["here"]  # a fixture

pytestmark = pytest.mark.slow


def read_instant(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize("name", ["war-brokers.db", "hypixel.db", "minetrack.db"])
def test_steps_and_changes_follow_from_the_rows(name: str, here: Path, cli: Cli) -> None:
    path = COMMANDS[name][2]
    assert cli(*COMMANDS[name]).exit_code == 0
    rows = read_rows(path)
    largest = max(rows, key=lambda server: sum(players for _, players in rows[server]))

    for step in ("hour", "day", "week", "month"):
        wanted = "1h" if step == "hour" else step
        asked = cli("history", largest, "-s", path, "--range", "all", "--step", wanted)
        averages = compute_averages(rows[largest], step, here)
        lines = [json.loads(line) for line in asked.stdout.splitlines()]
        # The last step also includes the end of the window.
        for line in lines[:-1]:
            expected = averages.get(read_instant(line["from"]), (0, None))
            assert (line["sampleCount"], line["players"]) == expected
    for text, length in (("12h", DAY // 2), ("7d", 7 * DAY), ("30d", 30 * DAY)):
        document = cli("stats", "--all", "-s", path, "--range", text).json
        end = read_instant(document["asOf"])
        for server in document["servers"]:
            change, coverage = compute_change_naively(rows[server["serverId"]], (end - length, end))
            assert (server["change"], server["previousCoverage"]) == (change, coverage)


def compute_averages(
    rows: Sequence[tuple[int, int]], step: str, directory: Path
) -> dict[int, tuple[int, float]]:
    """Return the number and the average of the rows of each step, as SQL computes them."""
    table = directory / "rows.csv"
    table.write_text("".join(f"{at},{players}\n" for at, players in rows))
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT epoch_ms(date_trunc(?, make_timestamp(column0 * 1000))::TIMESTAMP) AS step,"
            " count(*), avg(column1) FROM read_csv(?, header = false) GROUP BY step",
            [step, str(table)],
        ).fetchall()
    return {start: (count, average) for start, count, average in found}
