"""The differences between a recorded body and the recomputed one."""

import json
from collections.abc import Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Build, server
from srvstat.contract import wire
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.windows import Range
from srvstat.operations import answers as operations
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.support.comparing import (
    EXACT,
    MAX_DIFFERENCES,
    compare_bodies,
    is_number_equal,
    shorten_difference,
)
from srvstat.support.search import Instants, find_true_times, intersect

Found = list[tuple[str, str, str, str]]


def compare(recorded: bytes, recomputed: bytes, tolerance: str = "0") -> Found:
    """Return the pointer, the class and both values as JSON of each difference."""
    found = compare_bodies(recorded, recomputed, Decimal(tolerance))
    return [
        (
            each.pointer,
            each.class_,
            "absent" if each.absent_in == "recorded" else wire.encode(each.recorded).decode(),
            "absent" if each.absent_in == "recomputed" else wire.encode(each.recomputed).decode(),
        )
        for each in map(shorten_difference, found)
    ]


@pytest.mark.parametrize(
    ("recorded", "recomputed", "expected"),
    [
        (b'{"a":1}', b'{"a":1}', []),
        (b'{"a":2}', b'{"a":1}', [("/a", "value", "2", "1")]),
        (b'{"a":12.0}', b'{"a":12}', [("/a", "text", "12.0", "12")]),
        (b'{"a":1.2e1}', b'{"a":12}', [("/a", "text", "1.2e1", "12")]),
        (b"[0.10000000000000001]", b"[0.1]", [("/0", "text", "0.10000000000000001", "0.1")]),
        (b"[9007199254740993]", b"[9007199254740992]",
         [("/0", "value", "9007199254740993", "9007199254740992")]),
        (b"[9007199254740993.0]", b"[9007199254740992]",
         [("/0", "text", "9007199254740993.0", "9007199254740992")]),
        (b"[-0]", b"[0]", [("/0", "text", "-0", "0")]),
        (b"[1e999]", b"[1]", [("/0", "value", "1e999", "1")]),
        (b"[-1%s]" % (b"0" * 320), b"[1.5]", [("/0", "value", "-1" + "0" * 320, "1.5")]),
        (b"[true]", b"[1]", [("/0", "value", "true", "1")]),
        (b'["1"]', b"[1]", [("/0", "value", '"1"', "1")]),
        (b"[null]", b"[0]", [("/0", "value", "null", "0")]),
        (b"[[]]", b"[{}]", [("/0", "value", "[]", "{}")]),
        (b'{"a/b":{"~":[0,1]}}', b'{"a/b":{"~":[0,2]}}', [("/a~1b/~0/1", "value", "1", "2")]),
        (b'{"a":1,"b":null}', b'{"a":1}', [("/b", "value", "null", "absent")]),
        (b"[1]", b"[1,[2]]", [("/1", "value", "absent", "[2]")]),
        (b'{"data":[{"currentPlayers":4}]}', b'{"data":[{"currentPlayers":5}]}',
         [("/data/0/currentPlayers", "current", "4", "5")]),
        (b'{"data":{"players":{"current":4}}}', b'{"data":{"players":{"current":5}}}',
         [("/data/players/current", "current", "4", "5")]),
        (b'{"data":[{"currentPlayers":null}]}', b'{"data":[{"currentPlayers":5}]}',
         [("/data/0/currentPlayers", "value", "null", "5")]),
        (b"[1] \n", b"[1]", [("", "text", '"[1] \\n"', '"[1]"')]),
        (b'["\\u0041"]', b'["A"]', [("", "text", '"[\\"\\\\u0041\\"]"', '"[\\"A\\"]"')]),
        (b"<html>", b"[1]", [("", "value", '"<html>"', '"[1]"')]),
        (b"", b"[1]", [("", "value", '""', '"[1]"')]),
        (b"\xff", b"[1]", [("", "value", '"\\\\xff"', '"[1]"')]),
        (b'{"a":1,"a":1}', b'{"a":1}', [("", "value", '"{\\"a\\":1,\\"a\\":1}"', '"{\\"a\\":1}"')]),
        (b"[NaN]", b"[1]", [("", "value", '"[NaN]"', '"[1]"')]),
        (b'["\\ud800"]', b'["A"]', [("", "value", '"[\\"\\\\ud800\\"]"', '"[\\"A\\"]"')]),
    ],
)  # fmt: skip
def test_differences_have_a_pointer_and_a_class(
    recorded: bytes, recomputed: bytes, expected: Found
) -> None:
    assert compare(recorded, recomputed) == expected


