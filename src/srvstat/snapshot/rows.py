"""The rows of a snapshot's tables, the packed numbers in them, and their digests.

Each row's digest is stored in another row, one level higher. In the row itself, it would prove only
that some build wrote the row. One level higher, it proves that the same build wrote both rows, and
that no row is missing.
"""

import re
import sys
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from itertools import product
from operator import itemgetter
from struct import Struct
from types import NoneType
from typing import Any, NamedTuple, get_args

from srvstat.contract import read_package_file
from srvstat.contract.requests import NAMESPACES, Namespace
from srvstat.contract.wire import IDENTIFIER_PATTERN

APPLICATION_ID = 0x73727673
FORMAT_VERSION = 2

REDACTED_TEXT, REDACTED_URL = REDACTIONS = ("redacted", "https://redacted.invalid/")
"""The texts that replace server texts and links in a redacted bundle."""

MAX_ROW_BYTES = 1 << 24
"""The maximum length of a row that readers accept, in bytes."""


def read_schema() -> str:
    """Return the SQL text that creates the tables of a snapshot."""
    return read_package_file("snapshot/schema.sql").decode()


class ForgedRowError(ValueError):
    """A row has impossible values although its digest matches, so the file was forged.

    Any function that decodes rows may raise it, or one of Python's own errors for such values.
    `convert_decode_errors` reports all of them as damage.
    """


Value = int | str | bytes | None
"""A column value."""

BLOCK_SIZE = 2048
"""The number of observations in each block except a server's last, regardless of their times.

The overhead per observation is thus independent of the polling interval, and new observations never
change an earlier block. Larger blocks would cost more time for hashing than they save elsewhere.
"""

BLOCKS_PER_SERVER = 10**9
"""A block's key is its server's number times this, plus the block's number from 0."""

COUNTED = 4096
"""Player counts below this limit have per-value counters in each block.

A busy server has had nearly every player count below its peak, so the array is dense, and bisection
finds a rank without decoding. Without a limit, 100,000 players would make each block huge.
"""

MARK_STEP = 512
"""The number of observations between two marks of a block.

Without marks, a query would count up to 2,048 observations at each end of a window. More marks
would take more space than the observations.
"""

END_WIDTH, SUM_WIDTH, MARK_WIDTH, DIGEST_BYTES = 8, 8, 2, 16
"""Sizes in bytes: a block's end, a sum at a mark, a count at a mark, and a digest."""


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
    reading: str = "{}"
    parent_root: bytes | None = None
    covered_from: int | None = None
    bucket_digests: bytes = b""
    root: bytes = b""
    digest: bytes = b""


class ServerRow(NamedTuple):
    """A row of `servers`. `server` is its number in this file."""

    server: int
    id: str
    cfx_id: str
    game: str
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
    other_source_ids: str
    completed: str
    # The following columns are derived from the server's observations; the defaults mean none. Most
    # windows end at the as-of time, so reading them needs only one more block.
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
        """The server's name for messages. Omits a forged identifier."""
        return f"server {self.id}" if re.fullmatch(IDENTIFIER_PATTERN, self.id) else "a server"

    def get_identifier(self, by: Namespace) -> str:
        """Return the server's identifier in a namespace."""
        return self.id if by == "id" else self.cfx_id

    def get_block_key(self, number: int) -> int:
        """Return the key of a block."""
        return self.server * BLOCKS_PER_SERVER + number

    def get_block_digest(self, number: int) -> bytes:
        """Return the digest of a block."""
        return self.block_digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]


class Bucket(NamedTuple):
    """A row of `directory`. `bucket` is its key."""

    bucket: int
    entries: bytes
    servers: bytes


class Block(NamedTuple):
    """A row of `blocks`. `server_block` is its key. Readers may omit the last two columns."""

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
        """The block's number among its server's blocks, from 0."""
        return self.server_block % BLOCKS_PER_SERVER


def find_observed_span(holders: Collection[ServerRow | FileRow]) -> tuple[int | None, int | None]:
    """Return the times of the first and the last observation of servers or files."""
    firsts = [one.first_observed_at for one in holders if one.first_observed_at is not None]
    lasts = [one.last_observed_at for one in holders if one.last_observed_at is not None]
    return min(firsts, default=None), max(lasts, default=None)


