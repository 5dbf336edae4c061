"""Start, stop and restart the service; connections that are many, slow, malformed or inherited."""

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from asgi.small_service import (
    COMPARED,
    COMPARISON,
    INVALID_REQUEST,
    SERVER_A,
    SERVER_FOUND,
    UNAUTHORIZED,
    InProcess,
    build_small,
    format_access,
    serve_small,
    wait_for_entries,
)
from conftest import AS_OF, Cli, csv
from srvstat.asgi import log
from srvstat.asgi.server import STOP_SECONDS, Server, inherit_listener, open_listener
from srvstat.cli.serve import take_inherited_descriptor
from srvstat.contract.errors import UsageError
from support.http import (
    COMPARE,
    ERRORS,
    HEALTH,
    HOST,
    JSON,
    KEY,
    READY,
    TWO,
    UNAVAILABLE,
    A,
    Client,
    Exchange,
    Expected,
    check_answer,
    compare,
    get,
    request,
    rotate,
    run_load,
)
from support.process import Service, serve

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build_small(tmp_path_factory.mktemp("small")))


@pytest.fixture
def service(small: str) -> Iterator[Service]:
    with serve(small) as running:
        yield running


PUBLIC = ": reachable from other machines, so keys are required; add --access FILE or use 127.0.0.1"
FAULTS = [
    (["--host", "0.0.0.0"], 2, f"error: --host 0.0.0.0{PUBLIC}\n"),  # noqa: S104 - it is refused
    (["--host", ""], 2, "error: --host: empty; use 127.0.0.1 for this machine\n"),
    (["--host", "no host"], 2, "error: --host no host: "),
    (["--access", "bad.toml"], 6, "error: bad.toml, line 3: plans.all.ranges: "),
    (["--access", "none.toml"], 6, "error: none.toml: "),
    (["--snapshot", "none.db"], 3, "error: none.db: no such file"),
    (["--snapshot", "other.db"], 3, "error: other.db: "),
    (["--snapshot", "cut.db"], 3, "error: cut.db: "),
    # Usage is checked before the access file, and that before the snapshot.
    (["--host", "", "--access", "none.toml", "--snapshot", "none.db"], 2, "error: --host: empty"),
    (["--access", "none.toml", "--snapshot", "none.db"], 6, "error: none.toml: "),
]


def test_one_line_says_why_the_service_can_not_start(
    small: str, service: Service, empty_directory: Path, cli: Cli
) -> None:
    bad = "[plans.all]\noperations = []\nranges = 7\n"
    (empty_directory / "bad.toml").write_text(bad, encoding="utf-8")
    (empty_directory / "other.db").write_bytes(b"SQLite format 3\x00".ljust(4_096, b"\x01"))
    (empty_directory / "cut.db").write_bytes(Path(small).read_bytes()[:-16_384])
    taken = f"error: --host 127.0.0.1 --port {service.port}: Address already in use; choose another"

    for options, exit_code, message in [*FAULTS, (["--port", str(service.port)], 2, taken)]:
        ran = cli("serve", "--port", "0", "--snapshot", small, *options)
        assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (exit_code, b"", 1), options
        assert ran.stderr.startswith(message)
    assert cli("serve", "--access", "none.toml").exit_code == 6
    assert cli("serve").exit_code == 3


