"""What a bundle of a recording needs, so that it gives the verdict of the whole snapshot."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple, get_args

from srvstat.contract.errors import SourceError
from srvstat.contract.requests import Namespace, ServerReference
from srvstat.contract.windows import DAY_MS, DAYS, Range
from srvstat.documents.support import Replay

_SEARCH_MS = 2 * DAY_MS
"""How far back a search goes by default."""

_SHORTEST: Range = "24h"


class Case(NamedTuple):
    """The servers of all requests, and their longest range.

    `starts_at` is where the earliest window starts, in Unix milliseconds; `searched_from` is where
    it would start in a search.
    """

    references: list[ServerReference]
    range: Range
    starts_at: int
    searched_from: int


def find_case(replayed: Replay) -> Case:
    """Return what the requests of a replayed recording need.

    Raises SourceError if none was answered.
    """
    answered = [each for each in replayed.exchanges if each.request and each.as_of is not None]
    names = chain.from_iterable(each.request.servers for each in answered if each.request)
    references = [_parse_reference(name) for name in dict.fromkeys(names)]
    if not references:
        raise SourceError("no request of the recording is one of the API that can be answered")
    windows = [*_iter_windows(replayed)] or [(replayed.as_of - DAY_MS, _SHORTEST)]
    start = min(start for start, _ in windows)
    longest = max((length for _, length in windows), key=DAYS.__getitem__)
    return Case(references, longest, start, start - _SEARCH_MS)


def _iter_windows(replayed: Replay) -> Iterator[tuple[int, Range]]:
    for each in replayed.exchanges:
        for length in get_args(Range):
            if each.request and each.request.range == length and each.as_of is not None:
                yield each.as_of - DAYS[length] * DAY_MS, length


def _parse_reference(name: str) -> ServerReference:
    namespace, _, identifier = name.partition(":")
    by: Namespace = "cfxId" if namespace == "cfxId" else "id"
    return ServerReference(identifier=identifier, by=by)
