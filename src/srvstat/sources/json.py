"""Read JSON: observations as NDJSON, one object a line, and the points of large documents.

Our own form of NDJSON has the keys `serverId`, `observedAt` and `players`, and no other. A mapping
names the keys, and other keys are ignored.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from srvstat.contract import wire
from srvstat.contract.errors import SourceError
from srvstat.files.json_stream import CutOffError, Events, NotJsonError, parse_events
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.source import Batch, Reject, Row, Source, parse_records
from srvstat.sources.table import SAMPLE_ROWS, Sample, Table
from srvstat.sources.values import COUNT_RULE, IDENTIFIER_RULE, RowError

OTHER_KEYS = "must be an object with the keys serverId, observedAt and players"
"""The reason to reject a row in the strict form."""

AS_INTEGER = "written as an integer"
"""How the reason for a count ends in the strict form."""


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a block at a time.

    Raises SourceError as `Source.read_blocks` does.
    """
    mapping = source.mapping
    split = _split_object
    if not mapping.is_strict:
        split = partial(_split_wide if mapping.is_wide else _split_mapped, mapping=mapping)
    for block in source.read_blocks():
        yield parse_records(source, block, block.split_lines(), split)


def read_sample(source: Source) -> Sample:
    """Return the first rows of a source; the columns are the keys of the first object.

    Raises SourceError.
    """
    rows: list[dict[str, Any]] = []
    for _, text in islice(source.read_lines(), SAMPLE_ROWS):
        with suppress(RowError):
            rows.append(_decode_object(text, ()))
    names = list(rows[0]) if rows else []
    columns = [[_format_count(row.get(name)) for row in rows] for name in names]
    return Sample("NDJSON", Table(names, columns, range(1, len(rows) + 1)), is_whole=False)


def _split_object(text: str) -> Row:
    value = _decode(text)
    if not isinstance(value, dict) or value.keys() != set(STRICT.names):
        raise RowError(OTHER_KEYS)
    server_id, observed_at, players = (value[key] for key in STRICT.names)
    if type(server_id) is not str:
        raise RowError(f"serverId: {IDENTIFIER_RULE}", _format_value(server_id))
    if type(observed_at) not in (int, str):
        raise RowError("observedAt: must be an integer or a string", _format_value(observed_at))
    if type(players) is not int:
        raise RowError(f"players: {COUNT_RULE}, {AS_INTEGER}", _format_value(players))
    return Row(str(observed_at), [(server_id, str(players))])


def _split_mapped(text: str, mapping: ColumnMapping) -> Row:
    value = _decode_object(text, mapping.names)
    assert mapping.id is not None  # noqa: S101 - to be replaced
    server_id, observed_at, players = (value[name] for name in mapping.names)
    if type(server_id) not in (int, str):
        raise RowError("serverId: must be a string or an integer", _format_value(server_id))
    written = _format_scalar("observedAt", observed_at)
    return Row(written, [(str(server_id), _format_scalar("players", players))])


def _split_wide(text: str, mapping: ColumnMapping) -> Row:
    value = _decode_object(text, mapping.names)
    observed_at = _format_scalar("observedAt", value.pop(mapping.at))
    return Row(observed_at, [(key, _format_count(count)) for key, count in value.items()])


def _decode(text: str) -> Any:
    try:
        return wire.decode_text(text)
    except wire.JsonError as error:
        raise RowError(str(error)) from None


def _decode_object(text: str, keys: Iterable[str]) -> dict[str, Any]:
    """Return an object with some keys and any others.

    Raises RowError.
    """
    value = _decode(text)
    if not isinstance(value, dict):
        raise RowError("must be an object")
    for key in keys:
        if key not in value:
            raise RowError(f"has no key {wire.quote_value(key)}")
    return value


def _format_count(value: Any) -> str:
    """Return the text of a count, or the JSON of a value that is not a count."""
    if value is None or type(value) in (int, float, str):
        return _format_scalar("players", value)
    return wire.quote_value(value)


def _format_value(value: Any) -> str:
    """Return a string as it is, and the JSON of any other value."""
    return value if isinstance(value, str) else wire.quote_value(value)


def _format_scalar(field: str, value: Any) -> str:
    """Return the text of a value, empty for null.

    Raises RowError for a value that is neither a number nor a string.
    """
    if value is None:
        return ""
    if type(value) not in (int, float, str):
        raise RowError(f"{field}: must be a number or a string", _format_value(value))
    return str(value)


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
