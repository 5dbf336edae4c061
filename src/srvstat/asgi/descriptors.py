"""Divide the descriptors of the process among connections and files."""

import resource
from collections.abc import Sized
from contextlib import suppress

from srvstat.asgi.workers import WORKERS
from srvstat.contract.errors import SnapshotError

MAX_CONNECTIONS = 2_000
"""Limit of open connections, and of further ones that wait to be accepted."""

_LEAST_CONNECTIONS = 100
"""A service of shards with fewer would keep its clients waiting."""

_OTHERS = 64
"""Descriptors reserved for everything but connections and shards."""

_PER_SHARD = 2 * WORKERS + 1
"""Each worker opens it, also in a new folder, which is verified before it replaces the old one."""


def reserve_descriptors(path: str, shards: Sized | None) -> None:
    """Raise the limit on open files, as far as possible, to what shards and connections need.

    A snapshot of one file leaves the limit unchanged.

    Raises SnapshotError if the limit is too low for the shards.
    """
    if not shards:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    least = _OTHERS + _LEAST_CONNECTIONS + _count_descriptors(shards)
    needed = least - _LEAST_CONNECTIONS + MAX_CONNECTIONS
    if soft < needed:
        with suppress(OSError, ValueError):  # the system allows less than the hard limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(needed, hard), hard))
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed < least:
        raise SnapshotError(
            f"{path}: serving {len(shards):,} shards takes {least:,} open files, but the limit is"
            f" {allowed:,}; raise the hard limit (`ulimit -Hn`), or write fewer shards"
        )


def compute_connection_limit(shards: Sized | None) -> int:
    """Return the number of connections that the limit on open files allows, at least one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(MAX_CONNECTIONS, max(soft - _OTHERS - _count_descriptors(shards), 1))


def _count_descriptors(shards: Sized | None) -> int:
    return _PER_SHARD * len(shards or ())
