"""Read observations as NDJSON: one object a line, with `serverId`, `observedAt` and `players`."""

from collections.abc import Iterator

from srvstat.contract import wire
from srvstat.sources.batch import (
    COUNT_RULE,
    IDENTIFIER_RULE,
    Batch,
    Row,
    RowError,
    parse_records,
)
from srvstat.sources.source import Source

_KEYS = ("serverId", "observedAt", "players")


def read(source: Source) -> Iterator[Batch]:
    """Read the observations of a source, a block at a time.

    Raises SourceError as `Source.read_blocks` does.
    """
    for block in source.read_blocks():
        yield parse_records(source, block, block.split_lines(), _split_object)


def _split_object(text: str) -> Row:
    try:
        value = wire.decode_text(text)
    except wire.JsonError as error:
        raise RowError(str(error)) from None
    if not isinstance(value, dict) or value.keys() != set(_KEYS):
        raise RowError("must be an object with the keys serverId, observedAt and players")
    server_id, observed_at, players = (value[key] for key in _KEYS)
    if type(server_id) is not str:
        raise RowError(f"serverId: {IDENTIFIER_RULE}")
    if type(observed_at) not in (int, str):
        raise RowError("observedAt: must be an integer or a string")
    if type(players) is not int:
        raise RowError(f"players: {COUNT_RULE}, written as an integer")
    return Row(server_id, str(observed_at), str(players))
