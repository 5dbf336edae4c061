"""An open snapshot, whose methods answer the questions of the command line."""

from collections.abc import Sequence
from os import PathLike, fsdecode

from srvstat import operations
from srvstat.api.analyzer import Analyzer
from srvstat.api.arguments import list_values
from srvstat.api.pictures import PictureData
from srvstat.contract.instants import parse_instant
from srvstat.contract.ranges import Range
from srvstat.contract.requests import Namespace, build_compare_request, build_server_reference
from srvstat.contract.responses import CompareResponse, ServerResponse
from srvstat.snapshot.read import snapshot


class Snapshot(Analyzer, PictureData):
    """An open snapshot: the result of `open_snapshot`, and a context manager that closes it.

    Threads may share it; one call runs at a time. To answer in parallel, open one in each thread. A
    child process must open its own.

    A window is a range that ends at `end`, such as `36h`, `7d`, `1y` or `all`, or it is
    `(start, end]`. The default is the last 30 days of the snapshot. `start` and `end` are instants
    such as `2026-01-31T12:00Z`, or dates, which begin at midnight in the time zone `tz`.

    Identifiers are parsed as in `get`. Those of an analysis can be any number; None means all
    servers.

    An invalid value raises UsageError, a value of a wrong type may raise TypeError. After `close`,
    any use except another `close` raises ValueError.
    """

    def get(self, identifier: str, *, by: Namespace = "id") -> ServerResponse:
        """Answer Get Server: the public detail of one server.

        An identifier may carry its own namespace (`cfxId:abc123`), which overrides `by`.

        Raises InvalidRequestError, ServerNotFoundError, SnapshotError; ValueError after `close`.
        """
        with self._use() as file:
            return operations.get_server(file, build_server_reference(identifier, by=by))

    def compare(
        self,
        identifiers: Sequence[str],
        *,
        by: Namespace = "id",
        range: Range | None = None,
        at: str | None = None,
    ) -> CompareResponse:
        """Answer Compare Servers: exact statistics of 2 to 5 servers over one range.

        Identifiers are parsed as in `get`. The default range is `30d`. `at` overrides the instant
        of the snapshot (D3): a time such as `2026-01-31T12:00Z`, or Unix milliseconds as a str.

        Raises InvalidRequestError, ServerNotFoundError, SnapshotError; TypeError if `identifiers`
        is a single str or not iterable, or `at` not a str; ValueError if `at` is not an instant,
        and after `close`.
        """
        # Outside the lock: an iterable may use this snapshot itself, even in another thread.
        texts = list_values("identifiers", identifiers)
        if at is not None and not isinstance(at, str):
            raise TypeError("at: must be a string such as 2026-01-31T12:00Z")
        with self._use() as file:
            request = build_compare_request(texts, by=by, range=range)
            instant = None if at is None else parse_instant(at)
            return operations.compare(file, request, at=instant)


def open_snapshot(path: str | bytes | PathLike[str] | PathLike[bytes]) -> Snapshot:
    """Open a snapshot for reading: a file or a folder of shards, which is never changed.

    Raises SnapshotError; TypeError if `path` is not a path.
    """
    return Snapshot(snapshot.open_snapshot(fsdecode(path)))
