"""What was answered stays in memory: a snapshot does not change."""

from collections.abc import Sequence

from srvstat.contract.requests import CompareRequest
from srvstat.contract.responses import CompareResponse, ServerResult

_MOST = 20_000
"""About 40 MB of results."""


class Results:
    """The finished results of one snapshot, by range and reference; the oldest make room."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: dict[tuple[str, str, str], ServerResult] = {}

    def known(self, request: CompareRequest) -> Sequence[ServerResult | None]:
        """Return for each server of a request its result, where it is known."""
        return [self._kept.get((request.range, one.by, one.identifier)) for one in request.servers]

    def keep(self, request: CompareRequest, answer: CompareResponse) -> None:
        """Remember the results of an answer."""
        for one, result in zip(request.servers, answer.data, strict=True):
            self._kept[request.range, one.by, one.identifier] = result
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
