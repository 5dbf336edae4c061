"""The figures of windows, compared with those of raw rows."""

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.naive_figures import Rows, describe_window
from srvstat.contract.time import BEFORE_ALL, Window
from srvstat.snapshot.blocks import Observations
from srvstat.snapshot.read.observations import Extreme, WindowFigures

LARGEST = 2**53 - 1
LATEST = 253_402_300_799_999
QUANTILES = [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(95, 100), Fraction(1)]


@st.composite
def series(draw: st.DrawFn) -> tuple[Rows, Window]:
    """Draw observations, polled regularly or not, and a window that has them all."""
    distances = draw(st.sampled_from([(60_000, 60_000), (59_990, 60_010), (1, 10**6), (1, 10**11)]))
    players = draw(st.sampled_from([(0, 3), (0, 900), (LARGEST - 9, LARGEST), (0, LARGEST)]))
    rows = []
    at = start = draw(st.integers(0, 10**12))
    for step, count in draw(
        st.lists(st.tuples(st.integers(*distances), st.integers(*players)), max_size=40)
    ):
        at += step
        rows.append((at, count))
    end = at + draw(st.sampled_from([0, 1, 60_000, 10**8]))
    return rows, Window(draw(st.sampled_from([start, BEFORE_ALL])), end)


@example(([(9, 5)] * 1, Window(8, 9)))
@example(([(at, LARGEST) for at in range(1, 3001)], Window(0, LATEST)))
@given(series())
def test_the_figures_of_a_window_are_those_of_its_rows(drawn: tuple[Rows, Window]) -> None:
    rows, window = drawn
    is_bounded = window.start != BEFORE_ALL

    instants, players = np.array(rows, np.int64).reshape(-1, 2).T
    found = WindowFigures(Observations(instants, players), window)

    quantiles = tuple(one for one in map(found.find_quantile, QUANTILES) if one is not None)
    assert {
        "observations": found.count,
        "total": found.total,
        "mean": found.mean,
        "median": found.median,
        "growth": found.growth.players,
        "quantiles": quantiles,
        "peak": get_ends(found.peak),
        "lowest": get_ends(found.lowest),
        "usual_interval": found.usual_interval,
        "weighted_mean": found.weighted_mean,
        "coverage": found.coverage,
        "first": found.first,
        "last": found.last,
    } == describe_window(rows, *window, QUANTILES, is_bounded=is_bounded)
    if rows:
        extremes = (found.lowest and found.lowest.players, found.peak and found.peak.players)
        assert extremes == (min(players), max(players))
        durations = zip(found.durations.tolist(), players.tolist(), strict=True)
        most = rows[0][1]
        above = sum(duration for duration, count in durations if count > most)
        assert found.sum_durations_above(most) == above


def get_ends(extreme: Extreme | None) -> tuple[int, int] | None:
    return extreme and (extreme.first_at, extreme.last_at)
