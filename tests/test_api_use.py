"""The Python API under wrong types, after close, and with several threads."""

import copy
import pickle
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, permutations
from threading import Event
from typing import Any

import pytest

import srvstat
from srvstat.demo import IDS

DEEP: Any = []
for _ in range(100_000):
    DEEP = [DEEP]
NOT_TEXT: list[Any] = [5, 5.5, True, b"id", ["id"], {("a",): 1}, object(), DEEP]

USES: list[Callable[[srvstat.Snapshot], object]] = [
    lambda snapshot: snapshot.get("harbor-city"),
    lambda snapshot: snapshot.get("nobody"),
    lambda snapshot: snapshot.get("not valid"),
    lambda snapshot: snapshot.compare(["harbor-city", "old-guard"]),
    lambda snapshot: snapshot.compare([]),
    lambda snapshot: snapshot.as_of,
    lambda snapshot: snapshot.root,
    lambda snapshot: snapshot.__enter__(),
]


@pytest.mark.parametrize("value", NOT_TEXT, ids=type)
def test_a_value_of_another_type_is_an_invalid_request(demo_snapshot: str, value: Any) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        for ask in (
            lambda: snapshot.get(value),
            lambda: snapshot.get("harbor-city", by=value),
            lambda: snapshot.compare([value, "harbor-city"]),
            lambda: snapshot.compare(["harbor-city", "old-guard"], by=value),
            lambda: snapshot.compare(["harbor-city", "old-guard"], range=value),
        ):
            with pytest.raises(srvstat.InvalidRequestError, match="must be a string"):
                ask()


def test_what_the_contract_does_not_judge_is_a_type_error(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        for identifiers in ("ab", b"ab", 5, None, 5.5, object()):
            with pytest.raises(TypeError, match="identifiers: a list of texts is needed"):
                snapshot.compare(identifiers)  # type: ignore[arg-type] # the wrong type is the test
        for at in (5, 1_772_366_400_000, b"2026-01-31T12:00Z", object()):
            with pytest.raises(TypeError, match="at: a text is needed"):
                snapshot.compare(["harbor-city", "old-guard"], at=at)  # type: ignore[arg-type] # as above
    with pytest.raises(TypeError):
        srvstat.open_snapshot(5)  # type: ignore[arg-type] # as above


def test_a_closed_snapshot_answers_nothing_not_even_from_memory(demo_snapshot: str) -> None:
    snapshot = srvstat.open_snapshot(demo_snapshot)
    snapshot.get("harbor-city")
    snapshot.compare(["harbor-city", "old-guard"])

    snapshot.close()
    snapshot.close()

    for use in USES:
        with pytest.raises(ValueError, match="the snapshot is closed"):
            use(snapshot)


def test_an_exception_leaves_the_with_block_and_closes_the_snapshot(demo_snapshot: str) -> None:
    with (
        pytest.raises(srvstat.ServerNotFoundError, match="no id nobody"),
        srvstat.open_snapshot(demo_snapshot) as snapshot,
    ):
        snapshot.get("nobody")

    with pytest.raises(ValueError, match="the snapshot is closed"):
        snapshot.get("harbor-city")


def test_threads_that_share_a_snapshot_get_the_answers_of_one_thread(demo_snapshot: str) -> None:
    questions = list(islice(permutations(IDS, 3), 100))
    with srvstat.open_snapshot(demo_snapshot) as alone:
        expected = [alone.compare(question, range="90d").to_json() for question in questions]

    with srvstat.open_snapshot(demo_snapshot) as shared, ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda q: shared.compare(q, range="90d").to_json(), questions)

        assert list(answers) == expected


def ask_until_it_fails(snapshot: srvstat.Snapshot, started: Event) -> tuple[set[bytes], str]:
    """Return the answers to one question and the error that ended them."""
    answers = set()
    try:
        while True:
            answers.add(snapshot.compare(["harbor-city", "night-shift"]).to_json())
            started.set()
    except Exception as error:  # noqa: BLE001 - which error it is, is the test
        return answers, repr(error)


def test_close_lets_the_calls_of_other_threads_finish_or_refuses_them(demo_snapshot: str) -> None:
    started = Event()
    with ThreadPoolExecutor(4) as threads:
        snapshot = srvstat.open_snapshot(demo_snapshot)
        asking = [threads.submit(ask_until_it_fails, snapshot, started) for _ in range(4)]
        assert started.wait(30)
        snapshot.close()
        ends = [future.result(30) for future in asking]

    assert {error for _, error in ends} == {"ValueError('the snapshot is closed')"}
    assert len(set[bytes]().union(*(answers for answers, _ in ends))) == 1


def test_a_signal_handler_may_close_the_snapshot_during_a_call(demo_snapshot: str) -> None:
    snapshot = srvstat.open_snapshot(demo_snapshot)
    before = signal.signal(signal.SIGALRM, lambda *_: snapshot.close())
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        _, error = ask_until_it_fails(snapshot, Event())
    finally:
        signal.signal(signal.SIGALRM, before)

    assert error == "ValueError('the snapshot is closed')"


def test_identifiers_may_be_found_by_asking_the_same_snapshot_in_another_thread(
    demo_snapshot: str,
) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot, ThreadPoolExecutor(1) as pool:
        names = (
            pool.submit(snapshot.get, name).result(30).data.id
            for name in ("harbor-city", "old-guard")
        )
        assert len(snapshot.compare(names).data) == 2  # type: ignore[arg-type] # any iterable works


def test_a_snapshot_is_neither_copied_nor_pickled(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        for make_copy in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="open it again"):
                make_copy(snapshot)
