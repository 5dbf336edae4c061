"""Add hints to errors."""

from collections.abc import Iterator
from contextlib import contextmanager

from srvstat.analysis.suggestions import suggest_servers
from srvstat.contract.errors import ServerNotFoundError
from srvstat.operations import UnknownServerError
from srvstat.snapshot.read.snapshot import Snapshot


@contextmanager
def add_hint(*snapshots: Snapshot) -> Iterator[None]:
    """Add a hint to the error of an unknown server that the block raises.

    The first snapshot that has a hint gives it.
    """
    try:
        yield
    except UnknownServerError as error:
        hints = (suggest_servers(snapshot, error.reference) for snapshot in snapshots)
        hint = next(filter(None, hints), None)
        raise ServerNotFoundError(f"{error.reason}; {hint}" if hint else error.reason) from None
