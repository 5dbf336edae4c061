"""What is asked of a snapshot in its workers, so that expensive questions leave room for others."""

import time
from collections.abc import Callable
from functools import partial

from srvstat import operations
from srvstat.asgi.snapshots import Generation, ServedSnapshot
from srvstat.contract.ranges import DAYS
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.wire import Written
from srvstat.snapshot.read import SnapshotFile

_DAYS_AT_ONCE = 90
"""How many days of servers a worker answers for at once: a year of one server, a month of three.

A worker can't be interrupted, and one statement for several servers takes less time than several.
"""

_LONG_SECONDS = 0.1
"""A question that has kept a worker for longer is a long one from then on."""


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
    together = max(_DAYS_AT_ONCE // DAYS[asked.range], 1)
    is_long = False
    while missing := [place for place, result in enumerate(results) if result is None]:
        first = missing[:together]

        def keep(answer: tuple[float, list[Written]], first: list[int] = first) -> None:
            generation.results.keep(asked, first, answer[1])

        seconds, found = await snapshot.ask(
            generation,
            partial(_answer_first, asked=asked, missing=missing, first=first),
            keep=keep,
            is_wanted=is_wanted,
            is_long=is_long,
        )
        is_long = is_long or seconds > _LONG_SECONDS
        for place, result in zip(first, found, strict=True):
            results[place] = result


def _answer_first(
    file: SnapshotFile, asked: CompareRequest, missing: list[int], first: list[int]
) -> tuple[float, list[Written]]:
    """Return the results of the first of the missing servers, and how many seconds they took.

    Raises ServerNotFoundError if any of the missing does not exist, SnapshotError.
    """
    began = time.monotonic()
    operations.must_exist(file, asked, missing)
    found = [result.written() for result in operations.results(file, asked, first)]
    return time.monotonic() - began, found