def test_an_access_file_allows_any_host(small: str, tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    access.write_text(format_access({"the-key": "all"}), encoding="utf-8")

    options = ("--access", str(access), "--host", "0.0.0.0")  # noqa: S104 - a key is required
    with serve(small, *options) as service, Client(service) as client:
        client.send(get(b"a"))
        assert client.read_answer().status == 401


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_stops_an_idle_service_at_once(number: signal.Signals, small: str) -> None:
    with serve(small) as service, Client(service) as silent, Client(service) as idle:
        idle.send(get(b"a"))
        idle.read_answer()
        began = time.monotonic()

        assert service.stop(number) == 0
        assert time.monotonic() - began < 3
        for client in (silent, idle):
            assert client.read_rest() == b""
        assert service.read_log()[-1]["event"] == "stopped"


def test_a_request_on_its_way_at_the_signal_is_answered(service: Service) -> None:
    with Client(service) as silent, Client(service) as idle, Client(service) as late:
        idle.send(READY)
        answer = idle.read_answer()
        assert (answer.status, answer.closes) == (200, False)
        late.send(compare(TWO)[:-1])
        time.sleep(0.1)
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        for client, sent in ((silent, get(b"a")), (idle, READY), (late, TWO[-1:])):
            client.send(sent)

        found = [client.read_answer() for client in (silent, idle, late)]
        assert [(one.status, one.body) for one in found] == [
            (200, SERVER_A),
            (503, UNAVAILABLE),
            (200, COMPARED),
        ]
        for client, answer in zip((silent, idle, late), found, strict=True):
            assert answer.closes
            assert client.read_rest() == b""
        assert service.process.wait(timeout=5) == 0


def test_pipelined_requests_are_answered_completely_or_not_at_all(service: Service) -> None:
    with Client(service) as client:
        client.send(compare(TWO) * 200)
        client.read_answer()
        service.process.send_signal(signal.SIGTERM)
        rest = client.read_rest()

    heads = rest.split(COMPARED)
    assert heads.pop() == b""
    assert all(head.startswith(b"HTTP/1.1 200 ") for head in heads)
    answered = 1 + len(heads)
    assert service.process.wait(timeout=5) == 0
    assert [entry.get("status") for entry in service.read_log()] == [200] * answered + [None]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_stops_at_once(service: Service, number: int) -> None:
    with Client(service) as client:
        client.send(compare(TWO)[:-1])
        time.sleep(0.1)
        began = time.monotonic()
        service.process.send_signal(number)
        time.sleep(0.2)

        assert service.stop(number) == 128 + number
        assert time.monotonic() - began < 3


def test_a_server_without_a_game_is_an_error_with_a_remedy(tmp_path: Path, cli: Cli) -> None:
    rows, path = tmp_path / "week.csv", str(tmp_path / "own.db")
    rows.write_bytes(csv([("異環", AS_OF, 5), ("b", AS_OF, 6)]))
    assert cli("snapshot", "build", path, str(rows)).exit_code == 0
    remedy = f"set it with srvstat snapshot update {path} --game game_a or --game game_b"

    with serve(path) as service, Client(service) as client:
        assert service.process.stdout
        lines = [service.process.stdout.readline().decode() for _ in range(2)]
        assert [line for line in lines if line.endswith(f"{remedy}\n")]
        client.send(get(b"yihuan"))
        assert client.read_answer().status == 500
        client.send(compare(TWO.replace(b"a", b"yihuan", 1)))
        assert client.read_answer().status == 200
        # Entries follow their answers.
        entries = wait_for_entries(service, 2)
        (reason,) = [each["reason"] for each in entries if "reason" in each]
        assert reason.startswith("server yihuan: no game in its metadata, which ")
    (tmp_path / "mail.txt").write_text("curl https://api.example/gateway/v1/servers/yihuan\n")
    replayed = cli("replay", str(tmp_path / "mail.txt"), "-s", path).json["exchanges"][0]
    assert replayed["class"] == "notReproducible"
    assert replayed["reason"].endswith(remedy)


def test_closing_standard_output_does_not_stop_the_service(small: str) -> None:
    """The process that started the service may have ended."""
    with serve(small) as service:
        assert service.process.stdout
        service.process.stdout.close()
        with Client(service) as client:
            client.send(HEALTH + get(b"a"))
            assert [client.read_answer().status for _ in range(2)] == [200, 200]
        os.kill(service.process.pid, signal.SIGTERM)
        assert service.process.wait(timeout=5) == 0


pytestmark = pytest.mark.slow

CHUNKED = b"Transfer-Encoding: chunked"


@pytest.fixture(scope="module")
def shared() -> Iterator[Service]:
    with serve_small() as running:
        yield running


MALFORMED = {
    "no version": request(b"GET /gateway/v1/servers/a", HOST, KEY),
    "the start of TLS": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "no Host": request(A, KEY),
    "a space after a name": request(A, HOST, b"X-Gateway-Key : k"),
    "NUL in a value": get(b"a", b"X: y\x00z"),
    "two lengths": compare(TWO, b"Content-Length: 5"),
    "a malformed chunk": request(COMPARE, HOST, KEY, JSON, CHUNKED) + b"zz\r\n",
    "a head of 100,000 bytes": get(b"a", b"X: " + b"y" * 100_000)[:-4],
}


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=MALFORMED)
def test_malformed_http_gets_a_400_and_closes_the_connection(sent: bytes, shared: Service) -> None:
    with Client(shared) as client:
        client.send(sent)
        assert client.read_rest().startswith(b"HTTP/1.1 400 ")
    check_answer(shared, get(b"a"), SERVER_FOUND)


