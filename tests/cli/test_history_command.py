"""`srvstat history`: forms, plans, errors and tables."""

import json
import sqlite3
from contextlib import closing

import pytest

from conftest import AS_OF, DAY, Build, Cli, server

HOUR = DAY // 24


@pytest.fixture
def demo(demo_snapshot: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the snapshot of the demo the default."""
    monkeypatch.setenv("SRVSTAT_SNAPSHOT", demo_snapshot)
    return demo_snapshot


@pytest.mark.parametrize("step", [[], ["--step=1h"], ["--step=1h", "--sum"]])
def test_damage_stops_a_history_after_the_rows_before_it(
    step: list[str], build: Build, cli: Cli
) -> None:
    path = build([server("a")], [("a", AS_OF - at * HOUR, at % 7) for at in range(2_160)])
    asked = ["history", "a", "-s", path, "--range=90d", *step]
    whole = cli(*asked).stdout
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE days SET players = x'00' WHERE server_day % 10000000 = 20512")
    ran = cli(*asked)

    assert (ran.exit_code, ran.stderr.startswith(f"error: {path}: damaged (day 2026-02-28")) == (
        3,
        True,
    )
    assert ran.stdout.count(b"\n") >= 1000
    assert whole.startswith(ran.stdout)


def test_a_server_named_many_times_is_read_once(build: Build, cli: Cli) -> None:
    path = build([server("a"), server("b")], [("a", AS_OF, 5), ("b", AS_OF, 6)])
    ran = cli("history", *["a", "b", "cfxId:x-a", "id:b"] * 2_500, "-s", path)

    assert [json.loads(line)["serverId"] for line in ran.stdout.splitlines()] == ["a", "b"]
