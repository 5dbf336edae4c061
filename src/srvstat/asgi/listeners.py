"""Open or inherit the socket that the service listens on."""

import ipaddress
import os
import socket
from typing import Any

from srvstat.asgi.descriptors import MAX_CONNECTIONS
from srvstat.contract.errors import UsageError

_REACHABLE = "reachable from other machines, which needs keys; use --access FILE"


class Listener(socket.socket):
    """A socket on which many connections can wait, also while no process accepts them."""

    def listen(self, backlog: int = MAX_CONNECTIONS, /) -> None:  # noqa: ARG002 - asyncio passes less
        """Listen with the longest backlog, also if the socket listens already."""
        super().listen(MAX_CONNECTIONS)

    @property
    def description(self) -> str:
        """Where clients reach the socket: `http://127.0.0.1:8000`, `unix:/run/srvstat.sock`."""
        address = self.getsockname()
        if self.family == socket.AF_UNIX:
            return f"unix:{os.fsdecode(address)}"
        host, port = address[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def open_listener(host: str, port: int, *, loopback_only: bool) -> Listener:
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
        listener = Listener(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not a host"
        raise UsageError(f"--host {host}: {reason}") from None
    if loopback_only and not _is_loopback(address):
        listener.close()
        raise UsageError(f"--host {host}: {_REACHABLE} or 127.0.0.1")
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        problem = f"--host {host} --port {port}: {error.strerror}"
        raise UsageError(f"{problem}; choose another --port or --host") from None
    return listener


def inherit_listener(descriptor: int, *, loopback_only: bool) -> Listener:
    """Return the socket that the parent process has opened, as a descriptor of this process.

    `loopback_only` rejects an address that other machines can reach.

    Raises UsageError.
    """
    try:
        listener = Listener(fileno=descriptor)
    except OSError:
        raise UsageError(f"LISTEN_FDS: descriptor {descriptor} is not a socket") from None
    problem = _find_problem(listener, loopback_only=loopback_only)
    if problem:
        listener.close()
        raise UsageError(f"LISTEN_FDS: {problem}")
    listener.set_inheritable(False)
    return listener


def _find_problem(listener: socket.socket, *, loopback_only: bool) -> str | None:
    """Return what is wrong with an inherited socket."""
    families = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)
    if listener.family not in families or listener.type != socket.SOCK_STREAM:
        return "not a TCP or UNIX stream socket; use ListenStream="
    if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return "a connection, not a listening socket; use Accept=no"
    address = listener.getsockname()
    if loopback_only and listener.family != socket.AF_UNIX and not _is_loopback(address):
        return f"{address[0]} is {_REACHABLE}, 127.0.0.1 or a UNIX socket"
    return None


def _is_loopback(address: Any) -> bool:
    return ipaddress.ip_address(address[0]).is_loopback
