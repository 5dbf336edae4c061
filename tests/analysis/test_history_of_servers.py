"""The rows of a history, recomputed from random observations by the definitions alone."""

import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analysis.naive_steps import NaiveStep, split_naively
from conftest import AS_OF, DAY, Build, build_in, few_examples, server
from srvstat.analysis.history import aggregate_history, read_history
from srvstat.analysis.windows import divide_window, parse_step
from srvstat.contract.errors import SnapshotError
from srvstat.contract.requests import build_server_reference
from srvstat.contract.time import BEFORE_ALL, Window
from srvstat.documents.analysis import Aggregate, History
from srvstat.operations.answers import resolve_servers
from srvstat.snapshot.read.snapshot import SnapshotFile, open_file
from support.snapshots import forge

HOUR = DAY // 24
END = AS_OF + 28 * DAY
"""Noon of 2026-03-29, when the clocks in Berlin were put forward at 01:00 UTC."""

LARGEST = 2**53 - 1

UNEVEN = {
    "a": {END - 2: 1, END - 1: 0, END: LARGEST},
    "b": {END - 3: 8, END - 2: 1, END - 1: 4, END: 5},
    "c": {END: 1},
}
"""Means with three and four as denominators, and the median of four."""

Rows = dict[int, int]
Row = tuple[Any, ...]


class Case(NamedTuple):
    """The rows of each server, and a question."""

    servers: dict[str, Rows]
    window: Window
    step: str
    zone: str
    aggregate: Aggregate


@st.composite
def cases(draw: st.DrawFn) -> Case:
    step, longest = draw(st.sampled_from([("1h", 3 * DAY), ("6h", 40 * DAY), ("1d", 70 * DAY)]))
    zone = draw(st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]))
    ends = st.sampled_from([END, END - DAY // 2, END - HOUR // 2, END + DAY, END - 9 * DAY - 1])
    end = draw(ends)
    start = draw(st.integers(end - longest, end - 1) | st.just(BEFORE_ALL))
    values = st.integers(0, 3) | st.integers(LARGEST - 3, LARGEST)
    edges = [at + offset for at in (start, end, END - DAY) for offset in (0, 1, HOUR, HOUR + 1)]
    instants = st.integers(end - longest, END) | st.sampled_from(
        [at for at in edges if end - longest <= at <= END]
    )
    rows = st.dictionaries(instants, values, max_size=30)
    servers = {"a": draw(rows), "b": draw(rows), "c": {END: 1}}
    return Case(servers, Window(start, end), step, zone, draw(st.sampled_from(get_args(Aggregate))))


@pytest.mark.slow
@settings(max_examples=few_examples())
@given(case=cases())
@example(case=Case(UNEVEN, Window(END - 2 * HOUR, END), "1h", "UTC", "mean"))
@example(case=Case(UNEVEN, Window(END - 2 * HOUR, END), "1h", "UTC", "median"))
@example(case=Case({"c": {END: 1}}, Window(BEFORE_ALL, END - 1), "1d", "UTC", "max"))
def test_every_row_follows_from_the_observations(case: Case) -> None:
    observed = [(name, at, n) for name, of_one in case.servers.items() for at, n in of_one.items()]
    with tempfile.TemporaryDirectory() as directory:
        path = str(build_in(Path(directory), map(server, case.servers), observed))
        with closing(open_file(path)) as snapshot:
            servers = list(snapshot.iter_servers())
            zone = ZoneInfo(case.zone)
            divided = divide_window(snapshot, servers, case.window, parse_step(case.step), zone)
            found = list(read_history(snapshot, servers, case.window))
            steps = list(aggregate_history(snapshot, servers, divided, case.aggregate))
            sums = aggregate_history(snapshot, servers, divided, case.aggregate, is_sum=True)

            assert found == list(select_naively(case))
            assert steps == list(aggregate_naively(case))
            assert list(sums) == list(sum_naively(case))


def select_naively(case: Case) -> Iterator[Row]:
    start, end = case.window
    for name, rows in case.servers.items():
        yield from ((name, at, rows[at]) for at in sorted(rows) if start < at <= end)


def split(case: Case, name: str) -> list[NaiveStep]:
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


def aggregate_naively(case: Case) -> Iterator[Row]:
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


def sum_naively(case: Case) -> Iterator[Row]:
    for steps in zip(*(split(case, name) for name in case.servers), strict=True):
        parts = [step.values for step in steps if step.values]
        total = sum(Fraction(compute_naively(players, case.aggregate)) for players in parts)
        count = sum(map(len, parts))
        (start, end, (first, last), *_) = steps[0]
        # A server is missing between its first and its last observation only.
        shares = [
            step.share
            for step, rows in zip(steps, case.servers.values(), strict=True)
            if rows
            and (min(rows) < last or min(rows) == end == case.window.end)
            and max(rows) >= first
        ]
        share = float(min(shares, default=0))
        value = float(total) if parts else None
        yield start, end, count, len(parts), value, share, share < 0.9


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


def read_observations(snapshot: SnapshotFile) -> History:
    return read_history(snapshot, list(snapshot.iter_servers()), Window(AS_OF - 90 * DAY, AS_OF))


def read_steps(snapshot: SnapshotFile) -> History:
    servers, window = list(snapshot.iter_servers()), Window(AS_OF - 90 * DAY, AS_OF)
    steps = divide_window(snapshot, servers, window, parse_step("1d"), ZoneInfo("UTC"))
    return aggregate_history(snapshot, servers, steps)


@pytest.mark.parametrize("read", [read_observations, read_steps])
def test_rows_are_read_while_they_are_iterated_over(
    read: Callable[[SnapshotFile], History], build: Build
) -> None:
    path = build(
        [server("a"), server("b")],
        [(name, AS_OF - day * DAY, day) for day in range(90) for name in "ab"],
    )
    with closing(open_file(path)) as snapshot:
        expected = list(read(snapshot))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE blocks SET players = x'77' WHERE server_block = 2000000000")
    with closing(open_file(path)) as snapshot:
        rows = iter(read(snapshot))
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
        window = Window(BEFORE_ALL, AS_OF)
        with pytest.raises(SnapshotError):
            divide_window(snapshot, servers, window, parse_step("1d"), ZoneInfo("UTC"))
