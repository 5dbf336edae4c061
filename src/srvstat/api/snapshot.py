"""An open snapshot, whose methods answer the questions of the command line."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fsdecode
from threading import RLock
from types import TracebackType
from typing import NoReturn, Self

from srvstat import operations
from srvstat.api.arguments import list_texts, name_parameters
from srvstat.contract.errors import UsageError
from srvstat.contract.instants import format_instant, parse_instant
from srvstat.contract.ranges import Range
from srvstat.contract.requests import Namespace, build_compare_request, build_server_reference
from srvstat.contract.responses import CompareResponse, ServerResponse
from srvstat.snapshot.read.reader import SnapshotFile, open_file


class Snapshot:
    """An open snapshot: the result of `open_snapshot`, and a context manager that closes it.

    Threads may share it; one call runs at a time. To answer in parallel, open one in each thread. A
    child process must open its own.

    After `close`, any use except another `close` raises ValueError.
    """

    def __init__(self, file: SnapshotFile) -> None:
        self._file = file
        self._is_closed = False
        # Reentrant: a signal handler may close the snapshot during a call in the same thread.
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
        """Close the file. Waits for a running call of another thread."""
        with self._lock:
            self._is_closed = True
            self._file.close()

    @contextmanager
    def _use(self) -> Iterator[SnapshotFile]:
        """Lock the file for one call.

        Raises ValueError after `close`.
        """
        with self._lock:
            try:
                if not self._is_closed:
                    yield self._file
                    return
            except UsageError as error:
                raise name_parameters(error) from None
            except Exception:
                if not self._is_closed:  # otherwise a signal handler closed it during the call
                    raise
            raise ValueError("the snapshot is closed")

    @property
    def as_of(self) -> str:
        """The instant of the answers, such as `2026-03-01T12:00:00.000Z`."""
        with self._use() as file:
            return format_instant(file.as_of)

    @property
    def root(self) -> str:
        """The digest of the content, 64 hexadecimal digits. `srvstat snapshot verify` checks it."""
        with self._use() as file:
            return file.root

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
        texts = list_texts("identifiers", identifiers)
        if at is not None and not isinstance(at, str):
            raise TypeError("at: must be a string such as 2026-01-31T12:00Z")
        with self._use() as file:
            request = build_compare_request(texts, by=by, range=range)
            instant = None if at is None else parse_instant(at)
            return operations.compare(file, request, at=instant)


def open_snapshot(path: str | bytes | PathLike[str] | PathLike[bytes]) -> Snapshot:
    """Open a snapshot for reading. The file is never created or changed.

    Raises SnapshotError; TypeError if `path` is not a path.
    """
    return Snapshot(open_file(fsdecode(path)))
