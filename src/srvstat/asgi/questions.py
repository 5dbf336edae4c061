"""Ask a snapshot in its workers, and remember the answers."""

from collections.abc import Callable
from functools import partial

from srvstat import operations
from srvstat.asgi.snapshots import Generation, ServedSnapshot
from srvstat.contract.requests import CompareRequest, ServerReference
from srvstat.contract.wire import EncodedJson
from srvstat.snapshot.read.reader import SnapshotFile


async def find_detail(
    snapshot: ServedSnapshot,
    generation: Generation,
    asked: ServerReference,
    is_wanted: Callable[[], bool],
) -> bytes:
    """Return the answer of Get Server, and remember it.

    Raises ServerNotFoundError, SnapshotError, NobodyAsksError.
    """

    def answer(file: SnapshotFile) -> bytes:
        # While this question waited, another one may have had the answer.
        known = generation.details.known(asked)
        return operations.get_server(file, asked).to_json() if known is None else known

    return await snapshot.ask(
        generation,
        answer,
        keep=partial(generation.details.keep, asked),
        is_wanted=is_wanted,
    )


async def find_missing(
    snapshot: ServedSnapshot,
    generation: Generation,
    asked: CompareRequest,
    results: list[EncodedJson | None],
    is_wanted: Callable[[], bool],
) -> None:
    """Fill in the results of a comparison that are None, and remember them.

    Raises ServerNotFoundError, SnapshotError, NobodyAsksError.
    """

    def answer(file: SnapshotFile) -> dict[int, EncodedJson]:
        known = enumerate(generation.results.known(asked))
        found = {place: result for place, result in known if result is not None}
        missing = [place for place in range(len(results)) if place not in found]
        answers = operations.results(file, asked, missing) if missing else ()
        return found | {
            place: one.encode_once() for place, one in zip(missing, answers, strict=True)
        }

    found = await snapshot.ask(
        generation,
        answer,
        keep=partial(generation.results.keep, asked),
        is_wanted=is_wanted,
        is_comparison=True,
    )
    for place, result in found.items():
        results[place] = result
