"""Histories, growth, hours of the week and pictures follow from the rows of servers."""

import json
import random
import sqlite3
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from fractions import Fraction
from itertools import combinations, pairwise
from math import copysign, sqrt
from operator import mul
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple, get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from analysis.definitions import (
    HOUR,
    NaiveStep,
    Row,
    Rows,
    Servers,
    compute_change_naively,
    compute_coverage,
    compute_distribution_naively,
    compute_growth_naively,
    compute_mean,
    compute_timeline_naively,
    compute_trend_naively,
    describe_growth_steps,
    list_edges,
    read_clock,
    read_figures,
    select,
    series,
    split_naively,
)
from conftest import AS_OF, DAY, Build, build_in, few_examples, server
from replay.explained import format_naively
from srvstat.analysis.growth import compute_growth
from srvstat.analysis.history import (
    aggregate_history,
    compute_step_chart,
    describe_cells,
    read_history,
)
from srvstat.analysis.pictures import compute_distribution, compute_peak_hours, compute_timeline
from srvstat.analysis.questions import divide_window, parse_step
from srvstat.analysis.report import MOST_STEPS
from srvstat.analysis.selection import Question
from srvstat.analysis.series import Total, compute_figures
from srvstat.analysis.together import compute_together
from srvstat.contract.errors import SnapshotError, UsageError
from srvstat.contract.requests import build_server_reference
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.documents.analysis import Aggregate, GrowthStepName, History, HistoryQuery, HourKey
from srvstat.operations.answers import resolve_servers
from srvstat.render.timeline import Point, merge_steps
from srvstat.snapshot.read.file import SnapshotFile, open_file
from support.snapshots import forge

NOON = AS_OF + 28 * DAY
"""Noon of 2026-03-29, when the clocks in Berlin were put forward at 01:00 UTC."""

LARGEST = 2**53 - 1

UNEVEN = {
    "a": {NOON - 2: 1, NOON - 1: 0, NOON: LARGEST},
    "b": {NOON - 3: 8, NOON - 2: 1, NOON - 1: 4, NOON: 5},
    "c": {NOON: 1},
}
"""Means with three and four as denominators, and the median of four."""

TIED = {
    "a": {NOON - 2: 1, NOON - 1: 2, NOON: 1},
    "b": {NOON - 1: 1, NOON: 2},
    "c": {NOON - 2: 1, NOON - 1: 1, NOON: 2},
}
"""Equal means, and one with another denominator."""


class HistoryCase(NamedTuple):
    """The rows of each server, and a question."""

    servers: dict[str, Rows]
    window: Window
    step: str
    zone: str
    aggregate: Aggregate


