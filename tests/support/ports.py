"""Find a port for a program that cannot choose one itself."""

import socket
from contextlib import suppress
from random import sample


def find_free_port() -> int:
    """Return a free port outside the range that the system assigns to port 0."""
    for port in sample(range(20_000, 30_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise SystemExit("no port is free between 20,000 and 30,000")
