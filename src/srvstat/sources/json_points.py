"""Read points of JSON documents one by one, and collect them in batches."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from srvstat.contract.errors import SourceError
from srvstat.files.json_events import CutOffError, Events, NotJsonError, parse_events
from srvstat.sources.batch import Batch, Reject
from srvstat.sources.source import Source

_POINTS_PER_BATCH = 10_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Point(NamedTuple):
    """An observation; the instant is in Unix milliseconds."""

    server_id: str
    instant: int
    players: int


class BadPoint(NamedTuple):
    """A malformed point, with the reason and its text.

    `value` is its malformed value, and `column` what the answer calls it; None if there is none.
    """

    reason: str
    text: str
    value: str | None = None
    column: str | None = None


class NoPoint(NamedTuple):
    """A point that is well-formed but no observation, for a reason."""

    reason: str


def read_events(source: Source) -> Events:
    """Parse the JSON documents of a source, which follow each other, to events.

    Raises SourceError if the source can't be read, is empty or is not JSON.
    """
    try:
        yield from parse_events(_read_text(source), is_sequence=True)
    except CutOffError:
        raise SourceError(f"{source.title}: the JSON is empty or cut off") from None
    except NotJsonError:
        raise SourceError(f"{source.title}: not JSON") from None


def collect_batches(points: Iterable[Point | BadPoint | NoPoint]) -> Iterator[Batch]:
    """Yield points in batches. The place of a point is its number, from 1."""
    numbered = enumerate(points, 1)
    while chunk := list(islice(numbered, _POINTS_PER_BATCH)):
        kept = [(*point, place) for place, point in chunk if isinstance(point, Point)]
        skipped = Counter(point.reason for _, point in chunk if isinstance(point, NoPoint))
        rejects = [Reject(place, *point) for place, point in chunk if isinstance(point, BadPoint)]
        yield Batch.from_rows(kept, rejects, skipped=skipped)


def _read_text(source: Source) -> Iterator[bytes]:
    """Read the bytes of a source, without a byte order mark at the start."""
    chunks = source.read_chunks()
    start = b""
    while len(start) < len(_BYTE_ORDER_MARK) and (chunk := next(chunks, b"")):
        start += chunk
    yield start.removeprefix(_BYTE_ORDER_MARK)
    yield from chunks
