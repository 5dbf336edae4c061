"""What was answered stays in memory: a snapshot does not change."""

from collections.abc import Mapping

from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.wire import EncodedJson

_MOST = 50_000
"""About 30 MB of results."""

_MOST_BYTES = 32 << 20
_BYTES_A_DETAIL = 400
"""What a detail takes besides its text."""


class Results:
    """The finished results of one snapshot, by range and reference; the oldest make room."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: dict[tuple[str, str, str], EncodedJson] = {}

    def known(self, request: CompareRequest) -> list[EncodedJson | None]:
        """Return for each server of a request its result, where it is known. Any thread may ask."""
        return [self._kept.get((request.range, one.by, one.identifier)) for one in request.servers]

    def keep(self, request: CompareRequest, results: Mapping[int, EncodedJson]) -> None:
        """Remember the results of the servers at some positions of a request."""
        for position, result in results.items():
            one = request.servers[position]
            self._kept[request.range, one.by, one.identifier] = result
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]


class Details:
    """The finished answers of Get Server from one snapshot; the oldest make room."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._room = most_bytes
        self._kept: dict[tuple[str, str], bytes] = {}

    def known(self, reference: ServerReference) -> bytes | None:
        """Return the answer about a server, where it is known."""
        return self._kept.get((reference.by, reference.identifier))

    def keep(self, reference: ServerReference, answer: bytes) -> None:
        """Remember the answer about a server."""
        key = reference.by, reference.identifier
        self._forget(key)
        self._kept[key] = answer
        self._room -= _BYTES_A_DETAIL + len(answer)
        while self._room < 0:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: tuple[str, str]) -> None:
        answer = self._kept.pop(key, None)
        if answer is not None:
            self._room += _BYTES_A_DETAIL + len(answer)
