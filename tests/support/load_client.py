"""A load client: many connections to one server on loopback, in a process of its own.

It uses plain sockets and prepared bytes so that a benchmark measures the server: on one core it
sends tens of thousands of requests a second, and `Outcome.busy` is the share of the core it used.
A connection has one pending request at a time.
"""

import heapq
import multiprocessing
import os
import selectors
import socket
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from itertools import cycle

from support.http import split_answer
from support.load import MAX_REPORTED, Cut, Exchange, Load, Outcome

PATIENCE = 30.0
"""Seconds to wait for pending answers after the last request."""

_MAX_BYTES = 1 << 18

Client = Callable[[Load], "Future[Outcome]"]


@contextmanager
def start_client(core: int | None = None) -> Iterator[Client]:
    """Start a client in a process of its own, on one core if given and supported."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=_pin, initargs=(core,)) as process:
        process.submit(os.getpid).result()
        yield lambda load: process.submit(run_load, load)


def _pin(core: int | None) -> None:
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def run_load(load: Load) -> Outcome:
    """Run a load in this process."""
    return _Run(load).run()


class _Connection:
    """A connection, its next requests, and the part of an answer that has arrived."""

    def __init__(self, turn: Iterator[Exchange]) -> None:
        self.turn = turn
        self.due = 0.0
        self.socket: socket.socket | None = None
        self.exchange: Exchange | None = None
        """The pending request."""
        self.sent_at = 0.0
        self.answered_at: float | None = None
        """When the previous answer on this socket was complete."""
        self.answers_before = 0
        self.received = b""


class _Run:
    """One run of a load, from its first request to its last answer."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._selector = selectors.DefaultSelector()
        self._scheduled: list[tuple[float, int, _Connection]] = []
        self._pending = self._wrong_count = self._refused = self._reopened = 0
        self._latencies = array("d")
        self._most_between = 0
        self._statuses: Counter[int] = Counter()
        self._wrong: list[str] = []
        self._cuts: list[Cut] = []

    def run(self) -> Outcome:
        """Run the load and return its outcome."""
        load = self._load
        connections = [
            _Connection(cycle(turn) if load.is_repeated else iter(turn)) for turn in load.turns
        ]
        if load.first:
            for number, connection in enumerate(connections):
                self._send_first(number, connection, load.first)
        cpu, started = time.process_time(), time.monotonic()
        last = started
        for number, connection in enumerate(connections):
            # With a pause, connections start one after another, not all at once.
            connection.due = started + load.pause * number / len(connections)
            heapq.heappush(self._scheduled, (connection.due, number, connection))
        while (now := time.monotonic()) < started + load.seconds + PATIENCE:
            self._send_due(now, deadline=started + load.seconds)
            if not self._pending and not self._scheduled:
                break
            next_due = self._scheduled[0][0] - now if self._scheduled else PATIENCE
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
            self._most_between,
        )

    def _send_first(self, number: int, connection: _Connection, first: Exchange) -> None:
        """Open a connection and send a request on it that is not measured."""
        opened = self._open(number, connection)
        opened.setblocking(True)
        opened.sendall(first.request)
        received = b""
        while (found := split_answer(received, is_head=False)) is None:
            part = opened.recv(_MAX_BYTES)
            received += part
            if not part:
                raise ConnectionError(f"{first.name}: closed")
        answer, _ = found
        if problem := first.find_problem(answer.status, answer.body):
            self._report(f"{first.name}: {problem}")
        opened.setblocking(False)

    def _send_due(self, now: float, deadline: float) -> None:
        if now >= deadline:
            self._scheduled.clear()
        while self._scheduled and self._scheduled[0][0] <= now:
            _, number, connection = heapq.heappop(self._scheduled)
            self._send(number, connection)

    def _send(self, number: int, connection: _Connection) -> None:
        exchange = next(connection.turn, None)
        if exchange is None:
            self._close(connection)
            return
        connection.exchange, connection.received = exchange, b""
        self._pending += 1
        try:
            opened = connection.socket or self._open(number, connection)
            connection.sent_at = time.monotonic()
            connection.answers_before = len(self._latencies)
            opened.sendall(exchange.request)
        except ConnectionRefusedError:
            self._refused += 1
            self._pending -= 1
        except OSError:
            self._cut(connection)

    def _open(self, number: int, connection: _Connection) -> socket.socket:
        opened = socket.create_connection(("127.0.0.1", self._load.port), timeout=PATIENCE)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.setblocking(False)
        self._selector.register(opened, selectors.EVENT_READ, (number, connection))
        connection.socket, connection.answered_at = opened, None
        return opened

    def _receive(self, data: tuple[int, _Connection]) -> None:
        number, connection = data
        if connection.socket is None:
            return
        try:
            received = connection.socket.recv(_MAX_BYTES)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if connection.exchange is None:
            self._reopened += not received
            if received:
                self._report("more than an answer", received)
            self._close(connection)
        elif not received:
            self._cut(connection)
        else:
            connection.received += received
            self._handle(number, connection, connection.exchange)

    def _handle(self, number: int, connection: _Connection, exchange: Exchange) -> None:
        """Check the answer once it is complete, and schedule the next request."""
        is_head = exchange.request.startswith(b"HEAD ")
        try:
            if (found := split_answer(connection.received, is_head=is_head)) is None:
                return
            answer, rest = found
            if rest:
                raise ValueError("more than an answer")  # noqa: TRY301 - reported like a malformed one
        except ValueError as error:
            self._report(f"{exchange.name}: {error}", connection.received)
            self._pending -= 1
            self._close(connection)
            return
        now = time.monotonic()
        between = len(self._latencies) - connection.answers_before
        self._most_between = max(self._most_between, between)
        connection.answered_at = now
        self._latencies.append(now - (connection.due if self._load.pause else connection.sent_at))
        self._statuses[answer.status] += 1
        if problem := exchange.find_problem(answer.status, answer.body):
            self._report(f"{exchange.name}: {problem}")
        connection.exchange = None
        self._pending -= 1
        if answer.closes:
            self._close(connection)
        connection.due = connection.due + self._load.pause if self._load.pause else now
        heapq.heappush(self._scheduled, (connection.due, number, connection))

    def _report(self, what: str, received: bytes = b"") -> None:
        self._wrong_count += 1
        if len(self._wrong) < MAX_REPORTED:
            self._wrong.append(f"{what} {received[:400]!r}" if received else what)

    def _cut(self, connection: _Connection) -> None:
        assert connection.exchange is not None
        before = connection.answered_at
        idle = None if before is None else connection.sent_at - before
        cut = Cut(connection.exchange.name, connection.sent_at, connection.received, idle)
        self._cuts.append(cut)
        self._pending -= 1
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
                self._report(f"{connection.exchange.name}: no answer in time", connection.received)
            self._close(connection)
        self._selector.close()
