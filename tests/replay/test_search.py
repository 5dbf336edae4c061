"""Find when a recorded result was true."""

import operator
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Build, server
from srvstat.contract.requests import ServerReference
from srvstat.contract.time import Range
from srvstat.operations import answers as operations
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.support.search import Instants, find_true_intervals, intersect

HOUR = DAY // 24
REFERENCE = ServerReference(identifier="a", by="id")


class Case(NamedTuple):
    """Observations, the limits of a search, and the instant of the recorded result."""

    range: Range
    players: dict[int, int]
    earliest: int
    latest: int
    recorded_at: int


CONSTANT = Case(
    "24h", {AS_OF - hour * HOUR: 7 for hour in range(80)}, AS_OF - 2 * DAY, AS_OF, AS_OF
)


def answer(snapshot: SnapshotFile, range: Range, at: int) -> dict[str, Any]:
    (result,) = operations.compute_results(snapshot, [REFERENCE], range, at=at)
    return result.model_dump()


def search(
    snapshot: SnapshotFile,
    case: Case,
    recorded: dict[str, Any],
    is_equal: Callable[[Any, Any], bool] = operator.eq,
) -> list[Instants]:
    (row,) = operations.resolve_servers(snapshot, [REFERENCE])
    return find_true_intervals(
        snapshot, row, recorded, case.range, case.earliest, case.latest, is_equal
    )


WEEK = [("a", AS_OF - hour * HOUR, hour % 5) for hour in range(200)]


@pytest.mark.parametrize(
    "change",
    [
        {"growth": None},
        {"growth": {"players": 1}},
        {"growth": {"players": 1, "percentage": "50"}},
        {"sampleCount": None},
        {"sampleCount": "24"},
        {"growth": {"players": True, "percentage": None}},
        {"averagePlayers": [2]},
        {"peakPlayers": {}},
    ],
    ids=repr,
)
def test_a_malformed_result_was_never_true(change: dict[str, Any], build: Build) -> None:
    case = CONSTANT._replace(players={at: players for _, at, players in WEEK})

    with closing(open_file(build([server("a")], WEEK))) as snapshot:
        recorded = answer(snapshot, "24h", AS_OF)
        assert search(snapshot, case, recorded)
        assert search(snapshot, case, {**recorded, **change}, lambda *_: True) == []
        for name in recorded.keys() & {"averagePlayers", "lowestPlayers", "growth", "sampleCount"}:
            fewer = {other: value for other, value in recorded.items() if other != name}
            assert search(snapshot, case, fewer) == []


def test_no_other_value_equals_null(build: Build) -> None:
    case = CONSTANT._replace(earliest=AS_OF - 9, latest=AS_OF + 9)

    with closing(open_file(build([server("a")], [("a", AS_OF, 3)]))) as snapshot:
        found = [
            search(snapshot, case, answer(snapshot, "24h", at), lambda *_: True)
            for at in (AS_OF - 1, AS_OF)
        ]

    assert found == [[(AS_OF - 9, AS_OF - 1)], [(AS_OF, AS_OF + 9)]]


@st.composite
def draw_intervals(draw: st.DrawFn) -> list[Instants]:
    ends = sorted(draw(st.sets(st.integers(0, 40), max_size=12)))
    return list(zip(ends[::2], ends[1::2], strict=False))


@given(lists=st.lists(draw_intervals(), min_size=1, max_size=4))
def test_the_intersection_holds_the_instants_of_all_lists(lists: list[list[Instants]]) -> None:
    common = intersect(lists)

    assert list_instants(common) == sorted(set.intersection(*map(set, map(list_instants, lists))))


def list_instants(intervals: Sequence[Instants]) -> list[int]:
    return [at for start, end in intervals for at in range(start, end + 1)]


def test_the_intersection_of_no_lists_is_empty() -> None:
    assert intersect([]) == []
