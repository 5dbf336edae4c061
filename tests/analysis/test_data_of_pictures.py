"""Timelines, distributions and the steps of charts, recomputed from random rows."""

import json
import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.naive_pictures import (
    Servers,
    compute_distribution_naively,
    compute_timeline_naively,
    read_figures,
)
from analysis.random_rows import HOUR, rows
from conftest import AS_OF, DAY, Build, build_in, few_examples, server
from srvstat.analysis.history import compute_step_chart
from srvstat.analysis.pictures import compute_distribution, compute_timeline
from srvstat.contract.errors import UsageError
from srvstat.contract.time import BEFORE_ALL, Window
from srvstat.documents.analysis import HistoryQuery, Timeline
from srvstat.snapshot.read.snapshot import SnapshotFile, open_file


class Case(NamedTuple):
    """The rows of each server; windows, each with the most steps and bins."""

    servers: Servers
    questions: list[tuple[tuple[int | None, int], int, int]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    servers = {name: sorted(draw(rows()).items()) for name in ("a", "b")}
    edges = [at for of_one in servers.values() for at, _ in of_one]
    ends = st.sampled_from([AS_OF, AS_OF + 2 * DAY + 1, AS_OF - HOUR, AS_OF - DAY, *edges])
    lengths = st.none() | st.sampled_from([1, HOUR, DAY + 1, 30 * DAY, 20_000 * DAY])
    questions = []
    for end, length, most in draw(
        st.lists(st.tuples(ends, lengths, st.integers(2, 200)), min_size=4, max_size=4)
    ):
        start = None if length is None else end - length
        questions.append(((start, end), most, most // 2))
    return Case(servers, questions)


@pytest.mark.slow
@settings(max_examples=few_examples())
@given(case=cases())
def test_every_step_gap_and_bin_follows_from_the_rows(case: Case) -> None:
    # The third server makes the snapshot as of AS_OF; it is not asked about.
    servers = {**case.servers, "c": [(AS_OF, 1)]}
    observed = [(name, at, n) for name, of_one in servers.items() for at, n in of_one]
    with tempfile.TemporaryDirectory() as directory:
        path = str(build_in(Path(directory), map(server, servers), observed))
        with closing(open_file(path)) as snapshot:
            for window, most_steps, most_bins in case.questions:
                check_timeline(snapshot, case.servers, window, most_steps)
                assert ask_for_distribution(
                    snapshot, window, most_bins
                ) == compute_distribution_naively(case.servers, window, most_bins)
                check_step_chart(snapshot, case.servers, window, most_steps)


def check_timeline(
    snapshot: SnapshotFile, servers: Servers, window: tuple[int | None, int], most: int
) -> None:
    """Compare a timeline, unless its months would be too many."""
    asked = list(snapshot.iter_servers())[:2]
    for zone in map(ZoneInfo, ("UTC", "Europe/Berlin")):
        try:
            document = compute_timeline(snapshot, asked, to_window(window), most, zone).to_json()
        except UsageError:  # its months are too many
            continue
        expected = compute_timeline_naively(servers, window, most, AS_OF, zone)
        assert read_figures(json.loads(document)) == expected


def ask_for_distribution(snapshot: SnapshotFile, window: tuple[int | None, int], most: int) -> Any:
    asked = list(snapshot.iter_servers())[:2]
    document = compute_distribution(snapshot, asked, to_window(window), most).to_json()
    return read_figures(json.loads(document))


def check_step_chart(
    snapshot: SnapshotFile, servers: Servers, window: tuple[int | None, int], most: int
) -> None:
    """Check that the steps of a chart cover the window and have the averages of their rows."""
    asked = list(snapshot.iter_servers())[:2]
    query = HistoryQuery(to_window(window), "UTC")
    lines = compute_step_chart(snapshot, asked, query, None, most).first
    rows = [row for name in ("a", "b") for row in servers[name]]
    inside = [at for at, _ in rows if (window[0] is None or at > window[0]) and at <= window[1]]

    assert len(lines) <= most
    assert not inside or lines[0].start <= min(inside)
    assert all(one.end == next_one.start for one, next_one in pairwise(lines))
    assert not lines or lines[-1].end == window[1]
    for number, line in enumerate(lines, 1):
        for name, cell in zip(("a", "b"), line.cells, strict=True):
            # The first step excludes the start of the window, the last one includes its end.
            end = line.end + (number == len(lines))
            players = [n for at, n in servers[name] if at in inside and line.start <= at < end]
            average = sum(players) / len(players) if players else None
            assert (cell.observations, cell.players) == (len(players), average)


def to_window(window: tuple[int | None, int]) -> Window:
    return Window(BEFORE_ALL if window[0] is None else window[0], window[1])


def test_a_gap_is_longer_than_three_usual_intervals_even_in_long_steps(build: Build) -> None:
    hours = [0, 1, 2, 3, 4, 5, 8, 9, 10, 14, 15, 16]
    path = build(
        [server("a"), server("b")], [("a", AS_OF - (16 - hour) * HOUR, 7) for hour in hours]
    )
    with closing(open_file(path)) as snapshot:
        start, servers = AS_OF - 24 * HOUR, list(snapshot.iter_servers())
        window, until_three = Window(start, AS_OF + 12 * HOUR), Window(start, AS_OF - 3 * HOUR)
        utc = ZoneInfo("UTC")
        hourly, cut = (
            compute_timeline(snapshot, servers, one, 37, utc) for one in (window, until_three)
        )

    assert (hourly.step, cut.step) == ("1h", "1h")
    # Before the first observation, and between 10 and 14; three hours from 5 to 8 are no gap, nor
    # is the time after the end of the snapshot.
    assert list_gaps(hourly, "a") == [(-24, -16), (-6, -2)]
    assert list_gaps(hourly, "b") == [(-24, 0)]
    assert list_gaps(cut, "a") == [(-24, -16)]
    # An observation lasts for three usual intervals: of the gap, the last hour is not observed.
    assert hourly.servers[0].observed_shares[16:24] == (1, 1, 1, 1, 1, 0, 1, 1)


def list_gaps(timeline: Timeline, name: str) -> list[tuple[int, int]]:
    """Return the gaps of a server in hours before the end of the snapshot."""
    (one,) = (one for one in timeline.servers if one.server_id == name)
    return [((gap.from_ - AS_OF) // HOUR, (gap.to - AS_OF) // HOUR) for gap in one.gaps]
