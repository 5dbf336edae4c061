"""Check that a master can be reached, before Spark tries for minutes."""

import re
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from srvstat.contract.errors import EngineError, UsageError

CONNECT = "sc://"
"""The scheme of Spark Connect."""

_SECONDS = 10
_CONNECT_PORT = 15002
# Spark itself decides what is valid after these beginnings.
_KNOWN = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|spark://.+|sc://.+|k8s://.+|yarn")
_FORMS = "local[*], spark://HOST:PORT, sc://HOST:PORT, k8s://HOST:PORT and yarn"


def check_master(master: str) -> None:
    """Check the form of a master, and that a standalone or Connect server accepts connections.

    Raises UsageError for another form, EngineError if no server accepts.
    """
    if not _KNOWN.fullmatch(master):
        # It is not repeated, because it can have a token.
        raise UsageError(f"--master: not a master of Spark; masters are {_FORMS}")
    if not master.startswith(("spark://", CONNECT)):
        return
    failures = [_try_connection(*place) for place in find_places(master)]
    if None not in failures:
        raise EngineError("; ".join(map(str, failures)) + "; start it, or correct --master")


def find_places(master: str) -> Iterator[tuple[str, int]]:
    """Yield the hosts and ports of a standalone or Connect master, never its token.

    Raises UsageError if one of them has no host or no valid port.
    """
    scheme, places = master.split("://", 1)
    for place in places.split(","):
        try:
            parts = urlsplit(f"//{place.split(';')[0]}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if host and port is None and scheme == "sc":
            port = _CONNECT_PORT
        if not host or not port:
            raise UsageError(f"--master: needs a host and a port, as in {scheme}://HOST:PORT")
        yield host, port


def _try_connection(host: str, port: int) -> str | None:
    """Connect to a port. Returns the problem, or None without one."""
    try:
        socket.create_connection((host, port), timeout=_SECONDS).close()
    except TimeoutError:
        return f"Spark at {host}:{port}: no answer within {_SECONDS} seconds"
    except OSError as error:
        return f"Spark at {host}:{port}: {error.strerror or error}"
    return None
