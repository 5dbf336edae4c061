"""The rows of a snapshot's tables, and the packed numbers in them."""

import os
import re
import sys
from array import array
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, get_args

from srvstat.contract.requests import Namespace
from srvstat.contract.responses import Game
from srvstat.contract.wire import IDENTIFIER_PATTERN

APPLICATION_ID = 0x73727673
FORMAT_VERSION = 1

MAX_ROW_BYTES = 1 << 24
"""Longest row in bytes that a reader accepts. No build writes a longer one."""


def read_schema() -> str:
    """Return the SQL text that creates the tables of a snapshot."""
    # Importing importlib.resources would take longer than the rest of this module.
    with open(os.path.join(os.path.dirname(__file__), "schema.sql"), encoding="utf-8") as file:
        return file.read()


class ForgedRowError(ValueError):
    """A row has values that no build writes, although its digest matches: the file was forged.

    Every function that decodes rows may raise it, or one of Python's own errors for such values.
    `convert_decode_errors` reports all of them as damage.
    """


Value = int | str | bytes | None
"""What a column can hold."""

BLOCK_SIZE = 2048
"""The observations of each block of a server but the last one."""

BLOCKS_PER_SERVER = 10**9
"""The key of a block is the number of its server times this, plus its own number, from 0."""

COUNTED = 4096
"""Blocks count the observations of each number of players below this one."""

MARK_STEP = 512
"""The observations of a block between two marks."""

END_WIDTH, SUM_WIDTH, MARK_WIDTH, DIGEST_BYTES = 8, 8, 2, 16
"""The bytes of the end of a block, of a sum at a mark, of a count at one, and of a digest."""


class FileRow(NamedTuple):
    """The row of `snapshot`."""

    as_of: int = 0
    server_count: int = 0
    observation_count: int = 0
    first_observed_at: int | None = None
    last_observed_at: int | None = None
    sources: str = "[]"
    repeated: int = 0
    conflicting: int = 0
    rejected: int = 0
    is_open: int = 0
    parent_root: bytes | None = None
    covered_from: int | None = None
    bucket_digests: bytes = b""
    root: bytes = b""
    digest: bytes = b""


class ServerRow(NamedTuple):
    """A row of `servers`; `server` is its number in this file."""

    server: int
    id: str
    cfx_id: str
    game: Game
    hostname: str
    project_name: str
    project_description: str
    region: str
    players_current: int
    players_max: int
    tags: str
    flags: str
    chat_url: str
    icon_url: str | None
    offline: int
    first_seen_at: int
    updated_at: int
    current_is_fallback: int
    first_seen_is_fallback: int
    updated_is_fallback: int
    source_id: str | None
    completed: str
    # What follows from the server's observations, by default from none.
    observation_count: int = 0
    first_observed_at: int | None = None
    last_observed_at: int | None = None
    last_players: int | None = None
    player_sum: bytes = b""
    counts: bytes = b""
    block_ends: bytes = b""
    block_peaks: bytes = b""
    block_digests: bytes = b""

    @property
    def title(self) -> str:
        """How messages name the server; an identifier that no build accepts is not shown."""
        return format_server(self.id)

    def get_identifier(self, by: Namespace) -> str:
        """Return the server's identifier in a namespace."""
        return self.id if by == "id" else self.cfx_id

    def get_block_key(self, number: int) -> int:
        """Return the key of a block."""
        return self.server * BLOCKS_PER_SERVER + number

    def get_block_digest(self, number: int) -> bytes:
        """Return the digest of a block."""
        return self.block_digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]


def format_server(server_id: str) -> str:
    """Return how messages name a server; an identifier that no build accepts is not shown."""
    return f"server {server_id}" if re.fullmatch(IDENTIFIER_PATTERN, server_id) else "a server"


class Bucket(NamedTuple):
    """A row of `directory`; `bucket` is its key."""

    bucket: int
    entries: bytes
    servers: bytes