ONE_CHUNK = b"47\r\n" + TWO + b"\r\n0\r\n\r\n"
WELL_FORMED = {
    "HTTP/1.0": (request(A.replace(b"1.1", b"1.0"), KEY), SERVER_FOUND._replace(stays=False)),
    "Connection: close": (get(b"a", b"Connection: Close"), SERVER_FOUND._replace(stays=False)),
    "a websocket": (
        get(b"a", b"Connection: upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13"),
        SERVER_FOUND,
    ),
    "HTTP/2 on the same connection": (
        get(b"a", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AA"),
        SERVER_FOUND,
    ),
    "headers of 15,000 bytes": (get(b"a", b"X: " + b"y" * 15_000), SERVER_FOUND),
    "headers of 16,400 bytes": (get(b"a", b"X: " + b"y" * 16_400), INVALID_REQUEST),
    "a target of 40,000 bytes": (get(b"x" * 40_000), INVALID_REQUEST),
    "chunks": (request(COMPARE, HOST, KEY, JSON, CHUNKED) + ONE_CHUNK, COMPARISON),
    "a length and chunks": (
        request(COMPARE, HOST, KEY, JSON, b"Content-Length: 71", CHUNKED) + ONE_CHUNK,
        INVALID_REQUEST._replace(stays=False),
    ),
    "a length and chunks, without a key": (
        request(COMPARE, HOST, JSON, b"Content-Length: 5", CHUNKED) + b"0\r\n\r\n",
        UNAUTHORIZED._replace(stays=False),
    ),
    "a refused body of 100,000 bytes": (compare(TWO.ljust(100_000)), INVALID_REQUEST),
    "a body of Get Server": (request(A, HOST, KEY, body=bytes(2_000)), INVALID_REQUEST),
}


@pytest.mark.parametrize(("sent", "expected"), WELL_FORMED.values(), ids=WELL_FORMED)
def test_a_well_formed_request_is_answered(
    sent: bytes, expected: Expected, shared: Service
) -> None:
    check_answer(shared, sent, expected)


def test_requests_may_be_pipelined_and_arrive_byte_by_byte(shared: Service) -> None:
    with Client(shared) as client:
        client.send((get(b"a") + compare(TWO)) * 20)
        bodies = [client.read_answer().body for _ in range(40)]
        for byte in compare(TWO):
            client.send(bytes([byte]))
            time.sleep(0.001)
        bodies.append(client.read_answer().body)

    assert bodies == [SERVER_A, COMPARED] * 20 + [COMPARED]


def test_a_client_may_wait_until_it_should_continue(shared: Service) -> None:
    with Client(shared) as client:
        length = b"Content-Length: %d" % len(TWO)
        client.send(request(COMPARE, HOST, KEY, JSON, length, b"Expect: 100-continue"))
        client.wait_for_continue()
        client.send(TWO)
        assert client.read_answer().body == COMPARED


def test_a_client_that_leaves_early_affects_no_other(shared: Service) -> None:
    for part in (get(b"a"), compare(TWO), compare(TWO)[:-5], get(b"a")[:9], get(b"a") * 50):
        with Client(shared) as impatient:
            impatient.send(part)

    check_answer(shared, get(b"a"), SERVER_FOUND)


async def receive(reader: asyncio.StreamReader) -> bytes:
    """Return what arrives until the connection is closed or, while bytes are sent, reset."""
    received = b""
    with suppress(ConnectionResetError):
        while part := await reader.read(1 << 16):
            received += part
    return received


class Connections:
    """A server in this process, with a deadline for heads of at most two seconds."""

    def __init__(self, directory: Path) -> None:
        self._service = InProcess(build_small(directory))
        self._listener = open_listener("127.0.0.1", 0, loopback_only=True)

    async def send(self, sent: bytes, drip: bytes = b"") -> bytes:
        """Return what arrives until the connection is closed; send `drip` meanwhile."""
        reader, writer = await asyncio.open_connection(*self._listener.getsockname())
        writer.write(sent)
        received = asyncio.create_task(receive(reader))
        while drip and not received.done():
            writer.write(drip)
            await asyncio.sleep(0.05)
        found = await received
        writer.close()
        return found

    def ask(self, *requests: tuple[bytes, bytes]) -> list[bytes]:
        """Send requests at the same time, each on its own connection."""
        found: list[bytes] = []

        async def run() -> None:
            server = Server(self._service.app, lambda: None, head_seconds=0)
            serving = asyncio.create_task(server.serve([self._listener]))
            found.extend(await asyncio.gather(*[self.send(*one) for one in requests]))
            server.should_exit = True
            await serving

        self._service.run(run(), closes=True)
        return found


def test_an_unfinished_head_is_closed_without_an_answer(tmp_path: Path) -> None:
    half = HEALTH[:-2] + b"X: "

    *silent, after_one, dripping_after_one = Connections(tmp_path).ask(
        (b"", b""), (half, b""), (half, b"y"), (HEALTH + half, b""), (HEALTH + half, b"y")
    )

    assert silent == [b""] * 3
    for received in (after_one, dripping_after_one):
        assert received.count(b"HTTP/1.1 200 OK") == 1


def test_a_late_body_gets_a_400_and_closes_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "BODY_SECONDS", 0.2)

    (answer,) = Connections(tmp_path).ask((compare(TWO)[:-1], b""))

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nconnection: close\r\n" in answer
    assert answer.endswith(INVALID_REQUEST.body)


