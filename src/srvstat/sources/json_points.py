"""Read points of JSON documents one by one, and collect them in batches."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from srvstat.contract.errors import SourceError
from srvstat.files.json_stream import CutOffError, Events, NotJsonError, parse_events
from srvstat.sources.batch import Batch, Reject
from srvstat.sources.source import Source

_POINTS_PER_BATCH = 10_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Point(NamedTuple):
    """An observation; the instant is in Unix milliseconds."""

    server_id: str
    instant: int
    players: int


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


def collect_batches(points: Iterable[Point | Reject | str]) -> Iterator[Batch]:
    """Yield points in batches. The place of a point is its number, from 1.

    A reject is a malformed point, of any place. A text is the reason why a well-formed point is no
    observation.
    """
    numbered = enumerate(points, 1)
    while chunk := list(islice(numbered, _POINTS_PER_BATCH)):
        yield Batch.from_rows(
            ((*point, place) for place, point in chunk if isinstance(point, Point)),
            [point._replace(place=place) for place, point in chunk if isinstance(point, Reject)],
            Counter(point for _, point in chunk if isinstance(point, str)),
        )


def _read_text(source: Source) -> Iterator[bytes]:
    """Read the bytes of a source, without a byte order mark at the start."""
    chunks = source.read_chunks()
    start = b""
    while len(start) < len(_BYTE_ORDER_MARK) and (chunk := next(chunks, b"")):
        start += chunk
    yield start.removeprefix(_BYTE_ORDER_MARK)
    yield from chunks
