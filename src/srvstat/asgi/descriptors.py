"""Divide the descriptors of the process among connections and files."""

import resource
from collections.abc import Sized
from contextlib import suppress

from srvstat.asgi.workers import WORKERS

MAX_CONNECTIONS = 2_000
"""Limit of open connections, and of further ones that wait to be accepted."""

_OTHERS = 64
"""Descriptors reserved for everything but connections and shards."""

_PER_SHARD = 2 * WORKERS + 1
"""Each worker opens it, also in a new folder, which is verified before it replaces the old one."""


def reserve_descriptors(shards: Sized | None) -> None:
    """Raise the limit on open files, as far as possible, to what shards and connections need.

    A snapshot of one file leaves the limit unchanged.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _OTHERS + MAX_CONNECTIONS + _count_descriptors(shards)
    if shards and soft < needed:
        with suppress(OSError, ValueError):  # the system allows less than the hard limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(needed, hard), hard))


def compute_connection_limit(shards: Sized | None) -> int:
    """Return the number of connections that the limit on open files allows, at least one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(MAX_CONNECTIONS, max(soft - _OTHERS - _count_descriptors(shards), 1))


def _count_descriptors(shards: Sized | None) -> int:
    return _PER_SHARD * len(shards or ())
