"""Compute the same results in two processes as in one, also when one of them ends."""

import io
import os
import pickle
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
from srvstat.snapshot.write import ingest, second_process, store
from srvstat.snapshot.write.second_process import SecondProcess, pass_messages, serve
from support.signals import restore_signals


@pytest.fixture(scope="module")
def second() -> Iterator[SecondProcess]:
    """Return a second process that runs."""
    with pytest.MonkeyPatch.context() as patch, SecondProcess() as process:
        patch.setattr(second_process, "count_cores", lambda: 2)
        process.start()
        wait_until_ready(process)
        yield process


def wait_until_ready(process: SecondProcess) -> None:
    """Compute until the second process computes, too."""
    while process.id not in {result for _, result in process.compute(call, [os.getpid] * 9)}:
        assert process.id


ITEMS = st.lists(st.binary(max_size=9).map(lambda one: one * 30_000) | st.text(), max_size=9)


@settings(max_examples=few_examples(), deadline=None)
@given(items=ITEMS, stop=st.integers(0, 9))
def test_results_are_in_order_wherever_they_are_computed(
    second: SecondProcess, items: list[bytes | str], stop: int
) -> None:
    # What is not taken from one iterator does not disturb the next one.
    for _ in zip(range(stop), second.compute(len, items), strict=False):
        pass

    found = list(second.compute(len, items))

    assert found == [(item, len(item)) for item in items]


def test_messages_pass_in_the_middle_of_a_job(second: SecondProcess) -> None:
    # Either process does some of them.
    jobs = [pass_messages] * 18

    assert [result for _, result in second.compute(call, jobs)] == [None] * 18


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


@pytest.mark.parametrize("at", [0, 1, 20])
def test_work_continues_when_the_second_process_is_killed(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_process, "count_cores", lambda: 2)
    with SecondProcess() as process:
        process.start()
        wait_until_ready(process)
        child = process.id
        assert child

        def read() -> Iterator[bytes]:
            for number in range(40):
                if number == at:
                    os.kill(child, signal.SIGKILL)
                yield bytes(number * 50_000)

        assert [size for _, size in process.compute(len, read())] == [*range(0, 2_000_000, 50_000)]
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def test_a_process_that_can_not_start_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_process, "count_cores", lambda: 2)
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    before = os.listdir("/dev/fd")
    with SecondProcess() as process:
        process.start()
        assert list(process.compute(len, ["a", "bc"])) == [("a", 1), ("bc", 2)]
    assert os.listdir("/dev/fd") == before


def test_cores_are_counted() -> None:
    assert 1 <= second_process.count_cores() <= (os.cpu_count() or 1)


def test_one_core_computes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_process, "count_cores", lambda: 1)
    with SecondProcess() as process:
        process.start()
        assert process.id is None
        assert list(process.compute(len, ["a"])) == [("a", 1)]


def test_the_second_process_serves_until_its_pipe_is_closed() -> None:
    calls = [(len, "abc"), (int, "x"), (len, "")]
    messages = [pickle.dumps(call) for call in calls]
    jobs = b"".join(len(message).to_bytes(8) + message for message in messages)
    written = io.BytesIO()

    serve(io.BytesIO(jobs + jobs[:20]), written)

    results = written.getvalue()
    outcomes = []
    while results:
        end = 8 + int.from_bytes(results[:8])
        outcomes.append(pickle.loads(results[8:end]))  # noqa: S301 - our own
        results = results[end:]
    assert outcomes == [None, (3,), (), (0,)]


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
    started: list[bool] = []
    start: Callable[[SecondProcess], None] = SecondProcess.start

    def start_and_wait(process: SecondProcess) -> None:
        if not started:
            start(process)
            wait_until_ready(process)
        started.append(True)

    monkeypatch.setattr(second_process, "count_cores", lambda: 2)
    monkeypatch.setattr(ingest, "_ROWS_OF_ONE_PROCESS", 0)
    monkeypatch.setattr(SecondProcess, "start", start_and_wait)

    assert build() == alone
    monkeypatch.setattr(store, "MAX_SHARED", 1_000)
    assert build() == alone
    assert alone[0] == 0
    assert alone[2].count(b"\n") > 3
    assert started


def find_child(process: subprocess.Popen[bytes]) -> int:
    """Return the child of a process once it has one."""
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        if children := path.read_text().split():
            return int(children[0])
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
        assert build.stderr.read() == b""
        assert build.wait() == code

    assert not Path("out.db").exists()
