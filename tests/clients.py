"""A load client: many connections to one server on loopback, in a process of its own.

Plain sockets and ready-made bytes, because what is measured is the server: one core of this client
asks more than ten times what one core of a service in Python answers, and `Outcome.busy` says how
much of that it did. A connection has one request under way at a time.
"""

import heapq
import multiprocessing
import os
import re
import selectors
import socket
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from itertools import chain, cycle, islice
from typing import NamedTuple

PATIENCE = 30.0
"""Seconds after the time is up in which requests under way may still be answered."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_MOST_BYTES = 1 << 18
_MOST_TOLD = 50
_NO_BODY = (204, 304)


class Exchange(NamedTuple):
    """A request as its bytes, and the answers to it that are right."""

    request: bytes
    status: int = 200
    bodies: tuple[bytes, ...] = ()
    """Each is a right one; without any, every body is."""

    @property
    def name(self) -> str:
        """The request line and the body, by which a request is found again."""
        head, _, body = self.request.partition(b"\r\n\r\n")
        line, _, _ = head.partition(b"\r\n")
        return f"{line!r} {body[:400]!r}" if body else repr(line[:400])

    def wrong_with(self, status: int, body: bytes) -> str | None:
        """Say what is wrong with an answer; None if nothing is."""
        if status != self.status:
            return f"status {status}, not {self.status}: {body[:200]!r}"
        if self.bodies and body not in self.bodies:
            return f"other bytes: {body[:400]!r}"
        return None


class Load(NamedTuple):
    """What is asked of a server."""

    port: int
    turns: Sequence[Sequence[Exchange]]
    """What each connection asks, one after another."""
    seconds: float
    """No request begins after this time."""
    is_repeated: bool = True
    """Begin a turn again where it ends; otherwise the connection ends with it."""
    pause: float = 0.0
    """Seconds from the moment a connection's request is due to the moment its next one is.

    Without a pause, the next one is due once the one before is answered.
    """


class Cut(NamedTuple):
    """A connection that ended while a request was under way."""

    name: str
    sent_at: float
    """By time.monotonic, which all processes of a machine share."""
    received: bytes
    """The part of an answer that had come."""


class Outcome(NamedTuple):
    """What became of a load."""

    answers: int
    """Right and wrong ones."""
    seconds: float
    """From the first request to the last answer."""
    latencies: "array[float]"
    """Seconds from the moment a request was due to its whole answer.

    A request that had to wait for the answer before it counts its waiting, too.
    """
    statuses: Counter[int]
    wrong: Sequence[str]
    """The first answers that were not right, or not HTTP."""
    wrong_count: int
    cuts: Sequence[Cut]
    refused: int
    """Connections that ended because the server took no more."""
    reopened: int
    """Connections that the server had closed between two requests."""
    busy: float
    """The part of its core that the client used; near 1 the figures are the client's own."""

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds

    def quantile(self, part: float) -> float:
        """Return the milliseconds within which this part of the answers had come."""
        ranked = sorted(self.latencies)
        return ranked[min(int(len(ranked) * part), len(ranked) - 1)] * 1_000

    def failures(self) -> list[str]:
        """Return everything that is not a right answer, where each request should have one."""
        found = list(self.wrong)
        if self.wrong_count > len(found):
            found.append(f"and {self.wrong_count - len(found):,} other wrong answers")
        found += [
            f"{cut.name}: closed after {len(cut.received)} bytes of an answer"
            for cut in self.cuts[:_MOST_TOLD]
        ]
        if self.refused:
            found.append(f"{self.refused} connections were refused")
        return found


def request(target: str, *, method: str = "GET", body: bytes | None = None) -> bytes:
    """Return a request as its bytes, with a key."""
    head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Gateway-Key: a-key\r\n"
    if body is None:
        return f"{head}\r\n".encode("ascii")
    length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + length).encode("ascii") + body


Client = Callable[[Load], "Future[Outcome]"]


