"""Find ports for programs that cannot choose one themselves."""

import socket
from contextlib import ExitStack, suppress
from random import sample


def find_free_port() -> int:
    """Return a free port outside the range that the system assigns to port 0."""
    (port,) = find_free_ports(1)
    return port


def find_free_ports(count: int) -> list[int]:
    """Return different ports of this kind, which connections to others don't use either."""
    found: list[int] = []
    with ExitStack() as stack:
        for port in sample(range(20_000, 30_000), 100):
            with suppress(OSError):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
            if len(found) == count:
                return found
    raise SystemExit("too few ports are free between 20,000 and 30,000")
