"""The digests of rows, and the roots of files and of folders of shards."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from operator import itemgetter
from struct import Struct
from types import NoneType
from typing import Any, NamedTuple

from srvstat.contract.requests import NAMESPACES, Namespace
from srvstat.snapshot.rows import (
    BLOCKS_PER_SERVER,
    DIGEST_BYTES,
    KINDS,
    Bucket,
    FileRow,
    ForgedRowError,
    ServerRow,
    Value,
    find_observed_span,
)

HASH_BYTES = 8
_ENTRY_BYTES = HASH_BYTES + DIGEST_BYTES
_NUMBER_BYTES = 4
ENTRIES_PER_BUCKET = 128

_LETTERS = {int: "i", str: "t", bytes: "b", NoneType: "n"}


def digest_row(table: str, row: Sequence[Value]) -> bytes:
    """Return the digest of a row with all its columns in the table's order."""
    return hash_values(table, _list_digested(table, row))[:DIGEST_BYTES]


_BLOCK_HEAD = 10
"""The columns of `blocks` up to the digest of the last two."""


def _list_digested(table: str, row: Sequence[Any]) -> Sequence[Any]:
    """Return the values that the digest of a row covers: those without the server's number."""
    if table == "blocks":
        return row[0] % BLOCKS_PER_SERVER, *row[1:_BLOCK_HEAD]
    if table == "directory":
        return row[:2]
    return row[1:] if table == "servers" else row


def digest_counts(counts_before: bytes, marks: bytes) -> bytes:
    """Return the digest of the last two columns of a block, which most readers do not need."""
    return hash_values("counts", (counts_before, marks))[:DIGEST_BYTES]


def has_digest(table: str, row: Sequence[Any], digest: bytes) -> bool:
    """Check that an untrusted row has the types of its table's columns and the given digest."""
    types = tuple(map(type, row))
    try:
        # The cache of layouts stays small, as only the types of our tables pass.
        if types not in KINDS[table]:
            return False
        values = _list_digested(table, row)
        layout = _build_layout(table, tuple(map(type, values)))
        return _hash(layout, values)[:DIGEST_BYTES] == digest
    except ValueError:
        return False


def compute_root(row: FileRow) -> bytes:
    """Return the root of a snapshot: the full SHA-256 of the columns that describe its content.

    Columns about the sources are excluded, so that equal content has an equal root. The label of a
    bundle differs from that of a whole snapshot, so the two never have the same root.
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

    The hashed bytes are: the label and a zero byte; a letter for the type of each value, and a zero
    byte; the integers and then the lengths of the blobs, each in 8 bytes, signed and little-endian;
    the texts in UTF-8, each followed by a zero byte; the blobs. Two different rows never have the
    same bytes, because texts have no zero byte.
    """
    return _hash(_build_layout(label, tuple(map(type, values))), values)


def _hash(layout: "_Layout", values: Sequence[Any]) -> bytes:
    """Return the SHA-256 of the label of a layout and values, as `hash_values`."""
    head, pack, integers, texts, blobs, text_count = layout
    parts = blobs(values)
    numbers = pack(*integers(values), *map(len, parts))
    if not text_count:
        return sha256(b"".join((head, numbers, *parts))).digest()
    joined = "\0".join((*texts(values), ""))
    if joined.count("\0") != text_count:
        raise ForgedRowError("a text with a zero byte")
    return sha256(b"".join((head, numbers, joined.encode(), *parts))).digest()


_Pick = Callable[[Sequence[Any]], tuple[Any, ...]]


class _Layout(NamedTuple):
    """The beginning of the hashed bytes of a row, and the functions that build the rest."""

    head: bytes
    pack: Callable[..., bytes]
    integers: _Pick
    texts: _Pick
    blobs: _Pick
    text_count: int


@cache
def _build_layout(label: str, types: tuple[type, ...]) -> _Layout:
    if not set(types) <= _LETTERS.keys():
        raise ForgedRowError("a value of an unexpected type")
    letters = "".join(_LETTERS[kind] for kind in types)
    integers, texts, blobs = (
        [at for at, kind in enumerate(types) if kind is wanted] for wanted in (int, str, bytes)
    )
    return _Layout(
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
    """Return the row of a file with what follows from its servers, and their directory."""
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
    """Return the buckets, numbered from `first`, of ascending hashes, digests and servers."""
    count = -(-len(entries) // ENTRIES_PER_BUCKET) or 1
    buckets = [(bytearray(), bytearray()) for _ in range(count)]
    for hashed, digest, server in entries:
        of_bucket, servers = buckets[find_bucket(hashed, count)]
        of_bucket += hashed + digest
        servers += server.to_bytes(_NUMBER_BYTES, "little")
    return [Bucket(first + at, *map(bytes, columns)) for at, columns in enumerate(buckets)]


def find_bucket(hash: bytes, count: int) -> int:
    """Return the bucket, within its namespace, of an identifier with a given hash."""
    return int.from_bytes(hash) * count >> 8 * HASH_BYTES


def find_entries(bucket: Bucket, wanted: bytes) -> list[tuple[int, bytes]]:
    """Return the number and the digest of each server whose identifier has a given hash.

    There is rarely more than one. The row of a server shows whether it has the identifier.
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
"""The name of the file that lists the shards of a folder."""

MAX_SHARDS = 4096

_SERVER_LABEL = b"srvstat shard\0"
_ROOT_LABEL = b"srvstat shards\0"
_INTEGER_BYTES = 8


def find_shard(server_id: str, shards: int) -> int:
    """Return the number of a server's shard, from 0 on; it depends on the id only."""
    digest = sha256(_SERVER_LABEL + server_id.encode()).digest()
    return int.from_bytes(digest[:_INTEGER_BYTES]) % shards


def name_shard(number: int) -> str:
    """Return the name of a shard's file, such as `shard-007.db`."""
    return f"shard-{number:03}.db"


def compute_shards_root(as_of: int, roots: Sequence[str]) -> str:
    """Return the root over shards, as 64 hexadecimal digits like the root of each.

    The hashed bytes are: a label and a zero byte; the number of shards and the as_of, each in 8
    bytes, big-endian; the roots in the order of the shards, 32 bytes each.
    """
    numbers = (value.to_bytes(_INTEGER_BYTES) for value in (len(roots), as_of))
    return sha256(b"".join((_ROOT_LABEL, *numbers, *map(bytes.fromhex, roots)))).hexdigest()
