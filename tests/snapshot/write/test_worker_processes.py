"""Do jobs in several processes; `fleet/test_snapshot_failures.py` kills those of a command."""

import os
import shutil
import signal
from collections.abc import Callable
from multiprocessing.connection import Pipe
from threading import Thread
from typing import Any

import pytest

from srvstat.contract.errors import OutputError
from srvstat.snapshot.write import worker_processes
from srvstat.snapshot.write.second_process import spawn_python
from srvstat.snapshot.write.worker_processes import WorkerError, do_jobs, serve

Report = Callable[[int], None]


def square(number: int, report: Report) -> tuple[int, int]:
    report(number)
    return number**2, os.getpid()


def fail(number: object, _report: Report) -> None:
    if number == 1:
        raise OutputError("shard: No space left on device")


def die(_number: int, _report: Report) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the processes are added."""
    ids: list[int] = []

    def spawn(*arguments: Any) -> int:
        ids.append(spawn_python(*arguments))
        return ids[-1]

    monkeypatch.setattr(worker_processes, "spawn_python", spawn)
    return ids


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_jobs_are_done_in_other_processes_which_then_end(started: list[int]) -> None:
    reports: list[int] = []

    found = dict(do_jobs(square, range(20), processes=2, report=reports.append))

    assert {item: result for item, (result, _) in found.items()} == {n: n**2 for n in range(20)}
    assert sorted(reports) == [*range(20)]
    assert {process for _, process in found.values()} <= set(started)
    assert not any(map(is_running, started))


def test_no_job_needs_no_process() -> None:
    assert not [*do_jobs(square, [], processes=2, report=print)]


def test_an_error_of_a_job_ends_all_processes(started: list[int]) -> None:
    with pytest.raises(OutputError, match="shard: No space left on device"):
        [*do_jobs(fail, range(3), processes=2, report=print)]
    assert len(started) == 2
    assert not any(map(is_running, started))


def test_a_killed_process_is_an_error() -> None:
    with pytest.raises(WorkerError, match="a process ended by SIGKILL"):
        [*do_jobs(die, [1], processes=1, report=print)]


def test_a_process_that_can_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")

    with pytest.raises(WorkerError, match="can't be started: No such file or directory"):
        [*do_jobs(square, [1], processes=1, report=print)]


def test_a_process_that_ends_at_once_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", shutil.which("false"))

    # It ends before it has read so much.
    with pytest.raises(WorkerError, match="a process ended with exit code 1"):
        [*do_jobs(fail, [bytes(9_000_000)], processes=1, report=print)]


def test_a_process_serves_until_the_other_one_ends() -> None:
    ours, theirs = Pipe()
    ends: list[int] = []
    with ours, theirs:
        serving = Thread(target=serve, args=(theirs, ends.append))
        serving.start()
        ours.send((square, 3))
        ours.send((fail, 1))

        messages = [ours.recv() for _ in range(3)]

        assert messages[:2] == [("rows", 3), ("result", (9, os.getpid()))]
        assert messages[2][0] == "error"
        assert isinstance(messages[2][1], OutputError)
        ours.close()
        serving.join()
    assert ends == [1]
