"""What `snapshot info` prints as JSON."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from zlib import compress, decompress

from srvstat.cli.output import json_output, json_text
from srvstat.contract import wire
from srvstat.contract.instants import format_instant
from srvstat.documents.views import ListedServer, SnapshotView
from srvstat.snapshot.read.reader import open_file

_LISTED_A_PIECE = 100
"""How many servers of a list are compressed and written at once."""


def info_json(path: str) -> Iterator[bytes]:
    """Yield what `info` prints as JSON, in pieces.

    None is printed before all rows are proved, so that a damaged file leaves standard output empty.
    Until then the list of servers waits in memory, compressed.
    """
    pieces: list[bytes] = []
    some: list[dict[str, Any]] = []

    def note(server: ListedServer) -> None:
        some.append(_listed_body(server))
        if len(some) == _LISTED_A_PIECE:
            pieces.append(compress(wire.encode(some)[1:-1], level=1))
            some.clear()

    with closing(open_file(path)) as file:
        head = wire.encode(_info_body(file.view(note)))
    yield json_text(head.removesuffix(b"}") + b',"identifiers":[')
    for piece in pieces:
        yield json_text(decompress(piece) + (b"," if some or piece is not pieces[-1] else b""))
    yield json_output(wire.encode(some)[1:-1] + b"]}")


def _info_body(view: SnapshotView) -> dict[str, Any]:
    return {
        "asOf": format_instant(view.as_of),
        "firstObservedAt": _optional_instant(view.first_observed_at),
        "lastObservedAt": _optional_instant(view.last_observed_at),
        "servers": view.server_count,
        "observations": view.observations,
        "root": view.root,
        "games": view.games,
        "fallbacks": view.fallbacks,
        "sources": view.sources,
        "repeated": view.repeated,
        "conflicting": view.conflicting,
        "rejected": view.rejected,
    }


def _listed_body(server: ListedServer) -> dict[str, Any]:
    return {
        "id": server.id,
        "cfxId": server.cfx_id,
        "game": server.game,
        "hostname": server.hostname,
        "observations": server.observations,
        "firstObservedAt": _optional_instant(server.first_observed_at),
        "lastObservedAt": _optional_instant(server.last_observed_at),
    }


def _optional_instant(at: int | None) -> str | None:
    return None if at is None else format_instant(at)
