"""Limit the time for each part of a request, and the number of open connections.

uvicorn has no deadline for reading: a client that is silent, or that sends a request byte by byte,
could keep its connection open forever.
"""

import asyncio
import select
from collections.abc import Callable
from enum import Enum
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from srvstat.asgi.parser import Parser
from srvstat.contract.http import MAX_HEAD_BYTES

HEAD_SECONDS = 5.0
"""From the first byte of a request, or from the start of the connection, to the end of the head."""
BODY_SECONDS = 5.0
"""From the end of the head to the end of the body."""
IDLE_SECONDS = 15.0
"""Between an answer and the next request."""
ANSWER_SECONDS = 20.0
"""From the end of a request until the client has received its answer."""
STOP_SECONDS = 0.5
"""From the signal to stop to the first byte of the next request of a connection.

A request can be on its way when the signal arrives.
"""

SECONDS_BETWEEN_CHECKS = 0.2
"""Checking all connections costs less than a timer for each part of each request."""

BODY_ERROR = "srvstat.body_error"
"""Key in the state of a request whose body is incomplete; the value is the reason."""
IS_GONE = "srvstat.is_gone"
"""Key in the state of a request whose connection is closed."""
ON_GONE = "srvstat.on_gone"
"""Key in the state of a request; the value is a function to call when its connection is closed."""
CLOSE = "srvstat.close"
"""Key in the state of every request; the value is a function that closes its connection.

The answers to earlier requests are sent first.
"""

MAX_BYTES_UNREAD = 1 << 20
"""Limit of the bytes discarded from a body whose request was answered before the body ended."""

AnswerMalformed = Callable[[tuple[str, int] | None], tuple[list[tuple[bytes, bytes]], bytes]]
"""Logs a malformed request from an address, and returns the headers and the body of the answer."""


class _Phase(Enum):
    """What a connection waits for, and the seconds it may wait."""

    # The names make the values different: an enumeration merges members with equal values.
    HEAD = ("head", HEAD_SECONDS)
    BODY = ("body", BODY_SECONDS)
    ANSWER = ("answer", ANSWER_SECONDS)
    IDLE = ("idle", IDLE_SECONDS)

    @property
    def seconds(self) -> float:
        """The deadline of the phase."""
        return self.value[1]


class ConnectionLimiter:
    """Limit open connections; when full, close the one that has waited for its client longest.

    A connection is not counted once it is aborted; asyncio closes its socket slightly later.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: set[Connection] = set()
        # In the order in which they began to wait for their clients.
        self._waiting: dict[Connection, None] = {}

    def admit(self, connection: "Connection") -> bool:
        """Add a new connection; return False if it must be closed instead."""
        while len(self._open) >= self._limit:
            oldest = next(iter(self._waiting), None)
            if oldest is None:
                return False
            self.remove(oldest)
            oldest.transport.abort()
        self._open.add(connection)
        self._waiting[connection] = None
        return True

    def mark_waiting(self, connection: "Connection") -> None:
        """Mark a connection as waiting for its client from now on."""
        if connection in self._open:
            self._waiting.pop(connection, None)
            self._waiting[connection] = None

    def mark_busy(self, connection: "Connection") -> None:
        """Mark a connection as being answered, so that it is not closed for a new one."""
        self._waiting.pop(connection, None)

    def remove(self, connection: "Connection") -> None:
        """Remove a connection."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)


