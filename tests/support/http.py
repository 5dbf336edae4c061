"""Send requests as bytes on a socket, many at a time too, and parse and check the answers."""

import asyncio
import json
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle, repeat
from random import sample
from typing import Any, NamedTuple, Self

from support.process import Service

A = b"GET /gateway/v1/servers/a HTTP/1.1"
"""The request line that asks for the server `a`."""
COMPARE = b"POST /gateway/v1/compare HTTP/1.1"
HOST = b"Host: localhost"
KEY = b"X-Gateway-Key: k"
JSON = b"Content-Type: application/json"
TWO = b'{"servers":[{"identifier":"a","by":"id"},{"identifier":"b","by":"id"}]}'
"""The body that compares the servers `a` and `b`."""

READY = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
UNAVAILABLE = b'{"status":"unavailable"}'
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

ERRORS = {
    code: b'{"error":{"code":"%b","message":"%b"}}' % (code.encode(), message)
    for code, message in {
        "INVALID_REQUEST": b"Invalid request",
        "GATEWAY_UNAUTHORIZED": b"Unauthorized",
        "FEATURE_NOT_AVAILABLE": b"Feature not available for this subscription",
        "SERVER_NOT_FOUND": b"Server not found",
        "RATE_LIMITED": b"Rate limit exceeded",
        "INTERNAL_ERROR": b"Internal server error",
    }.items()
}
"""The body of each error, by its code."""

_ALWAYS = {"cache-control", "content-length", "content-type", "date", "x-request-id"}
_OF_CONNECTION = {"connection"}
_MORE = {401: {"www-authenticate"}, 405: {"allow"}, 429: {"retry-after"}}
_OF_OPTIONS = {
    "access-control-allow-origin",
    "access-control-expose-headers",
    "preference-applied",
    "vary",
    "x-srvstat-reason",
}
"""Headers that only options of `serve` add."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_NO_BODY = (204, 304)


class Answer(NamedTuple):
    """A complete answer; `head` has the status line and the headers."""

    status: int
    head: bytes
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        """The headers; names are in lower case."""
        _, *fields = self.head.decode("ascii").split("\r\n")
        pairs = [field.partition(": ") for field in fields]
        return {name.lower(): value for name, _, value in pairs}

    @property
    def json(self) -> Any:
        """The body, parsed as JSON."""
        return json.loads(self.body)

    @property
    def closes(self) -> bool:
        """Whether the server closes the connection after this answer."""
        return bool(_CLOSE.search(self.head))

    @property
    def stable_parts(self) -> tuple[int, bytes, dict[str, str]]:
        """Everything but the request id and the date."""
        hidden = {"date", "x-request-id"}
        headers = {name: value for name, value in self.headers.items() if name not in hidden}
        return self.status, self.body, headers


class Expected(NamedTuple):
    """The expected answer, and whether the connection stays open."""

    status: int
    body: bytes
    stays: bool = True
    headers: Mapping[str, str] = {}


class Client:
    """One connection to the service."""

    def __init__(self, service: Service) -> None:
        self.socket = service.open_connection()
        self._received = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes; ignore that the service has closed the connection."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def read_answer(self, *, to_head: bool = False) -> Answer:
        """Wait for a complete answer of the contract, check its form, and return it."""
        answer = self.read_any_answer(to_head=to_head)
        _check_form(answer, to_head=to_head)
        return answer

    def read_any_answer(self, *, to_head: bool = False) -> Answer:
        """Wait for a complete answer of any form, and return it."""
        while (found := split_answer(self._received, is_head=to_head)) is None:
            self._receive()
        answer, self._received = found
        return answer

    def wait_for_continue(self) -> None:
        """Wait until the service asks for the body."""
        while b"\r\n\r\n" not in self._received:
            self._receive()
        line, _, self._received = self._received.partition(b"\r\n\r\n")
        assert line.startswith(b"HTTP/1.1 100 ")

    def read_rest(self) -> bytes:
        """Return everything that arrives until the service closes the connection."""
        while True:
            try:
                self._receive()
            except EOFError:
                rest, self._received = self._received, b""
                return rest

    def _receive(self) -> None:
        try:
            received = self.socket.recv(65_536)
        except ConnectionResetError:
            received = b""
        if not received:
            raise EOFError(self._received)
        self._received += received


def split_answer(received: bytes, *, is_head: bool) -> tuple[Answer, bytes] | None:
    """Return the first answer and the bytes after it; None while the answer is incomplete.

    Raises ValueError if the answer is malformed or has no length.
    """
    head, blank, rest = received.partition(b"\r\n\r\n")
    if not blank:
        return None
    status = int(head[9:12])
    if is_head or status in _NO_BODY:
        return Answer(status, head, b""), rest
    if found := _LENGTH.search(head):
        length = int(found[1])
        return (Answer(status, head, rest[:length]), rest[length:]) if len(rest) >= length else None
    if not _CHUNKED.search(head):
        raise ValueError("an answer without a length")
    parts = _split_chunks(rest)
    return parts and (Answer(status, head, parts[0]), parts[1])


def _split_chunks(data: bytes) -> tuple[bytes, bytes] | None:
    """Return a chunked body and the bytes after it; None while it is incomplete."""
    body = b""
    while True:
        digits, end, data = data.partition(b"\r\n")
        if not end:
            return None
        size = int(digits, 16)
        if len(data) < size + 2:
            return None
        if data[size : size + 2] != b"\r\n":
            raise ValueError("a chunk without an end")
        body, data = body + data[:size], data[size + 2 :]
        if not size:
            return body, data


def _check_form(answer: Answer, *, to_head: bool) -> None:
    """Check what every answer of the contract has: its headers, and an error's body."""
    line, *fields = answer.head.split(b"\r\n")
    assert re.fullmatch(rb"HTTP/1\.1 \d{3} [A-Za-z ]+", line), line
    headers = answer.headers
    assert len(headers) == len(fields), fields
    required = _ALWAYS | _MORE.get(answer.status, set())
    assert set(headers) - _OF_CONNECTION - _OF_OPTIONS - set(_check_limit(answer)) == required
    assert headers["content-type"] == "application/json"
    assert headers["cache-control"] == "private, no-store"
    assert re.fullmatch(r"[A-Za-z0-9._~-]{1,128}", headers["x-request-id"])
    assert headers.get("connection") == ("close" if answer.closes else None)
    if answer.status != 200 and not to_head:
        assert answer.body in (UNAVAILABLE, *ERRORS.values())


