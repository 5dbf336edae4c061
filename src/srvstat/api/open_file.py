"""A snapshot file that threads share."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from types import TracebackType
from typing import NoReturn, Self

from srvstat.api.arguments import name_parameters
from srvstat.contract.errors import UsageError
from srvstat.contract.instants import format_instant
from srvstat.snapshot.read.snapshot import Snapshot


class OpenFile:
    """A snapshot file, one call at a time, until it is closed."""

    def __init__(self, file: Snapshot) -> None:
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
    def _use(self) -> Iterator[Snapshot]:
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