class Connection(H11Protocol):
    """uvicorn's connection with deadlines, a limiter, and our own answer to malformed HTTP."""

    def __init__(
        self,
        *,
        limiter: ConnectionLimiter,
        answer_malformed: AnswerMalformed,
        **uvicorn_arguments: Any,
    ) -> None:
        super().__init__(**uvicorn_arguments)
        self.conn = self._parser = Parser(IDLE_SECONDS)
        self._limiter = limiter
        self._answer_malformed = answer_malformed
        self._waits_for: tuple[_Phase, object] = (_Phase.HEAD, None)
        self._since = self.loop.time()
        self._unread = 0
        self._has_eof = False
        self._stopped_at: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Close the connection at once unless the limiter admits it."""
        super().connection_made(transport)
        if not self._limiter.admit(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the limiter, and inform the application."""
        self._limiter.remove(self)
        if self._has_request():
            state = self.scope["state"]
            state[IS_GONE] = True
            if ON_GONE in state:
                state[ON_GONE]()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data in pieces, so that a long head is rejected however it arrives."""
        for start in range(0, len(data), MAX_HEAD_BYTES):
            if self.transport.is_closing():
                return
            self._parse(data[start : start + MAX_HEAD_BYTES])

    def _parse(self, data: bytes) -> None:
        phase, _ = self._waits_for
        if phase is _Phase.BODY and self._is_answered():
            self._unread += len(data)
        else:
            self._unread = 0
        super().data_received(data)
        self._update_phase()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's returns nothing
        """Answer the requests received so far to a client that sends no more."""
        self._has_eof = True
        # The client may also have stopped reading, so a new connection may replace this one.
        self._limiter.mark_waiting(self)
        self._finish_input()
        return True

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self._has_eof:
            self._finish_input()
        self._update_phase()

    def _finish_input(self) -> None:
        if not self._has_request() or self._is_answered():
            self.transport.close()
        elif self.conn.their_state is h11.SEND_BODY:
            self._end_body("body: incomplete, or malformed chunks")

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        """Answer malformed HTTP with the contract's error, if an answer is still possible."""
        if self._has_request() and not self._is_answered():
            self._end_body("body: incomplete, or malformed chunks")
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers, body = self._answer_malformed(self.client)
            headers = [*self.server_state.default_headers, *headers]  # the date
            response = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _end_body(self, reason: str) -> None:
        """End a body with an error. The application answers, because it checks the key first."""
        self.scope["state"][BODY_ERROR] = reason
        self._parser.closes_after_answer = True
        self.cycle.keep_alive = False
        self.cycle.more_body = False
        self.cycle.message_event.set()

    def _has_request(self) -> bool:
        # It is None before the first request, which uvicorn's types omit.
        return bool(self.cycle)

    def _is_answered(self) -> bool:
        return self._has_request() and self.cycle.response_complete

    def end_if_late(self) -> None:
        """Close the connection if its deadline has passed; answer a late body with an error."""
        phase, _ = self._waits_for
        if self.loop.time() <= self._find_deadline(phase):
            return
        if phase is _Phase.BODY and not self._is_answered():
            self._end_body(f"body: not complete within {BODY_SECONDS:g} s")
            self._update_phase()
        else:
            self.transport.abort()

    def _find_deadline(self, phase: _Phase) -> float:
        deadline = self._since + phase.seconds
        if self._stopped_at is None or not self._is_silent(phase):
            return deadline
        return min(deadline, max(self._since, self._stopped_at) + STOP_SECONDS)

    def _is_silent(self, phase: _Phase) -> bool:
        """Return whether no byte of a request has arrived since the last answer."""
        if phase not in (_Phase.HEAD, _Phase.IDLE) or self.conn.trailing_data[0]:
            return False
        unread = select.poll()  # something may have arrived while the event loop was busy
        unread.register(self.transport.get_extra_info("socket"), select.POLLIN)
        return not unread.poll(0)

    def shutdown(self) -> None:
        """Close the connection after its next answer, or soon if no request arrives."""
        self._stopped_at = self.loop.time()
        self._parser.closes_after_answer = True

    def _update_phase(self) -> None:
        """Record what the connection waits for, and since when."""
        if self._has_request():
            self.scope["state"][CLOSE] = self.transport.close  # before the request's task starts
        if self._unread > MAX_BYTES_UNREAD:
            self.transport.abort()
        waits_for = (self._find_phase(), self.cycle)
        if waits_for != self._waits_for:
            self._waits_for = waits_for
            self._since = self.loop.time()
            if waits_for[0] is _Phase.ANSWER and not self._has_eof:
                self._limiter.mark_busy(self)
            else:
                self._limiter.mark_waiting(self)

    def _find_phase(self) -> _Phase:
        is_answered = self._is_answered()
        if self.conn.their_state is h11.SEND_BODY and (is_answered or not self._has_body_error()):
            return _Phase.BODY
        if self._has_request() and not is_answered:
            return _Phase.ANSWER
        has_more = not self._has_request() or self.conn.trailing_data[0]
        return _Phase.HEAD if has_more else _Phase.IDLE

    def _has_body_error(self) -> bool:
        return BODY_ERROR in self.scope["state"]