@contextmanager
def client(core: int | None = None) -> Iterator[Client]:
    """Start a client in a process of its own, on one core where a core can be chosen."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=_pin, initargs=(core,)) as process:
        process.submit(os.getpid).result()
        yield lambda load: process.submit(ask, load)


def _pin(core: int | None) -> None:
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def ask(load: Load) -> Outcome:
    """Ask in this process."""
    return _Asking(load).outcome()


class _Connection:
    """A connection, what it asks next, and what it has received of the answer."""

    def __init__(self, turn: Iterator[Exchange], due: float) -> None:
        self.turn, self.due = turn, due
        self.socket: socket.socket | None = None
        self.exchange: Exchange | None = None
        """The request under way."""
        self.sent_at = 0.0
        self.received = b""


class _Asking:
    """One load, from its first request to its last answer."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._selector = selectors.DefaultSelector()
        self._waiting: list[tuple[float, int, _Connection]] = []
        self._under_way = self._wrong_count = self._refused = self._reopened = 0
        self._latencies = array("d")
        self._statuses: Counter[int] = Counter()
        self._wrong: list[str] = []
        self._cuts: list[Cut] = []

    def outcome(self) -> Outcome:
        load, cpu = self._load, time.process_time()
        started = last = time.monotonic()
        for number, turn in enumerate(load.turns):
            # Connections that pause begin one after another, not all at once.
            due = started + load.pause * number / len(load.turns)
            turns = cycle(turn) if load.is_repeated else iter(turn)
            heapq.heappush(self._waiting, (due, number, _Connection(turns, due)))
        while (now := time.monotonic()) < started + load.seconds + PATIENCE:
            self._begin_what_is_due(now, ends_at=started + load.seconds)
            if not self._under_way and not self._waiting:
                break
            next_due = self._waiting[0][0] - now if self._waiting else PATIENCE
            for key, _ in self._selector.select(max(next_due, 0)):
                self._receive(key.data)
                last = time.monotonic()
        busy = (time.process_time() - cpu) / max(time.monotonic() - started, 1e-9)
        self._close_all()
        return Outcome(
            len(self._latencies),
            last - started,
            self._latencies,
            self._statuses,
            self._wrong,
            self._wrong_count,
            self._cuts,
            self._refused,
            self._reopened,
            busy,
        )

    def _begin_what_is_due(self, now: float, ends_at: float) -> None:
        if now >= ends_at:
            self._waiting.clear()
        while self._waiting and self._waiting[0][0] <= now:
            _, number, connection = heapq.heappop(self._waiting)
            self._send(number, connection)

    def _send(self, number: int, connection: _Connection) -> None:
        exchange = next(connection.turn, None)
        if exchange is None:
            self._close(connection)
            return
        connection.exchange, connection.received = exchange, b""
        self._under_way += 1
        try:
            opened = connection.socket or self._opened(number, connection)
            connection.sent_at = time.monotonic()
            opened.sendall(exchange.request)
        except ConnectionRefusedError:
            self._refused += 1
            self._under_way -= 1
        except OSError:
            self._cut(connection)

    def _opened(self, number: int, connection: _Connection) -> socket.socket:
        opened = socket.create_connection(("127.0.0.1", self._load.port), timeout=PATIENCE)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.setblocking(False)
        self._selector.register(opened, selectors.EVENT_READ, (number, connection))
        connection.socket = opened
        return opened

    def _receive(self, data: tuple[int, _Connection]) -> None:
        number, connection = data
        if connection.socket is None:
            return
        try:
            received = connection.socket.recv(_MOST_BYTES)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if connection.exchange is None:
            self._reopened += not received
            if received:
                self._tell("more than an answer", received)
            self._close(connection)
        elif not received:
            self._cut(connection)
        else:
            connection.received += received
            self._take(number, connection, connection.exchange)

    def _take(self, number: int, connection: _Connection, exchange: Exchange) -> None:
        """Judge the answer, if it is whole, and have the next request wait for its time."""
        try:
            answer = _answer_in(connection.received, is_head=exchange.request.startswith(b"HEAD "))
        except ValueError as error:
            self._tell(f"{exchange.name}: {error}", connection.received)
            self._under_way -= 1
            self._close(connection)
            return
        if answer is None:
            return
        now = time.monotonic()
        self._latencies.append(now - (connection.due if self._load.pause else connection.sent_at))
        self._statuses[answer.status] += 1
        if wrong := exchange.wrong_with(answer.status, answer.body):
            self._tell(f"{exchange.name}: {wrong}")
        connection.exchange = None
        self._under_way -= 1
        if answer.is_last:
            self._close(connection)
        connection.due = connection.due + self._load.pause if self._load.pause else now
        heapq.heappush(self._waiting, (connection.due, number, connection))

    def _tell(self, what: str, received: bytes = b"") -> None:
        self._wrong_count += 1
        if len(self._wrong) < _MOST_TOLD:
            self._wrong.append(f"{what} {received[:400]!r}" if received else what)

    def _cut(self, connection: _Connection) -> None:
        assert connection.exchange is not None
        cut = Cut(connection.exchange.name, connection.sent_at, connection.received)
        self._cuts.append(cut)
        self._under_way -= 1
        self._close(connection)

    def _close(self, connection: _Connection) -> None:
        connection.exchange = None
        if connection.socket is not None:
            self._selector.unregister(connection.socket)
            connection.socket.close()
            connection.socket = None

    def _close_all(self) -> None:
        for key in list(self._selector.get_map().values()):
            _, connection = key.data
            if connection.exchange is not None:
                self._tell(f"{connection.exchange.name}: no answer in time", connection.received)
            self._close(connection)
        self._selector.close()


class _Answer(NamedTuple):
    status: int
    body: bytes
    is_last: bool
    """Whether the server closes the connection after it."""


def _answer_in(received: bytes, *, is_head: bool) -> _Answer | None:
    """Return the answer that was received; None while it is not whole.

    Raises ValueError for what is no answer, or more than one.
    """
    head, blank, rest = received.partition(b"\r\n\r\n")
    if not blank:
        return None
    status, is_last = int(head[9:12]), bool(_CLOSE.search(head))
    if is_head or status in _NO_BODY:
        if rest:
            raise ValueError("a body where there is none")
        return _Answer(status, b"", is_last)
    if length := _LENGTH.search(head):
        body = rest if len(rest) >= int(length[1]) else None
        if body is not None and len(body) > int(length[1]):
            raise ValueError("more than an answer")
    elif _CHUNKED.search(head):
        body = _dechunked(rest)
    else:
        raise ValueError("an answer without a length")
    return None if body is None else _Answer(status, body, is_last)


def _dechunked(data: bytes) -> bytes | None:
    """Return a body that came in chunks; None while it is not whole.

    Raises ValueError.
    """
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
        if not size:
            return body
        body, data = body + data[:size], data[size + 2 :]


def dealt(exchanges: Sequence[Exchange], connections: int) -> list[list[Exchange]]:
    """Deal each exchange to one connection, as cards are dealt."""
    return [list(islice(exchanges, place, None, connections)) for place in range(connections)]


def rotated(exchanges: Sequence[Exchange], connections: int) -> list[list[Exchange]]:
    """Give all exchanges to each connection, each beginning with another one."""
    step = max(len(exchanges) // connections, 1)
    starts = [place * step % len(exchanges) for place in range(connections)]
    return [[*islice(chain(exchanges[start:], exchanges), len(exchanges))] for start in starts]
