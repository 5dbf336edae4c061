"""The days index: whatever the window, its figures are those of the observations in it."""

import json
import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import cycle, groupby, islice
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Build, Cli, server
from srvstat.contract.instants import LATEST
from srvstat.contract.ranges import DAYS, Range, Window
from srvstat.contract.requests import ServerReference
from srvstat.snapshot.days import (
    DAYS_A_SERVER,
    Day,
    days_of,
    has_prefix,
    observed_in,
    statistics_from_ends,
)
from srvstat.snapshot.read import SnapshotFile, open_file
from srvstat.snapshot.rows import ServerRow
from srvstat.stats import Growth, Statistics, statistics_of

LARGEST = 2**53 - 1
NOTHING = Statistics(0, None, None, None, None, Growth(None, None))


class Observed(NamedTuple):
    """The observations of one server, in the order of their instants."""

    instants: list[int]
    players: list[int]

    def within(self, window: Window) -> list[int]:
        """Return the players of a window, in the order of their instants."""
        start, end = window
        pairs = zip(self.instants, self.players, strict=True)
        return [players for at, players in pairs if start < at <= end]


LAST_DAY = LATEST // DAY


def found(snapshot: SnapshotFile, *identifiers: str) -> list[ServerRow]:
    """Return servers of a snapshot that has them all."""
    references = [ServerReference(identifier=name, by="id") for name in identifiers]
    return [row for row in snapshot.find(references) if row]