def _check_limit(answer: Answer) -> dict[str, str]:
    """Check and return the headers of a plan's limit: both or none, none to an unknown caller."""
    headers = answer.headers
    found = {name: value for name, value in headers.items() if name.startswith("ratelimit")}
    if not found:
        return found
    assert answer.status != 401
    policy = re.fullmatch(r'("[A-Za-z0-9_-]{1,64}");q=(\d{1,15});w=60', found["ratelimit-policy"])
    limit = re.fullmatch(r'("[A-Za-z0-9_-]{1,64}");r=(\d{1,15});t=(\d{1,2})', found["ratelimit"])
    assert policy, found
    assert limit, found
    assert limit[1] == policy[1]
    assert 0 <= int(limit[2]) < int(policy[2])
    assert 1 <= int(limit[3]) <= 60
    if answer.status == 429:
        assert (limit[2], limit[3]) == ("0", headers["retry-after"])
    return found


def request(line: bytes, *headers: bytes, body: bytes | None = None) -> bytes:
    """Return the bytes of a request; a body adds its length to the headers."""
    length = [] if body is None else [b"Content-Length: %d" % len(body)]
    return b"\r\n".join([line, *headers, *length, b"", body or b""])


def get(identifier: bytes, *headers: bytes, line: bytes = b"GET %b HTTP/1.1") -> bytes:
    """Return the bytes of a request for a server; the identifier may be followed by a query."""
    return request(line % (b"/gateway/v1/servers/" + identifier), HOST, KEY, *headers)


def compare(body: bytes, *headers: bytes) -> bytes:
    """Return the bytes of a request for a comparison."""
    return request(COMPARE, HOST, KEY, JSON, *headers, body=body)


def send_request(service: Service, sent: bytes, *, to_head: bool = False) -> Answer:
    """Send a request on a new connection and return the answer."""
    with Client(service) as client:
        client.send(sent)
        return client.read_answer(to_head=to_head)


