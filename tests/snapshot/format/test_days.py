"""Derive days: the two days at the ends of a window give all its figures."""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from conftest import AS_OF, DAY
from snapshot.observed import LARGEST, Observed, few_values, many_values, spread_over_days, windows
from srvstat.contract.ranges import Window
from srvstat.snapshot.format.bands import Members, divide_into_bands, find_epoch
from srvstat.snapshot.format.days import (
    build_ranking,
    create_totals,
    derive_days,
    read_day_observations,
    read_state,
)
from srvstat.snapshot.format.derive import derive
from srvstat.snapshot.format.rows import BANDS_PER_SERVER, DAYS_PER_SERVER, Day
from srvstat.stats import Growth, Statistics, compute_ranking_statistics, compute_statistics

KEY = 7
NOTHING = Statistics(0, None, None, None, None, Growth(None, None))


def derive_all(observed: Observed) -> tuple[list[Day], list[int], dict[int, Members]]:
    """Return the days of a server, the starts of its bands, and the members of wide bands."""
    epoch = find_epoch("a", len(observed.players))
    days_of_epoch = len({at // DAY for at in observed.instants[:epoch]})
    starts = divide_into_bands(observed.players[:epoch], days_of_epoch)
    days: list[Day] = []
    members: dict[int, Members] = {}

    def take(table: str, row: Sequence[Any]) -> None:
        if table == "days":
            days.append(Day._make(row))
        if table == "bands":
            band = row[0] - KEY * BANDS_PER_SERVER
            members[band] = Members(*row[1:])

    derive("a", KEY, *observed, take)
    return days, starts, members


def compute_from_ends(observed: Observed, window: Window) -> Statistics:
    """Compute the statistics from the two days that `read_state` documents."""
    days, starts, members = derive_all(observed)
    number = KEY * DAYS_PER_SERVER
    first = [day for day in days if day.server_day - number >= window.start // DAY]
    last = [day for day in days if day.server_day - number <= window.end // DAY]
    if not first or not last or first[0].server_day > last[-1].server_day:
        return NOTHING
    start = read_state(first[0], window.start, starts)
    end = read_state(last[-1], window.end, starts)
    ranking, growth = build_ranking(start, end, starts)

    def find_value(rank: int) -> int:
        band = ranking.find_band(rank)
        if band not in members:
            return starts[band]
        within = rank - ranking.count_below(band)
        return starts[band] + sorted(members[band].slice(*ranking.find_members(band)))[within]

    return compute_ranking_statistics(ranking.count, ranking.total, find_value, growth)


Case = tuple[Observed, Window]


def cases(series: st.SearchStrategy[Observed]) -> st.SearchStrategy[Case]:
    return series.flatmap(lambda observed: st.tuples(st.just(observed), windows(observed)))


@given(case=cases(few_values()))
def test_the_days_at_the_ends_of_a_window_give_its_figures_for_few_values(case: Case) -> None:
    observed, window = case
    event(f"at least {min(len(observed.within(window)), 3)} observations")

    assert compute_from_ends(observed, window) == compute_statistics(observed.within(window))


@given(case=cases(many_values()))
def test_the_days_and_a_few_bands_give_the_figures_for_many_values(case: Case) -> None:
    observed, window = case
    event(f"at least {min(len(observed.within(window)), 3)} observations")

    assert compute_from_ends(observed, window) == compute_statistics(observed.within(window))


@pytest.mark.parametrize("per_day", [1, 2, 100])
def test_a_frequent_value_among_rare_ones_is_exact(per_day: int) -> None:
    # Two of three values are equal; the others are all different, some lower and some higher.
    values = [500_000 if at % 3 else at * 7919 % 1_000_003 for at in range(40 * per_day)]
    observed = spread_over_days(values, per_day)

    for start, end in ((-1, 40), (3, 9), (0, 1), (20, 40), (7, 7)):
        window = Window(start * DAY, end * DAY)
        assert compute_from_ends(observed, window) == compute_statistics(observed.within(window))


@given(case=cases(few_values() | many_values()))
def test_the_days_of_a_window_give_its_observations(case: Case) -> None:
    observed, window = case
    days = derive_all(observed)[0]
    expected = [at for at in observed.instants if window.start < at <= window.end]

    assert read_day_observations(days, window) == (expected, observed.within(window))
    assert read_day_observations(find_days(window, days), window) == (
        expected,
        observed.within(window),
    )


def find_days(window: Window, days: Iterable[Day]) -> list[Day]:
    """Return the days that a window touches."""
    numbers = range(window.start // DAY, window.end // DAY + 1)
    return [day for day in days if day.server_day - KEY * DAYS_PER_SERVER in numbers]


def test_a_server_without_observations_has_no_days() -> None:
    nothing = array("q")
    assert list(derive_days(KEY, nothing, nothing, {}, create_totals(0))) == []
    assert read_day_observations([], Window(0, DAY)) == ([], [])


@pytest.mark.parametrize(
    ("position", "window"), [(0, Window(0, 2 * DAY)), (2, Window(-1, 2 * DAY - 1))]
)
def test_a_day_without_the_players_before_and_after_it_is_refused(
    position: int, window: Window
) -> None:
    days, starts, _ = derive_all(Observed([0, DAY, 2 * DAY], [1, 2, 3]))
    days[position] = days[position]._replace(players_before=None, players_after=None)
    start = read_state(days[0], window.start, starts)
    end = read_state(days[2], window.end, starts)

    with pytest.raises(ValueError, match="without the players"):
        build_ranking(start, end, starts)


WIDTHS = {0: 1, 255: 1, 256: 2, 65_535: 2, 65_536: 4, 2**32 - 1: 4, 2**32: 8, LARGEST: 8}


@pytest.mark.parametrize(("greatest", "width"), WIDTHS.items())
def test_the_players_of_a_day_take_the_fewest_bytes(greatest: int, width: int) -> None:
    days = derive_all(Observed([0, 1, DAY], [0, greatest, LARGEST]))[0]

    assert days[0].players == bytes(width) + greatest.to_bytes(width, "little")


@pytest.mark.parametrize(
    ("observations", "width"), [(511, 1), (512, 2), (131_071, 2), (131_072, 4)]
)
def test_a_histogram_takes_the_fewest_bytes(observations: int, width: int) -> None:
    (day,), starts, _ = derive_all(Observed([*range(observations)], [*[0] * (observations - 1), 1]))

    assert day.cumulative == (observations // 2).to_bytes(width, "little") * len(starts)


@pytest.mark.parametrize("observations", [2, 1024, 1026, 2500, 2**18])
def test_a_sum_may_exceed_the_integers_of_sqlite(observations: int) -> None:
    players = [*[LARGEST] * (observations - 2), 1, LARGEST - 2]
    observed = Observed([*range(observations - 1), DAY], players)
    days = derive_all(observed)[0]
    middle = (observations - 1) // 2
    total = sum(players[: observations - 1])

    assert int.from_bytes(days[0].prefix_sum, "little") == LARGEST * middle
    assert int.from_bytes(days[1].prefix_sum, "little") == total
    assert len(days[1].prefix_sum) == (total.bit_length() + 7) // 8
    assert compute_from_ends(observed, Window(-1, DAY)) == compute_statistics(players)


def test_a_sum_of_zero_takes_no_bytes() -> None:
    assert [day.prefix_sum for day in derive_all(Observed([0, 1, DAY], [0, 0, 5]))[0]] == [b"", b""]


def test_days_need_only_the_numbers_of_bands() -> None:
    instants = array("q", range(AS_OF, AS_OF + 4))
    (day,) = derive_days(
        KEY, instants, array("q", [9, 4, 3, 3]), {3: 0, 4: 0, 9: 1}, create_totals(2)
    )

    assert (day.prefix_count, day.cumulative) == (2, b"\1\2")