@pytest.mark.parametrize(
    ("recorded", "tolerance", "expected"),
    [
        (b'{"a":12.4}', "0.1", []),
        (b'{"a":12.4000000001}', "0.1", [("/a", "value", "12.4000000001", "12.3")]),
        (b'{ "a": 12.4 }', "0.1", []),
        (b'{"a":12.30}', "0.1", [("/a", "text", "12.30", "12.3")]),
        (b'{"a":1e99999999999999999999}', "1", [("/a", "value", "1e99999999999999999999", "12.3")]),
        (b'{"a":null}', "1", [("/a", "value", "null", "12.3")]),
    ],
)
def test_numbers_within_the_tolerance_do_not_differ(
    recorded: bytes, tolerance: str, expected: Found
) -> None:
    assert compare(recorded, b'{"a":12.3}', tolerance) == expected


def test_a_search_compares_numbers_as_a_comparison_does() -> None:
    assert is_number_equal("12.0", "12")
    assert is_number_equal(repr(float(2**53)), repr(2**53 + 1))
    assert not is_number_equal(repr(2**53), repr(2**53 + 1))
    assert not is_number_equal("12.4", "12.3")
    assert is_number_equal("12.4", "12.3", Decimal("0.1"))


def test_hostile_bodies_have_few_and_short_differences() -> None:
    many = b"[" + b"1," * 100_000 + b"1]"
    deep = b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    long = b'{"a":"' + b"x" * 100_000 + b'"}'

    assert len(compare(many, b"[1]")) == MAX_DIFFERENCES
    assert [difference[:2] for difference in compare(deep, b'{"a":1}')] == [("", "value")]
    assert compare(long, b'{"a":1}') == [("/a", "value", f'"{"x" * 200}…"', "1")]
    assert len(str(compare(b"[" + long * 9 + b"]", b"[1]"))) < 1000


SCALAR = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=3)
KEY = st.text(alphabet="a~/ \u00e9", max_size=3)
VALUE: st.SearchStrategy[Any] = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3),
    max_leaves=8,
)


def list_nodes(value: Any, pointer: str = "") -> dict[str, str]:
    """Return each part of a value by its pointer: a scalar, or the kind of a container."""
    if isinstance(value, dict):
        steps = {key.replace("~", "~0").replace("/", "~1"): each for key, each in value.items()}
    elif isinstance(value, list):
        steps = {str(position): each for position, each in enumerate(value)}
    else:
        return {pointer: json.dumps(value)}
    nodes = {pointer: type(value).__name__}
    for step, each in steps.items():
        nodes |= list_nodes(each, f"{pointer}/{step}")
    return nodes


@given(VALUE, VALUE)
def test_the_topmost_different_parts_are_the_differences(recorded: Any, recomputed: Any) -> None:
    found = compare(json.dumps(recorded).encode(), wire.encode(recomputed))
    theirs, ours = list_nodes(recorded), list_nodes(recomputed)
    differing = {
        pointer for pointer in {**theirs, **ours} if theirs.get(pointer) != ours.get(pointer)
    }
    topmost = {
        pointer
        for pointer in differing
        if not any(pointer.startswith(f"{other}/") for other in differing)
    }

    assert sorted(each[0] for each in found if each[1] == "value") == sorted(topmost)


@given(VALUE, st.booleans())
def test_another_layout_of_a_value_is_a_difference_of_text(value: Any, is_sorted: bool) -> None:
    laid_out = json.dumps(value, indent=1, sort_keys=is_sorted).encode() + b"\n"

    assert [found[:2] for found in compare(laid_out, wire.encode(value))] == [("", "text")]


HOUR = DAY // 24
REFERENCE = ServerReference(identifier="a", by="id")
ANY = Decimal(2**53)


def answer(snapshot: SnapshotFile, range: Range, at: int) -> dict[str, Any]:
    servers = operations.resolve_servers(snapshot, [REFERENCE])
    (result,) = operations.compute_server_results(snapshot, servers, range, at=at)
    return result.model_dump()


def search(
    snapshot: SnapshotFile, searched: Instants, recorded: dict[str, Any], tolerance: Decimal = EXACT
) -> list[Instants]:
    request = CompareRequest.model_construct(servers=(REFERENCE,), range="24h")
    found, _ = find_true_times(snapshot, request, [recorded], searched, tolerance)
    return [(one.from_, one.to) for one in found]


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
    searched = (AS_OF - 2 * DAY, AS_OF)

    with closing(open_file(build([server("a")], WEEK))) as snapshot:
        recorded = answer(snapshot, "24h", AS_OF)
        assert search(snapshot, searched, recorded)
        assert search(snapshot, searched, {**recorded, **change}, ANY) == []
        for name in recorded.keys() & {"averagePlayers", "lowestPlayers", "growth", "sampleCount"}:
            fewer = {other: value for other, value in recorded.items() if other != name}
            assert search(snapshot, searched, fewer) == []


def test_no_other_value_equals_null(build: Build) -> None:
    searched = (AS_OF - 9, AS_OF + 9)

    with closing(open_file(build([server("a")], [("a", AS_OF, 3)]))) as snapshot:
        found = [
            search(snapshot, searched, answer(snapshot, "24h", at), ANY)
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
