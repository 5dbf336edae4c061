"""Connections that end: every part of a request has a deadline, and idle ones make room.

uvicorn has no deadline for reading: a silent connection, a head that trickles in or a body that
never comes would each stay open for good.
"""

import asyncio
from enum import Enum
from typing import Protocol, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from srvstat.asgi.parser import Parser
from srvstat.asgi.room import Room
from srvstat.contract.http import MAX_HEAD_BYTES

HEAD_SECONDS = 5.0
"""From the first byte of a request, or from the connection, to the end of its head."""
BODY_SECONDS = 5.0
"""From the end of the head to the end of the body."""
IDLE_SECONDS = 15.0
"""Between an answer and the next request."""
ANSWER_SECONDS = 20.0
"""From the end of a request until its answer has been taken."""

SECONDS_BETWEEN_LOOKS = 0.2
"""A look at all connections costs less than a timer for each part of each request."""

BROKEN_BODY = "srvstat.broken_body"
"""Stands in the state of a request whose body ended before its end."""
GONE = "srvstat.gone"
"""Stands in the state of a request whose connection has ended."""
_MAX_BYTES_UNREAD = 1 << 20
"""Of a body that was answered before its end, so much is thrown away; then the connection ends."""


class _Phase(Enum):
    """What a connection waits for, and how long at most."""

    # The names keep members apart whose seconds are equal: an enumeration merges equal values.
    HEAD = ("head", HEAD_SECONDS)
    BODY = ("body", BODY_SECONDS)
    ANSWER = ("answer", ANSWER_SECONDS)
    IDLE = ("idle", IDLE_SECONDS)

    @property
    def seconds(self) -> float:
        """How long a connection may stay in this phase."""
        return self.value[1]


class Hosts(Protocol):
    """What a connection needs of its application."""

    room: Room

    def malformed(self, client: tuple[str, int] | None) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Return the headers and the body of a 400, and log it."""
        ...


class Connection(H11Protocol):
    """uvicorn's connection, with deadlines, the contract's errors, and room for new ones."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin, and wait for the head of a request."""
        self._host = cast("Hosts", self.app)
        self._waits_for: tuple[_Phase, object] = (_Phase.HEAD, None)
        self._since = self.loop.time()
        self._unread = 0
        self._has_heard_all = False
        self.conn = Parser(h11.SERVER, MAX_HEAD_BYTES)
        super().connection_made(transport)
        if not self._host.room.enter(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and tell whoever still works for it."""
        self._host.room.leave(self)
        if self._has_begun():
            self.scope["state"][GONE] = True
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has come, in pieces: a head is too long however it arrives."""
        for start in range(0, len(data), MAX_HEAD_BYTES):
            if self.transport.is_closing():
                return
            self._take(data[start : start + MAX_HEAD_BYTES])

    def _take(self, data: bytes) -> None:
        phase, _ = self._waits_for
        if phase is _Phase.BODY and self._is_answered():
            self._unread += len(data)
        else:
            self._unread = 0
        super().data_received(data)
        self._look()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's returns nothing
        """Answer whoever says no more, all that was asked before."""
        self._has_heard_all = True
        # It may as well have left: where there is no room, others come first.
        self._host.room.waits(self)
        self._end_unless_asked()
        return True

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self._has_heard_all:
            self._end_unless_asked()
        self._look()

    def _end_unless_asked(self) -> None:
        if not self._has_begun() or self._is_answered():
            self.transport.close()
        elif self.conn.their_state is h11.SEND_BODY:
            self._end_body()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's own text, in its shape
        """Answer what is no HTTP with the contract's error, where it can still be answered."""
        if self._has_begun() and not self._is_answered():
            self._end_body()
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers, body = self._host.malformed(self.client)
            headers = [*self.server_state.default_headers, *headers]  # the date
            response = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _end_body(self) -> None:
        """Let the application answer: a body that is no HTTP is not the first thing it judges."""
        self.scope["state"][BROKEN_BODY] = True
        self.cycle.keep_alive = False
        self.cycle.more_body = False
        self.cycle.message_event.set()

    def _has_begun(self) -> bool:
        # It is None until there is a request, which uvicorn's types do not say.
        return bool(self.cycle)

    def _is_answered(self) -> bool:
        return self._has_begun() and self.cycle.response_complete

    def end_if_late(self) -> None:
        """End a connection that has waited too long; asked again and again."""
        phase, _ = self._waits_for
        seconds = phase.seconds
        if phase is _Phase.BODY and not self._is_answered():
            # The application has the same deadline, and is about to answer.
            seconds += SECONDS_BETWEEN_LOOKS
        if self.loop.time() - self._since > seconds:
            self.transport.abort()

    def _look(self) -> None:
        """Notice what the connection waits for now, and since when."""
        if self._unread > _MAX_BYTES_UNREAD:
            self.transport.abort()
        # uvicorn's own deadline is for idle connections alone, and ends with the next byte.
        self._unset_keepalive_if_required()
        waits_for = (self._phase(), self.cycle)
        if waits_for != self._waits_for:
            self._waits_for = waits_for
            self._since = self.loop.time()
            if waits_for[0] is _Phase.ANSWER and not self._has_heard_all:
                self._host.room.is_asked(self)
            else:
                self._host.room.waits(self)

    def _phase(self) -> _Phase:
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            return _Phase.BODY
        if self._has_begun() and not self._is_answered():
            return _Phase.ANSWER
        comes = not self._has_begun() or self.conn.trailing_data[0]
        return _Phase.HEAD if comes else _Phase.IDLE
