"""Connections: malformed HTTP, requests in parts, and clients that are slow or leave."""

import asyncio
import time
from collections.abc import Iterator
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
    serve_small,
)
from srvstat.asgi import app
from srvstat.asgi.server import Server, open_listener
from support.http import (
    COMPARE,
    HEALTH,
    HOST,
    JSON,
    KEY,
    TWO,
    A,
    Client,
    Expected,
    check_answer,
    compare,
    get,
    request,
)
from support.process import Service

pytestmark = pytest.mark.slow

CHUNKED = b"Transfer-Encoding: chunked"


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
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
def test_malformed_http_gets_a_400_and_closes_the_connection(sent: bytes, service: Service) -> None:
    with Client(service) as client:
        client.send(sent)
        assert client.read_rest().startswith(b"HTTP/1.1 400 ")
    check_answer(service, get(b"a"), SERVER_FOUND)


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
    sent: bytes, expected: Expected, service: Service
) -> None:
    check_answer(service, sent, expected)


def test_requests_may_be_pipelined_and_arrive_byte_by_byte(service: Service) -> None:
    with Client(service) as client:
        client.send((get(b"a") + compare(TWO)) * 20)
        bodies = [client.read_answer().body for _ in range(40)]
        for byte in compare(TWO):
            client.send(bytes([byte]))
            time.sleep(0.001)
        bodies.append(client.read_answer().body)

    assert bodies == [SERVER_A, COMPARED] * 20 + [COMPARED]


def test_a_client_may_wait_until_it_should_continue(service: Service) -> None:
    with Client(service) as client:
        length = b"Content-Length: %d" % len(TWO)
        client.send(request(COMPARE, HOST, KEY, JSON, length, b"Expect: 100-continue"))
        client.wait_for_continue()
        client.send(TWO)
        assert client.read_answer().body == COMPARED


def test_a_client_that_leaves_early_affects_no_other(service: Service) -> None:
    for part in (get(b"a"), compare(TWO), compare(TWO)[:-5], get(b"a")[:9], get(b"a") * 50):
        with Client(service) as impatient:
            impatient.send(part)

    check_answer(service, get(b"a"), SERVER_FOUND)


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
    monkeypatch.setattr(app, "BODY_SECONDS", 0.2)

    (answer,) = Connections(tmp_path).ask((compare(TWO)[:-1], b""))

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nconnection: close\r\n" in answer
    assert answer.endswith(INVALID_REQUEST.body)
