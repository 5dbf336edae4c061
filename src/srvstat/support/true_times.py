"""Find when the recorded answer of a comparison was true."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from srvstat.contract import wire
from srvstat.contract.requests import CompareRequest
from srvstat.documents.support import Difference
from srvstat.operations import resolve_servers
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.support.comparing import MAX_DIFFERENCES, is_number_equal
from srvstat.support.search import Instants, find_true_intervals, intersect

Result = Mapping[str, Any] | None
"""The recorded result of a server; None if no instant gives it."""

_RESULT = re.compile(r"/data/([0-9]+)/")
_FIGURE = re.compile(
    r"/data/[0-9]+/(?:(?:average|median|peak|lowest)Players|growth/(?:players|percentage)"
    r"|sampleCount)"
)
"""The pointers of the values that change with time."""


class TrueTimes(NamedTuple):
    """When the whole answer was true, and when each server's result was, with the server's id.

    `servers` is empty if the answer is not that of a comparison.
    """

    whole: list[Instants]
    servers: list[tuple[str, list[Instants]]]


def find_true_times(
    snapshot: Snapshot,
    request: CompareRequest,
    results: Sequence[Result],
    searched: Instants,
    tolerance: Decimal,
) -> TrueTimes:
    """Find the instants within `searched` at which recorded results were true.

    `results` are those of the request's servers, as `read_results` returns them.

    Raises SnapshotError.
    """
    is_equal = partial(is_number_equal, tolerance=tolerance)
    found: list[tuple[str, list[Instants]]] = []
    for server, result in zip(resolve_servers(snapshot, request.servers), results, strict=True):
        intervals = []
        if result is not None:
            intervals = find_true_intervals(
                snapshot, server, result, request.range, *searched, is_equal
            )
        found.append((server.id, intervals))
    return TrueTimes(intersect([intervals for _, intervals in found]), found)


def read_results(body: bytes, differences: Sequence[Difference], count: int) -> list[Result]:
    """Return the recorded results of `count` servers; None for one that was never true.

    `differences` are those from our answer at any instant. Only those in figures depend on it.
    """
    lasting = [
        each.pointer
        for each in differences
        if each.class_ == "value" and not _FIGURE.fullmatch(each.pointer)
    ]
    try:
        results = wire.decode(body)["data"]
    except (wire.JsonError, LookupError, TypeError):
        return [None] * count
    places = {match and int(match[1]) for match in map(_RESULT.match, lasting)}
    if None in places or len(differences) == MAX_DIFFERENCES:
        return [None] * count
    return [None if place in places else result for place, result in enumerate(results)]
