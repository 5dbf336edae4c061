"""Compute the figures of any window and step from summaries, equal to those from raw rows."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Build, few_examples, server
from snapshot.naive_figures import Rows, describe_steps, describe_window
from snapshot.observed import LARGEST
from srvstat.contract.requests import ServerReference
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.figures import WindowFigures
from srvstat.snapshot.read.reader import SnapshotFile, open_file

HOUR = DAY // 24
QUANTILES = [Fraction(0), Fraction(1, 2), Fraction("0.95"), Fraction(1)]
START = AS_OF // DAY * DAY - 150 * DAY


def _draw_steps(drawn: random.Random) -> Iterator[Callable[[int], int]]:
    """Yield functions from a number to the time to the next observation: kinds of polling."""
    yield lambda _: 6 * HOUR
    yield lambda _: 6 * HOUR + drawn.randrange(-9_000, 9_001)
    yield lambda _: drawn.randrange(1, 12 * HOUR)
    yield lambda _: round(drawn.expovariate(1 / (8 * HOUR))) + 1
    yield lambda number: 60_000 if number % 9 else DAY + drawn.randrange(3) * HOUR
    # Faster and faster: early windows have longer usual intervals than the whole series.
    yield lambda number: 20 * HOUR if number < 40 else 2 * HOUR + drawn.randrange(5)
    # Slower and slower: the intervals of late windows are all long ones of the whole series.
    yield lambda number: HOUR if number < 300 else 30 * HOUR + drawn.randrange(9)


def draw_fleet(seed: int, most: int = 500) -> dict[str, Rows]:
    """Draw a server of each kind of polling, one with one observation, and one without any."""
    drawn = random.Random(seed)  # noqa: S311 - not for secrets
    fleet: dict[str, Rows] = {"lonely": [(drawn.choice([0, START, START + 7]), 5)], "silent": []}
    for kind, step in enumerate(_draw_steps(drawn)):
        at = drawn.choice([0, 1, START, START - 1, START + drawn.randrange(DAY)])
        count = drawn.randrange(2, most)
        # The last values can be in bands that earlier ones do not have.
        early, late = drawn.choices([(0, 3), (50, 400), (0, LARGEST), (9_000, 9_900)], k=2)
        rows = []
        for number in range(count):
            rows.append((at, drawn.randint(*(early if number < 0.85 * count else late))))
            at += step(number) + (drawn.randrange(9 * DAY) if drawn.random() < 0.01 else 0)
        fleet[f"kind-{kind}"] = rows
    return fleet


def build_fleet(build: Build, fleet: Mapping[str, Rows]) -> str:
    rows = [(name, at, players) for name, of_server in fleet.items() for at, players in of_server]
    return build(map(server, fleet), rows, "--as-of", str(AS_OF * 2), "--allow-empty")


def find_rows(snapshot: SnapshotFile, names: Sequence[str]) -> list[ServerRow]:
    references = [ServerReference(identifier=name, by="id") for name in names]
    return [row for row in snapshot.find_servers(references) if row]


def list_figures(figures: WindowFigures) -> dict[str, Any]:
    statistics = figures.statistics
    found = figures._asdict()
    del found["statistics"]
    return {
        "observations": statistics.observations,
        "mean": statistics.mean,
        "median": statistics.median,
        "growth": statistics.growth.players,
        **found,
    }


def draw_edge(drawn: random.Random, rows: Rows) -> int:
    """Draw an instant: at, next to or far from an observation or a midnight."""
    at = drawn.choice(rows)[0] + drawn.choice([0, 0, -1, 1, drawn.randrange(-DAY, DAY)])
    return drawn.choice([at, at, at // DAY * DAY, at // DAY * DAY + DAY, 0, AS_OF * 2])


@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_figures_and_steps_follow_from_the_observations(seed: int, build: Build) -> None:
    check_figures(seed, draw_fleet(seed), build)


def test_blocks_with_too_many_long_intervals_list_none(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srvstat.snapshot.format.summaries.MAX_LONG", 3)

    check_figures(5, draw_fleet(5), build)


def check_figures(seed: int, fleet: Mapping[str, Rows], build: Build) -> None:
    """Compare figures, totals and steps of some windows with those from the rows."""
    drawn = random.Random(seed)  # noqa: S311 - not for secrets
    with closing(open_file(build_fleet(build, fleet))) as snapshot:
        for name, rows in fleet.items():
            names = [name, name]
            for _ in range(3):
                edges = [draw_edge(drawn, rows or [(START, 0)]) for _ in range(2)]
                window = Window(*sorted(edges))
                if drawn.random() < 0.2:
                    window = Window(BEFORE_ALL, window.end)
                bounded = window.start != BEFORE_ALL
                found = snapshot.compute_figures(find_rows(snapshot, names), window, QUANTILES)
                expected = describe_window(rows, *window, QUANTILES, is_bounded=bounded)
                assert [*map(list_figures, found)] == [expected] * 2, (name, window)
                totals = snapshot.compute_totals(find_rows(snapshot, names), window)
                assert totals == [describe_steps(rows, window)[0][:2]] * 2
                midnights = range(-(-window.start // DAY) * DAY, window.end, DAY)
                inner = drawn.sample(midnights, drawn.randrange(min(len(midnights), 19) + 1))
                # A day ends a millisecond before midnight, unless it includes its end.
                inner = [at - drawn.choice([0, 1]) for at in inner if at - 1 > window.start]
                inner += [drawn.randint(*window)] if drawn.random() < 0.2 else []
                steps = [window.start, *sorted(inner), window.end]
                (row,) = find_rows(snapshot, [name])
                found_steps = zip(*snapshot.compute_step_totals(row, steps), strict=True)
                assert [*found_steps] == describe_steps(rows, steps)
                usual = drawn.choice([found[0].usual_interval, 6 * HOUR, None]) or 1
                check_long_intervals(snapshot, row, rows, window, int(2 * usual))


def check_long_intervals(
    snapshot: SnapshotFile, server: ServerRow, rows: Rows, window: Window, usual: int
) -> None:
    """Compare the intervals that are longer than three usual ones with those of the rows."""
    start = max(window.start, 0)

    found = snapshot.find_long_intervals(server, Window(start, window.end), usual)

    assert found == [
        (before, after)
        for (before, _), (after, _) in pairwise(rows)
        if start < after <= window.end and 2 * (after - before) > 3 * usual
    ]
