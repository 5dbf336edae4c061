"""Answers recorded from one snapshot, replayed with it, an altered one and a later one."""

import json
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, Build, build_in, few_examples, server
from replay.exchanges import record_comparison, record_get
from srvstat.contract.requests import build_compare_request, build_server_reference
from srvstat.contract.time import DAYS, Range
from srvstat.documents.support import ReplayedExchange
from srvstat.operations import answers as operations
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.support.recordings import Exchange
from srvstat.support.replay import ReplaySettings, replay

HOUR = DAY // 24
NAMES = ("a", "b", "c")
Row = tuple[str, int, int]


def answer(snapshot: SnapshotFile, names: list[str], range: Range, at: int | None = None) -> bytes:
    request = build_compare_request(names, range=range)
    return operations.compare(snapshot, request, at=at).to_json()


def replay_all(path: str, exchanges: list[Exchange], **how: Any) -> tuple[ReplayedExchange, ...]:
    with closing(open_file(path)) as snapshot:
        return replay(snapshot, exchanges, ReplaySettings(**how)).exchanges


YEAR = 365 * DAY
INSTANTS = st.integers(-60, 0).map(lambda hours: AS_OF + hours * HOUR) | st.integers(
    AS_OF - 3 * DAY, AS_OF
)
OBSERVATIONS = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), INSTANTS | INSTANTS.map(lambda at: at - YEAR)),
    st.integers(0, 9),
    max_size=40,
)


def find_true_intervals(
    snapshot: SnapshotFile, rows: list[Row], range: Range, recorded: bytes, last: int
) -> list[tuple[int, int]]:
    """Find when an answer was true in two days, by asking at every instant that can change it."""
    within = 2 * DAY
    changes = {at + shift for _, at, _ in rows for shift in (0, DAYS[range] * DAY)}
    starts = sorted({last - within, *(at for at in changes if last - within < at <= last)})
    found: list[tuple[int, int]] = []
    for start, end in zip(starts, [*(at - 1 for at in starts[1:]), last], strict=True):
        if answer(snapshot, list(NAMES), range, start) == recorded:
            is_adjacent = found and found[-1][1] == start - 1
            found.append((found.pop()[0] if is_adjacent else start, end))
    return found


@settings(max_examples=few_examples())
@given(
    observations=OBSERVATIONS,
    range=st.sampled_from(["24h", "7d", "1y"]),
    at=INSTANTS,
    age=st.integers(0, DAY) | st.just(0),
)
def test_an_answer_matches_at_its_instant_and_a_search_finds_it(
    observations: dict[tuple[str, int], int], range: Range, at: int, age: int
) -> None:
    rows = [(name, instant, players) for (name, instant), players in observations.items()]
    with tempfile.TemporaryDirectory() as directory:
        records = [server(name, players={"current": 3}) for name in NAMES]
        path = str(build_in(Path(directory), records, [*rows, ("a", AS_OF - 4 * DAY, 1)]))
        with closing(open_file(path)) as snapshot:
            body = answer(snapshot, list(NAMES), range, at)
            rows.append(("a", AS_OF - 4 * DAY, 1))
            expected = find_true_intervals(snapshot, rows, range, body, at + age)
        exchange = record_comparison(NAMES, range, body, as_of=at, requested_at=at + age)
        (recorded,) = replay_all(path, [exchange])
        (searched,) = replay_all(path, [exchange], at="search")

    assert (recorded.class_, recorded.as_of, recorded.differences) == ("match", at, ())
    assert [(each.from_, each.to) for each in searched.true_during or ()] == expected
    assert any(start <= at <= end for start, end in expected)
    assert (searched.class_, searched.as_of, searched.differences) == ("match", expected[-1][1], ())


def list_rows() -> list[Row]:
    """Return three servers' counts of 40 days, every 6 hours; each instant has another value."""
    times = range(AS_OF - 40 * DAY, AS_OF + 1, DAY // 4)
    return [(name, at, (at // HOUR * 7 + ord(name)) % 101 + 50) for at in times for name in NAMES]


REQUESTS: list[tuple[list[str], Range]] = [
    (["a", "b"], "24h"),
    (["b", "a"], "7d"),
    (["b", "c"], "7d"),
    (["c", "a", "b"], "30d"),
    (["b", "c"], "1y"),
]


def record_requests(path: str) -> list[Exchange]:
    """Record comparisons of every kind, and every server."""
    with closing(open_file(path)) as snapshot:
        comparisons = [
            record_comparison(names, name, answer(snapshot, names, name), as_of=AS_OF)
            for names, name in REQUESTS
        ]
        details = [
            operations.get_server(snapshot, build_server_reference(name)).to_json()
            for name in NAMES
        ]
    return comparisons + [
        record_get(name, detail, as_of=AS_OF) for name, detail in zip(NAMES, details, strict=True)
    ]


def test_an_altered_observation_shows_in_exactly_the_answers_that_used_it(build: Build) -> None:
    records = [server(name, players={"current": 3}) for name in NAMES]
    recorded = record_requests(build(records, list_rows()))
    altered_at = AS_OF - 3 * DAY
    altered = build(
        records,
        [
            (name, at, 999 if (name, at) == ("a", altered_at) else was)
            for name, at, was in list_rows()
        ],
    )

    assert {each.class_ for each in replay_all(build(records, list_rows()), recorded)} == {"match"}
    found = [
        (each.class_, [difference.pointer for difference in each.differences])
        for each in replay_all(altered, recorded)
    ]
    expected = {1: "/data/1/", 3: "/data/1/"}
    figures = ["averagePlayers", "medianPlayers", "peakPlayers"]
    for number, (class_, pointers) in enumerate(found):
        assert class_ == ("differs" if number in expected else "match")
        place = expected.get(number)
        assert set(pointers) <= {f"{place}{figure}" for figure in figures}
        assert {f"{place}averagePlayers", f"{place}peakPlayers"} <= set(pointers) or not place


def test_a_search_finds_the_as_of_time_of_an_older_snapshot(build: Build) -> None:
    records = [server(name) for name in NAMES]
    older_as_of = AS_OF - 20 * 60_000
    rows = [*list_rows(), ("b", older_as_of - 7, 4), ("b", older_as_of + 9, 5)]
    older = build(
        records, [row for row in rows if row[1] <= older_as_of], "--as-of", str(older_as_of)
    )
    newer = build(records, rows)
    with closing(open_file(older)) as snapshot:
        body = answer(snapshot, ["a", "b", "c"], "30d")
    exchange = record_comparison(["a", "b", "c"], "30d", body, requested_at=AS_OF)
    never = record_comparison(
        ["a", "b", "c"], "30d", body.replace(b'"range":"30d","data"', b'"range":"7d","data"')
    )
    altered = json.loads(body)
    altered["data"][1]["peakPlayers"] += 1
    partly = record_comparison(["a", "b", "c"], "30d", json.dumps(altered).encode())
    found, never_found, partly_found = replay_all(newer, [exchange, never, partly], at="search")

    assert (found.class_, found.as_of) == ("match", older_as_of + 8)
    assert {each.class_ for each in found.differences} == {"current"}
    assert [(each.from_, each.to) for each in found.true_during or ()] == [
        (older_as_of - 7, older_as_of + 8)
    ]
    assert [each.server_id for each in found.servers or ()] == ["a", "b", "c"]
    assert (never_found.class_, never_found.true_during) == ("differs", ())
    assert all(not each.true_during for each in never_found.servers or ())
    assert (partly_found.class_, partly_found.true_during) == ("differs", ())
    assert [bool(each.true_during) for each in partly_found.servers or ()] == [True, False, True]
