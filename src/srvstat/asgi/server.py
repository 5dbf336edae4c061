"""Run the service on a socket with uvicorn, and stop it cleanly."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import cast

import uvicorn

from srvstat.asgi.api_docs import ApiDocs
from srvstat.asgi.app import Parts, Service
from srvstat.asgi.auth import Authenticator
from srvstat.asgi.connection import (
    ANSWER_SECONDS,
    SECONDS_BETWEEN_CHECKS,
    Connection,
    ConnectionLimiter,
)
from srvstat.asgi.cors import Cors
from srvstat.asgi.descriptors import compute_connection_limit
from srvstat.asgi.log import Log, WarningHandler
from srvstat.asgi.operational_paths import OperationalPaths
from srvstat.asgi.readiness import Readiness
from srvstat.asgi.recorder import Recorder
from srvstat.asgi.rehearsal import Rehearsal
from srvstat.asgi.settings import Settings
from srvstat.asgi.sites import Site
from srvstat.asgi.snapshots import ServedSnapshot
from srvstat.contract.errors import SrvstatError

_ACCEPTED_AT_ONCE = 8
"""Connections that asyncio accepts in one step, even if few descriptors are left.

asyncio uses the backlog as this number, but Listener ignores it.
"""
_STEPS_TO_OPEN = 3
"""Steps of the event loop until asyncio has opened a connection that it has accepted."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(settings: Settings, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve a snapshot until a signal; call `on_ready` once requests are accepted.

    A second signal is raised again, for its previous handler.

    Raises SourceError for the access file, SnapshotError, and what Recorder raises.
    """
    log = Log()
    authenticator = Authenticator(settings.access, log)
    snapshot = ServedSnapshot(settings.snapshot, log)
    try:
        service = _create_service(settings, snapshot, authenticator, log)
    except SrvstatError:
        snapshot.close()
        raise
    limiter = ConnectionLimiter(compute_connection_limit(snapshot.current.shards))
    connect = partial(Connection, limiter=limiter, answer_malformed=service.answer_malformed)
    config = uvicorn.Config(
        service,
        http=cast("type[asyncio.Protocol]", connect),  # uvicorn only calls it
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        workers=1,
        backlog=_ACCEPTED_AT_ONCE,
        # Longer than IDLE_SECONDS, so that our own deadline comes first.
        timeout_keep_alive=int(ANSWER_SECONDS),
        timeout_graceful_shutdown=int(ANSWER_SECONDS),
    )
    logging.getLogger().addHandler(WarningHandler(log))
    # Malformed requests are in the log already.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    _Server(config, service, on_ready).run([listener])


def _create_service(
    settings: Settings, snapshot: ServedSnapshot, authenticator: Authenticator, log: Log
) -> Service:
    readiness = Readiness(snapshot)
    parts = Parts(
        snapshot,
        authenticator,
        log,
        recorder=None if settings.record is None else Recorder(settings.record, log),
        sites=(
            OperationalPaths(snapshot, readiness),
            ApiDocs(),
            *_create_explorer(settings, snapshot, authenticator),
        ),
        cors=Cors(settings.cors) if settings.cors else None,
        rehearsal=Rehearsal(settings.rehearsal) if settings.rehearsal else None,
        readiness=readiness,
        explains_errors=settings.explains_errors,
    )
    return Service(parts)


def _create_explorer(
    settings: Settings, snapshot: ServedSnapshot, authenticator: Authenticator
) -> tuple[Site, ...]:
    if not settings.explore:
        return ()
    # The page needs the analyzer, which the API does not.
    from srvstat.asgi.explore import Explorer  # noqa: PLC0415

    return (Explorer(snapshot, authenticator),)


class _Server(uvicorn.Server):
    """Extend uvicorn's server: enforce deadlines, and close the service at the end."""

    def __init__(
        self,
        config: uvicorn.Config,
        service: Service,
        on_ready: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._service = service
        self._on_ready = on_ready
        self._loop: asyncio.AbstractEventLoop | None = None
        self._second_signal: int | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self._checks = self._loop.create_task(self._check_deadlines())
        self._on_ready()

    async def _check_deadlines(self) -> None:
        while True:
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.end_if_late()
            await asyncio.sleep(SECONDS_BETWEEN_CHECKS)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn handles SIGINT and SIGTERM even if they are ignored, and raises them again at the
        # end. It does not handle SIGHUP, which the closing of a terminal sends.
        handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        handled = [number for number in _SIGNALS if handlers[number] is not signal.SIG_IGN]
        for number in handled:
            signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            for number in handled:
                signal.signal(number, handlers[number])
        if self._second_signal is not None:
            signal.raise_signal(self._second_signal)  # the previous handler ends the process

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        if self.should_exit and self._loop:
            self._second_signal = sig
            self.force_exit = True
            self._loop.call_soon_threadsafe(self._abort_connections)
        self.should_exit = True

    def _abort_connections(self) -> None:
        # From Python 3.12 on asyncio itself waits until all connections are closed.
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await _stop_accepting(sockets or [])
        self._service.begin_stop()
        await super().shutdown(sockets)
        self._checks.cancel()
        self._service.close()


async def _stop_accepting(listeners: list[socket.socket]) -> None:
    """Leave new connections to the next process that listens on the same socket."""
    loop = asyncio.get_running_loop()
    for listener in listeners:
        loop.remove_reader(listener)
    for _ in range(_STEPS_TO_OPEN):
        await asyncio.sleep(0)
