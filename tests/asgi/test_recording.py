"""`serve --record` writes each exchange of the API on a whole line, without keys."""

import fcntl
import json
import os
import re
import resource
import signal
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgi.small_service import (
    COMPARED,
    SERVER_A,
    build_small,
    format_access,
    list_events,
    read_records,
    wait_for_events,
    wait_for_records,
)
from conftest import AS_OF, Cli
from srvstat.asgi.log import Log, Recorder, store_request
from srvstat.contract.http import Head
from srvstat.contract.time import format_instant
from srvstat.documents.support import Recording, StoredResponse
from srvstat.operations.redaction import KeyFilter
from support.http import (
    COMPARE,
    ERRORS,
    HEALTH,
    HOST,
    JSON,
    TWO,
    Client,
    get,
    request,
    send_request,
)
from support.process import Service, serve

pytestmark = pytest.mark.slow

REGISTERED = "correct-horse-battery-staple"
GENERATED = "srvstat_" + "Ab3_-cD4" * 5 + "xyz"
KEYS = {"key-of-all": "all", REGISTERED: "all"}
ALL = b"X-Gateway-Key: key-of-all"


class Recorded(NamedTuple):
    """A service that records, and the file."""

    service: Service
    path: Path
    options: tuple[str, ...] = ()
    """Those of a command that answers as the service does."""

    def send(self, sent: bytes) -> dict[str, Any]:
        """Send a request, and return the line that records it."""
        before = len(read_records(self.path))
        send_request(self.service, sent, to_head=sent.startswith(b"HEAD "))
        deadline = time.monotonic() + 5
        while len(found := read_records(self.path)) == before:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        (record,) = found[before:]
        return record


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    directory = tmp_path_factory.mktemp("small")
    access = directory / "access.toml"
    access.write_text(format_access(KEYS), encoding="utf-8")
    path = directory / "exchanges.ndjson"
    snapshot = build_small(directory)
    options = ("--access", str(access))
    with serve(snapshot, *options, "--control", "--record", str(path)) as service:
        yield Recorded(service, path, (*options, "--snapshot", str(snapshot)))


def ask_for(path: str, *headers: bytes, method: str = "GET") -> bytes:
    return request(f"{method} /gateway/v1/{path} HTTP/1.1".encode(), HOST, *headers)


def ask_to_compare(body: bytes, *headers: bytes) -> bytes:
    return request(COMPARE, HOST, JSON, *headers, body=body)


def describe(method: str, path: str, *, body: bytes | None = None, **headers: str) -> Any:
    """Return the expected request of a record; a body adds the headers of `compare`."""
    found = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        found = {"content-type": "application/json", "content-length": str(len(body)), **found}
    is_text = body is None or b"\xff" not in body
    return {
        "method": method,
        "path": f"/gateway/v1/{path}",
        "headers": found,
        "body": body.decode() if body and is_text else None,
        "bodyBase64": None if body is None or is_text else b64encode(body).decode(),
    }


UNKNOWN_SERVER = TWO.replace(b'"b"', b'"zz"')
EXCHANGES = {
    "head": (ask_for("servers/a", ALL, method="HEAD"), describe("HEAD", "servers/a"), 200, None),
    "compare": (ask_to_compare(TWO, ALL), describe("POST", "compare", body=TWO), 200, COMPARED),
    "a password in an absolute URL": (
        request(b"GET http://user:secret@x/gateway/v1/servers/a HTTP/1.1", HOST, ALL),
        {**describe("GET", ""), "path": "http://…@x/gateway/v1/servers/a"},
        200,
        SERVER_A,
    ),
    "an invalid body": (
        ask_to_compare(b"\xff{", ALL, b"Content-Encoding: br"),
        {**describe("POST", "compare", body=b"\xff{", content_encoding="br"), "bodyBase64": None},
        400,
        ERRORS["INVALID_REQUEST"],
    ),
    "a body that is not UTF-8": (
        ask_to_compare(b"\xff{", ALL),
        describe("POST", "compare", body=b"\xff{"),
        400,
        ERRORS["INVALID_REQUEST"],
    ),
    "an unknown server": (
        ask_to_compare(UNKNOWN_SERVER, ALL),
        describe("POST", "compare", body=UNKNOWN_SERVER),
        404,
        ERRORS["SERVER_NOT_FOUND"],
    ),
}