@st.composite
def history_cases(draw: st.DrawFn) -> HistoryCase:
    step, longest = draw(st.sampled_from([("1h", 3 * DAY), ("6h", 40 * DAY), ("1d", 70 * DAY)]))
    zone = draw(st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]))
    ends = st.sampled_from(
        [NOON, NOON - DAY // 2, NOON - HOUR // 2, NOON + DAY, NOON - 9 * DAY - 1]
    )
    end = draw(ends)
    start = draw(st.integers(end - longest, end - 1) | st.just(BEFORE_ALL))
    aggregate: Aggregate = draw(st.sampled_from(get_args(Aggregate)))
    # Those of all servers must have a total.
    most = LARGEST // 4 if aggregate in {"share", "rank"} else LARGEST
    values = st.integers(0, 3) | st.integers(most - 3, most)
    edges = [at + offset for at in (start, end, NOON - DAY) for offset in (0, 1, HOUR, HOUR + 1)]
    instants = st.integers(end - longest, NOON) | st.sampled_from(
        [at for at in edges if end - longest <= at <= NOON]
    )
    rows = st.dictionaries(instants, values, max_size=30)
    servers = {"a": draw(rows), "b": draw(rows), "c": {NOON: 1}}
    return HistoryCase(servers, Window(start, end), step, zone, aggregate)


@pytest.mark.slow
@settings(max_examples=few_examples())
@given(case=history_cases())
@example(case=HistoryCase(UNEVEN, Window(NOON - 2 * HOUR, NOON), "1h", "UTC", "mean"))
@example(case=HistoryCase(UNEVEN, Window(NOON - 2 * HOUR, NOON), "1h", "UTC", "median"))
@example(case=HistoryCase(TIED, Window(NOON - 2 * HOUR, NOON), "1h", "UTC", "share"))
@example(case=HistoryCase(TIED, Window(NOON - 2 * HOUR, NOON), "1h", "UTC", "rank"))
@example(case=HistoryCase({"c": {NOON: 1}}, Window(BEFORE_ALL, NOON - 1), "1d", "UTC", "max"))
def test_every_row_follows_from_the_observations(case: HistoryCase) -> None:
    observed = [(name, at, n) for name, of_one in case.servers.items() for at, n in of_one.items()]
    with tempfile.TemporaryDirectory() as directory:
        path = str(build_in(Path(directory), map(server, case.servers), observed))
        with closing(open_file(path)) as snapshot:
            servers = list(snapshot.iter_servers())
            question = Question(snapshot, servers, case.window, ZoneInfo(case.zone))
            divided = divide_window(question, parse_step(case.step))
            found = list(read_history(question))
            steps = list(aggregate_history(question, divided, case.aggregate))

            assert found == list(select_naively(case))
            if case.aggregate not in {"share", "rank"}:
                assert steps == list(aggregate_naively(case))
                return
            total = question._replace(servers=[Total(snapshot, servers)])
            observed_shares = [row[-2:] for row in aggregate_history(total, divided)]
            assert steps == list(compare_naively(case, observed_shares))


def select_naively(case: HistoryCase) -> Iterator[tuple[Any, ...]]:
    start, end = case.window
    for name, rows in case.servers.items():
        yield from ((name, at, rows[at]) for at in sorted(rows) if start < at <= end)


def split(case: HistoryCase, name: str) -> list[NaiveStep]:
    """Return the steps of a server."""
    start, end = case.window
    first = min(at for rows in case.servers.values() for at in rows)
    return split_naively(
        sorted(case.servers[name].items()),
        (None if start == BEFORE_ALL else start, end),
        case.step,
        ZoneInfo(case.zone),
        first,
    )


def aggregate_naively(case: HistoryCase) -> Iterator[tuple[Any, ...]]:
    for name in case.servers:
        for step in split(case, name):
            value = compute_naively(step.values, case.aggregate)
            yield (
                name,
                step.start,
                step.end,
                len(step.values),
                float(value) if isinstance(value, Fraction) else value,
                float(step.share),
                step.is_partial,
            )


def compare_naively(
    case: HistoryCase, shares: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[Any, ...]]:
    """Return the shares or ranks of servers in steps, which are observed as those of the total."""
    by_server = {name: split(case, name) for name in case.servers}
    for name, own in by_server.items():
        for step, all_of_step, share in zip(
            own, zip(*by_server.values(), strict=True), shares, strict=True
        ):
            averages = [
                Fraction(sum(one.values), len(one.values)) for one in all_of_step if one.values
            ]
            value: float | None = None
            if step.values:
                average = Fraction(sum(step.values), len(step.values))
                if case.aggregate == "rank":
                    value = sorted(averages, reverse=True).index(average) + 1
                elif any(averages):
                    value = float(average / sum(averages))
            yield name, step.start, step.end, len(step.values), value, *share


def compute_naively(players: Sequence[int], aggregate: Aggregate) -> Any:
    if not players:
        return None
    ascending, middle = sorted(players), len(players) // 2
    return {
        "mean": Fraction(sum(players), len(players)),
        "median": Fraction(ascending[middle] + ascending[-middle - 1], 2),
        "max": ascending[-1],
        "min": ascending[0],
        "last": players[-1],
    }[aggregate]


SPARSE = st.dictionaries(
    st.integers(0, 8 * 24).map(lambda halves: NOON - halves * HOUR // 2),
    st.integers(0, 9),
    max_size=20,
)
REGULAR = st.builds(
    lambda first, every, counts: {first + every * at: n for at, n in enumerate(counts)},
    st.integers(NOON - 4 * DAY, NOON - DAY),
    st.sampled_from([HOUR // 2, HOUR, HOUR + 1, 3 * HOUR]),
    st.lists(st.integers(0, 9), max_size=24),
)


@pytest.mark.slow
@settings(max_examples=5 * few_examples())
@given(
    servers=st.lists(SPARSE | REGULAR, min_size=1, max_size=4),
    start=st.integers(NOON - 5 * DAY, NOON - 1) | st.just(BEFORE_ALL),
    end=st.sampled_from([NOON, NOON, NOON + DAY, NOON - DAY, NOON - 4 * DAY]),
    zone=st.sampled_from(["UTC", "Europe/Berlin"]),
    aggregate=st.sampled_from(("mean", "median", "max", "min", "last")),
)
def test_a_total_adds_up_the_latest_counts_of_its_servers(
    servers: list[Rows], start: int, end: int, zone: str, aggregate: Aggregate
) -> None:
    assume(start < end)
    named = {f"s{number}": rows for number, rows in enumerate(servers)} | {"z": {NOON: 1}}
    observed = [(name, at, n) for name, of_one in named.items() for at, n in of_one.items()]
    with tempfile.TemporaryDirectory() as directory:
        path = str(build_in(Path(directory), map(server, named), observed))
        with closing(open_file(path)) as snapshot:
            series = [Total(snapshot, [*snapshot.iter_servers()])]
            question = Question(snapshot, series, Window(start, end), ZoneInfo(zone))
            figures = compute_figures(snapshot, series[0], question.window)
            steps = divide_window(question, parse_step("6h"))
            rows = list(aggregate_history(question, steps, aggregate))

    counts = add_up_naively(named.values(), start, end)
    assert list(zip(*(one.tolist() for one in figures.observations), strict=True)) == [
        (at, total) for at, total, _ in counts
    ]
    first = min(at for of_one in named.values() for at in of_one)
    if start == BEFORE_ALL and first > end:
        assert rows == []
        return
    expected = []
    start = steps.window.start
    kept = [(rows, find_usual(rows, start, end)) for rows in named.values() if rows]
    for edges, times in zip(pairwise(steps.edges.tolist()), steps.iter_times(), strict=True):
        begin, stop = edges
        inside = [(n, of) for at, n, of in counts if begin <= at < stop or at == stop == end]
        value = compute_naively([n for n, _ in inside], aggregate)
        shown = float(value) if isinstance(value, Fraction) else value
        share = Fraction(measure_naively(kept, start, end, times), stop - begin)
        most = max((of for _, of in inside), default=0)
        expected.append((*times, len(inside), most, shown, float(share), share < Fraction(9, 10)))
    assert rows == expected


def find_usual(rows: Rows, start: int, end: int) -> Fraction:
    """Return the usual interval of a server, of at least ten counts; 0 without one."""
    known = [at for at in sorted(rows) if at <= end]
    recent = known[-max(sum(at > start for at in known), 10) :]
    distances = [Fraction(after - before) for before, after in pairwise(recent)]
    return median(distances) if distances else Fraction(0)


def add_up_naively(servers: Iterable[Rows], start: int, end: int) -> list[tuple[int, int, int]]:
    """Return each instant with the sum of the latest counts, and their number."""
    kept = [(rows, 3 * find_usual(rows, start, end)) for rows in servers]
    found = []
    for at in sorted({at for rows, _ in kept for at in rows if start < at <= end}):
        latest = [
            rows[max(before)]
            for rows, longest in kept
            if (before := [one for one in rows if at - longest <= one <= at])
        ]
        found.append((at, sum(latest), len(latest)))
    return found


def measure_naively(
    kept: Sequence[tuple[Rows, Fraction]], start: int, end: int, times: tuple[int, int]
) -> Fraction:
    """Return for how long each server was observed in a step, or not expected: the least time."""
    lasts = [
        (max(rows) if NOON - max(rows) > DAY else NOON) + int(3 * usual) for rows, usual in kept
    ]
    spans = min(min(rows) for rows, _ in kept), max(lasts)
    lengths = []
    for (rows, usual), last in zip(kept, lasts, strict=True):
        known = [at for at in sorted(rows) if at <= end]
        lasting = [(at, min(until, at + 3 * usual)) for at, until in pairwise([*known, end])]
        parts = [*(lasting if usual else ()), (spans[0], min(rows)), (last, spans[1])]
        overlaps = (min(until, times[1]) - max(at, times[0], start) for at, until in parts)
        lengths.append(sum((max(one, Fraction(0)) for one in overlaps), Fraction(0)))
    return min(lengths, default=Fraction(0))


def read_steps(question: Question) -> History:
    return aggregate_history(question, divide_window(question, parse_step("1d")))


@pytest.mark.parametrize("read", [read_history, read_steps])
def test_rows_are_read_while_they_are_iterated_over(
    read: Callable[[Question], History], build: Build
) -> None:
    window = Window(AS_OF - 90 * DAY, AS_OF)

    path = build(
        [server("a"), server("b")],
        [(name, AS_OF - day * DAY, day) for day in range(90) for name in "ab"],
    )
    with closing(open_file(path)) as snapshot:
        expected = list(read(Question(snapshot, [*snapshot.iter_servers()], window)))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE blocks SET players = x'77' WHERE server_block = 2000000000")
    with closing(open_file(path)) as snapshot:
        rows = iter(read(Question(snapshot, [*snapshot.iter_servers()], window)))
        # The second server is damaged.
        assert [next(rows) for _ in range(90)] == expected[:90]
        with pytest.raises(SnapshotError):
            list(rows)


@pytest.mark.parametrize("value", ["-1", "253402300800000"])
def test_a_forged_first_observation_is_refused(value: str, build: Build) -> None:
    path = build([server("a")], [("a", AS_OF, 1)])
    forge(path, f"UPDATE servers SET first_observed_at = {value}")  # noqa: S608 - our own values
    with closing(open_file(path)) as snapshot:
        servers = resolve_servers(snapshot, [build_server_reference("a")])
        question = Question(snapshot, servers, Window(BEFORE_ALL, AS_OF))
        with pytest.raises(SnapshotError):
            divide_window(question, parse_step("1d"))


MINUTE = DAY // 1440
CHANGES = (1_761_440_400_000, 1_774_746_000_000)
"""2025-10-26 and 2026-03-29, 01:00 UTC: the clocks of Berlin change, in either direction."""
CHANGED_ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe")


@st.composite
def polled_rows(draw: st.DrawFn) -> dict[int, int]:
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
@given(st.lists(polled_rows(), min_size=1, max_size=2), st.sampled_from(CHANGED_ZONES), st.data())
def test_days_weeks_and_months_of_pictures_are_those_of_growth(
    drawn: list[dict[int, int]], zone: str, data: st.DataObject
) -> None:
    observed = [(f"s{number}", *row) for number, one in enumerate(drawn) for row in one.items()]
    if not observed:
        return
    instants = sorted(at for _, at, _ in observed)
    start = data.draw(st.integers(instants[0] - 3 * DAY, instants[-1] - 1) | st.just(instants[0]))
    end = data.draw(st.integers(start + 1, instants[-1] + 2 * DAY))
    with tempfile.TemporaryDirectory() as directory:
        names = [f"s{number}" for number in range(len(drawn))]
        path = str(build_in(Path(directory), map(server, names), observed))
        with closing(open_file(path)) as snapshot:
            for window in (Window(start, end), Window(instants[0] - 1, instants[-1])):
                check_merged_steps(snapshot, window, zone)


def check_merged_steps(snapshot: SnapshotFile, window: Window, key: str) -> None:
    """Check the points of all steps that are not shorter than the steps of the timeline."""
    servers = list(snapshot.iter_servers())
    question = Question(snapshot, servers, window, ZoneInfo(key))
    timeline = compute_timeline(question, MOST_STEPS)
    for name in get_args(GrowthStepName):
        growth = compute_growth(question, name)
        for one, of_growth in zip(timeline.servers, growth.servers, strict=True):
            assert list(map(describe, merge_steps(timeline, one, name))) == [
                (step.to, step.average_players, step.observed_share, step.is_partial)
                for step in of_growth.steps
                if step.sample_count
            ]
    for name in ("1h", "3h", "6h", "12h"):
        if parse_step(name).shortest % parse_step(timeline.step).shortest:
            continue
        steps = divide_window(question, parse_step(name))
        for one, row in zip(timeline.servers, servers, strict=True):
            found = compute_figures(snapshot, row, steps.window)
            cells = zip(
                steps.iter_times(), describe_cells(snapshot, row, found, steps), strict=True
            )
            assert list(map(describe, merge_steps(timeline, one, name))) == [
                (end, cell.players, cell.observed_share, cell.is_partial)
                for (_, end), cell in cells
                if cell.observations
            ]


def describe(point: Point) -> tuple[int, float, float, bool]:
    return point.end, point.average, point.observed_share, point.is_partial


class PictureCase(NamedTuple):
    """The rows of each server; windows, each with the most steps and bins."""

    servers: Servers
    questions: list[tuple[tuple[int | None, int], int, int]]


@st.composite
def picture_cases(draw: st.DrawFn) -> PictureCase:
    servers = {name: sorted(draw(series()).items()) for name in ("a", "b")}
    edges = [at for of_one in servers.values() for at, _ in of_one]
    ends = st.sampled_from([AS_OF, AS_OF + 2 * DAY + 1, AS_OF - HOUR, AS_OF - DAY, *edges])
    lengths = st.none() | st.sampled_from([1, HOUR, DAY + 1, 30 * DAY, 20_000 * DAY])
    questions = []
    for end, length, most in draw(
        st.lists(st.tuples(ends, lengths, st.integers(2, 200)), min_size=4, max_size=4)
    ):
        start = None if length is None else end - length
        questions.append(((start, end), most, most // 2))
    return PictureCase(servers, questions)


@pytest.mark.slow
@settings(max_examples=few_examples())
@given(case=picture_cases())
def test_every_step_gap_and_bin_follows_from_the_rows(case: PictureCase) -> None:
    # The third server makes the snapshot as of AS_OF; it is not asked about.
    servers = {**case.servers, "c": [(AS_OF, 1)]}
    observed = [(name, at, n) for name, of_one in servers.items() for at, n in of_one]
    with tempfile.TemporaryDirectory() as directory:
        path = str(build_in(Path(directory), map(server, servers), observed))
        with closing(open_file(path)) as snapshot:
            for window, most_steps, most_bins in case.questions:
                check_timeline(snapshot, case.servers, window, most_steps)
                bins = compute_distribution(ask(snapshot, window), most_bins).to_json()
                expected = compute_distribution_naively(case.servers, window, most_bins)
                assert read_figures(json.loads(bins)) == expected
                check_step_chart(snapshot, case.servers, window, most_steps)


def check_timeline(
    snapshot: SnapshotFile, servers: Servers, window: tuple[int | None, int], most: int
) -> None:
    """Compare a timeline, unless its months would be too many."""
    for zone in ("UTC", "Europe/Berlin"):
        try:
            document = compute_timeline(ask(snapshot, window, zone), most).to_json()
        except UsageError:  # its months are too many
            continue
        expected = compute_timeline_naively(servers, window, most, AS_OF, ZoneInfo(zone))
        assert read_figures(json.loads(document)) == expected


def ask(snapshot: SnapshotFile, window: tuple[int | None, int], zone: str = "UTC") -> Question:
    """Return the question about the first two servers in a window."""
    start, end = window
    chosen = Window(BEFORE_ALL if start is None else start, end)
    return Question(snapshot, list(snapshot.iter_servers())[:2], chosen, ZoneInfo(zone))


def check_step_chart(
    snapshot: SnapshotFile, servers: Servers, window: tuple[int | None, int], most: int
) -> None:
    """Check that the steps of a chart cover the window and have the averages of their rows."""
    question = ask(snapshot, window)
    query = HistoryQuery(question.window, "UTC")
    lines = compute_step_chart(question, query, None, most).first
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


ZONES = [
    *("UTC", "Europe/Berlin", "America/Havana", "America/Santiago", "Asia/Kathmandu"),
    "Australia/Lord_Howe",  # its clock changes by half an hour
]
STEPS: list[GrowthStepName] = ["day", "week", "month"]
START, END = 1_741_000_000_000, 1_764_000_000_000
"""2025-03-03 to 2025-11-24: clocks go forward and back."""


def draw_rows() -> dict[str, list[Row]]:
    """Draw rows of a server around changes of clocks, and of some with few."""
    drawn = random.Random(5)  # noqa: S311 - cases are drawn from a seed
    quarter = DAY // 96
    regular = [
        at
        for middle in (1_743_292_800_000, 1_757_203_200_000, 1_761_436_800_000)
        for at in range(middle - 3 * DAY, middle + 3 * DAY, quarter)
        if at % (5 * DAY) > DAY
    ]
    sparse = [drawn.randrange(START, END) for _ in range(40)]
    return {
        "regular": [(at, drawn.choice([0, 3, at // DAY % 50])) for at in regular],
        "sparse": sorted(dict.fromkeys(sparse, 2**53 - 1).items()),
        # Hours are listed for periods of 364 days.
        "edge": [(56 * 364 * DAY + at, n) for at, n in ((-1, 5), (0, 6), (1, 7), (2, 8), (3, 9))],
        # Doubles see equal averages at 12:00, 13:00 and 14:00.
        "close": [
            (1_750_248_000_000 + hour * DAY // 24 + at, 2**53 - (2 if at < less else 1))
            for hour, less, count in ((0, 1, 4), (1, 0, 4), (2, 3, 8))
            for at in range(count)
        ],
        "last": [(END, 4)],
        "silent": [],
    }


ROWS = draw_rows()


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SnapshotFile]:
    observed = [(name, at, n) for name, rows in ROWS.items() for at, n in rows]
    path = build_in(tmp_path_factory.mktemp("local"), map(server, ROWS), observed)
    with closing(open_file(str(path))) as file:
        yield file


@st.composite
def windows(draw: st.DrawFn) -> Window:
    """Draw a window that may begin or end with a step, or at an observation."""
    instants = [at for at, _ in ROWS["regular"]]
    midnights = [1_743_202_800_000, 1_761_429_600_000, 1_757_217_600_000, 1_761_436_800_000]
    periods = [at for at, _ in ROWS["edge"]]
    edges = st.sampled_from([START, END, *midnights, *periods]) | st.sampled_from(instants)
    start, end = sorted({draw(edges), draw(edges), END + draw(st.integers(1, DAY))})[:2]
    return Window(draw(st.sampled_from([start, start, BEFORE_ALL])), end)


@pytest.mark.slow
@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(window=windows(), zone=st.sampled_from(ZONES), step=st.sampled_from(STEPS))
def test_growth_follows_from_the_rows(
    snapshot: SnapshotFile, window: Window, zone: str, step: GrowthStepName
) -> None:
    question = Question(snapshot, [*snapshot.iter_servers()], window, ZoneInfo(zone))
    found = json.loads(compute_growth(question, step).to_json())

    start = None if window.start == BEFORE_ALL else window.start
    first = min(at for rows in ROWS.values() for at, _ in rows)
    for shown in found["servers"]:
        rows, clock = ROWS[shown["serverId"]], ZoneInfo(zone)
        values = [n for _, n in select(rows, window)]
        steps = split_naively(rows, (start, window.end), step, clock, first)
        days = split_naively(rows, (start, window.end), "day", clock, first)
        assert shown["steps"] == describe_growth_steps(steps)
        assert shown["playersPerWeek"] == compute_trend_naively(days)
        assert shown["growth"] == compute_growth_naively(values)
        assert shown["sampleCount"] == len(values)
        assert shown["averagePlayers"] == compute_mean(values)
        change, coverage = compute_change_naively(rows, (start, window.end))
        assert (shown["change"], shown["previousCoverage"]) == (change, coverage)
        earlier = [] if start is None else select(rows, (2 * start - window.end, start))
        before = compute_growth_naively([n for _, n in earlier])
        assert shown["previousGrowth"] == (None if start is None else before)


@pytest.mark.slow
@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(window=Window(ROWS["edge"][0][0], END), zone="UTC", by="week-hour")
@example(window=Window(START, END), zone="UTC", by="week-hour")
@example(window=Window(START, END), zone="Europe/Berlin", by="hour")
@given(window=windows(), zone=st.sampled_from(ZONES), by=st.sampled_from(get_args(HourKey)))
def test_peak_hours_follow_from_the_rows(
    snapshot: SnapshotFile, window: Window, zone: str, by: HourKey
) -> None:
    question = Question(snapshot, [*snapshot.iter_servers()], window, ZoneInfo(zone))
    found = json.loads(compute_peak_hours(question, by).to_json())

    for shown in found["servers"]:
        cells: dict[tuple[int | None, int | None], list[Fraction]] = {
            (weekday, hour): []
            for weekday in ([None] if by == "hour" else range(1, 8))
            for hour in ([None] if by == "weekday" else range(24))
        }
        for at, n in select(ROWS[shown["serverId"]], window):
            clock = read_clock(at, ZoneInfo(zone))
            weekday = None if by == "hour" else clock.isoweekday()
            cells[weekday, None if by == "weekday" else clock.hour].append(Fraction(n))
        assert shown["cells"] == [
            {
                "weekday": weekday,
                "hour": hour,
                "sampleCount": len(values),
                "averagePlayers": float(mean(values)) if len(values) > 3 else None,
                "medianPlayers": float(median(values)) if len(values) > 3 else None,
            }
            for (weekday, hour), values in cells.items()
        ]
        averages = {place: mean(values) for place, values in cells.items() if len(values) > 3}
        for key, choose in (("busiest", max), ("quietest", min)):
            extreme = choose(averages.values(), default=None)
            places = [place for place, average in averages.items() if average == extreme]
            expected = {"weekday": places[0][0], "hour": places[0][1]} if places else None
            assert shown[key] == expected
        is_known = by != "weekday" and 10 * len(averages) >= 8 * len(cells)
        assert shown["restartPlayerHours"] == (float(min(averages.values())) if is_known else None)


class Fleet(NamedTuple):
    """The rows of servers around a change of the clocks, and a question about them."""

    servers: Servers
    window: tuple[int, int]
    step: str
    zone: str


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Draw servers with gaps; they share some noise, are constant or have huge counts."""
    interval = draw(st.sampled_from([30, 60, 90])) * MINUTE
    middle = draw(st.sampled_from(CHANGES))
    step, days = draw(st.sampled_from([("1h", 16), ("3h", 16), ("day", 40)]))
    start, end = middle - days * DAY, middle + draw(st.integers(1, days)) * DAY + 1
    drawn = random.Random(draw(st.integers(1, 1000)))  # noqa: S311 - cases are drawn from a seed
    noise = [drawn.randrange(9) for _ in range(start, end, interval)]
    first = start + draw(st.sampled_from([0, 1]))
    servers = {}
    for name in "abc":
        kind = draw(st.sampled_from(["like", "unlike", "constant", "huge"]))
        of_kind: Callable[[int], int] = {
            "like": lambda one: one + drawn.randrange(4),
            "unlike": lambda one: 20 - one + drawn.randrange(4),
            "constant": lambda _: 5,
            "huge": lambda one: one * (LARGEST // 9),
        }[kind]
        gaps = draw(st.lists(st.integers(0, len(noise)), max_size=3))
        servers[name] = [
            (first + at * interval, of_kind(one))
            for at, one in enumerate(noise)
            if not any(gap <= at < gap + 2 * DAY // interval for gap in gaps)
        ]
    return Fleet(servers, (start, end), step, draw(st.sampled_from(["UTC", "Europe/Berlin"])))


@settings(max_examples=few_examples(), deadline=None)
@given(fleets())
def test_correlations_follow_from_the_rows(fleet: Fleet) -> None:
    observed = [(name, at, n) for name, rows in fleet.servers.items() for at, n in rows]
    with tempfile.TemporaryDirectory() as directory:
        path = str(build_in(Path(directory), map(server, fleet.servers), observed))
        with closing(open_file(path)) as snapshot:
            zone, window = ZoneInfo(fleet.zone), Window(*fleet.window)
            question = Question(snapshot, [*snapshot.iter_servers()], window, zone)
            found = json.loads(compute_together(question, parse_step(fleet.step)).to_json())

    deviations = {name: find_deviations_naively(fleet, name) for name in fleet.servers}
    expected = []
    for pair in combinations(fleet.servers, 2):
        first, second = (deviations[name] for name in pair)
        both = [at for at in first if at in second]
        ranks = [rank_naively([one[at] for at in both]) for one in (first, second)]
        covered = min(compute_coverage(fleet.servers[name], fleet.window) for name in pair)
        reason = None
        if covered < Fraction(8, 10):
            reason = "coverage"
        elif len(both) < 30:
            reason = "steps"
        elif any(len(set(one)) == 1 for one in ranks):
            reason = "constant"
        correlation = None if reason else correlate_naively(*ranks)
        expected.append((list(pair), len(both), correlation, reason))
    expected.sort(key=lambda pair: (pair[2] is None, -(pair[2] or 0)))
    assert [tuple(pair.values()) for pair in found["pairs"]] == expected


@settings(max_examples=few_examples(), deadline=None)
@given(fleets(), st.integers(0, 60))
def test_what_is_left_of_a_day_follows_from_the_rows(fleet: Fleet, day: int) -> None:
    observed = [(name, at, n) for name, rows in fleet.servers.items() for at, n in rows]
    if not observed:
        return
    as_of, zone = max(at for _, at, _ in observed), ZoneInfo(fleet.zone)
    after = min(fleet.window[0] + day * DAY, as_of)
    with tempfile.TemporaryDirectory() as directory:
        path = str(build_in(Path(directory), map(server, fleet.servers), observed))
        with closing(open_file(path)) as snapshot:
            window = Window(as_of - DAY, as_of)
            question = Question(snapshot, [*snapshot.iter_servers()], window, zone)
            found = json.loads(compute_growth(question, "day", after).to_json())

    edges = list_edges(after, after + 92 * DAY, "day", zone)
    for shown in found["servers"]:
        averages = []
        for days in (0, 7, 30, 90):
            start, end = edges[days : days + 2]
            values = [n for at, n in fleet.servers[shown["serverId"]] if start <= at < end]
            covered = min(
                compute_coverage(fleet.servers[shown["serverId"]], (start - 1, end - 1)),
                Fraction(as_of - start, end - start),
            )
            averages.append(Fraction(sum(values), len(values)) if 5 * covered >= 4 else None)
        assert shown["remaining"] == [
            {
                "days": days,
                "from": format_naively(edges[days]),
                "to": format_naively(edges[days + 1]),
                "averagePlayers": None if average is None else float(average),
                "share": float(average / averages[0])
                if average is not None and averages[0]
                else None,
            }
            for days, average in zip((0, 7, 30, 90), averages, strict=True)
        ]


def find_deviations_naively(fleet: Fleet, name: str) -> dict[int, Fraction]:
    """Return the deviations of whole steps from the mean of their hour of the week."""
    zone = ZoneInfo(fleet.zone)
    hours: dict[tuple[int, int], dict[int, Fraction]] = {}
    for step in split_naively(fleet.servers[name], fleet.window, fleet.step, zone):
        if step.values and not step.is_partial:
            clock = read_clock(step.whole[0], zone)
            average = Fraction(sum(step.values), len(step.values))
            hours.setdefault((clock.isoweekday(), clock.hour), {})[step.start] = average
    return {
        at: average - mean(averages.values())
        for averages in hours.values()
        if len(averages) > 1
        for at, average in averages.items()
    }


def rank_naively(values: Sequence[Fraction]) -> list[Fraction]:
    """Return the ranks of values; equal ones share the mean of theirs."""
    ranked = sorted(values)
    return [Fraction(bisect_left(ranked, one) + bisect_right(ranked, one) + 1, 2) for one in values]


def correlate_naively(first: Sequence[Fraction], second: Sequence[Fraction]) -> float:
    """Return Pearson's correlation, with one division and one square root."""
    ones, others = ([value - mean(values) for value in values] for values in (first, second))
    product = sum(map(mul, ones, others), Fraction())
    squares = sum(map(mul, ones, ones)) * sum(map(mul, others, others))
    return copysign(sqrt(product**2 / squares), product)


def test_steps_that_begin_before_1970_are_not_observed_until_then(build: Build) -> None:
    hour = DAY // 24
    rows = [*(("a", at * hour, 5) for at in range(25)), ("b", 300 * DAY, 5), ("b", 301 * DAY, 5)]

    with closing(open_file(build(map(server, "abc"), rows))) as file:
        servers, window = list(file.iter_servers()), Window(BEFORE_ALL, 301 * DAY)
        found = compute_growth(Question(file, servers, window, ZoneInfo("America/Havana")), "month")

    # December of 1969 ends five hours after it in UTC; `c` has no observation.
    assert [one.steps[0].observed_share for one in found.servers] == [5 / (31 * 24), 0, 0]
