"""The chain of digests by which a snapshot proves itself, from a server's day up to the root.

The digest of a day stands in its server's calendar, which is part of the server's row or of a row
whose digest that has (calendar.py), like those of the bands of values (bands.py). The digest of the
server's row stands in the directory under both of its identifiers, the directory's in the row of
the file, and that of all in the root. Every row that an answer reads is compared with the digest
that the row above holds of it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from operator import itemgetter
from types import NoneType
from typing import Any

from srvstat.contract.requests import NAMESPACES, Namespace
from srvstat.snapshot.rows import FileRow, ServerRow, Value

DIGEST_BYTES = 16

_HASH_BYTES = 8
_KEY_BYTES = 4
_ENTRY_BYTES = _HASH_BYTES + _KEY_BYTES + DIGEST_BYTES
_ENTRIES_A_BUCKET = 128

_LETTERS = {int: "i", str: "t", bytes: "b", NoneType: "n"}


def row_digest(table: str, row: Sequence[Value]) -> bytes:
    """Return the digest of a row, given with all its columns in the table's order.

    Raises ValueError for values that no row of ours holds.
    """
    return _hash(table, row)[:DIGEST_BYTES]


def is_row(table: str, row: Sequence[Any], digest: bytes) -> bool:
    """Say whether a row, whatever it holds, is the one that a digest was made of."""
    try:
        return row_digest(table, row) == digest
    except ValueError:
        return False


def root_of(row: FileRow) -> bytes:
    """Return the root of a snapshot: the whole SHA-256 of what its own row tells of the content.

    That leaves out where the content came from, so that the same content has the same root.
    """
    content = (
        row.as_of,
        row.server_count,
        row.observation_count,
        row.first_observed_at,
        row.last_observed_at,
        row.bucket_digests,
    )
    return _hash("root", content)


def sealed(row: FileRow) -> FileRow:
    """Return the row of a file with its root and its own digest filled in."""
    row = row._replace(root=root_of(row))
    return row._replace(digest=row_digest("snapshot", row[:-1]))


def _hash(label: str, values: Sequence[Any]) -> bytes:
    """Return the SHA-256 of values.

    Its input begins with the label, a letter for the type of each value, the values that are no
    blobs (numbers in decimal, text in UTF-8) and the lengths of those that are, with a zero byte
    after each of these. The blobs follow. So no two different rows have the same input: no text of
    ours holds a zero byte.
    """
    form, plain, blobs = _layout(label, tuple(map(type, values)))
    head = form % (*plain(values), *map(len, blobs(values)))
    if head.count("\0") != form.count("\0"):
        raise ValueError("a text with a zero byte")
    return sha256(b"".join((head.encode("utf-8"), *blobs(values)))).digest()


_Pick = Callable[[Sequence[Any]], tuple[Any, ...]]


@cache
def _layout(label: str, types: tuple[type, ...]) -> tuple[str, _Pick, _Pick]:
    """Return the form of what a row's hash begins with, and what picks plain values and blobs."""
    if not set(types) <= _LETTERS.keys():
        raise ValueError("a value of no type of ours")
    letters = "".join(_LETTERS[kind] for kind in types)
    form = f"{label}\0{letters}\0" + "%s\0" * len(types)
    plain = [at for at, kind in enumerate(types) if kind is not bytes]
    blobs = [at for at, kind in enumerate(types) if kind is bytes]
    return form, _picker(plain), _picker(blobs)


def _picker(positions: Sequence[int]) -> _Pick:
    if len(positions) > 1:
        return itemgetter(*positions)
    return lambda values: tuple(values[at] for at in positions)


def directory_of(servers: Sequence[ServerRow]) -> list[tuple[int, bytes]]:
    """Return the rows of directory for all servers of a file."""
    digests = [row_digest("servers", server) for server in servers]
    buckets: list[bytes] = []
    for namespace in NAMESPACES:
        entries = [
            _identifier_hash(namespace, server.named(namespace))
            + server.server.to_bytes(_KEY_BYTES)
            + digest
            for server, digest in zip(servers, digests, strict=True)
        ]
        buckets += _buckets(sorted(entries))
    return list(enumerate(buckets))


def bucket_digests(directory: Iterable[tuple[int, bytes]]) -> bytes:
    """Return the digests of all rows of directory, one after another."""
    return b"".join(row_digest("directory", row) for row in directory)


def _buckets(entries: Sequence[bytes]) -> list[bytes]:
    count = -(-len(entries) // _ENTRIES_A_BUCKET) or 1
    buckets = [bytearray() for _ in range(count)]
    for entry in entries:
        buckets[_bucket(entry[:_HASH_BYTES], count)] += entry
    return [bytes(bucket) for bucket in buckets]


def bucket_of(namespace: Namespace, identifier: str, count: int) -> int:
    """Return which of a namespace's buckets has an identifier, if any has."""
    return _bucket(_identifier_hash(namespace, identifier), count)


def entries_of(
    entries: bytes, namespace: Namespace, identifier: str
) -> Iterator[tuple[int, bytes]]:
    """Yield, of a bucket, the key and the row's digest of each server that may bear an identifier.

    That is hardly ever more than one; of two identifiers with one hash, only the row can tell.
    """
    sought = _identifier_hash(namespace, identifier)
    at = entries.find(sought)
    while at >= 0:
        if at % _ENTRY_BYTES == 0:
            yield _entry(entries, at)
        at = entries.find(sought, at + 1)


def entry_digests(entries: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the key and the row's digest of each server of a bucket."""
    for at in range(0, len(entries), _ENTRY_BYTES):
        yield _entry(entries, at)


def _entry(entries: bytes, at: int) -> tuple[int, bytes]:
    digest_at = at + _HASH_BYTES + _KEY_BYTES
    digest = entries[digest_at : digest_at + DIGEST_BYTES]
    return int.from_bytes(entries[at + _HASH_BYTES : digest_at]), digest


def _identifier_hash(namespace: Namespace, identifier: str) -> bytes:
    return sha256(f"{namespace}\0{identifier}".encode()).digest()[:_HASH_BYTES]


def _bucket(hash: bytes, count: int) -> int:
    return int.from_bytes(hash) * count >> 8 * _HASH_BYTES
