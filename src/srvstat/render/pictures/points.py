"""Merge the steps of a timeline into the points of a picture."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from srvstat.contract.ranges import DAY_MS
from srvstat.documents.document import GapPart
from srvstat.documents.timeline import ServerTimeline, Timeline

_HOUR = DAY_MS // 24
_LENGTHS = (
    *(minutes * _HOUR // 60 for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * DAY_MS for days in (1, 2, 7, 14)),
)
_LEAST_DAY, _LEAST_DAY_OF_SEVERAL = 16, 40
"""The least width of a day in pixels, for one server and for several whose lines cross each other;
in narrower ones, daily cycles would look like noise."""
_LEAST_DISTANCE = 1.5
"""The least distance of points in pixels."""


class Point(NamedTuple):
    """One step or several, merged: the interval from `start` to `end` in Unix milliseconds."""

    start: int
    end: int
    average: float
    lowest: int
    peak: int

    @property
    def middle(self) -> float:
        """The instant at which the point is drawn."""
        return (self.start + self.end) / 2


def get_window(timeline: Timeline) -> tuple[int, int]:
    """Return the interval of all steps, cut to the window."""
    steps = max((len(server.sample_counts) for server in timeline.servers), default=0)
    end = timeline.steps_from + steps * timeline.step_seconds * 1000
    start = max(timeline.steps_from, timeline.window.from_ or timeline.steps_from)
    return start, max(min(end, timeline.window.to), start + 1)


def choose_length(timeline: Timeline, width: float) -> int:
    """Return the length of points in milliseconds, a multiple of the length of steps.

    Points are at least 1.5 pixels apart. If a day is narrow, points are not shorter than a day.
    """
    start, end = get_window(timeline)
    shortest = (end - start) / width * _LEAST_DISTANCE
    least_day = _LEAST_DAY if len(timeline.servers) == 1 else _LEAST_DAY_OF_SEVERAL
    if (end - start) / width * least_day > DAY_MS:
        shortest = max(shortest, DAY_MS)
    step = timeline.step_seconds * 1000
    multiples = (length for length in _LENGTHS if length >= shortest and length % step == 0)
    return step if step >= shortest else next(multiples, -(-int(shortest) // step) * step)


def merge_steps(
    timeline: Timeline, server: ServerTimeline, length: int, shortest_gap: float
) -> list[list[Point]]:
    """Return the points of a server in runs, between which there are gaps.

    Points are counted from the end of the window, so that a window of whole days has whole points.
    A gap ends a point. The first and the last one of a run can be up to a half longer or shorter.
    Gaps that are shorter than `shortest_gap` milliseconds are ignored.
    """
    gaps = [gap for gap in server.gaps if gap.to - gap.from_ >= shortest_gap]
    _, end = get_window(timeline)
    runs: list[list[Point]] = []
    for run in _split_at_gaps(list(_list_points(timeline, server)), gaps):
        buckets: dict[int, list[tuple[Point, int]]] = {}
        for point, count in run:
            # A step that the window cuts belongs to the point of its middle.
            number = int((end - point.middle) // length)
            buckets.setdefault(number, []).append((point, count))
        whole = _join_fragments(list(buckets.values()), length)
        runs.append([_join_points(bucket) for bucket in whole])
    return runs


def _join_fragments(
    buckets: Sequence[list[tuple[Point, int]]], length: int
) -> Sequence[list[tuple[Point, int]]]:
    """Join a first and a last bucket of less than half the length with their neighbors.

    Beside a gap, the average of a few hours would look like an event among averages of days.
    """
    if len(buckets) > 1 and 2 * _measure_length(buckets[0]) < length:
        buckets = [buckets[0] + buckets[1], *buckets[2:]]
    if len(buckets) > 1 and 2 * _measure_length(buckets[-1]) < length:
        buckets = [*buckets[:-2], buckets[-2] + buckets[-1]]
    return buckets


def _measure_length(points: Sequence[tuple[Point, int]]) -> int:
    return points[-1][0].end - points[0][0].start


def _list_points(timeline: Timeline, server: ServerTimeline) -> Iterator[tuple[Point, int]]:
    """Yield the steps with observations, each with the number of them."""
    first, last = get_window(timeline)
    step = timeline.step_seconds * 1000
    columns = (server.sample_counts, server.averages, server.lowest, server.peak)
    for at, (count, average, lowest, peak) in enumerate(zip(*columns, strict=True)):
        if average is not None and lowest is not None and peak is not None:
            start = timeline.steps_from + at * step
            interval = max(start, first), min(start + step, last)
            yield Point(*interval, average, lowest, peak), count


def _split_at_gaps(
    points: Sequence[tuple[Point, int]], gaps: Iterable[GapPart]
) -> Iterator[Sequence[tuple[Point, int]]]:
    first = at = 0
    for gap in gaps:
        middle = (gap.from_ + gap.to) / 2
        while at < len(points) and points[at][0].middle < middle:
            at += 1
        if first < at:
            yield points[first:at]
        first = at
    if first < len(points):
        yield points[first:]


def _join_points(points: Sequence[tuple[Point, int]]) -> Point:
    if len(points) == 1:
        return points[0][0]
    # An average is the float nearest to an integer divided by the count, so that the integer can be
    # recovered if it has fewer than 52 bits.
    total = sum(round(point.average * count) for point, count in points)
    return Point(
        points[0][0].start,
        points[-1][0].end,
        total / sum(count for _, count in points),
        min(point.lowest for point, _ in points),
        max(point.peak for point, _ in points),
    )


def find_common_gaps(timeline: Timeline) -> list[tuple[int, int]]:
    """Return the intervals that are in a gap of every server, in order."""
    common = [get_window(timeline)]
    for server in timeline.servers:
        common = list(_intersect(common, [(gap.from_, gap.to) for gap in server.gaps]))
    return common


def _intersect(
    one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield the intervals that two sequences of disjoint, ordered intervals share."""
    left = right = 0
    while left < len(one) and right < len(other):
        start = max(one[left][0], other[right][0])
        end = min(one[left][1], other[right][1])
        if start < end:
            yield start, end
        if one[left][1] < other[right][1]:
            left += 1
        else:
            right += 1
