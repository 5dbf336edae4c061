"""Compute the chain of digests that verifies a snapshot, from the days of a server to the root.

Each row that an answer reads is compared with its digest in another row. The digests of days are in
the calendar of the server (calendar.py), and those of bands in the row of the server (bands.py).
The digest of that row is in the directory, once per identifier. The digests of the directory are in
the row of the file, which the root covers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from operator import itemgetter
from struct import Struct
from types import NoneType
from typing import Any, NamedTuple

from srvstat.contract.requests import NAMESPACES, Namespace
from srvstat.snapshot.format.rows import KINDS, FileRow, ServerRow, Value

DIGEST_BYTES = 16

_HASH_BYTES = 8
_KEY_BYTES = 4
_ENTRY_BYTES = _HASH_BYTES + _KEY_BYTES + DIGEST_BYTES
_ENTRIES_PER_BUCKET = 128

_LETTERS = {int: "i", str: "t", bytes: "b", NoneType: "n"}


def digest_row(table: str, row: Sequence[Value]) -> bytes:
    """Return the digest of a row with all its columns in the table's order.

    Raises ValueError for values of types that no column has, and for texts with a zero byte.
    """
    return _hash(_build_layout(table, tuple(map(type, row))), row)[:DIGEST_BYTES]


def has_digest(table: str, row: Sequence[Any], digest: bytes) -> bool:
    """Check that an untrusted row has the types of its table's columns and the given digest."""
    types = tuple(map(type, row))
    try:
        # The cache of layouts stays small, as only the types of our tables pass.
        if types not in KINDS[table]:
            return False
        return _hash(_build_layout(table, types), row)[:DIGEST_BYTES] == digest
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
    return _hash(_build_layout(label, tuple(map(type, content))), content)


def seal(row: FileRow) -> FileRow:
    """Return the row of a file with its root and digest computed."""
    row = row._replace(root=compute_root(row))
    return row._replace(digest=digest_row("snapshot", row[:-1]))


def _hash(layout: "_Layout", values: Sequence[Any]) -> bytes:
    """Return the SHA-256 of values.

    The hashed bytes are: the label and a zero byte; a letter for the type of each value, and a zero
    byte; the integers and then the lengths of the blobs, each in 8 bytes, signed and little-endian;
    the texts in UTF-8, each followed by a zero byte; the blobs. Two different rows never have the
    same bytes, because texts have no zero byte.
    """
    head, pack, integers, texts, blobs, text_count = layout
    parts = blobs(values)
    numbers = pack(*integers(values), *map(len, parts))
    if not text_count:
        return sha256(b"".join((head, numbers, *parts))).digest()
    joined = "\0".join((*texts(values), ""))
    if joined.count("\0") != text_count:
        raise ValueError("a text with a zero byte")
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
        raise ValueError("a value of an unexpected type")
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


def build_directory(servers: Sequence[ServerRow]) -> list[tuple[int, bytes]]:
    """Return the rows of `directory` for all servers of a file."""
    digests = [digest_row("servers", server) for server in servers]
    buckets: list[bytes] = []
    for namespace in NAMESPACES:
        entries = [
            hash_identifier(namespace, server.get_identifier(namespace))
            + server.server.to_bytes(_KEY_BYTES)
            + digest
            for server, digest in zip(servers, digests, strict=True)
        ]
        buckets += _divide_entries(sorted(entries))
    return list(enumerate(buckets))


def digest_directory(directory: Iterable[tuple[int, bytes]]) -> bytes:
    """Return the joined digests of all rows of `directory`."""
    return b"".join(digest_row("directory", row) for row in directory)


def _divide_entries(entries: Sequence[bytes]) -> list[bytes]:
    count = -(-len(entries) // _ENTRIES_PER_BUCKET) or 1
    buckets = [bytearray() for _ in range(count)]
    for entry in entries:
        buckets[find_bucket(entry[:_HASH_BYTES], count)] += entry
    return [bytes(bucket) for bucket in buckets]


def find_bucket(hash: bytes, count: int) -> int:
    """Return the bucket, within its namespace, of an identifier with a given hash."""
    return int.from_bytes(hash) * count >> 8 * _HASH_BYTES


def find_entries(entries: bytes, wanted: bytes) -> list[tuple[int, bytes]]:
    """Return the key and the digest of each server in a bucket whose identifier has a given hash.

    There is rarely more than one. The row of a server shows whether it has the identifier.
    """
    found = []
    at = entries.find(wanted)
    while at >= 0:
        if at % _ENTRY_BYTES == 0:
            found.append(_read_entry(entries, at))
        at = entries.find(wanted, at + 1)
    return found


def read_entries(entries: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the key and the digest of each server in a bucket."""
    for at in range(0, len(entries), _ENTRY_BYTES):
        yield _read_entry(entries, at)


def _read_entry(entries: bytes, at: int) -> tuple[int, bytes]:
    digest_at = at + _HASH_BYTES + _KEY_BYTES
    digest = entries[digest_at : digest_at + DIGEST_BYTES]
    return int.from_bytes(entries[at + _HASH_BYTES : digest_at]), digest


def hash_identifier(namespace: Namespace, identifier: str) -> bytes:
    """Return the hash of an identifier in the directory."""
    return sha256(f"{namespace}\0{identifier}".encode()).digest()[:_HASH_BYTES]
