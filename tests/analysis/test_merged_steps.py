"""The points of pictures, merged from shorter steps, are the steps of growth and history."""

import tempfile
from contextlib import closing
from pathlib import Path
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import DAY, build_in, few_examples, server
from srvstat.analysis.growth import compute_growth
from srvstat.analysis.history import describe_cells
from srvstat.analysis.pictures import compute_timeline
from srvstat.analysis.report import MOST_STEPS
from srvstat.analysis.windows import divide_window, find_zone, parse_step
from srvstat.contract.time import Window
from srvstat.documents.analysis import GrowthStepName
from srvstat.render.timeline import Point, merge_steps
from srvstat.snapshot.read.snapshot import SnapshotFile, open_file

MINUTE = DAY // 1440
CHANGES = (1_761_440_400_000, 1_774_746_000_000)
"""2025-10-26 and 2026-03-29, 01:00 UTC: the clocks of Berlin change, in either direction."""
ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe")


@st.composite
def rows(draw: st.DrawFn) -> dict[int, int]:
    """Draw polled observations of some days around a change of the clocks, with gaps."""
    interval = draw(st.sampled_from([10, 30, 30, 60, 61, 180])) * MINUTE
    start = draw(st.sampled_from(CHANGES)) - draw(st.integers(0, 20 * DAY // interval)) * interval
    count = draw(st.integers(1, 25 * DAY // interval))
    kept = [True] * count
    for _ in range(draw(st.integers(0, 6))):
        first = draw(st.integers(0, count))
        last = first + draw(st.integers(1, 2 * DAY)) // interval + 1
        kept[first:last] = [False] * len(kept[first:last])
    seed = draw(st.integers(1, 1000))
    return {
        start + at * interval: at * at * seed % 97 for at, is_kept in enumerate(kept) if is_kept
    }


@settings(max_examples=few_examples(), deadline=None)
@given(st.lists(rows(), min_size=1, max_size=2), st.sampled_from(ZONES), st.data())
def test_days_weeks_and_months_of_pictures_are_those_of_growth(
    series: list[dict[int, int]], zone: str, data: st.DataObject
) -> None:
    observed = [(f"s{number}", *row) for number, one in enumerate(series) for row in one.items()]
    if not observed:
        return
    instants = sorted(at for _, at, _ in observed)
    start = data.draw(st.integers(instants[0] - 3 * DAY, instants[-1] - 1) | st.just(instants[0]))
    end = data.draw(st.integers(start + 1, instants[-1] + 2 * DAY))
    with tempfile.TemporaryDirectory() as directory:
        names = [f"s{number}" for number in range(len(series))]
        path = str(build_in(Path(directory), map(server, names), observed))
        with closing(open_file(path)) as snapshot:
            for window in (Window(start, end), Window(instants[0] - 1, instants[-1])):
                check_merged_steps(snapshot, window, zone)


def check_merged_steps(snapshot: SnapshotFile, window: Window, key: str) -> None:
    """Check the points of all steps that are not shorter than those of the timeline."""
    zone, servers = find_zone(key), list(snapshot.iter_servers())
    timeline = compute_timeline(snapshot, servers, window, MOST_STEPS, zone)
    for name in get_args(GrowthStepName):
        growth = compute_growth(snapshot, servers, window, name, zone)
        for one, of_growth in zip(timeline.servers, growth.servers, strict=True):
            assert list(map(describe, merge_steps(timeline, one, name))) == [
                (step.to, step.average_players, step.observed_share, step.is_partial)
                for step in of_growth.steps
                if step.sample_count
            ]
    for name in ("1h", "3h", "6h", "12h"):
        if parse_step(name).shortest % parse_step(timeline.step).shortest:
            continue
        steps = divide_window(snapshot, servers, window, parse_step(name), zone)
        for one, row in zip(timeline.servers, servers, strict=True):
            cells = zip(steps.iter_times(), describe_cells(snapshot, row, steps), strict=True)
            assert list(map(describe, merge_steps(timeline, one, name))) == [
                (end, cell.players, cell.observed_share, cell.is_partial)
                for (_, end), cell in cells
                if cell.observations
            ]


def describe(point: Point) -> tuple[int, float, float, bool]:
    return point.end, point.average, point.observed_share, point.is_partial