@pytest.mark.parametrize("case", EXCHANGES)
def test_an_exchange_is_recorded(case: str, recorded: Recorded, cli: Cli) -> None:
    sent, described, status, answer = EXCHANGES[case]
    before = time.time_ns() // 1_000_000

    record = recorded.send(sent)

    schema = json.loads(cli("schema", "recording").stdout)
    jsonschema_rs.Draft202012Validator(schema).validate(record)
    requested_at = record.pop("requestedAt")
    assert format_instant(before) <= requested_at <= format_instant(time.time_ns() // 1_000_000)
    assert re.fullmatch("[0-9a-f]{16}", record.pop("requestId"))
    assert record == {
        "document": "recording",
        "version": 1,
        "asOf": format_instant(AS_OF),
        "root": send_request(recorded.service, HEALTH).json["root"],
        "plan": "all",
        "request": described,
        "response": {"status": status, "body": answer and answer.decode()},
    }


def test_only_requests_of_the_api_are_recorded(recorded: Recorded) -> None:
    before = len(read_records(recorded.path))

    for sent in (HEALTH, ask_for("nothing", ALL)):
        send_request(recorded.service, sent)

    wait_for_records(recorded.path, 0, before)


PLACES = (
    lambda key: ask_for(f"servers/{key}", ALL),
    lambda key: ask_for(f"servers/a?by={key}", ALL),
    lambda key: ask_for(f"servers/a?{key}=id"),
    lambda key: ask_for("servers/a", b"X-Gateway-Key: " + key.encode()),
    lambda key: ask_for("servers/a", ALL, b"X-Gateway-Key: " + key.encode()),
    lambda key: ask_for("servers/a", ALL, b"Authorization: Bearer " + key.encode()),
    lambda key: ask_for("servers/a", ALL, b"Cookie: " + key.encode()),
    lambda key: ask_for("servers/a", ALL, b"X-Request-Id: " + key.encode()),
    lambda key: ask_for("servers/a", ALL, b"Content-Type: text/" + key.encode()),
    lambda key: ask_for("servers/a", ALL, b"Proxy-Authorization: " + key.encode()),
    lambda key: ask_for("servers/a", ALL, b"traceparent: 00-" + key.encode()),
    lambda key: ask_for("servers/a", ALL, method=key),
    lambda key: request(b"GET http://u:%b@x/gateway/v1/servers/a HTTP/1.1" % key.encode(), HOST),
    lambda key: ask_to_compare(TWO.replace(b'"a"', json.dumps(key).encode()), ALL),
    lambda key: ask_to_compare(TWO[:-1] + b",%b:1}" % json.dumps(key).encode(), ALL),
    lambda key: ask_to_compare(b"\xff" + key.encode(), ALL),
)
"""Requests with a key in a wrong place."""


@given(st.sampled_from(PLACES), st.sampled_from([REGISTERED, GENERATED, "key-of-all"]), st.data())
def test_no_key_is_recorded(
    recorded: Recorded, place: Callable[[str], bytes], key: str, data: st.DataObject
) -> None:
    sent = place(key)
    line, end, rest = sent.partition(b" HTTP/1.1")
    if line.startswith(b"GET"):
        escaped = data.draw(st.sets(st.sampled_from(range(len(key)))), "escaped characters")
        in_url = "".join(f"%{ord(c):02x}" if at in escaped else c for at, c in enumerate(key))
        sent = line.replace(key.encode(), in_url.encode()) + end + rest

    record = recorded.send(sent)

    journal = send_request(
        recorded.service, b"GET /__srvstat/requests HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    noted = journal.json["requests"][-1]
    assert noted["id"] == record["requestId"]
    assert key not in unquote(json.dumps([record, noted]))
    assert key.encode() not in b64decode(noted["request"]["bodyBase64"] or "")
    assert key.encode() not in b64decode(record["request"]["bodyBase64"] or "")
    assert record["request"]["path"].startswith(("/gateway/v1/", "http://…@x/gateway/v1/"))


def test_a_record_names_the_snapshot_that_answered(tmp_path: Path) -> None:
    path = tmp_path / "exchanges.ndjson"
    with serve(build_small(tmp_path), "--record", str(path)) as service:
        first = Recorded(service, path).send(ask_for("servers/a", ALL))
        build_small(tmp_path, "other.db", players=9).replace(tmp_path / "small.db")
        second = Recorded(service, path).send(ask_for("servers/a", ALL))
        refused = Recorded(service, path).send(ask_for("servers/a"))
        root = send_request(service, HEALTH).json["root"]

    assert first["root"] != second["root"] == refused["root"] == root
    assert '"current":6' in first["response"]["body"]
    assert '"current":9' in second["response"]["body"]


def test_exchanges_are_recorded_in_the_order_of_the_log(recorded: Recorded) -> None:
    before = len(read_records(recorded.path))
    logged = len(recorded.service.read_log())

    def ask(number: int) -> None:
        with Client(recorded.service) as client:
            for turn in range(25):
                client.send(ask_for(f"servers/{number}-{turn}", ALL))
                client.read_answer()

    with ThreadPoolExecutor(8) as clients:
        list(clients.map(ask, range(8)))

    records = wait_for_records(recorded.path, 200, before)
    paths = [record["request"]["path"] for record in records]
    assert len(set(paths)) == 200
    entries = recorded.service.read_log()[logged:]
    assert paths == [
        f"/gateway/v1/servers/{entry['servers'][0].removeprefix('id:')}" for entry in entries
    ]


def test_a_recording_matches_when_it_is_replayed(
    recorded: Recorded, tmp_path: Path, cli: Cli
) -> None:
    before = recorded.path.stat().st_size
    hidden = ask_for(f"servers/{REGISTERED}", ALL)
    for sent in (*(sent for sent, *_ in EXCHANGES.values()), hidden):
        recorded.send(sent)
    path = tmp_path / "exchanges.ndjson"
    path.write_bytes(recorded.path.read_bytes()[before:])

    ran = cli("replay", str(path), *recorded.options, "--json")

    expected = ["match"] * len(EXCHANGES) + ["notReproducible"]
    assert [each["class"] for each in ran.json["exchanges"]] == expected


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_small(tmp_path_factory.mktemp("small")))


def test_a_recording_has_the_request_id_of_the_client(recorded: Recorded, cli: Cli) -> None:
    record = recorded.send(get(b"a", ALL, b"X-Request-Id: ticket-4711"))

    assert record["requestId"] == "ticket-4711"
    ran = cli("replay", str(recorded.path), "--request-id", "ticket-4711", *recorded.options)
    assert [one["class"] for one in ran.json["exchanges"]] == ["match"]


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
        wait_for_records(path, 1)
        length = path.stat().st_size
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
    assert failed["reason"] == f"{path}: file too large"
    assert (recovered["event"], recovered["exchanges"]) == ("exchanges not recorded", 15)


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

    reason = "was replaced" if is_replaced else "no such file or directory"
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
    ".": (4, "error: .: is a directory\n"),
    "missing/file": (4, "error: missing/file: no such file or directory\n"),
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


def test_a_key_that_begins_inside_a_character_of_the_answer_is_hidden() -> None:
    answer = '{"hostname": "Night Shift «夜勤»"}'.encode()
    key = "«夜勤»".encode()[1:-1]
    key_filter = KeyFilter([key.decode("latin-1")], lambda _: False)
    head = Head("GET", b"/gateway/v1/servers/" + key, b"", ((b"x-gateway-key", key),))

    assert store_request(head, b"", key_filter).path == "/gateway/v1/servers/…"
    assert key_filter.hide_data(answer) == '{"hostname": "Night Shift \ufffd…\ufffd"}'
