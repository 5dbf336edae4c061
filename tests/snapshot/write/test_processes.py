"""Compute the same results in several processes as in one, also when one of them ends.

`fleet/test_snapshot_failures.py` stops and kills the processes of a command.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from operator import call
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import AS_OF, Cli, csv, few_examples, ndjson, server
from srvstat.contract.errors import OutputError
from srvstat.snapshot.write import intake, processes, store
from srvstat.snapshot.write.processes import SecondProcess, WorkerError, do_jobs
from support.signals import restore_signals

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


@pytest.fixture(scope="module")
def second() -> Iterator[SecondProcess]:
    """Return a second process that runs."""
    with pytest.MonkeyPatch.context() as patch, SecondProcess() as process:
        patch.setattr(processes, "count_cores", lambda: 2)
        process.start()
        find_second(process)
        yield process


def find_second(process: SecondProcess) -> int:
    """Return the id of the second process once it computes, too."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for _, found in process.compute(call, [os.getpid] * 9):
            if found != os.getpid():
                return found
    pytest.fail("no second process")


@settings(max_examples=few_examples(), deadline=None)
@given(
    items=st.lists(st.binary(max_size=9).map(lambda one: one * 30_000) | st.text(), max_size=9),
    stop=st.integers(0, 9),
)
def test_results_are_in_order_wherever_they_are_computed(
    second: SecondProcess, items: list[bytes | str], stop: int
) -> None:
    # What is not taken from one iterator does not disturb the next one.
    for _ in zip(range(stop), second.compute(len, items), strict=False):
        pass

    assert list(second.compute(len, items)) == [(item, len(item)) for item in items]


def test_errors_are_raised_after_the_results_before_them(second: SecondProcess) -> None:
    def read() -> Iterator[str]:
        yield from "1234"
        raise OSError("cut off")

    found = second.compute(int, read())
    assert [next(found)[1] for _ in range(4)] == [1, 2, 3, 4]
    with pytest.raises(OSError, match="cut off"):
        next(found)

    found = second.compute(int, "12x4y")
    assert [next(found)[1] for _ in range(2)] == [1, 2]
    with pytest.raises(ValueError, match="'x'"):
        next(found)


@pytest.mark.parametrize("at", [0, 20])
def test_work_continues_when_the_second_process_is_killed(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "count_cores", lambda: 2)
    with SecondProcess() as process:
        process.start()
        child = find_second(process)

        def read() -> Iterator[bytes]:
            for number in range(40):
                if number == at:
                    os.kill(child, signal.SIGKILL)
                yield bytes(number * 50_000)

        assert [size for _, size in process.compute(len, read())] == [*range(0, 2_000_000, 50_000)]


def test_processes_that_can_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(processes, "count_cores", lambda: 2)
    monkeypatch.setattr("multiprocessing.util.spawnv_passfds", refuse)

    with SecondProcess() as process:
        process.start()
        assert list(process.compute(len, ["a", "bc"])) == [("a", 1), ("bc", 2)]
    with pytest.raises(WorkerError, match="can't be started: Resource temporarily unavailable"):
        [*do_jobs(square, [1], processes=1, report=print)]


def test_one_core_computes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= processes.count_cores() <= (os.cpu_count() or 1)
    monkeypatch.setattr(processes, "count_cores", lambda: 1)
    with SecondProcess() as process:
        process.start()
        assert list(process.compute(call, [os.getpid])) == [(os.getpid, os.getpid())]


def write_sources() -> list[str]:
    """Write sources of many blocks, with rejects and conflicts, and return a command's options."""
    rows = [(f"srv-{at % 7}", AS_OF - at // 9 * 1000, at % 300) for at in range(60_000)]
    data = csv(rows)
    middle = data.index(b"\n", len(data) // 2) + 1
    odd = b'"srv-1",5,5\nsrv-1,5,6\nx\n'
    Path("rows.csv").write_bytes(data[:middle] + odd + data[middle:])
    Path("servers.ndjson").write_bytes(ndjson(server(f"srv-{at}") for at in range(7)))
    return ["--servers", "servers.ndjson", "--observations", "rows.csv", "--overwrite"]


@pytest.mark.usefixtures("here")
def test_a_build_of_two_processes_has_the_bytes_of_one(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["snapshot", "build", "out.db", *write_sources(), "--rejects", "rejects.ndjson"]

    def build() -> tuple[int, bytes, bytes]:
        ran = cli(*command)
        return ran.exit_code, Path("out.db").read_bytes(), Path("rejects.ndjson").read_bytes()

    alone = build()
    started: list[int] = []
    start: Callable[[SecondProcess], None] = SecondProcess.start

    def start_and_wait(process: SecondProcess) -> None:
        if not started:
            start(process)
            started.append(find_second(process))

    monkeypatch.setattr(processes, "count_cores", lambda: 2)
    monkeypatch.setattr(intake, "_ROWS_OF_ONE_PROCESS", 0)
    monkeypatch.setattr(SecondProcess, "start", start_and_wait)

    monkeypatch.setattr(intake, "_BYTES_OF_ONE_PROCESS", 0)
    monkeypatch.setattr(store, "MAX_SHARED", 6_666)  # all servers but one are large

    assert build() == alone
    assert alone[0] == 0
    assert alone[2].count(b"\n") > 3
    assert started


def find_child(process: subprocess.Popen[bytes]) -> int:
    """Return the second process of a command once it runs."""
    folder = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        for child in folder.read_text().split():
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
        time.sleep(0.01)
    pytest.fail(f"ended without a child: {process.communicate()[1].decode()}")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds the second process in /proc")
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_the_second_process_ends_with_the_build(number: signal.Signals, code: int) -> None:
    Path("servers.ndjson").write_bytes(ndjson([server("a")]))
    rows = csv(("a", AS_OF - at * 1000, at % 300) for at in range(120_000))
    command = ["snapshot", "build", "out.db", "--servers", "servers.ndjson", "--observations", "-"]
    with (
        restore_signals(),
        subprocess.Popen(
            [sys.executable, "-m", "srvstat", *command, "--format", "csv"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as build,
    ):
        assert build.stdin
        build.stdin.write(rows)
        build.stdin.flush()
        child = find_child(build)
        # A signal from a terminal goes to both processes.
        if number == signal.SIGINT:
            os.kill(child, number)
        build.send_signal(number)
        # The second process inherits stderr, which ends when it has ended, too.
        assert build.stderr
        # Python removes the semaphores of a killed process, and warns of it.
        assert (build.stderr.read() == b"") == (number != signal.SIGKILL)
        assert build.wait() == code

    assert not Path("out.db").exists()
