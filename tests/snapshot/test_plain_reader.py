"""Read snapshots with a program of 80 lines that imports only what Python has."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import ROOT, Build, Cli, few_examples, server
from snapshot.observed import Observed, draw_fleets, windows
from srvstat.contract.stats import compute_statistics
from srvstat.contract.time import LATEST
from support.snapshots import change

READER = SimpleNamespace(**run_path(str(ROOT / "docs" / "examples" / "read_snapshot.py")))


@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fleet=draw_fleets(), data=st.data())
def test_a_plain_reader_finds_all_servers_and_observations_and_the_same_statistics(
    fleet: dict[str, Observed], data: st.DataObject, build: Build
) -> None:
    rows = [row for name, one in fleet.items() for row in one.rows(name)]
    random.Random(data.draw(st.integers(0, 99))).shuffle(rows)  # noqa: S311 - not for secrets
    path = build(map(server, fleet), rows, "--as-of", str(LATEST))

    with closing(sqlite3.connect(path)) as connection:
        assert READER.find_server(connection, "nobody") is None
        assert READER.find_server(connection, "lonely", "cfxId") is None
        for name, observed in fleet.items():
            found = READER.find_server(connection, name)
            assert found["id"] == name
            assert found == READER.find_server(connection, f"x-{name}", "cfxId")
            pairs = [*zip(*observed, strict=True)]
            start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(pairs))] * 2)))
            assert READER.read_observations(connection, found, 0, len(pairs)) == pairs
            assert READER.read_observations(connection, found, start, stop) == pairs[start:stop]
            for window in data.draw(st.lists(windows(*fleet.values()), min_size=3, max_size=3)):
                players = observed.within(window)
                own = compute_statistics(players)
                figures = (own.observations, own.mean, own.lowest, own.median, own.peak)
                expected = (*figures, players[0], players[-1]) if players else None
                assert READER.compute_figures(connection, found, *window) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE snapshot SET as_of = as_of + 1",
        "UPDATE snapshot SET parent_root = zeroblob(32)",
        "DELETE FROM directory",
        "UPDATE directory SET entries = x''",
        "UPDATE servers SET hostname = 'another'",
        "UPDATE servers SET counts = x''",
        "UPDATE blocks SET players = zeroblob(length(players))",
        "UPDATE blocks SET counts_before = x'00'",
        "UPDATE blocks SET marks = zeroblob(length(marks) + 2)",
        "DELETE FROM blocks",
    ],
)
def test_a_plain_reader_refuses_changed_rows(
    sql: str, demo_snapshot: str, tmp_path: Path, cli: Cli
) -> None:
    path = str(tmp_path / "case.db")
    cli("snapshot", "bundle", "harbor-city", "-o", path, "-s", demo_snapshot)

    def read(path: str) -> int:
        with closing(sqlite3.connect(path)) as connection:
            found = READER.find_server(connection, "harbor-city")
            return len(READER.read_observations(connection, found, 0, found["observation_count"]))

    assert read(path) > 700
    change(path, sql)
    with pytest.raises(ValueError, match=r"^damaged: "):
        read(path)


def test_the_page_about_the_format_stays_short() -> None:
    assert len((ROOT / "docs" / "snapshot.md").read_text(encoding="utf-8").splitlines()) <= 150
