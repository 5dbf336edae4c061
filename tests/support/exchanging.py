"""Requests to the service as bytes on a socket, and its answers, judged to the last header."""

import json
import re
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from support.serving import Service

A = b"GET /gateway/v1/servers/a HTTP/1.1"
"""The request line that asks for the server `a`."""
COMPARE = b"POST /gateway/v1/compare HTTP/1.1"
HOST = b"Host: x"
KEY = b"X-Gateway-Key: k"
JSON = b"Content-Type: application/json"
TWO = b'{"servers":[{"identifier":"a","by":"id"},{"identifier":"b","by":"id"}]}'
"""The body that compares the servers `a` and `b`."""

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

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
_MORE = {
    401: {"www-authenticate"},
    405: {"allow"},
    429: {"retry-after"},
}


class Answer(NamedTuple):
    """A whole answer; its headers have lower-case names."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)

    @property
    def told(self) -> tuple[int, bytes, dict[str, str]]:
        """All of the answer that a client may learn something from: no id, and no date."""
        headers = {
            name: value
            for name, value in self.headers.items()
            if name not in {"date", "x-request-id"}
        }
        return self.status, self.body, headers


class Expected(NamedTuple):
    """What an answer is to be, and whether the connection is there for another one."""

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
        """Send bytes, whether or not the other side takes them all."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def send_no_more(self) -> None:
        """End this side of the connection; the answer can still come."""
        self.socket.shutdown(socket.SHUT_WR)

    def answer(self, *, to_head: bool = False) -> Answer:
        """Wait for an answer, which is to be whole and of the form that all answers have.

        The answer to HEAD has the length of a body that does not come.
        """
        status, headers = self._head()
        length = 0 if to_head else int(headers["content-length"])
        while len(self._received) < length:
            self._receive()
        body, self._received = self._received[:length], self._received[length:]
        answer = Answer(status, headers, body)
        _judge(answer, to_head=to_head)
        return answer

    def continues(self) -> None:
        """Wait for the service to say that it wants the body."""
        while b"\r\n\r\n" not in self._received:
            self._receive()
        line, _, self._received = self._received.partition(b"\r\n\r\n")
        assert line.startswith(b"HTTP/1.1 100 ")

    def rest(self) -> bytes:
        """Return what else comes until the service ends the connection."""
        while True:
            try:
                self._receive()
            except EOFError:
                rest, self._received = self._received, b""
                return rest

    def _head(self) -> tuple[int, dict[str, str]]:
        while b"\r\n\r\n" not in self._received:
            self._receive()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        line, *fields = head.decode("ascii").split("\r\n")
        found = re.fullmatch(r"HTTP/1\.1 (\d{3}) [A-Za-z ]+", line)
        assert found, line
        headers = [field.partition(": ") for field in fields]
        names = [name.lower() for name, _, _ in headers]
        assert len(set(names)) == len(names), names
        return int(found[1]), dict(zip(names, (value for _, _, value in headers), strict=True))

    def _receive(self) -> None:
        try:
            received = self.socket.recv(65_536)
        except ConnectionResetError:
            received = b""
        if not received:
            raise EOFError(self._received)
        self._received += received


def _judge(answer: Answer, *, to_head: bool) -> None:
    """See that an answer is one of the contract's, whatever it answers."""
    names = set(answer.headers) - {"connection"}
    assert names == _ALWAYS | _MORE.get(answer.status, set())
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "private, no-store"
    assert re.fullmatch(r"[A-Za-z0-9._~-]{1,128}", answer.headers["x-request-id"])
    assert answer.headers.get("connection", "close") == "close"
    if answer.status != 200 and not to_head:
        assert answer.body in ERRORS.values()


def request(line: bytes, *headers: bytes, body: bytes | None = None) -> bytes:
    """Return the bytes of a request; a body brings its length along."""
    length = [] if body is None else [b"Content-Length: %d" % len(body)]
    return b"\r\n".join([line, *headers, *length, b"", body or b""])


def get(identifier: bytes, *headers: bytes, line: bytes = b"GET %b HTTP/1.1") -> bytes:
    """Return the bytes that ask for a server; what follows the identifier can be a query."""
    return request(line % (b"/gateway/v1/servers/" + identifier), HOST, KEY, *headers)


def compare(body: bytes, *headers: bytes) -> bytes:
    """Return the bytes that ask for a comparison."""
    return request(COMPARE, HOST, KEY, JSON, *headers, body=body)


def answer_to(service: Service, sent: bytes, *, to_head: bool = False) -> Answer:
    """Send a request on a connection of its own and return its answer."""
    with Client(service) as client:
        client.send(sent)
        return client.answer(to_head=to_head)


def see(service: Service, sent: bytes, expected: Expected) -> None:
    """Send a request, and see that all of its outcome is as expected."""
    to_head = sent.startswith(b"HEAD ")
    with Client(service) as client:
        client.send(sent)
        answer = client.answer(to_head=to_head)
        body = b"" if to_head else expected.body
        assert (answer.status, answer.body) == (expected.status, body)
        assert int(answer.headers["content-length"]) == len(expected.body)
        assert dict(expected.headers).items() <= answer.headers.items()
        assert ("connection" in answer.headers) <= (not expected.stays)
        if expected.stays:
            client.send(HEALTH)
            assert client.answer().status == 200
        else:
            assert client.rest() == b""