def _list_kinds(row_type: type[tuple[Any, ...]]) -> frozenset[tuple[type, ...]]:
    """Return all combinations of types that the annotations of a row allow."""
    annotations = row_type.__annotations__.values()
    return frozenset(product(*(get_args(each) or (each,) for each in annotations)))


# Computed once, because comparing a row with its annotations would take three times as long.
KINDS: Mapping[str, frozenset[tuple[type, ...]]] = {
    # Without the digest, which covers the other columns.
    "snapshot": frozenset(kinds[:-1] for kinds in _list_kinds(FileRow)),
    "directory": _list_kinds(Bucket),
    "servers": _list_kinds(ServerRow),
    # Most readers need no counts.
    "blocks": _list_kinds(Block) | {kinds[:-2] for kinds in _list_kinds(Block)},
}
"""The valid column types of each table. A forged file can contain other types."""


CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""Python's array type code for each width in bytes."""


_WIDTHS = (1, 1, 2, 4, 4, 8, 8, 8, 8)
"""The stored width of a number, by the number of bytes that it needs."""


def choose_width(greatest: int) -> int:
    """Return the smallest width in bytes for numbers from 0 to `greatest` (below 2^64)."""
    return _WIDTHS[(greatest.bit_length() + 7) // 8]


def find_width(packed: bytes, count: int) -> int:
    """Return the width of each of `count` packed numbers.

    Raises ForgedRowError if there are none or their widths differ.
    """
    width = len(packed) // count if count > 0 else 0
    if width * count != len(packed) or width not in CODES:
        raise ForgedRowError("not numbers of one width")
    return width


def unpack(packed: bytes, width: int) -> Sequence[int]:
    """Return packed numbers without copying them.

    Raises TypeError if the length is not a multiple of the width.
    """
    numbers: memoryview[int] = memoryview(packed).cast(CODES[width])  # type: ignore[call-overload]
    if sys.byteorder == "big":  # pragma: no cover - needs such a machine
        swapped = array(CODES[width], numbers)
        swapped.byteswap()
        return swapped
    return numbers


def pack_sum(total: int) -> bytes:
    """Pack a sum into as few little-endian bytes as possible. It may exceed SQLite's integers."""
    return total.to_bytes((total.bit_length() + 7) // 8, "little")


def read_block_ends(server: ServerRow) -> Sequence[int]:
    """Return the time of the last observation in each of a server's blocks.

    Raises ForgedRowError if the number of blocks does not match the number of observations.
    """
    blocks = -(-server.observation_count // BLOCK_SIZE)
    if (
        len(server.block_ends) != blocks * END_WIDTH
        or len(server.block_digests) != blocks * DIGEST_BYTES
    ):
        raise ForgedRowError("not the blocks of the observations")
    return unpack(server.block_ends, END_WIDTH)


def read_block_peaks(server: ServerRow) -> Sequence[int]:
    """Return the peak players of each of a server's blocks.

    Raises ForgedRowError if there is no block or the numbers are malformed.
    """
    return unpack(server.block_peaks, find_width(server.block_peaks, len(read_block_ends(server))))


HASH_BYTES = 8
_ENTRY_BYTES = HASH_BYTES + DIGEST_BYTES
_NUMBER_BYTES = 4
ENTRIES_PER_BUCKET = 128

_LETTERS = {int: "i", str: "t", bytes: "b", NoneType: "n"}


def digest_row(table: str, row: Sequence[Value]) -> bytes:
    """Return a row's digest. The row must have all columns in the table's order."""
    return hash_values(table, _list_digested(table, row))[:DIGEST_BYTES]


_BLOCK_HEAD = 10
"""The number of `blocks` columns up to the digest of the last two."""


def _list_digested(table: str, row: Sequence[Any]) -> Sequence[Any]:
    """Return the values that the digest of a row covers.

    If it covered the number, an update that adds a server would change other servers' rows. A wrong
    number can't mislead, because the row at that number has another digest.
    """
    if table == "blocks":
        return row[0] % BLOCKS_PER_SERVER, *row[1:_BLOCK_HEAD]
    if table == "directory":
        return row[:2]
    return row[1:] if table == "servers" else row


def digest_counts(counts_before: bytes, marks: bytes) -> bytes:
    """Return the digest of a block's last two columns, which most readers omit."""
    return hash_values("counts", (counts_before, marks))[:DIGEST_BYTES]


def has_digest(table: str, row: Sequence[Any], digest: bytes) -> bool:
    """Check that an untrusted row has valid column types and the given digest."""
    try:
        # The cache of layouts remains small, because only valid types pass.
        return tuple(map(type, row)) in KINDS[table] and digest_row(table, row) == digest
    except ValueError:
        return False


def compute_root(row: FileRow) -> bytes:
    """Return the root of a snapshot: the full SHA-256 of the columns that describe its content.

    Columns about the sources are excluded, so that equal content has an equal root. Bundles and
    whole snapshots have different labels, so that their roots never match.
    """
    provenance = (row.parent_root, row.covered_from)
    is_whole = provenance == (None, None)
    content = (
        row.as_of,
        row.server_count,
        row.observation_count,
        row.first_observed_at,
        row.last_observed_at,
        *(() if is_whole else provenance),
        row.bucket_digests,
    )
    label = "root" if is_whole else "bundle"
    return hash_values(label, content)


def seal(row: FileRow) -> FileRow:
    """Return the row of a file with its root and digest computed."""
    row = row._replace(root=compute_root(row))
    return row._replace(digest=digest_row("snapshot", row[:-1]))


def hash_values(label: str, values: Sequence[Any]) -> bytes:
    """Return the SHA-256 of a label, such as the name of a table, and values.

    The hashed bytes are, in this order:

    - the label and a zero byte
    - a letter for the type of each value, and a zero byte
    - the integers and then the lengths of the blobs, each in 8 bytes, signed and little-endian
      (decimal text takes longer)
    - the texts in UTF-8, each followed by a zero byte
    - the blobs

    Two different rows never have the same bytes, because texts contain no zero byte.
    """
    head, pack, integers, texts, blobs, text_count = _build_layout(label, tuple(map(type, values)))
    parts = blobs(values)
    numbers = pack(*integers(values), *map(len, parts))
    if not text_count:
        return sha256(b"".join((head, numbers, *parts))).digest()
    joined = "\0".join((*texts(values), ""))
    if joined.count("\0") != text_count:
        raise ForgedRowError("a text with a zero byte")
    return sha256(b"".join((head, numbers, joined.encode(), *parts))).digest()


_Pick = Callable[[Sequence[Any]], tuple[Any, ...]]


class _RowForm(NamedTuple):
    """How to hash rows: the first bytes, and the functions that select and pack the values."""

    head: bytes
    pack: Callable[..., bytes]
    integers: _Pick
    texts: _Pick
    blobs: _Pick
    text_count: int


@cache
def _build_layout(label: str, types: tuple[type, ...]) -> _RowForm:
    letters = "".join(_LETTERS[kind] for kind in types)
    integers, texts, blobs = (
        [at for at, kind in enumerate(types) if kind is wanted] for wanted in (int, str, bytes)
    )
    return _RowForm(
        head=f"{label}\0{letters}\0".encode(),
        pack=Struct(f"<{len(integers) + len(blobs)}q").pack,
        integers=_build_picker(integers),
        texts=_build_picker(texts),
        blobs=_build_picker(blobs),
        text_count=len(texts),
    )


def _build_picker(positions: Sequence[int]) -> _Pick:
    if len(positions) > 1:
        return itemgetter(*positions)
    return lambda values: tuple(values[at] for at in positions)


def build_directory(servers: Sequence[ServerRow]) -> list[Bucket]:
    """Return the rows of `directory` for all servers of a file."""
    digests = [digest_row("servers", server) for server in servers]
    buckets: list[Bucket] = []
    for namespace in NAMESPACES:
        entries = [
            (hash_identifier(namespace, server.get_identifier(namespace)), digest, server.server)
            for server, digest in zip(servers, digests, strict=True)
        ]
        buckets += _divide_entries(sorted(entries), len(buckets))
    return buckets


def describe_servers(row: FileRow, servers: Sequence[ServerRow]) -> tuple[FileRow, list[Bucket]]:
    """Return the file's row with totals from its servers, and the directory of the servers."""
    directory = build_directory(servers)
    first, last = find_observed_span(servers)
    row = row._replace(
        server_count=len(servers),
        observation_count=sum(server.observation_count for server in servers),
        first_observed_at=first,
        last_observed_at=last,
        bucket_digests=b"".join(digest_row("directory", bucket) for bucket in directory),
    )
    return seal(row), directory


def _divide_entries(entries: Sequence[tuple[bytes, bytes, int]], first: int) -> list[Bucket]:
    """Divide ascending hashes, digests and server numbers into buckets, numbered from `first`."""
    count = -(-len(entries) // ENTRIES_PER_BUCKET) or 1
    buckets = [(bytearray(), bytearray()) for _ in range(count)]
    for hashed, digest, server in entries:
        of_bucket, servers = buckets[find_bucket(hashed, count)]
        of_bucket += hashed + digest
        servers += server.to_bytes(_NUMBER_BYTES, "little")
    return [Bucket(first + at, *map(bytes, columns)) for at, columns in enumerate(buckets)]


def find_bucket(hash: bytes, count: int) -> int:
    """Return the number, within its namespace, of the bucket for a hashed identifier."""
    return int.from_bytes(hash) * count >> 8 * HASH_BYTES


def find_entries(bucket: Bucket, wanted: bytes) -> list[tuple[int, bytes]]:
    """Return the number and the digest of each server whose identifier has the hash `wanted`.

    There is rarely more than one such server. Each server's row shows its actual identifier.
    """
    found = []
    at = bucket.entries.find(wanted)
    while at >= 0:
        position, rest = divmod(at, _ENTRY_BYTES)
        if not rest:
            found.append(_read_entry(bucket, position))
        at = bucket.entries.find(wanted, at + 1)
    return found


def read_entries(bucket: Bucket) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the digest of each server in a bucket."""
    return (_read_entry(bucket, at) for at in range(len(bucket.entries) // _ENTRY_BYTES))


def _read_entry(bucket: Bucket, position: int) -> tuple[int, bytes]:
    start, number_at = position * _ENTRY_BYTES + HASH_BYTES, position * _NUMBER_BYTES
    number = int.from_bytes(bucket.servers[number_at : number_at + _NUMBER_BYTES], "little")
    return number, bucket.entries[start : start + DIGEST_BYTES]


def hash_identifier(namespace: Namespace, identifier: str) -> bytes:
    """Return the hash of an identifier in the directory."""
    return sha256(f"{namespace}\0{identifier}".encode()).digest()[:HASH_BYTES]


MANIFEST = "manifest.json"
"""The name of the file that lists a folder's shards."""

MAX_SHARDS = 4096

_SERVER_LABEL = b"srvstat shard\0"
_ROOT_LABEL = b"srvstat shards\0"
_INTEGER_BYTES = 8


def find_shard(server_id: str, shards: int) -> int:
    """Return the number of a server's shard, from 0. It depends only on the id."""
    digest = sha256(_SERVER_LABEL + server_id.encode()).digest()
    return int.from_bytes(digest[:_INTEGER_BYTES]) % shards


def name_shard(number: int) -> str:
    """Return the name of a shard's file, such as `shard-007.db`."""
    return f"shard-{number:03}.db"


def compute_shards_root(as_of: int, roots: Sequence[str]) -> str:
    """Return the root over shards, as 64 hexadecimal digits.

    The hashed bytes are: a label and a zero byte; the number of shards and the as_of, each in 8
    bytes, big-endian; the shards' roots in order, 32 bytes each.
    """
    numbers = (value.to_bytes(_INTEGER_BYTES) for value in (len(roots), as_of))
    return sha256(b"".join((_ROOT_LABEL, *numbers, *map(bytes.fromhex, roots)))).hexdigest()
