"""Open a socket, run the service on it with uvicorn, and stop it cleanly."""

import asyncio
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import cast

import uvicorn

from srvstat.asgi.app import Parts, Service
from srvstat.asgi.auth import Authenticator
from srvstat.asgi.connection import (
    ANSWER_SECONDS,
    SECONDS_BETWEEN_CHECKS,
    Connection,
    ConnectionLimiter,
)
from srvstat.asgi.cors import Cors
from srvstat.asgi.descriptors import MAX_CONNECTIONS, compute_connection_limit
from srvstat.asgi.log import Log, WarningHandler
from srvstat.asgi.recorder import Recorder
from srvstat.asgi.rehearsal import Rehearsal
from srvstat.asgi.settings import Settings
from srvstat.asgi.sites import Site
from srvstat.asgi.snapshots import ServedSnapshot
from srvstat.contract.errors import UsageError

_ACCEPTED_AT_ONCE = 8
"""Connections that asyncio accepts in one step, even if few descriptors are left.

asyncio uses the backlog as this number, so the backlog is raised after the start.
"""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def open_listener(host: str, port: int, *, loopback_only: bool) -> socket.socket:
    """Return a socket that listens at an address; port 0 selects a free one.

    `loopback_only` rejects an address that other machines can reach.

    Raises UsageError.
    """
    if not host:
        raise UsageError("--host: empty; use 127.0.0.1 for this machine")
    try:
        ((family, kind, protocol, _, address), *_) = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not a host"
        raise UsageError(f"--host {host}: {reason}") from None
    if loopback_only and not ipaddress.ip_address(address[0]).is_loopback:
        listener.close()
        raise UsageError(
            f"--host {host}: reachable from other machines, which needs keys; use --access FILE or"
            " 127.0.0.1"
        )
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        raise UsageError(f"--host {host} --port {port}: {error.strerror}") from None
    return listener


def serve(settings: Settings, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve a snapshot until a signal; call `on_ready` once requests are accepted.

    Raises SourceError for the access file, SnapshotError, and what Recorder raises.
    """
    log = Log()
    authenticator = Authenticator(settings.access, log)
    snapshot = ServedSnapshot(settings.snapshot, log)
    service = _create_service(settings, snapshot, authenticator, log)
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
    _Server(config, limiter, service, on_ready).run([listener])


def _create_service(
    settings: Settings, snapshot: ServedSnapshot, authenticator: Authenticator, log: Log
) -> Service:
    parts = Parts(
        snapshot,
        authenticator,
        log,
        recorder=None if settings.record is None else Recorder(settings.record, log),
        sites=_create_sites(settings, snapshot, authenticator),
        cors=Cors(settings.cors) if settings.cors else None,
        rehearsal=Rehearsal(settings.rehearsal) if settings.rehearsal else None,
        explains_errors=settings.explains_errors,
    )
    return Service(parts)


def _create_sites(
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
        limiter: ConnectionLimiter,
        service: Service,
        on_ready: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._limiter = limiter
        self._service = service
        self._on_ready = on_ready
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(MAX_CONNECTIONS)
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
        # uvicorn handles SIGINT and SIGTERM even if they are ignored. It does not handle SIGHUP,
        # which the closing of a terminal sends.
        ignored = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
        with super().capture_signals():
            previous = signal.signal(signal.SIGHUP, self.handle_exit)
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)
            try:
                yield
            finally:
                # uvicorn then raises the signal again, and the previous handler ends the process.
                signal.signal(signal.SIGHUP, previous)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and self._loop:  # the second signal ends the service at once
            self.force_exit = True
            self._loop.call_soon_threadsafe(self._abort_connections)
        super().handle_exit(sig, frame)

    def _abort_connections(self) -> None:
        # From Python 3.12 on asyncio itself waits until all connections are closed.
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._limiter.is_closing = True
        self._service.end_delays()
        await super().shutdown(sockets)
        self._checks.cancel()
        self._service.close()
