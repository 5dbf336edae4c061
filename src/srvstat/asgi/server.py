"""Open or inherit a socket, run the service on it with uvicorn, and stop it cleanly."""

import asyncio
import ipaddress
import logging
import os
import resource
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from srvstat.asgi import Settings
from srvstat.asgi.app import Service, format_address
from srvstat.asgi.log import Log
from srvstat.contract.errors import ParameterError, UsageError
from srvstat.contract.http import MAX_HEAD_BYTES

HEAD_SECONDS = 25
"""The timeout for a request head, in seconds (enforced within twice this time)."""
IDLE_SECONDS = 15
"""The keep-alive timeout, in seconds."""
STOP_SECONDS = 0.5
"""The delay from the signal until idle connections are closed, because a request may be on its
way.
"""
FINISH_SECONDS = 20
"""The grace period for requests in progress, in seconds."""

_STEPS_TO_OPEN = 3
"""The number of event loop steps until asyncio has opened an accepted connection."""
_WAITING_CONNECTIONS = 2_048
"""The number of connections that can wait to be accepted, even while the service restarts."""
_OPEN_FILES = 10_240
_NO_LINGER = struct.pack("ii", 1, 0)
"""The socket option with which closing a TCP connection resets it."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REACHABLE = "reachable from other machines, so keys are required; add {access} FILE"


def serve(settings: Settings, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve a snapshot until a signal. Calls `on_ready` when requests are accepted.

    Raises SourceError for an invalid access file, SnapshotError for an unusable snapshot, and the
    errors of Recorder.
    """
    if listener.family != socket.AF_UNIX:
        # Connections inherit this option. With Nagle's algorithm, a body could wait 40 ms after its
        # head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _allow_many_files()
    log = Log(settings.log_format)
    service = Service(settings, log)
    log.take_warnings()
    # Any client could fill the log with uvicorn's warnings about malformed requests.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    Server(service, on_ready).run([listener])


class Server(uvicorn.Server):
    """uvicorn, with a deadline for request heads and a stop that loses no request.

    Alternatives: Granian can't inherit a socket, Hypercorn takes three times the CPU time and
    treats `get` as GET, and uvicorn with httptools accepts a head of 8 MB.
    """

    def __init__(
        self, service: Service, on_ready: Callable[[], None], head_seconds: int = HEAD_SECONDS
    ) -> None:
        super().__init__(
            uvicorn.Config(
                service,
                http="h11",
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                workers=1,  # overrides WEB_CONCURRENCY
                backlog=_WAITING_CONNECTIONS,
                # Heads that are slightly too long get an API response.
                h11_max_incomplete_event_size=4 * MAX_HEAD_BYTES,
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=FINISH_SECONDS,
                timeout_notify=head_seconds,
                callback_notify=self._close_late_connections,
            )
        )
        self._service = service
        service.disconnect = self._disconnect
        self._on_ready = on_ready
        self._waiting: dict[object, object] = {}
        self._handlers = {number: signal.getsignal(number) for number in _SIGNALS}

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, then report it."""
        await super().startup(sockets)
        self._on_ready()

    async def _close_late_connections(self) -> None:
        """Close the connections that have been waiting for a request head since the last call."""
        waiting: dict[object, object] = {}
        for connection in self.server_state.connections:
            request = connection.cycle if isinstance(connection, H11Protocol) else None
            if request and not request.response_complete:
                continue
            waiting[connection] = request
            if self._waiting.get(connection, ...) is request:
                connection.transport.abort()
        self._waiting = waiting

    def _disconnect(self, scope: Scope, fault: str) -> None:
        """Close the connection of a request after the data sent so far; `reset` discards them."""
        for connection in self.server_state.connections:
            if isinstance(connection, H11Protocol) and connection.scope is scope:
                if fault == "reset":
                    sock = connection.transport.get_extra_info("socket")
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
                connection.transport.close()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals in the block, including SIGHUP, which a closing terminal sends."""
        for number, handler in self._handlers.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            self._restore_handlers()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """Begin to stop. A second signal ends the process, as without uvicorn."""
        self.should_exit = True
        self._restore_handlers()

    def _restore_handlers(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Respond to requests that are on their way or in progress, then close the service.

        New connections wait for the next process that listens on the same socket.
        """
        for listener in sockets or ():
            asyncio.get_running_loop().remove_reader(listener)
        self._service.begin_stop()
        for _ in range(_STEPS_TO_OPEN):
            await asyncio.sleep(0)
        if self.server_state.connections:
            await asyncio.sleep(STOP_SECONDS)
        await super().shutdown(sockets)
        self._service.close()


def _allow_many_files() -> None:
    """Raise the limit of open files, for connections and shards, as far as the system permits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS permits no more than this, regardless of the hard limit.
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def open_listener(host: str, port: int, *, loopback_only: bool) -> socket.socket:
    """Return a socket that listens at an address. Port 0 selects a free port.

    `loopback_only`: reject an address that other machines can reach.

    Raises UsageError if the address is rejected or unusable.
    """
    if not host:
        raise ParameterError("{host}: empty; use 127.0.0.1 for this machine")
    try:
        ((family, _, _, _, address), *_) = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        is_dual = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not a host"
        raise ParameterError("{host} {value}: {problem}", value=host, problem=reason) from None
    if loopback_only and not _is_loopback(address):
        raise ParameterError(f"{{host}} {{value}}: {_REACHABLE} or use 127.0.0.1", value=host)
    try:
        return socket.create_server(
            address, family=family, backlog=_WAITING_CONNECTIONS, dualstack_ipv6=is_dual
        )
    except OSError as error:
        raise ParameterError(
            f"{{host}} {{value}} {{port}} {port}: {{problem}}; choose another {{port}} or {{host}}",
            value=host,
            problem=os.strerror(error.errno or 0),
        ) from None


def inherit_listener(descriptor: int, *, loopback_only: bool) -> socket.socket:
    """Return the socket that the parent process opened and passed as a descriptor.

    `loopback_only`: reject an address that other machines can reach.

    Raises UsageError if the socket is rejected or not a listening stream socket.
    """
    try:
        listener = socket.socket(fileno=descriptor)
        listens = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError:
        raise UsageError(f"LISTEN_FDS: descriptor {descriptor} is not a socket") from None
    address = listener.getsockname()
    if not listens or listener.type != socket.SOCK_STREAM:
        problem = "not a listening stream socket; use ListenStream= and Accept=no"
    elif loopback_only and listener.family != socket.AF_UNIX and not _is_loopback(address):
        problem = f"{{address}}: {_REACHABLE}, 127.0.0.1 or a UNIX socket"
    else:
        listener.set_inheritable(False)
        return listener
    listener.close()
    raise ParameterError(f"LISTEN_FDS: {problem}", address=str(address[0]))


def describe_address(listener: socket.socket) -> str:
    """Return a socket's address for clients: `http://127.0.0.1:8000`, `unix:/run/srvstat.sock`."""
    address = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return f"unix:{os.fsdecode(address)}"
    return f"http://{format_address(*address[:2])}"


def _is_loopback(address: Any) -> bool:
    return ipaddress.ip_address(address[0]).is_loopback
