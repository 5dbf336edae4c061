"""Everything that the small snapshots can be asked, and what a file answers to it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

from campaigns.small_snapshots import HIDDEN, HOUR, MIDNIGHT
from conftest import DAY
from srvstat import operations
from srvstat.contract.errors import ServerNotFoundError, SnapshotError
from srvstat.contract.ranges import Range
from srvstat.contract.requests import (
    CompareRequest,
    ServerReference,
    build_compare_request,
    build_server_reference,
)
from srvstat.snapshot.read.reader import SnapshotFile, open_file

Answers = Mapping[str, Any]
"""What each question gave: an answer, of which an unknown server is one, or REFUSED."""

OPEN = "open"
REFUSED = "refused"
NOT_FOUND = "SERVER_NOT_FOUND"

# A case of damage asks all of it, and there are more than a million: so each row is read by some
# question, and hardly any by two. A table reads every day of its window.
_TABLE = build_compare_request(["busy", "cfxId:x-wide", "uneven", "cfxId:x-away"], range="90d")
_COMPARISONS: tuple[tuple[list[str], Range, int | None], ...] = (
    (["cfxId:x-busy", "cfxId:busy", "daily"], "1y", None),
    (["cfxId:x-daily", "away"], "30d", MIDNIGHT - 32 * DAY),
    (["busy", "cfxId:x-silent"], "7d", MIDNIGHT - 8 * DAY + 2 * HOUR - 1),
)
_KNOWN = ("cfxId:x-silent", "id:uneven", "id:once")
_UNKNOWN = ("id:unknown", "cfxId:unknown", f"id:{HIDDEN}", f"cfxId:x-{HIDDEN}", "id:x-busy")


def answers_of(path: str) -> Answers:
    """Open a file and ask it everything; where it can't be opened, that is all.

    An exception that is neither an answer nor a SnapshotError goes on.
    """
    try:
        snapshot = open_file(path)
    except SnapshotError:
        return {OPEN: REFUSED}
    with closing(snapshot):
        asked = {name: _answer(question, snapshot) for name, question in _QUESTIONS.items()}
    return {OPEN: None} | asked


def wrong_ones(found: Answers, truth: Answers) -> list[str]:
    """Return the questions that were not refused and whose answer is not the true one."""
    return [name for name in found if found[name] != REFUSED and found[name] != truth[name]]


_Question = Callable[[SnapshotFile], Any]


def _answer(question: _Question, snapshot: SnapshotFile) -> Any:
    try:
        return question(snapshot)
    except ServerNotFoundError:
        return NOT_FOUND
    except SnapshotError:
        return REFUSED


def _questions() -> Iterator[tuple[str, _Question]]:
    yield "info", SnapshotFile.view
    for identifier in (*_KNOWN, *_UNKNOWN):
        yield f"get {identifier}", partial(_get, build_server_reference(identifier))
    yield "table of four over 90d", partial(operations.view_comparison, request=_TABLE)
    for identifiers, length, at in _COMPARISONS:
        request = build_compare_request(identifiers, range=length)
        name = f"compare {' '.join(identifiers)} over {length} at {at}"
        yield name, partial(_compare, request, at)


def _get(request: ServerReference, snapshot: SnapshotFile) -> bytes:
    return operations.get_server(snapshot, request).to_json()


def _compare(request: CompareRequest, at: int | None, snapshot: SnapshotFile) -> bytes:
    return operations.compare(snapshot, request, at=at).to_json()


_QUESTIONS = dict(_questions())
