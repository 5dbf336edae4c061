"""Run the service: a socket, uvicorn on it, and an end that finishes what is under way."""

import asyncio
import gc
import ipaddress
import logging
import resource
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from srvstat.asgi.callers import Callers
from srvstat.asgi.connections import (
    ANSWER_SECONDS,
    MAX_HEAD_BYTES,
    SECONDS_BETWEEN_LOOKS,
    Connection,
)
from srvstat.asgi.log import Log
from srvstat.asgi.service import Service
from srvstat.asgi.snapshots import ServedSnapshot
from srvstat.contract.errors import UsageError

_BACKLOG = 2_048
MOST_CONNECTIONS = 2_000
_TICKS_BETWEEN_LOOKS = round(SECONDS_BETWEEN_LOOKS / 0.1)
"""uvicorn has ten ticks a second."""
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
        most_connections=_most_connections(),
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
        backlog=_BACKLOG,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_graceful_shutdown=int(ANSWER_SECONDS),
    )
    _tell_warnings(log)
    # The command line starts without the collector, which only long work needs.
    gc.freeze()
    gc.enable()
    _Server(config, log, ready).run([listener])


class _Server(uvicorn.Server):
    """uvicorn's server, which says when it is ready and takes the log along when it ends."""

    def __init__(self, config: uvicorn.Config, log: Log, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._log = log
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:  # the second signal: nothing is waited for any more
            self.force_exit = True
            self._loop.call_soon_threadsafe(self._abort)
        super().handle_exit(sig, frame)

    def _abort(self) -> None:
        # From Python 3.12 on asyncio itself waits until all connections are closed.
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_BETWEEN_LOOKS == 0:
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.end_if_late()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        self._log.notice("stopped")
        # uvicorn raises the signal again once it is done, and that is the end of the process.
        self._log.close()


def _most_connections() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(MOST_CONNECTIONS, max(soft - _OTHER_DESCRIPTORS, 1))


class _Notices(logging.Handler):
    """What libraries have to say, as lines of the log; a traceback is cut to its last line."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info and record.exc_info[0]
        text = record.getMessage().strip()
        try:
            self._log.notice(
                "warning",
                logger=record.name,
                message=f"{text} ({error.__name__})" if error else text,
            )
        except RuntimeError:  # outside of the event loop
            return


def _tell_warnings(log: Log) -> None:
    logging.getLogger().addHandler(_Notices(log))
    # Of malformed requests the log knows already.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
