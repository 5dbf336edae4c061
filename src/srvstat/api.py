"""The Python API: the command line's questions as methods."""

from collections.abc import Sequence
from os import PathLike, fsdecode
from types import TracebackType
from typing import Self

from srvstat import operations
from srvstat.contract.instants import format_instant, parse_instant
from srvstat.contract.ranges import Range
from srvstat.contract.requests import Namespace, compare_request, server_reference
from srvstat.contract.responses import CompareResponse, ServerResponse
from srvstat.snapshot.read import SnapshotFile, open_file


class Snapshot:
    """An open snapshot that can be asked. Made by `open_snapshot`; a context manager."""

    def __init__(self, file: SnapshotFile) -> None:
        self._file = file

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the snapshot can't be asked any more."""
        self._file.close()

    @property
    def as_of(self) -> str:
        """The instant that answers speak for, in UTC with milliseconds."""
        return format_instant(self._file.as_of)

    @property
    def root(self) -> str:
        """The digest of all the content, as 64 hexadecimal digits; `snapshot verify` proves it."""
        return self._file.root

    def get(self, identifier: str, *, by: Namespace = "id") -> ServerResponse:
        """Answer Get Server: one server's public detail.

        An identifier may carry its own namespace, `cfxId:abc123`, which beats `by`.

        Raises InvalidRequestError, ServerNotFoundError, SnapshotError.
        """
        return operations.get_server(self._file, server_reference(identifier, by=by))

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

        Raises InvalidRequestError, ServerNotFoundError, SnapshotError; ValueError for `at`.
        """
        if isinstance(identifiers, str):  # a text is a sequence of texts, too
            raise TypeError("identifiers: a list of texts is needed, not one text")
        request = compare_request(identifiers, by=by, range=range)
        instant = None if at is None else parse_instant(at)
        return operations.compare(self._file, request, at=instant)


def open_snapshot(path: str | bytes | PathLike[str] | PathLike[bytes]) -> Snapshot:
    """Open a snapshot for reading; the file is neither created nor changed.

    Raises SnapshotError.
    """
    return Snapshot(open_file(fsdecode(path)))
