"""Do jobs in several processes; none outlives the process that started it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Pipe
from threading import Thread

import pytest

from srvstat.contract.errors import OutputError
from srvstat.snapshot.write.worker_processes import WorkerError, do_jobs, serve

Report = Callable[[int], None]


pytestmark = pytest.mark.usefixtures("no_quick_srvstat")


def square(number: int, report: Report) -> tuple[int, int]:
    report(number)
    return number**2, os.getpid()


def fail(number: object, _report: Report) -> None:
    if number == 1:
        raise OutputError("shard: No space left on device")


def wait_or_die(number: int, _report: Report) -> None:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def has_child() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False


def test_jobs_are_done_in_other_processes_which_then_end() -> None:
    reports: list[int] = []

    found = dict(do_jobs(square, range(20), processes=2, report=reports.append))

    assert {item: result for item, (result, _) in found.items()} == {n: n**2 for n in range(20)}
    assert sorted(reports) == [*range(20)]
    assert os.getpid() not in {process for _, process in found.values()}
    assert not has_child()


def test_no_job_needs_no_process() -> None:
    assert not [*do_jobs(square, [], processes=2, report=print)]


def test_an_error_of_a_job_ends_all_processes() -> None:
    with pytest.raises(OutputError, match="shard: No space left on device"):
        [*do_jobs(fail, range(3), processes=2, report=print)]
    assert not has_child()


def test_a_killed_process_is_an_error_and_ends_the_others() -> None:
    with pytest.raises(WorkerError, match="a process ended by SIGKILL"):
        [*do_jobs(wait_or_die, range(2), processes=2, report=print)]
    assert not has_child()


def test_a_process_that_can_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")

    with pytest.raises(WorkerError, match="can't be started: No such file or directory"):
        [*do_jobs(square, [1], processes=1, report=print)]


def test_a_process_that_ends_at_once_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", shutil.which("false"))

    # It ends before it has read so much.
    with pytest.raises(WorkerError, match="a process ended with exit code 1"):
        [*do_jobs(fail, [bytes(9_000_000)], processes=1, report=print)]
    assert not has_child()


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


def test_processes_end_when_the_one_that_started_them_is_killed() -> None:
    program = f"""
import sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_worker_processes import do_jobs, report_and_wait
[*do_jobs(report_and_wait, range(2), processes=2, report=lambda _: print(flush=True))]
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as started:
        assert started.stdout
        assert started.stderr
        assert started.stdout.readline() + started.stdout.readline() == b"\n\n"
        started.kill()
        # The processes inherit stderr, which ends when all of them have ended.
        assert started.stderr.read() == b""


def report_and_wait(_number: int, report: Report) -> None:
    report(1)
    time.sleep(60)
