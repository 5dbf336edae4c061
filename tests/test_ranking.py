"""A ranking finds the observations between two prefixes."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from srvstat.stats import (
    Growth,
    Prefix,
    Ranking,
    Statistics,
    compute_ranking_statistics,
    compute_statistics,
    find_middle_ranks,
)

LARGEST = 2**53 - 1
UNKNOWN = Growth(None, None)


class Case(NamedTuple):
    """Values in the order of their instants, the starts of their bands, and a window.

    The window is between the two `cuts`; the histograms are those at the two positions `near`.
    """

    values: list[int]
    starts: list[int]
    cuts: list[int]
    near: list[int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    lowest = draw(st.sampled_from([0, 1, 7, LARGEST - 60]))
    values = draw(
        st.lists(
            st.integers(lowest, lowest + draw(st.sampled_from([0, 1, 3, 60]))),
            min_size=1,
            max_size=60,
        )
    )
    distinct = sorted(set(values))
    starts = draw(st.just(distinct) | st.sets(st.sampled_from(distinct)).map(sorted))
    places = st.integers(0, len(values))
    return Case(
        values,
        sorted({distinct[0], *starts}),
        sorted(draw(st.tuples(places, places))),
        [draw(places), draw(places)],
    )


def create_ranking(case: Case) -> Ranking:
    start, end = (
        create_prefix(case.values, case.starts, cut, near)
        for cut, near in zip(case.cuts, case.near, strict=True)
    )
    return Ranking(start, end, case.starts)


def create_prefix(values: Sequence[int], starts: Sequence[int], length: int, nearby: int) -> Prefix:
    """Return the prefix of a length, with the histogram at another position."""
    histogram = Counter(find_band(starts, value) for value in values[:nearby])
    return Prefix(
        observations=length,
        total=sum(values[:length]),
        cumulative=list(accumulate(histogram[band] for band in range(len(starts)))),
        added=values[nearby:length],
        removed=values[length:nearby],
    )


def find_band(starts: Sequence[int], value: int) -> int:
    return bisect_right(starts, value) - 1


@given(case=cases())
@example(case=Case([4], [4], [0, 1], [0, 0]))
@example(case=Case([4], [4], [0, 1], [1, 0]))
@example(case=Case([5, 9, 2], [2, 5, 9], [0, 3], [3, 0]))
@example(case=Case([5, 9, 2, 2], [2, 9], [1, 3], [1, 3]))
@example(case=Case([5, 9, 2, 2], [2], [1, 3], [4, 0]))
@example(case=Case([5, 9, 2, 2], [2, 5], [2, 2], [4, 0]))
def test_every_rank_is_found_by_its_band_and_members(case: Case) -> None:
    start, end = case.cuts
    between = sorted(case.values[start:end])
    event("bands of several values" if len(case.starts) < len({*case.values}) else "of one each")

    ranking = create_ranking(case)

    assert (ranking.count, ranking.total) == (len(between), sum(between))
    for rank, value in enumerate(between):
        band = ranking.find_band(rank)
        assert band == find_band(case.starts, value)
        first, last = ranking.find_members(band)
        members = [each for each in case.values if find_band(case.starts, each) == band][first:last]
        assert sorted(members)[rank - ranking.count_below(band)] == value


@given(case=cases())
def test_every_band_has_its_members_and_count_below(case: Case) -> None:
    start, end = case.cuts
    ranking = create_ranking(case)

    for band in range(len(case.starts)):
        of_band = [find_band(case.starts, value) == band for value in case.values]
        assert ranking.find_members(band) == (sum(of_band[:start]), sum(of_band[:end]))
        below = [value for value in case.values[start:end] if value < case.starts[band]]
        assert ranking.count_below(band) == len(below)


@given(case=cases())
def test_a_ranking_has_the_statistics_of_the_observations_between_its_prefixes(case: Case) -> None:
    start, end = case.cuts
    expected = compute_statistics(case.values[start:end])
    between = sorted(case.values[start:end])

    ranking = create_ranking(case)
    found = compute_ranking_statistics(
        ranking.count, ranking.total, between.__getitem__, expected.growth
    )

    assert found == expected


def test_statistics_of_a_known_ranking() -> None:
    growth = Growth(-7, -12.5)
    start = Prefix(3, 18, [1, 1, 2, 2, 2], [8], [])
    end = Prefix(7, 40, [2, 4, 6, 6, 8], [], [6])
    starts = [4, 5, 6, 7, 8]
    ranking = Ranking(start, end, starts)

    def find_value(rank: int) -> int:
        return starts[ranking.find_band(rank)]

    # After 4, 6 and 8 come 4, 5, 5, 8 and 6. The last is in the histogram and not in the window.
    assert compute_ranking_statistics(
        ranking.count, ranking.total, find_value, growth
    ) == Statistics(4, 5.5, 5.0, 8, 4, growth)
    nothing = Ranking(start, start, starts)
    assert compute_ranking_statistics(
        nothing.count, nothing.total, find_value, UNKNOWN
    ) == Statistics(0, None, None, None, None, UNKNOWN)


def test_a_rank_is_exact_for_counts_beyond_exact_doubles() -> None:
    at_0, at_1 = 2**54 + 4, 2**54 + 3
    end = Prefix(at_0 + at_1, at_1, [at_0, at_0 + at_1], [], [])
    ranking = Ranking(Prefix(0, 0, [0, 0], [], []), end, [0, 1])

    assert (
        compute_ranking_statistics(ranking.count, ranking.total, ranking.find_band, UNKNOWN).median
        == 0.0
    )
    assert [ranking.find_band(rank) for rank in (at_0 - 1, at_0)] == [0, 1]


def test_a_sum_between_two_prefixes_is_divided_exactly() -> None:
    starts = [LARGEST - 1, LARGEST]
    ranking = Ranking(
        Prefix(1, LARGEST, [0, 1], [], []), Prefix(3, 3 * LARGEST - 1, [1, 3], [], []), starts
    )

    found = compute_ranking_statistics(
        ranking.count, ranking.total, lambda rank: starts[ranking.find_band(rank)], UNKNOWN
    )

    assert (found.mean, found.median) == (9007199254740990.0, 9007199254740990.0)
    assert (found.peak, found.lowest) == (LARGEST, LARGEST - 1)


@pytest.mark.parametrize(
    ("count", "ranks"), [(1, (0, 0)), (2, (0, 1)), (3, (1, 1)), (4, (1, 2)), (5, (2, 2))]
)
def test_an_even_count_has_two_middle_ranks(count: int, ranks: tuple[int, int]) -> None:
    assert find_middle_ranks(count) == ranks
