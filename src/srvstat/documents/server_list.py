"""A list of the servers of a snapshot that can be long, and is stored in little memory."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from zlib import compress, decompress

from srvstat.contract import wire
from srvstat.contract.instants import format_instant
from srvstat.documents.document import Part
from srvstat.documents.rows import Rows

_SERVERS_PER_PIECE = 100


class ListedServer(NamedTuple):
    """A server in a list. Instants are Unix milliseconds, and None without observations.

    `usual_interval_seconds` is the median distance between successive observations, and `coverage`
    the share of the time from the first observation to the end of the snapshot in which an
    observation lasts; both are None for fewer than two observations. `source_id` is the identifier
    that its source uses, if it is not the id, and `completed` the fields that its record lacked.
    """

    id: str
    cfx_id: str
    hostname: str
    game: str
    region: str
    offline: bool
    current_players: int
    sample_count: int
    first_observed_at: int | None
    last_observed_at: int | None
    usual_interval_seconds: float | None
    coverage: float | None
    source_id: str | None = None
    completed: Sequence[str] = ()


class ServerList:
    """Servers in their order, compressed except for the last ones."""

    def __init__(self, servers: Iterable[ListedServer] = ()) -> None:
        self._pieces: list[bytes] = []
        self._last: list[ListedServer] = []
        for server in servers:
            self.append(server)

    def append(self, server: ListedServer) -> None:
        """Add a server to the end of the list."""
        self._last.append(server)
        if len(self._last) == _SERVERS_PER_PIECE:
            self._pieces.append(compress(json.dumps(self._last).encode(), level=1))
            self._last.clear()

    def __len__(self) -> int:
        return len(self._pieces) * _SERVERS_PER_PIECE + len(self._last)

    def __iter__(self) -> Iterator[ListedServer]:
        for piece in self._pieces:
            yield from map(ListedServer._make, json.loads(decompress(piece)))
        yield from self._last


def iter_array(rows: Rows) -> Iterator[bytes]:
    """Yield rows as a JSON array of objects, in pieces."""
    start = b"["
    piece = []
    names = [column.name for column in rows.columns]
    instants = [column.name for column in rows.columns if column.kind == "instant"]
    for row in rows.rows:
        members = dict(zip(names, row, strict=True))
        for name in instants:
            if members[name] is not None:
                members[name] = format_instant(members[name])
        piece.append(members)
        if len(piece) == _SERVERS_PER_PIECE:
            yield start + wire.encode(piece)[1:-1]
            start = b","
            piece.clear()
    if piece:
        yield start + wire.encode(piece)[1:]
    else:
        yield b"[]" if start == b"[" else b"]"


def describe_array(schema: dict[str, Any], name: str, model: type[Part]) -> None:
    """Add a member that `iter_array` writes to the JSON Schema of a document."""
    items = model.model_json_schema(mode="serialization")
    schema["properties"][name] = {"type": "array", "items": items}
    schema["required"].append(name)
