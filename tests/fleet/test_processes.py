"""Do jobs in several processes, also when one of them ends.

`fleet/test_fleet_shards.py` stops and kills the processes of a command.
"""

import os
import signal
from collections.abc import Callable

import pytest

from srvstat.contract.errors import OutputError
from srvstat.fleet.job import WorkerError, do_jobs

Report = Callable[[int], None]


def square(number: int, report: Report) -> tuple[int, int]:
    report(number)
    return number**2, os.getpid()


def fail(number: int, _report: Report) -> None:
    if number == 1:
        raise OutputError("shard: No space left on device")


def die(_number: int, _report: Report) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_jobs_are_done_in_other_processes_which_then_end() -> None:
    reports: list[int] = []

    found = dict(do_jobs(square, range(20), processes=2, report=reports.append))

    assert {item: result for item, (result, _) in found.items()} == {n: n**2 for n in range(20)}
    assert sorted(reports) == [*range(20)]
    children = {process for _, process in found.values()}
    assert os.getpid() not in children
    assert not any(map(is_running, children))


def test_an_error_of_a_job_is_raised() -> None:
    with pytest.raises(OutputError, match="shard: No space left on device"):
        [*do_jobs(fail, range(3), processes=2, report=print)]


def test_a_killed_process_is_an_error() -> None:
    with pytest.raises(WorkerError, match="a process ended by SIGKILL"):
        [*do_jobs(die, [1, 2], processes=2, report=print)]


def test_processes_that_can_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("multiprocessing.util.spawnv_passfds", refuse)

    with pytest.raises(WorkerError, match="can't be started: Resource temporarily unavailable"):
        [*do_jobs(square, [1], processes=1, report=print)]
