"""Ask a snapshot in its workers, so that expensive questions leave room for others."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from srvstat import operations
from srvstat.asgi.results import Results
from srvstat.asgi.snapshots import Generation, ServedSnapshot
from srvstat.contract.ranges import DAYS
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.wire import Written
from srvstat.snapshot.read import SnapshotFile

_DAYS_AT_ONCE = 90
"""The size of a step: one server for a year, three for 30 days, all of them for a week.

A worker can't be interrupted, so a step is short; one statement for all servers costs less than one
for each, so it is not shorter.
"""

_LONG_SECONDS = 0.1
"""A comparison with a step that took longer is a long question from then on."""


async def find_detail(
    snapshot: ServedSnapshot,
    generation: Generation,
    asked: ServerReference,
    is_wanted: Callable[[], bool],
) -> bytes:
    """Return the answer of Get Server, and remember it.

    Raises ServerNotFoundError, SnapshotError, NobodyAsksError.
    """
    return await snapshot.ask(
        generation,
        lambda file: operations.get_server(file, asked).to_json(),
        keep=partial(generation.details.keep, asked),
        is_wanted=is_wanted,
    )


async def find_missing(
    snapshot: ServedSnapshot,
    generation: Generation,
    asked: CompareRequest,
    results: list[Written | None],
    is_wanted: Callable[[], bool],
) -> None:
    """Fill in the results of a comparison that are None, and remember them.

    Raises ServerNotFoundError, SnapshotError, NobodyAsksError.
    """
    is_long = False
    with snapshot.hold(generation):
        while missing := [place for place, result in enumerate(results) if result is None]:
            some = await snapshot.ask(
                generation,
                partial(_answer_some, known=generation.results, asked=asked, missing=missing),
                keep=lambda answer: generation.results.keep(asked, answer.results),
                is_wanted=is_wanted,
                is_long=is_long,
            )
            is_long = is_long or some.seconds > _LONG_SECONDS
            for place, result in some.results.items():
                results[place] = result


class _Some(NamedTuple):
    """How many seconds an answer took, and the results in it by their places in the request."""

    seconds: float
    results: dict[int, Written]


def _answer_some(
    file: SnapshotFile, known: Results, asked: CompareRequest, missing: Sequence[int]
) -> _Some:
    """Return the results of some of the missing servers.

    Raises ServerNotFoundError if any of the missing does not exist, SnapshotError.
    """
    began = time.monotonic()
    operations.must_exist(file, asked, missing)
    # While this question waited, another one may have had the answer.
    found = {place: result for place, result in enumerate(known.known(asked)) if result is not None}
    unknown = [place for place in missing if place not in found]
    some = unknown[: max(_DAYS_AT_ONCE // DAYS[asked.range], 1)]
    if some:
        answers = operations.results(file, asked, some)
        found |= {place: answer.written() for place, answer in zip(some, answers, strict=True)}
    return _Some(time.monotonic() - began, found)
