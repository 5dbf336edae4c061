"""What was answered stays in memory: a snapshot does not change."""

from collections.abc import Iterable

from srvstat.contract.requests import CompareRequest
from srvstat.contract.wire import Written

_MOST = 50_000
"""About 30 MB of results."""


class Results:
    """The finished results of one snapshot, by range and reference; the oldest make room."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: dict[tuple[str, str, str], Written] = {}

    def known(self, request: CompareRequest) -> list[Written | None]:
        """Return for each server of a request its result, where it is known."""
        return [self._kept.get((request.range, one.by, one.identifier)) for one in request.servers]

    def keep(
        self, request: CompareRequest, positions: Iterable[int], results: Iterable[Written]
    ) -> None:
        """Remember the results of the servers at some positions of a request."""
        for position, result in zip(positions, results, strict=True):
            one = request.servers[position]
            self._kept[request.range, one.by, one.identifier] = result
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