@pytest.mark.slow
def test_connections_wait_for_the_next_process_on_the_socket(tmp_path: Path) -> None:
    small = build_small(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with serve(small, listener=listener, env={"SRVSTAT_PORT": "1"}) as first:
            with Client(first) as client:
                client.send(get(b"a"))
                assert client.read_answer().body == SERVER_A
            assert first.stop() == 0
        with Client(first) as waiting:
            waiting.send(get(b"a"))
            with serve(small, listener=listener) as second:
                assert waiting.read_answer().body == SERVER_A
                assert second.port == listener.getsockname()[1]


@pytest.mark.slow
def test_a_unix_socket_needs_no_access_file(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        with serve(build_small(tmp_path), listener=listener) as service:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                connection.sendall(get(b"a", b"Connection: close"))
                assert connection.makefile("rb").read().endswith(SERVER_A)
            assert service.stop() == 0
            assert [entry.get("remote") for entry in service.read_log()] == ["", None]


NOT_LISTENING = "not a listening stream socket; use ListenStream= and Accept=no"


@pytest.mark.parametrize(
    ("open_socket", "problem"),
    [
        (
            lambda: socket.create_server(("0.0.0.0", 0)),  # noqa: S104 - it is refused
            "0.0.0.0: reachable from other machines, so keys are required",
        ),
        (lambda: socket.socket(type=socket.SOCK_DGRAM), NOT_LISTENING),
        (socket.socket, NOT_LISTENING),
    ],
)
def test_another_socket_is_refused(open_socket: Callable[[], socket.socket], problem: str) -> None:
    with open_socket() as opened, pytest.raises(UsageError, match=f"^LISTEN_FDS: {problem}"):
        inherit_listener(os.dup(opened.fileno()), loopback_only=True)


def test_a_descriptor_that_is_no_socket_is_refused(tmp_path: Path) -> None:
    with (
        (tmp_path / "file").open("wb") as file,
        pytest.raises(UsageError, match=r"^LISTEN_FDS: descriptor \d+ is not a socket$"),
    ):
        inherit_listener(file.fileno(), loopback_only=True)


def test_the_variables_are_for_one_process_and_one_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(process: int, sockets: str) -> int | None:
        monkeypatch.setenv("LISTEN_PID", str(process))
        monkeypatch.setenv("LISTEN_FDS", sockets)
        monkeypatch.setenv("LISTEN_FDNAMES", "http")
        found = take_inherited_descriptor()
        assert not [name for name in os.environ if name.startswith("LISTEN_")]
        return found

    assert take_inherited_descriptor() is None
    assert take(os.getpid(), "1") == 3
    assert take(os.getpid(), "0") is None
    assert take(os.getpid() + 1, "2") is None
    with pytest.raises(UsageError, match=r'^LISTEN_FDS: "2" sockets; pass exactly one'):
        take(os.getpid(), "2")


def test_an_address_is_refused_beside_an_inherited_socket(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("host", "port"):
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        monkeypatch.setenv("LISTEN_FDS", "1")
        ran = cli("serve", f"--{name}", "8000")

        assert ran.exit_code == 2
        assert ran.stderr == (
            f"error: --{name}: can't be combined with an inherited socket (LISTEN_FDS)\n"
        )


CLIENTS = 400
MAX_ROUNDS = 4
"""Answers that each other client may get while a client waits for one."""
FOUND = [
    Exchange(get(b"a"), 200, SERVER_A),
    Exchange(get(b"a", line=b"HEAD %b HTTP/1.1"), 200, b""),
]
UNKNOWN = [
    Exchange(get(name), 404, ERRORS["SERVER_NOT_FOUND"]) for name in (b"zz", b"hidden", b"x-a")
]
MIXED = [
    *FOUND,
    *UNKNOWN,
    Exchange(compare(TWO), 200, COMPARED),
    Exchange(compare(TWO.replace(b'"b"', b'"zz"')), 404, ERRORS["SERVER_NOT_FOUND"]),
    Exchange(compare(TWO[1:]), 400, ERRORS["INVALID_REQUEST"]),
]


def test_hundreds_of_clients_get_right_answers_in_turn(tmp_path: Path) -> None:
    with serve(build_small(tmp_path), env={}) as service:
        assert run_load(service.port, rotate(MIXED, CLIENTS), 0.3).failures == []
        for equal_cost in (FOUND, UNKNOWN):
            outcome = run_load(service.port, rotate(equal_cost, CLIENTS), 0.3)
            assert outcome.failures == []
            assert outcome.most_between <= MAX_ROUNDS * CLIENTS
        assert service.stop() == 0


@pytest.mark.parametrize("head", [b"", b"Connection: close\r\n"], ids=["open", "closed"])
def test_no_request_is_lost_while_a_service_restarts_on_the_same_socket(
    head: bytes, tmp_path: Path
) -> None:
    snapshot = build_small(tmp_path)
    line = b"HTTP/1.1\r\n"
    exchanges = [one._replace(request=one.request.replace(line, line + head, 1)) for one in FOUND]
    with (
        socket.create_server(("127.0.0.1", 0), backlog=200) as listener,
        ThreadPoolExecutor(1) as client,
    ):
        port = listener.getsockname()[1]
        with serve(snapshot, listener=listener) as first:
            running = client.submit(
                run_load, port, rotate(exchanges, 20), 1.5, pause=0.05, grace=STOP_SECONDS
            )
            time.sleep(0.3)
            assert first.stop(signal.SIGHUP) == 0
        with serve(snapshot, listener=listener):
            outcome = running.result()

    assert outcome.failures == []
    assert outcome.answers > 20
