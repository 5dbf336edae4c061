"""Remember answers. They stay valid, because a snapshot never changes."""

from collections.abc import Mapping

from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.wire import EncodedJson

_MAX_RESULTS = 50_000
"""About 30 MB."""

_MAX_DETAIL_BYTES = 32 << 20
_BYTES_PER_DETAIL = 400
"""The memory that a detail takes besides its text."""


class Results:
    """Results of comparisons from one snapshot, by range and reference; drops the oldest."""

    def __init__(self, max_results: int = _MAX_RESULTS) -> None:
        self._max_results = max_results
        self._results: dict[tuple[str, str, str], EncodedJson] = {}

    def look_up(self, request: CompareRequest) -> list[EncodedJson | None]:
        """Return the result of each server of a request, None if unknown. Thread-safe."""
        return [
            self._results.get((request.range, each.by, each.identifier)) for each in request.servers
        ]

    def remember(self, request: CompareRequest, results: Mapping[int, EncodedJson]) -> None:
        """Keep results by the positions of their servers in a request."""
        for position, result in results.items():
            reference = request.servers[position]
            self._results[request.range, reference.by, reference.identifier] = result
        while len(self._results) > self._max_results:
            del self._results[next(iter(self._results))]


class DetailCache:
    """Answers of Get Server from one snapshot; drops the oldest."""

    def __init__(self, max_bytes: int = _MAX_DETAIL_BYTES) -> None:
        self._bytes_left = max_bytes
        self._details: dict[tuple[str, str], bytes] = {}

    def look_up(self, reference: ServerReference) -> bytes | None:
        """Return the answer about a server, None if unknown. Thread-safe."""
        return self._details.get((reference.by, reference.identifier))

    def remember(self, reference: ServerReference, answer: bytes) -> None:
        """Keep the answer about a server."""
        key = reference.by, reference.identifier
        self._drop(key)
        self._details[key] = answer
        self._bytes_left -= _BYTES_PER_DETAIL + len(answer)
        while self._bytes_left < 0:
            self._drop(next(iter(self._details)))

    def _drop(self, key: tuple[str, str]) -> None:
        answer = self._details.pop(key, None)
        if answer is not None:
            self._bytes_left += _BYTES_PER_DETAIL + len(answer)