def check_answer(service: Service, sent: bytes, expected: Expected) -> None:
    """Send a request on a new connection; check the answer and if the connection stays open."""
    to_head = sent.startswith(b"HEAD ")
    with Client(service) as client:
        client.send(sent)
        answer = client.read_answer(to_head=to_head)
        body = b"" if to_head else expected.body
        assert (answer.status, answer.body) == (expected.status, body)
        headers = answer.headers
        assert int(headers["content-length"]) == len(expected.body)
        assert dict(expected.headers).items() <= headers.items()
        assert answer.closes == (not expected.stays)
        if expected.stays:
            client.send(HEALTH)
            assert client.read_answer().status == 200
        else:
            assert client.read_rest() == b""


class Exchange(NamedTuple):
    """A request as bytes, and its correct answer."""

    request: bytes
    status: int
    body: bytes

    def find_problem(self, status: int, body: bytes) -> str | None:
        """Describe what is wrong with an answer; None if it is correct."""
        if (status, body) == (self.status, self.body):
            return None
        return f"{self.request[:400]!r}: status {status}, {body[:400]!r}"


@dataclass
class Outcome:
    """The outcome of a load."""

    answers: int = 0
    failures: list[str] = field(default_factory=list)
    most_between: int = 0
    """The most answers to other requests between a request and its answer."""


def run_load(
    port: int,
    turns: Sequence[Sequence[Exchange]],
    seconds: float,
    *,
    pause: float = 0.0,
    grace: float = float("inf"),
) -> Outcome:
    """Repeat the exchanges of each connection for some seconds, with a pause between them.

    A server may close a connection that was idle for `grace` seconds at the moment of a request.
    """
    return asyncio.run(_Run(port, pause, grace).run(turns, seconds))


def rotate(exchanges: Sequence[Exchange], connections: int) -> list[list[Exchange]]:
    """Give every connection all exchanges, each with a different first one."""
    starts = [number % len(exchanges) for number in range(connections)]
    return [[*exchanges[start:], *exchanges[:start]] for start in starts]


class _Run:
    def __init__(self, port: int, pause: float, grace: float) -> None:
        self._port = port
        self._pause = pause
        self._grace = grace
        self._outcome = Outcome()

    async def run(self, turns: Sequence[Sequence[Exchange]], seconds: float) -> Outcome:
        opened = [await self._open() for _ in turns]
        end = time.monotonic() + seconds
        await asyncio.gather(*map(self._keep_asking, opened, map(cycle, turns), repeat(end)))
        return self._outcome

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port)

    async def _keep_asking(
        self,
        opened: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        turn: Iterator[Exchange],
        end: float,
    ) -> None:
        reader, writer = opened
        answered_at, is_last = time.monotonic(), False
        while time.monotonic() < end:
            if is_last or reader.at_eof():
                writer.close()
                reader, writer = await self._open()
            exchange, before = next(turn), self._outcome.answers
            idle = time.monotonic() - answered_at
            is_last = b"\r\nConnection: close" in exchange.request
            try:
                writer.write(exchange.request)
                problem = exchange.find_problem(*await _read_answer(reader, exchange))
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                # HTTP/1.1 can't prevent that a request and the end of its idle connection cross.
                is_cut = bool(getattr(error, "partial", b"")) or idle < self._grace
                problem = f"{exchange.request[:400]!r}: {error!r}" if is_cut else None
                reader, writer = await self._open()
            self._outcome.most_between = max(
                self._outcome.most_between, self._outcome.answers - before
            )
            self._outcome.answers += 1
            self._outcome.failures += [problem] if problem else []
            answered_at = time.monotonic()
            await asyncio.sleep(self._pause)
        writer.close()


async def _read_answer(reader: asyncio.StreamReader, exchange: Exchange) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    status, _, fields = head.partition(b"\r\n")
    has_body = not exchange.request.startswith(b"HEAD ")
    length = fields.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
    body = await reader.readexactly(int(length)) if has_body else b""
    return int(status.split()[1]), body


def find_free_port() -> int:
    """Return a free port outside the range that the system assigns to port 0."""
    for port in sample(range(20_000, 30_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise SystemExit("no port is free between 20,000 and 30,000")
