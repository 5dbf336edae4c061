"""Use the Python API with wrong types, after close, and from several threads."""

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
from srvstat.cli.demo import IDS

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
    lambda snapshot: snapshot.servers(),
    lambda snapshot: snapshot.stats(["nobody"]),
    lambda snapshot: snapshot.top(range="8x"),
    lambda snapshot: snapshot.growth(["harbor-city"]),
    lambda snapshot: snapshot.peak_hours(["harbor-city"]),
    lambda snapshot: snapshot.history(["harbor-city"]),
    lambda snapshot: snapshot.integrity(["harbor-city"]),
    lambda snapshot: snapshot.as_of,
    lambda snapshot: snapshot.root,
    lambda snapshot: snapshot.__enter__(),
]


@pytest.mark.parametrize("value", NOT_TEXT, ids=type)
def test_a_value_of_a_wrong_type_is_an_invalid_request(demo_snapshot: str, value: Any) -> None:
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


def test_a_wrong_type_outside_the_contract_is_a_type_error(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        for identifiers in ("ab", b"ab", 5, None, 5.5, object()):
            with pytest.raises(TypeError, match=r"identifiers: must be a list$"):
                snapshot.compare(identifiers)  # type: ignore[arg-type] # wrong on purpose
        for at in (5, 1_772_366_400_000, b"2026-01-31T12:00Z", object()):
            with pytest.raises(TypeError, match="at: must be a string"):
                snapshot.compare(["harbor-city", "old-guard"], at=at)  # type: ignore[arg-type] # as above
    with pytest.raises(TypeError):
        srvstat.open_snapshot(5)  # type: ignore[arg-type] # as above


def test_every_use_after_close_is_an_error(demo_snapshot: str) -> None:
    snapshot = srvstat.open_snapshot(demo_snapshot)
    snapshot.get("harbor-city")
    snapshot.compare(["harbor-city", "old-guard"])

    snapshot.close()
    snapshot.close()

    for use in USES:
        with pytest.raises(ValueError, match="the snapshot is closed"):
            use(snapshot)


def test_an_exception_in_a_with_block_closes_the_snapshot(demo_snapshot: str) -> None:
    with (
        pytest.raises(srvstat.ServerNotFoundError, match="no id nobody"),
        srvstat.open_snapshot(demo_snapshot) as snapshot,
    ):
        snapshot.get("nobody")

    with pytest.raises(ValueError, match="the snapshot is closed"):
        snapshot.get("harbor-city")


def test_threads_may_share_a_snapshot(demo_snapshot: str) -> None:
    questions = list(islice(permutations(IDS, 3), 100))
    with srvstat.open_snapshot(demo_snapshot) as alone:
        expected = [alone.compare(question, range="90d").to_json() for question in questions]

    with srvstat.open_snapshot(demo_snapshot) as shared, ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda q: shared.compare(q, range="90d").to_json(), questions)

        assert list(answers) == expected


def compare_until_error(snapshot: srvstat.Snapshot, started: Event) -> tuple[set[bytes], str]:
    """Return the answers to one question and the error that ended them."""
    answers = set()
    try:
        while True:
            answers.add(snapshot.compare(["harbor-city", "night-shift"]).to_json())
            started.set()
    except Exception as error:  # noqa: BLE001 - the test checks which error it is
        return answers, repr(error)


def test_close_waits_for_the_calls_of_other_threads(demo_snapshot: str) -> None:
    started = Event()
    with ThreadPoolExecutor(4) as threads:
        snapshot = srvstat.open_snapshot(demo_snapshot)
        asking = [threads.submit(compare_until_error, snapshot, started) for _ in range(4)]
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
        _, error = compare_until_error(snapshot, Event())
    finally:
        signal.signal(signal.SIGALRM, before)

    assert error == "ValueError('the snapshot is closed')"


def test_an_iterable_of_identifiers_may_use_the_snapshot_in_another_thread(
    demo_snapshot: str,
) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot, ThreadPoolExecutor(1) as pool:
        names = (
            pool.submit(snapshot.get, name).result(30).data.id
            for name in ("harbor-city", "old-guard")
        )
        assert len(snapshot.compare(names).data) == 2  # type: ignore[arg-type] # any iterable works


def test_a_snapshot_cannot_be_copied_or_pickled(demo_snapshot: str) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        for make_copy in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="open it again"):
                make_copy(snapshot)
