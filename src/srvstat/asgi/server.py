"""Run the service: a socket, uvicorn on it, and an end that finishes what is under way."""

import asyncio
import gc
import ipaddress
import logging
import math
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import uvicorn

from srvstat.asgi.app import Service
from srvstat.asgi.auth import Callers
from srvstat.asgi.connection import ANSWER_SECONDS, SECONDS_BETWEEN_LOOKS, Connection
from srvstat.asgi.log import Log
from srvstat.asgi.room import Room
from srvstat.asgi.snapshots import ServedSnapshot
from srvstat.contract.errors import UsageError

_BACKLOG = 2_048
MOST_CONNECTIONS = 2_000
_ACCEPTED_TOGETHER = 8
"""asyncio accepts so many connections before it looks at any, however many descriptors are left.

It takes this number from the backlog, which is set anew after that.
"""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SECONDS_BETWEEN_WARNINGS = 1.0
_OTHER_DESCRIPTORS = 64
"""How many files are open besides the connections, at most."""


def listening(host: str, port: int, *, only_here: bool) -> socket.socket:
    """Return a socket that listens at an address; port 0 is any that is free.

    `only_here` refuses an address that other machines can reach.

    Raises UsageError.
    """
    if not host:
        raise UsageError("--host: empty; 127.0.0.1 is this machine")
    try:
        ((family, kind, protocol, _, address), *_) = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not a host"
        raise UsageError(f"--host {host}: {reason}") from None
    if only_here and not ipaddress.ip_address(address[0]).is_loopback:
        listener.close()
        raise UsageError(
            f"--host {host}: without keys only this machine may ask (127.0.0.1); give --access FILE"
        )
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise UsageError(f"--host {host} --port {port}: {error.strerror}") from None
    return listener


def serve(
    path: str, access: str | None, listener: socket.socket, ready: Callable[[], None]
) -> None:
    """Serve a snapshot until a signal ends it; `ready` is called once requests are taken.

    Raises SourceError for the access file, SnapshotError.
    """
    log = Log()
    service = Service(
        callers=Callers(access, log),
        snapshot=ServedSnapshot(path, log),
        log=log,
        room=Room(_most_connections()),
    )
    config = uvicorn.Config(
        service,
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        workers=1,
        backlog=_ACCEPTED_TOGETHER,
        timeout_graceful_shutdown=int(ANSWER_SECONDS),
    )
    _tell_warnings(log)
    # The command line starts without the collector, which only long work needs.
    gc.freeze()
    gc.enable()
    _Server(config, service, log, ready).run([listener])


class _Server(uvicorn.Server):
    """uvicorn's server, which says when it is ready, keeps deadlines, and ends with its log."""

    def __init__(
        self, config: uvicorn.Config, service: Service, log: Log, ready: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._room = service.room
        self._log = log
        self._ready = ready
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_BACKLOG)
        self._looks = self._loop.create_task(self._look())
        self._ready()

    async def _look(self) -> None:
        """End connections that are late, until all have ended."""
        while True:
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.end_if_late()
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn takes over two signals, be they ignored or not. A third one ends a service, too:
        # that of a terminal that was closed.
        ignored = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
        with super().capture_signals():
            hang_up = signal.signal(signal.SIGHUP, self.handle_exit)
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)
            try:
                yield
            finally:
                # Before uvicorn raises the signal again, whose own handler ends the process then.
                signal.signal(signal.SIGHUP, hang_up)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and self._loop:  # the second signal: nothing is waited for any more
            self.force_exit = True
            self._loop.call_soon_threadsafe(self._abort)
        super().handle_exit(sig, frame)

    def _abort(self) -> None:
        # From Python 3.12 on asyncio itself waits until all connections are closed.
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._room.is_closing = True
        await super().shutdown(sockets)
        self._looks.cancel()
        self._log.notice("stopped")
        self._log.close()


def _most_connections() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(MOST_CONNECTIONS, max(soft - _OTHER_DESCRIPTORS, 1))


class _Notices(logging.Handler):
    """What libraries have to say, as lines of the log; a traceback is cut to its last line."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._last = ("", -math.inf)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info and record.exc_info[0]
        text = record.getMessage().strip()
        last, told = self._last
        # What goes wrong thousands of times a second is told once a second.
        now = time.monotonic()
        if last == text and now < told + _SECONDS_BETWEEN_WARNINGS:
            return
        self._last = text, now
        message = f"{text} ({error.__name__})" if error else text
        with suppress(RuntimeError):  # outside of the event loop
            self._log.notice("warning", logger=record.name, message=message)


def _tell_warnings(log: Log) -> None:
    logging.getLogger().addHandler(_Notices(log))
    # Of malformed requests the log knows already.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
