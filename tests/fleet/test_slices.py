"""Slices cover a window once, and read few rows twice."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from srvstat.contract.ranges import Window
from srvstat.fleet.slices import Span, cut_window

SPANS = st.lists(
    st.builds(
        lambda first, length, rows: Span(first, first + length, rows),
        st.integers(-50, 150),
        st.integers(0, 60),
        st.integers(1, 10),
    ),
    max_size=30,
)


@given(spans=SPANS, rows=st.integers(1, 20))
def test_slices_are_adjacent_and_read_rows_twice_at_most(spans: list[Span], rows: int) -> None:
    window = Window(0, 100)

    slices = cut_window(spans, window, rows)

    assert (slices[0].start, slices[-1].end) == window
    assert all(before.end == after.start for before, after in pairwise(slices))
    assert all(each.start < each.end for each in slices)
    reads = [sum(span.overlaps(each) for each in slices) for span in spans]
    inside = [span for span in spans if span.overlaps(window)]
    assert sum(n * span.rows for n, span in zip(reads, spans, strict=True)) <= 2 * sum(
        span.rows for span in inside
    )


def test_files_of_days_are_read_once_each() -> None:
    spans = [Span(100 * day, 100 * day + 99, 10) for day in range(30)]

    slices = cut_window(spans, Window(-1, 2_999), rows_per_slice=20)

    assert slices == [Window(start - 1, start + 199) for start in range(0, 3_000, 200)]
