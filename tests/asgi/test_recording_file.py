"""The file of `serve --record` has whole lines only; the log has the number of missing ones."""

import fcntl
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from asgi.small_service import (
    build_small,
    list_events,
    read_records,
    wait_for_events,
    wait_for_records,
)
from conftest import Cli
from srvstat.asgi.log import Log, Recorder, store_request
from srvstat.contract.http import Head
from srvstat.documents.support import Recording, StoredResponse
from srvstat.operations.redaction import KeyFilter
from support.http import Client, get
from support.process import Service, serve

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_small(tmp_path_factory.mktemp("small")))


def send(service: Service, times: int) -> None:
    """Send a request many times and wait for the answers."""
    with Client(service) as client:
        for _ in range(times):
            client.send(get(b"a"))
            client.read_answer()


@contextmanager
def limit_file_size(service: Service, size: int) -> Iterator[None]:
    """Limit the files of a service to a size, as a full disk would."""
    limits = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (size, limits[1]))
    yield
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, limits)


def test_a_new_file_is_private_and_a_restart_appends_to_it(small: str, tmp_path: Path) -> None:
    path = tmp_path / "exchanges.ndjson"
    with serve(small, "--record", str(path)) as service:
        assert path.read_bytes() == b""
        send(service, 3)
        assert service.stop() == 0
    assert path.stat().st_mode & 0o777 == 0o600
    first = path.read_bytes()
    path.write_bytes(first + b'{"cut by a crash"')
    with serve(small, "--record", str(path)) as service:
        send(service, 2)
        assert service.stop() == 0

    rest = path.read_bytes().removeprefix(first + b'{"cut by a crash"\n')
    assert first.count(b"\n") == 3
    assert rest.count(b"\n") == 2
    assert rest.endswith(b"}}\n")


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux's prlimit")
def test_exchanges_lost_on_a_full_disk_are_counted(small: str, tmp_path: Path) -> None:
    path = tmp_path / "exchanges.ndjson"
    with serve(small, "--record", str(path)) as service:
        send(service, 1)
        (length,) = [len(line) for line in wait_for_lines(path, 1)]
        with limit_file_size(service, 10 * length + length // 2):
            for _ in range(3):
                send(service, 8)
                time.sleep(0.1)
            assert len(read_records(path)) == 10
            (event,) = list_events(service)
        send(service, 5)
        wait_for_records(path, 15)
        failed, recovered = wait_for_events(service, 2)

    assert failed == event
    assert failed["event"] == "exchanges can't be recorded"
    assert failed["reason"] == f"{path}: File too large"
    assert (recovered["event"], recovered["exchanges"]) == ("exchanges not recorded", 15)


def wait_for_lines(path: Path, number: int) -> list[bytes]:
    wait_for_records(path, number)
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_vanishes_is_reported_once(
    is_replaced: bool, small: str, tmp_path: Path
) -> None:
    path = tmp_path / "exchanges.ndjson"
    with serve(small, "--record", str(path)) as service:
        send(service, 1)
        wait_for_records(path, 1)
        path.unlink()
        if is_replaced:
            path.write_bytes(b"")
        for _ in range(3):
            send(service, 5)
            time.sleep(0.1)
        assert service.stop() == 0
        failed, counted, stopped = list_events(service)

    reason = "was replaced" if is_replaced else "No such file or directory"
    assert failed["reason"] == f"{path}: {reason}"
    assert counted["exchanges"] == 15
    assert stopped["event"] == "stopped"
    assert path.exists() is is_replaced


def test_a_signal_under_load_leaves_whole_lines(small: str, tmp_path: Path) -> None:
    path = tmp_path / "exchanges.ndjson"
    answered = []

    def ask(service: Service) -> None:
        with Client(service) as client:
            try:
                while True:
                    client.send(get(b"a"))
                    client.read_answer()
                    answered.append(1)
            except EOFError:
                return

    with serve(small, "--record", str(path)) as service:
        clients = [threading.Thread(target=ask, args=(service,)) for _ in range(4)]
        for client in clients:
            client.start()
        time.sleep(0.2)
        assert service.stop(signal.SIGINT) == 0
        for client in clients:
            client.join()
        statuses = [entry for entry in service.read_log() if "status" in entry]

    assert len(read_records(path)) == len(statuses) >= len(answered) > 10


def test_two_services_do_not_share_a_file(small: str, tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "exchanges.ndjson"
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ran = cli("serve", "--port", "0", "--snapshot", small, "--record", str(path))

    assert ran.exit_code == 4
    assert ran.stderr == f"error: {path}: another process writes it; name another file\n"


REFUSED = {
    "-": (2, "error: --record -: not a file; name a new file or a recording\n"),
    "other": (2, "error: other: not a recording; name a new file or a recording\n"),
    "fifo": (2, "error: fifo: not a regular file; name a new file or a recording\n"),
    ".": (4, "error: .: Is a directory\n"),
    "missing/file": (4, "error: missing/file: No such file or directory\n"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_no_recording_is_refused(
    name: str, small: str, empty_directory: Path, cli: Cli
) -> None:
    other = empty_directory / "other"
    other.write_bytes(b'{"document":"replay"')
    os.mkfifo(empty_directory / "fifo")

    ran = cli("serve", "--port", "0", "--snapshot", small, "--record", name)

    assert (ran.exit_code, ran.stderr) == REFUSED[name]
    assert ran.stdout == b""
    assert other.read_bytes() == b'{"document":"replay"'


def test_a_file_is_created_only_if_the_service_can_start(
    empty_directory: Path, small: str, cli: Cli
) -> None:
    for options in (["--access", "none"], ["--snapshot", "none"]):
        ran = cli("serve", "--port", "0", "--snapshot", small, "--record", "new", *options)
        assert ran.exit_code in (3, 6)

    assert not (empty_directory / "new").exists()


def test_exchanges_that_find_the_queue_full_are_counted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srvstat.asgi.log._MAX_EXCHANGES", 0)
    log = Log()
    recorder = Recorder(str(tmp_path / "recording.ndjson"), log)
    recording = Recording(
        as_of=0,
        root="",
        requested_at=0,
        plan=None,
        request=store_request(Head("GET", b"/", b"", []), b"", KeyFilter((), bool)),
        response=StoredResponse(status=401, body=""),
    )

    for _ in range(3):
        recorder.add(recording)
    recorder.close()
    log.close()

    assert '"event": "exchanges not recorded", "exchanges": 3}' in capfd.readouterr().err
