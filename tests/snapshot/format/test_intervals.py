"""Divide the intervals of a server into bands."""

import random
from array import array
from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from snapshot.server_rows import build_server
from srvstat.snapshot.format.intervals import (
    compute_server_coverage,
    divide_intervals,
    number_intervals,
)
from srvstat.snapshot.format.summaries import MAX_INTERVAL_BANDS

HOUR = 3_600_000


@st.composite
def draw_intervals(draw: st.DrawFn) -> list[int]:
    """Draw intervals: many or few different ones, some of them frequent, in any pattern."""
    drawn = random.Random(draw(st.integers(0, 2**32)))  # noqa: S311 - not for secrets
    count = draw(st.integers(1, 60) | st.sampled_from([2_047, 2_048, 4_100, 6_200]))
    spread = draw(st.sampled_from([1, 5, 9_000, HOUR]))
    values = [HOUR + drawn.randrange(spread) for _ in range(count)]
    if draw(st.booleans()):
        # Where every third interval is in the sample, it has none of the others.
        values = [value if at % 3 else 9 * value for at, value in enumerate(values)]
    heavy, share = drawn.choice(values), draw(st.sampled_from([0, 0, 0.2, 0.7]))
    return [heavy if drawn.random() < share else value for value in values]


@given(values=draw_intervals(), days=st.integers(1, 300), data=st.data())
def test_bands_contain_their_intervals_and_their_median(
    values: list[int], days: int, data: st.DataObject
) -> None:
    epoch = data.draw(st.integers(1, len(values)))
    bands = divide_intervals(values[:epoch], min(days, epoch))
    divided = number_intervals(array("q", values), bands)

    starts = list(bands.starts)
    assert starts == sorted({*starts})
    assert len(starts) <= MAX_INTERVAL_BANDS
    assert [*divided.numbers] == [sum(start <= value for start in starts) - 1 for value in values]
    of_band = [
        [value - start for value, band in zip(values, divided.numbers, strict=True) if band == at]
        for at, start in enumerate(starts)
    ]
    assert divided.members == {band: of_band[band] for band in bands.stored}
    for band, of_one in enumerate(of_band):
        assert band in bands.stored or not bands.is_known(band) or not any(of_one)
    sizes = [len(each) for each in of_band]
    cumulative = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    assert divided.compute_usual_interval(cumulative) == 2 * median(values)
    for least in (0, *random.Random(1).sample(values, min(3, len(values))), 10 * HOUR):  # noqa: S311 - not for secrets
        longer = [at for at, value in enumerate(values) if value > least]
        assert divided.find_longer(least) == longer


def test_each_frequent_interval_has_its_own_band() -> None:
    often = [HOUR] * 65 + [2 * HOUR] * 30
    bands = divide_intervals(often + [HOUR + 7 * at for at in range(1, 6)], 4)

    known = [start for at, start in enumerate(bands.starts) if bands.is_known(at)]
    assert known == [HOUR, 2 * HOUR]
    assert bands.longest_usual == 5 * HOUR // 2


def test_a_server_is_covered_for_up_to_three_usual_intervals_after_each_observation() -> None:
    # Observed at 0, 10, 20 and 100: the third observation lasts until 50.
    row = build_server(
        1, first_observed_at=0, last_observed_at=100, usual_interval=20, covered=2 * 50
    )

    assert compute_server_coverage(row, 100) == 50 / 100
    assert compute_server_coverage(row, 110) == 60 / 110
    assert compute_server_coverage(row, 200) == 80 / 200
    assert compute_server_coverage(build_server(1), 100) is None
