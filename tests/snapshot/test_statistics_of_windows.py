"""Answer any window with the figures of the observations in it."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Build, Cli, few_examples, server
from snapshot.observed import LARGEST, Observed, draw_fleets, windows
from srvstat.contract.requests import ServerReference
from srvstat.contract.stats import Statistics, compute_statistics
from srvstat.contract.time import LATEST
from srvstat.contract.windows import DAYS, Range, Window
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.snapshot.read.statistics import compute_window_statistics
from srvstat.snapshot.rows import BLOCKS_PER_SERVER, ServerRow, build_directory


def find_servers(snapshot: SnapshotFile, *identifiers: str) -> list[ServerRow]:
    """Return servers that the snapshot has."""
    references = [ServerReference(identifier=name, by="id") for name in identifiers]
    return [row for row in snapshot.find_servers(references) if row]


def steps(peak: int) -> Observed:
    """Return three days with observations, gaps, and a peak in the middle of a day."""
    players = {DAY: 0, DAY + 5: 3, 2 * DAY - 1: peak, 2 * DAY: 4, 6 * DAY + 7: 2, 7 * DAY - 1: 8}
    return Observed([*players], [*players.values()])


def years(peak: int) -> Observed:
    """Return these three days, and enough later ones for several blocks."""
    more = {DAY * day: 1_000 + day * 37 % 101 for day in range(500, 5_601)}
    more[DAY * 5_555] = peak - 1
    few = steps(peak)
    return Observed([*few.instants, *more], [*few.players, *more.values()])


KINDS = {"few values": steps(9), "large values": steps(LARGEST), "many values": years(LARGEST)}
PEAKS = {"few values": 9, "large values": LARGEST, "many values": LARGEST}

P = -1
"""A placeholder for the peak."""

NAMED: dict[str, tuple[int, int, list[int]]] = {
    "before 1970, up to the first": (-365 * DAY, DAY, [0]),
    "before the first day, up to its middle": (DAY - 1, DAY + 5, [0, 3]),
    "from zero": (DAY - 1, 2 * DAY, [0, 3, P, 4]),
    "the whole span and more": (-1, 9 * DAY, [0, 3, P, 4, 2, 8]),
    "the whole span but the first": (DAY, 7 * DAY - 1, [3, P, 4, 2, 8]),
    "ends before the first": (-DAY, DAY - 1, []),
    "ends before the first day": (0, DAY // 2, []),
    "one observation": (DAY + 5, 2 * DAY - 1, [P]),
    "one observation at midnight": (2 * DAY - 1, 2 * DAY, [4]),
    "two observations around a midnight": (2 * DAY - 2, 2 * DAY, [P, 4]),
    "starts at a midnight": (2 * DAY, 7 * DAY, [2, 8]),
    "inside a gap": (3 * DAY, 4 * DAY, []),
    "inside a gap, with edges in the adjacent days": (2 * DAY, 6 * DAY + 6, []),
    "inside a day": (DAY + 6, 2 * DAY - 2, []),
    "empty on an observation": (DAY + 5, DAY + 5, []),
    "empty on a midnight": (2 * DAY, 2 * DAY, []),
    "empty in a gap": (4 * DAY, 4 * DAY, []),
    "starts before the last": (7 * DAY - 2, 400 * DAY, [8]),
    "starts at the last": (7 * DAY - 1, 400 * DAY, []),
    "starts after the last day": (7 * DAY, 400 * DAY, []),
    "empty before 1970": (-5, -5, []),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_excludes_its_start_and_includes_its_end(kind: str, build: Build) -> None:
    observed = KINDS[kind]
    path = build([server("a")], observed.rows("a"))

    with closing(open_file(path)) as snapshot:
        for name, (start, end, players) in NAMED.items():
            values = [PEAKS[kind] if value == P else value for value in players]
            assert observed.within(Window(start, end)) == values
            for window in (Window(start, end), Window(start, LATEST)):
                assert compute_window_statistics(snapshot, find_servers(snapshot, "a"), window) == [
                    compute_statistics(observed.within(window))
                ], name


@pytest.mark.parametrize("kind", KINDS)
def test_growth_needs_two_observations_and_its_percentage_a_first_count_above_zero(
    kind: str, build: Build, cli: Cli
) -> None:
    peak = PEAKS[kind]
    path = build([server("a"), server("b")], [*KINDS[kind].rows("a"), ("b", 8 * DAY, 1)])

    def growth(at: int) -> list[Any]:
        ran = cli("compare", "a", "b", "--range", "24h", "--at", str(at), "-s", path, "--json")
        return [ran.json["data"][0][name] for name in ("sampleCount", "growth")]

    unknown = {"players": None, "percentage": None}
    assert growth(DAY) == [1, unknown]
    assert growth(DAY + 5) == [2, {"players": 3, "percentage": None}]
    assert growth(2 * DAY) == [3, {"players": 1, "percentage": 33.333333333333336}]
    assert growth(2 * DAY + 5) == [2, {"players": 4 - peak, "percentage": 100 * (4 - peak) / peak}]
    assert growth(3 * DAY - 1) == [1, unknown]
    assert growth(3 * DAY) == growth(4 * DAY) == [0, unknown]
    assert growth(7 * DAY) == [2, {"players": 6, "percentage": 300}]


def result(name: str, range: Range, figures: Statistics, current: int) -> dict[str, Any]:
    return {
        "serverId": name,
        "cfxId": f"x-{name}",
        "range": range,
        "currentPlayers": current,
        "averagePlayers": figures.mean,
        "medianPlayers": figures.median,
        "peakPlayers": figures.peak,
        "lowestPlayers": figures.lowest,
        "growth": {"players": figures.growth.players, "percentage": figures.growth.percentage},
        "uptime": None,
        "sampleCount": figures.observations,
    }


@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fleet=draw_fleets(), data=st.data())
def test_answers_follow_from_the_observations(
    fleet: dict[str, Observed], data: st.DataObject, build: Build, cli: Cli
) -> None:
    rows = [row for name, one in fleet.items() for row in one.rows(name)]
    random.Random(data.draw(st.integers(0, 99))).shuffle(rows)  # noqa: S311 - not for secrets
    path = build(map(server, fleet), rows, "--allow-empty", "--at", str(LATEST))

    with closing(open_file(path)) as snapshot:
        for window in data.draw(st.lists(windows(*fleet.values()), min_size=3, max_size=3)):
            names = data.draw(st.permutations([*fleet, min(fleet)]))
            expected = [compute_statistics(fleet[name].within(window)) for name in names]
            assert (
                compute_window_statistics(snapshot, find_servers(snapshot, *names), window)
                == expected
            )

    names = data.draw(st.permutations(list(fleet)))
    asked_range = data.draw(st.sampled_from(list(DAYS)))
    at = min(max(data.draw(windows(*fleet.values())).end, 0), LATEST)
    asked = [*names, f"cfxId:x-{names[0]}"]
    window = Window(at - DAYS[asked_range] * DAY, at)
    ran = cli("compare", *asked, "--range", asked_range, "--at", str(at), "-s", path, "--json")
    expected_of = {
        name: result(
            name, asked_range, compute_statistics(one.within(window)), [0, *one.players][-1]
        )
        for name, one in fleet.items()
    }
    assert ran.exit_code == 0
    assert ran.stderr == "" or ran.stderr.startswith("warning: --at ")
    # The shortest JSON of a double may be another whole number that rounds to this double.
    answer = json.loads(ran.stdout, parse_int=float)["data"]
    assert answer == [expected_of[name] for name in [*names, names[0]]]


def test_a_median_of_more_players_than_blocks_count_is_read_from_the_blocks(build: Build) -> None:
    rows = [("a", AS_OF - DAY + at, 5_000 + at * 37 % 101) for at in range(5_000)]
    window = Window(AS_OF - DAY + 99, AS_OF)

    with closing(open_file(build([server("a")], rows))) as snapshot:
        found = compute_window_statistics(snapshot, find_servers(snapshot, "a"), window)

    assert found == [compute_statistics([players for _, _, players in rows[100:]])]


def test_servers_removed_from_memory_are_read_again(build: Build) -> None:
    names = ["s0", "s1", "s2", "s3"]
    path = build([server(name) for name in names], [(name, AS_OF, 5) for name in names])
    references = [ServerReference(identifier=name, by="id") for name in names]

    # So many files share the memory of one that each keeps 2 KiB.
    with closing(open_file(path, sharing=1 << 14)) as snapshot:
        for _ in range(3):
            for asked in ([0], [0, 1], [2, 0], [1, 3, 0, 2], [3, 2, 1, 0]):
                found = [
                    one for one in snapshot.find_servers([references[at] for at in asked]) if one
                ]
                assert [one.id for one in found] == [names[at] for at in asked]
                figures = compute_window_statistics(snapshot, found, Window(AS_OF - 1, AS_OF))
                assert [one.mean for one in figures] == [5.0] * len(asked)


KEYS = {"servers": ("server", 1), "blocks": ("server_block", BLOCKS_PER_SERVER)}
"""The key of each table, and the keys of each server."""


def renumber(path: str, find_number: Callable[[int], int]) -> None:
    """Give each server another number, in all tables."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.create_function("renumber", 1, find_number)
        for table, (key, rows) in KEYS.items():
            # Negative first, as an old and a new number can be equal.
            for change in (f"-renumber({key} / {rows}) * {rows} - {key} % {rows}", f"-{key}"):
                connection.execute(f"UPDATE {table} SET {key} = {change}")  # noqa: S608 - our own names
        servers = map(ServerRow._make, connection.execute("SELECT * FROM servers").fetchall())
        connection.executemany(
            "REPLACE INTO directory VALUES (?, ?, ?)", build_directory(list(servers))
        )


def test_servers_can_have_any_numbers(cli: Cli, demo_snapshot: str, tmp_path: Path) -> None:
    other = str(tmp_path / "renumbered.db")
    shutil.copy(demo_snapshot, other)
    renumber(other, lambda number: 2**32 - number * number)

    for command in (
        ["snapshot", "verify"],
        ["snapshot", "info", "--json"],
        ["servers", "--json", "--snapshot"],
        ["stats", "--all", "--json", "--range", "7d", "--snapshot"],
        ["compare", "harbor-city", "night-shift", "--range", "1y", "--snapshot"],
        ["get", "harbor-city", "--json", "--snapshot"],
    ):
        own, renumbered = cli(*command, demo_snapshot), cli(*command, other)
        assert own.exit_code == 0
        assert renumbered.stdout.replace(other.encode(), demo_snapshot.encode()) == own.stdout
