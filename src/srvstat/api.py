"""The Python API: the command line's questions as methods."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fsdecode
from threading import RLock
from types import TracebackType
from typing import NoReturn, Self

from srvstat import operations
from srvstat.contract.instants import format_instant, parse_instant
from srvstat.contract.ranges import Range
from srvstat.contract.requests import Namespace, build_compare_request, build_server_reference
from srvstat.contract.responses import CompareResponse, ServerResponse
from srvstat.snapshot.read.reader import SnapshotFile, open_file


class Snapshot:
    """An open snapshot. Made by `open_snapshot`; a context manager that closes it.

    Threads may share one: its calls wait for each other. To answer in parallel, open one in each
    thread. A child process must open its own.

    After `close`, every use but another `close` raises ValueError.
    """

    def __init__(self, file: SnapshotFile) -> None:
        self._file = file
        self._is_closed = False
        # Reentrant: a signal handler that closes the snapshot during a call must not wait for it.
        self._lock = RLock()

    def __enter__(self) -> Self:
        with self._use():
            return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a snapshot can't be copied or pickled; open it again")

    def close(self) -> None:
        """Close the file, after a call that another thread has under way."""
        with self._lock:
            self._is_closed = True
            self._file.close()

    @contextmanager
    def _use(self) -> Iterator[SnapshotFile]:
        """Keep other threads out while the file is read.

        Raises ValueError after `close`, even for what is still in memory.
        """
        with self._lock:
            try:
                if not self._is_closed:
                    yield self._file
                    return
            except Exception:
                if not self._is_closed:  # else a signal handler closed it during the call
                    raise
            raise ValueError("the snapshot is closed")

    @property
    def as_of(self) -> str:
        """The instant that answers speak for, in UTC with milliseconds."""
        with self._use() as file:
            return format_instant(file.as_of)

    @property
    def root(self) -> str:
        """The digest of all the content, as 64 hexadecimal digits; `snapshot verify` proves it."""
        with self._use() as file:
            return file.root

    def get(self, identifier: str, *, by: Namespace = "id") -> ServerResponse:
        """Answer Get Server: one server's public detail.

        An identifier may carry its own namespace, `cfxId:abc123`, which beats `by`.

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

        Identifiers read as in `get`. Without a range the contract's default is used. `at` is an
        instant that takes the place of the snapshot's own, such as `2026-01-31T12:00Z` or Unix
        milliseconds as text.

        Raises InvalidRequestError, ServerNotFoundError, SnapshotError; TypeError for identifiers
        that are one text or can't be iterated, and an `at` that is not text; ValueError for a text
        that is not an instant, and after `close`.
        """
        if isinstance(identifiers, str | bytes) or not isinstance(identifiers, Iterable):
            raise TypeError("identifiers: a list of texts is needed")
        if at is not None and not isinstance(at, str):
            raise TypeError("at: a text is needed, such as 2026-01-31T12:00Z")
        # Outside the lock: an iterable may itself ask this snapshot, even in another thread.
        references = list(identifiers)
        with self._use() as file:
            request = build_compare_request(references, by=by, range=range)
            instant = None if at is None else parse_instant(at)
            return operations.compare(file, request, at=instant)


def open_snapshot(path: str | bytes | PathLike[str] | PathLike[bytes]) -> Snapshot:
    """Open a snapshot for reading; the file is neither created nor changed.

    Raises SnapshotError; TypeError for what is not a path.
    """
    return Snapshot(open_file(fsdecode(path)))