@st.composite
def instants(draw: st.DrawFn, least: int) -> list[int]:
    """Draw instants of dense and of sparse days, each with a least count, and gaps between them."""
    first = draw(st.sampled_from([0, 1, AS_OF // DAY, LAST_DAY - 9]))
    days = draw(st.sets(st.integers(0, 9), min_size=1, max_size=5))
    times = st.sampled_from([0, 1, DAY // 2, DAY - 1]) | st.integers(0, DAY - 1)
    found: list[int] = []
    for day in sorted(days):
        if draw(st.booleans()):
            count = draw(st.integers(least, 40))
            of_day = [DAY // count * number for number in range(count)]
        else:
            of_day = sorted(draw(st.sets(times, min_size=least, max_size=6)))
        found += [(first + day) * DAY + time for time in of_day]
    return found


def most_values(observed_at: Sequence[int]) -> int:
    """Return how many values a server may have, at most, and keep prefixes."""
    return min(4096, 16 * len(observed_at) // len({at // DAY for at in observed_at}))


@st.composite
def with_prefixes(draw: st.DrawFn) -> Observed:
    """Draw a server whose values are few enough for prefixes, and sometimes as many as may be."""
    observed_at = draw(instants(1))
    most = most_values(observed_at)
    values = min(most, draw(st.sampled_from([1, 2, 4, most])))
    lowest = draw(st.sampled_from([0, 0, 1, 254, 65_530, 2**32 - 3, LARGEST - values + 1]))
    palette = draw(st.lists(st.integers(lowest, lowest + values - 1), min_size=1, max_size=20))
    return Observed(observed_at, list(islice(cycle(palette), len(observed_at))))


@st.composite
def without_prefixes(draw: st.DrawFn) -> Observed:
    """Draw a server whose values are too many for prefixes, and sometimes by one alone."""
    observed_at = draw(instants(2))
    lowest = draw(st.integers(0, 3))
    least = lowest + most_values(observed_at)
    highest = draw(st.sampled_from([least, LARGEST]) | st.integers(least, LARGEST))
    between = st.sampled_from([lowest, highest]) | st.integers(lowest, highest)
    palette = draw(st.lists(between, min_size=1, max_size=20))
    players = list(islice(cycle(palette), len(observed_at)))
    at = draw(st.integers(1, len(players) - 1))
    players[at - 1 : at + 1] = draw(st.permutations([lowest, highest]))
    return Observed(observed_at, players)


def windows(*observed: Observed) -> st.SearchStrategy[Window]:
    """Draw windows with edges on and beside observations and midnights, and far from them."""
    seen = {at for one in observed for at in one.instants}
    midnights = {at // DAY * DAY for at in seen}
    far = [-366 * DAY, 0, AS_OF, LATEST]
    marks = st.sampled_from([*far, *sorted(seen | midnights) * 4])
    edges = st.builds(int.__add__, marks, st.sampled_from([0, 0, 0, -1, 1, -DAY, DAY]))
    starts = edges | st.sampled_from([-366 * DAY, min(seen) - 1])
    return st.tuples(starts, edges).map(lambda pair: Window(*sorted(pair)))


Case = tuple[Observed, Window]


def cases(series: st.SearchStrategy[Observed]) -> st.SearchStrategy[Case]:
    return series.flatmap(lambda observed: st.tuples(st.just(observed), windows(observed)))


KEY = 7


def days_in(window: Window, days: Iterable[Day]) -> list[Day]:
    """Return the days that a window touches, by their numbers alone."""
    numbers = range(window.start // DAY, window.end // DAY + 1)
    return [day for day in days if day.server_day - KEY * DAYS_A_SERVER in numbers]


def told_by_the_ends(observed: Observed, window: Window) -> Statistics:
    """Choose the two days as `statistics_from_ends` documents it, and ask them."""
    days = list(days_of(KEY, *observed))
    assert all(map(has_prefix, days))
    number = KEY * DAYS_A_SERVER
    first = [day for day in days if day.server_day - number >= window.start // DAY]
    last = [day for day in days if day.server_day - number <= window.end // DAY]
    return statistics_from_ends(first[0], last[-1], window) if first and last else NOTHING


@settings(max_examples=500)
@given(case=cases(with_prefixes()))
def test_the_two_days_at_the_ends_of_a_window_tell_all_its_figures(case: Case) -> None:
    observed, window = case
    event(f"at least {min(len(observed.within(window)), 3)} observations")

    assert told_by_the_ends(observed, window) == statistics_of(observed.within(window))


@settings(max_examples=300)
@given(case=cases(without_prefixes()))
def test_a_server_of_many_values_has_no_prefixes_and_its_days_tell_the_figures(case: Case) -> None:
    observed, window = case
    days = list(days_of(KEY, *observed))
    expected = statistics_of(observed.within(window))

    assert not any(map(has_prefix, days))
    assert statistics_of(observed_in(days_in(window, days), window)[1]) == expected
    assert statistics_of(observed_in(days, window)[1]) == expected


@settings(max_examples=200)
@given(case=cases(with_prefixes()))
def test_the_days_of_a_server_with_prefixes_can_be_merged_as_well(case: Case) -> None:
    observed, window = case
    days = days_in(window, days_of(KEY, *observed))

    assert statistics_of(observed_in(days, window)[1]) == statistics_of(observed.within(window))


def test_a_server_without_observations_has_no_days() -> None:
    assert list(days_of(KEY, [], [])) == []
    assert observed_in([], Window(0, DAY)) == ([], [])


def steps(peak: int) -> Observed:
    """Return three days with observations and gaps, the peak in the middle of one."""
    players = {DAY: 0, DAY + 5: 3, 2 * DAY - 1: peak, 2 * DAY: 4, 6 * DAY + 7: 2, 7 * DAY - 1: 8}
    return Observed([*players], [*players.values()])


PEAKS = {"with prefixes": 9, "without prefixes": LARGEST}

P = -1
"""Stands for the peak among the players of a window."""

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
    "two around a midnight": (2 * DAY - 2, 2 * DAY, [P, 4]),
    "from a midnight on": (2 * DAY, 7 * DAY, [2, 8]),
    "inside a gap": (3 * DAY, 4 * DAY, []),
    "inside a gap, with its edges in the days beside": (2 * DAY, 6 * DAY + 6, []),
    "inside a day": (DAY + 6, 2 * DAY - 2, []),
    "empty on an observation": (DAY + 5, DAY + 5, []),
    "empty on a midnight": (2 * DAY, 2 * DAY, []),
    "empty in a gap": (4 * DAY, 4 * DAY, []),
    "starts before the last": (7 * DAY - 2, 400 * DAY, [8]),
    "starts at the last": (7 * DAY - 1, 400 * DAY, []),
    "starts after the last day": (7 * DAY, 400 * DAY, []),
    "empty before 1970": (-5, -5, []),
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("kind", PEAKS)
def test_a_window_is_open_at_its_start_and_closed_at_its_end_in_every_case(
    kind: str, name: str, build: Build
) -> None:
    observed = steps(PEAKS[kind])
    start, end, players = NAMED[name]
    window = Window(start, end)
    values = [PEAKS[kind] if value == P else value for value in players]
    expected = statistics_of(values)
    days = list(days_of(1, *observed))
    rows = [("a", at, count) for at, count in zip(*observed, strict=True)]

    with closing(open_file(build([server("a")], rows))) as snapshot:
        assert snapshot.statistics(found(snapshot, "a"), window) == [expected]
    assert observed.within(window) == values
    assert [has_prefix(day) for day in days] == [kind == "with prefixes"] * 3
    assert statistics_of(observed_in(days, window)[1]) == expected
    if kind == "with prefixes":
        assert told_by_the_ends(observed, window) == expected


@pytest.mark.parametrize("kind", PEAKS)
def test_growth_takes_two_observations_and_its_percentage_a_first_one_above_zero(
    kind: str, build: Build, cli: Cli
) -> None:
    peak = PEAKS[kind]
    rows = [("a", at, count) for at, count in zip(*steps(peak), strict=True)]
    path = build([server("a"), server("b")], [*rows, ("b", 8 * DAY, 1)])

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


@st.composite
def fleets(draw: st.DrawFn) -> dict[str, Observed]:
    """Draw a server of each kind, one without observations, and one without any neighbour."""
    lonely = draw(st.sampled_from([0, DAY - 1, DAY, AS_OF]))
    return {
        "few-values": draw(with_prefixes()),
        "lonely": Observed([lonely], [draw(st.integers(0, LARGEST))]),
        "many-values": draw(without_prefixes()),
        "silent": Observed([], []),
    }


def seen_in(path: str, name: str, window: Window) -> Statistics:
    """Return the statistics of what any reader of SQLite finds in a window."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT players FROM observations JOIN servers USING (server)"
            " WHERE id = ? AND observed_at > ? AND observed_at <= ? ORDER BY observed_at",
            (name, *window),
        )
        return statistics_of([players for (players,) in rows])


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
        "growth": {
            "players": figures.growth.players,
            "percentage": figures.growth.percentage,
        },
        "uptime": None,
        "sampleCount": figures.observations,
    }


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fleet=fleets(), data=st.data())
def test_a_snapshot_answers_what_its_observations_say(
    fleet: dict[str, Observed], data: st.DataObject, build: Build, cli: Cli
) -> None:
    rows = [(name, *pair) for name, one in fleet.items() for pair in zip(*one, strict=True)]
    path = build(map(server, fleet), data.draw(st.permutations(rows)), "--as-of", str(LATEST))

    with closing(open_file(path)) as snapshot:
        for window in data.draw(st.lists(windows(*fleet.values()), min_size=3, max_size=3)):
            names = data.draw(st.permutations([*fleet, min(fleet)]))
            expected = [seen_in(path, name, window) for name in names]
            assert snapshot.statistics(found(snapshot, *names), window) == expected

    names = data.draw(st.permutations(list(fleet)))
    asked_range = data.draw(st.sampled_from(list(DAYS)))
    at = min(max(data.draw(windows(*fleet.values())).end, 0), LATEST)
    asked = [*names, f"cfxId:x-{names[0]}"]
    window = Window(at - DAYS[asked_range] * DAY, at)
    ran = cli("compare", *asked, "--range", asked_range, "--at", str(at), "-s", path, "--json")
    expected_of = {
        name: result(name, asked_range, seen_in(path, name, window), [0, *one.players][-1])
        for name, one in fleet.items()
    }
    assert (ran.exit_code, ran.stderr) == (0, "")
    # The JSON of a double may be a whole number that is not the double, but the nearest to write.
    answer = json.loads(ran.stdout, parse_int=float)["data"]
    assert answer == [expected_of[name] for name in [*names, names[0]]]

    assert days_stored(path) == days_described(path)


def numbers(packed: bytes, count: int) -> tuple[int, list[int]]:
    """Return the width of packed numbers, and the numbers."""
    width = len(packed) // count
    positions = range(0, len(packed), width)
    return width, [int.from_bytes(packed[at : at + width], "little") for at in positions]


def days_stored(path: str) -> list[tuple[Any, ...]]:
    """Return the rows of `days`, unpacked."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT * FROM days ORDER BY server_day").fetchall()
    return [
        (
            day,
            count,
            numbers(times, count),
            numbers(players, count),
            *between,
            numbers(packed, between[-1] - between[-2] + 1) if packed else packed,
        )
        for day, count, times, players, *between, packed in rows
    ]


def days_described(path: str) -> list[tuple[Any, ...]]:
    """Return the rows of `days` as schema.sql describes them, from the observations alone."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT * FROM observations ORDER BY 1, 2").fetchall()
    found: list[tuple[Any, ...]] = []
    for key, of_server in groupby(rows, key=lambda row: row[0]):
        pairs = [(at, players) for _, at, players in of_server]
        for day, of_day in groupby(pairs, key=lambda pair: pair[0] // DAY):
            times, players = map(list, zip(*of_day, strict=True))
            before = [players for at, players in pairs if at < day * DAY]
            after = [players for at, players in pairs if at >= (day + 1) * DAY]
            found.append(
                (
                    key * 10_000_000 + day,
                    len(players),
                    (4, [at - day * DAY for at in times]),
                    (fewest_bytes(max(players)), players),
                    before[-1] if before else None,
                    after[0] if after else None,
                    *prefix_described(before + players[: len(players) // 2], pairs),
                )
            )
    return found


def prefix_described(prefix: list[int], pairs: list[tuple[int, int]]) -> tuple[Any, ...]:
    lowest, highest = min(players for _, players in pairs), max(players for _, players in pairs)
    values, days = highest - lowest + 1, len({at // DAY for at, _ in pairs})
    if values > 4096 or values * days > 16 * len(pairs) or highest * len(pairs) >= 2**63:
        return len(prefix), None, None, None, None
    ranked = sorted(prefix)
    cumulative = [bisect_right(ranked, value) for value in range(lowest, highest + 1)]
    packed = (fewest_bytes(len(prefix)), cumulative)
    return len(prefix), sum(prefix), lowest, highest, packed


def fewest_bytes(greatest: int) -> int:
    return next(width for width in (1, 2, 4, 8) if greatest < 256**width)


def test_the_days_of_the_demos_fleet_add_up_to_its_observations(demo_snapshot: str) -> None:
    days = days_stored(demo_snapshot)

    assert len(days) > 400
    assert days == days_described(demo_snapshot)


def test_a_row_of_days_is_these_bytes(build: Build) -> None:
    rows = [("a", 5 * DAY + at, players) for at, players in ((0, 1), (1000, 258), (DAY - 1, 3))]
    few = [("b", 5 * DAY + at, players) for at, players in ((1, 6), (2, 8), (3, 5), (4, 6))]
    path = build([server("a"), server("b")], [*rows, *few, ("b", 9 * DAY, 7)])

    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT server_day, observation_count, hex(times), hex(players), players_before,"
            " players_after, prefix_count, prefix_sum, lowest, highest, hex(cumulative) FROM days"
        ).fetchall()
    b_times = "01000000020000000300000004000000"
    assert found == [
        (
            *(10_000_005, 3, "00000000E8030000FF5B2605", "010002010300", None, None),
            *(1, None, None, None, ""),
        ),
        (20_000_005, 4, b_times, "06080506", None, 7, 2, 14, 5, 8, "00010102"),
        (20_000_009, 1, "00000000", "07", 6, None, 4, 25, 5, 8, "01030304"),
    ]


BORDERS = [
    (3, 2, 24, True),
    (3, 2, 25, False),
    (5, 3, 26, True),
    (5, 3, 27, False),
    (255, 1, 4080, True),
    (255, 1, 4081, False),
    (256, 1, 4096, True),
    (256, 1, 4097, False),
    (900, 2, 4096, True),
    (900, 2, 4097, False),
]


@pytest.mark.parametrize(("observations", "days", "values", "is_worth_it"), BORDERS)
@pytest.mark.parametrize("lowest", [0, 1, LARGEST - 4096])
def test_prefixes_are_for_4096_values_and_16_an_observation_of_a_day(
    lowest: int, observations: int, days: int, values: int, is_worth_it: bool
) -> None:
    observed_at = [at % days * DAY + at for at in range(observations)]
    players = [lowest, lowest + values - 1, *[lowest] * (observations - 2)]

    rows = list(days_of(KEY, sorted(observed_at), players))

    assert [has_prefix(row) for row in rows] == [is_worth_it] * days


PLAYERS = [0, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, LARGEST]


def test_the_players_of_a_day_take_the_fewest_bytes_that_hold_its_greatest(build: Build) -> None:
    at_peak = [("a", DAY * day + 1, players) for day, players in enumerate(PLAYERS)]
    path = build([server("a")], [*at_peak, *(("a", DAY * day, 0) for day in range(len(PLAYERS)))])

    assert [row[3] for row in days_stored(path)] == [
        (width, [0, players])
        for width, players in zip([1, 1, 2, 2, 4, 4, 8, 8], PLAYERS, strict=True)
    ]


@pytest.mark.parametrize(
    ("observations", "width"), [(511, 1), (512, 2), (131_071, 2), (131_072, 4)]
)
def test_a_histogram_takes_the_fewest_bytes_that_hold_its_count(
    observations: int, width: int
) -> None:
    (day,) = days_of(KEY, range(observations), [*[8] * (observations - 1), 9])

    assert day.cumulative == (observations // 2).to_bytes(width, "little") * 2


@pytest.mark.parametrize(
    ("observations", "is_worth_it"), [(1024, True), (1025, False), (1026, False), (2500, False)]
)
def test_what_a_server_adds_up_to_may_be_more_than_sqlite_counts(
    observations: int, is_worth_it: bool, build: Build
) -> None:
    players = [*[LARGEST] * (observations - 1), LARGEST - 2]
    rows = [("a", at, LARGEST) for at in range(observations - 1)]
    path = build([server("a")], [*rows, ("a", DAY, LARGEST - 2)])

    assert [row[-1] is not None for row in days_stored(path)] == [is_worth_it] * 2
    with closing(open_file(path)) as snapshot:
        statistics = snapshot.statistics(found(snapshot, "a"), Window(-1, DAY))
    assert statistics == [statistics_of(players)]