class Block(NamedTuple):
    """A row of `blocks`; `server_block` is its key. The last two columns may not have been read."""

    server_block: int
    observation_count: int
    first_observed_at: int
    time_unit: int
    times: bytes
    players: bytes
    players_before: int | None
    sum_before: bytes
    mark_sums: bytes
    counts_digest: bytes
    counts_before: bytes = b""
    marks: bytes = b""

    @property
    def number(self) -> int:
        """Its number among the blocks of its server, from 0."""
        return self.server_block % BLOCKS_PER_SERVER


def find_observed_span(
    holders: Collection[ServerRow | FileRow],
) -> tuple[int | None, int | None]:
    """Return the first and the last instant of all observations of servers or files."""
    firsts = [one.first_observed_at for one in holders if one.first_observed_at is not None]
    lasts = [one.last_observed_at for one in holders if one.last_observed_at is not None]
    return min(firsts, default=None), max(lasts, default=None)


def _list_kinds(row_type: type[tuple[Any, ...]]) -> frozenset[tuple[type, ...]]:
    """Return all combinations of types that the annotations of a row allow."""
    return frozenset(product(*map(_list_types, row_type.__annotations__.values())))


def _list_types(annotation: Any) -> tuple[type, ...]:
    return (str,) if annotation is Game else get_args(annotation) or (annotation,)


# Computed once: comparing a row with its annotations would take three times as long.
KINDS: Mapping[str, frozenset[tuple[type, ...]]] = {
    # Without the digest, which covers the other columns.
    "snapshot": frozenset(kinds[:-1] for kinds in _list_kinds(FileRow)),
    "directory": _list_kinds(Bucket),
    "servers": _list_kinds(ServerRow),
    # Most readers need no counts.
    "blocks": _list_kinds(Block) | {kinds[:-2] for kinds in _list_kinds(Block)},
}
"""The types that the columns of each table may have: a forged file may hold any."""


CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""The type code of Python's arrays for each width in bytes."""


_WIDTHS = (1, 1, 2, 4, 4, 8, 8, 8, 8)
"""The width of a number by the bytes that it needs."""


def choose_width(greatest: int) -> int:
    """Return the least width in bytes of numbers from 0 to `greatest`, which is below 2^64."""
    return _WIDTHS[(greatest.bit_length() + 7) // 8]


def find_width(packed: bytes, count: int) -> int:
    """Return the width of each of `count` packed numbers, at least one.

    Raises ForgedRowError.
    """
    width = len(packed) // count if count > 0 else 0
    if width * count != len(packed) or width not in CODES:
        raise ForgedRowError("not numbers of one width")
    return width


def unpack(packed: bytes, width: int) -> Sequence[int]:
    """Return packed numbers without copying them.

    Raises TypeError if the bytes are not a multiple of the width.
    """
    numbers: memoryview[int] = memoryview(packed).cast(CODES[width])  # type: ignore[call-overload]
    if sys.byteorder == "big":  # pragma: no cover - needs such a machine
        swapped = array(CODES[width], numbers)
        swapped.byteswap()
        return swapped
    return numbers


def pack_sum(total: int) -> bytes:
    """Return a sum, which may exceed SQLite's integers, in the fewest little-endian bytes."""
    return total.to_bytes((total.bit_length() + 7) // 8, "little")


def read_block_ends(server: ServerRow) -> Sequence[int]:
    """Return the last instant of each block of a server.

    Raises ForgedRowError for other numbers of blocks than its observations need.
    """
    blocks = -(-server.observation_count // BLOCK_SIZE)
    if (
        len(server.block_ends) != blocks * END_WIDTH
        or len(server.block_digests) != blocks * DIGEST_BYTES
    ):
        raise ForgedRowError("not the blocks of the observations")
    return unpack(server.block_ends, END_WIDTH)


def read_block_peaks(server: ServerRow) -> Sequence[int]:
    """Return the most players of each block of a server, at least one.

    Raises ForgedRowError.
    """
    return unpack(server.block_peaks, find_width(server.block_peaks, len(read_block_ends(server))))
