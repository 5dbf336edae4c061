"""The contents of a snapshot: totals, and a list of its servers that can be long."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal
from zlib import compress, decompress

from pydantic import ConfigDict, Field

from srvstat.contract import wire
from srvstat.documents.document import Instant, Part, SnapshotDocument

_MAX_FIRST = 50
_SERVERS_PER_PIECE = 100


class ListedServer(Part):
    """A server in the list; its instants are None without observations."""

    id: str
    cfx_id: str
    game: str
    hostname: str
    observations: int
    first_observed_at: Instant | None
    last_observed_at: Instant | None


class ServerList:
    """The servers of a snapshot, ordered by id and stored in little memory.

    Keeps the first 50 for a table. With `keep_json`, it also keeps all servers as compressed JSON.
    """

    def __init__(self, *, keep_json: bool) -> None:
        self.first: list[ListedServer] = []
        self._keeps_json = keep_json
        self._pieces: list[bytes] = []
        self._uncompressed: list[dict[str, object]] = []

    def append(self, server: ListedServer) -> None:
        """Add a server to the end of the list."""
        if len(self.first) < _MAX_FIRST:
            self.first.append(server)
        if not self._keeps_json:
            return
        self._uncompressed.append(server.model_dump())
        if len(self._uncompressed) == _SERVERS_PER_PIECE:
            self._pieces.append(compress(wire.encode(self._uncompressed)[1:-1], level=1))
            self._uncompressed.clear()

    def iter_json(self) -> Iterator[bytes]:
        """Yield the list as JSON in pieces. Requires `keep_json`."""
        start = b"["
        for piece in self._pieces:
            yield start + decompress(piece)
            start = b","
        if self._uncompressed:
            yield start + wire.encode(self._uncompressed)[1:]
        else:
            yield b"]" if self._pieces else b"[]"


def _describe_list(schema: dict[str, Any]) -> None:
    """Add the list, which `iter_json` writes, to the JSON Schema."""
    server = ListedServer.model_json_schema(mode="serialization")
    schema["properties"]["identifiers"] = {"type": "array", "items": server}
    schema["required"].append("identifiers")


class SnapshotInfo(SnapshotDocument):
    """Totals of a snapshot and the list of its servers.

    `games` counts the servers of each game. Without observations, the first and the last instant
    are None. `parent_root` and `covered_from` are those of a bundle, and None for a whole snapshot.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, json_schema_extra=_describe_list)

    document: Literal["snapshotInfo"] = "snapshotInfo"
    version: Literal[1] = 1
    parent_root: str | None
    covered_from: Instant | None
    first_observed_at: Instant | None
    last_observed_at: Instant | None
    servers: int
    observations: int
    games: dict[str, int]
    fallbacks: int
    sources: tuple[str, ...]
    repeated: int
    conflicting: int
    rejected: int
    identifiers: Annotated[ServerList, Field(exclude=True)]

    def iter_json(self) -> Iterator[bytes]:
        """Yield the document as JSON in pieces, without a newline."""
        yield self.to_json().removesuffix(b"}") + b',"identifiers":'
        yield from self.identifiers.iter_json()
        yield b"}"
