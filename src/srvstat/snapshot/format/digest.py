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
    """Return the digest of a row, given with all its columns in the table's order.

    Raises ValueError for values that no row of ours holds.
    """
    return _hash(_layout(table, tuple(map(type, row))), row)[:DIGEST_BYTES]


def has_digest(table: str, row: Sequence[Any], digest: bytes) -> bool:
    """Say whether a row, whatever it holds, is of the table and the one a digest was made of."""
    types = tuple(map(type, row))
    try:
        # Only the few layouts of our tables are cached, whatever types a file has.
        if types not in KINDS.get(table, (types,)):
            return False
        return _hash(_layout(table, types), row)[:DIGEST_BYTES] == digest
    except ValueError:
        return False


def compute_root(row: FileRow) -> bytes:
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
    return _hash(_layout("root", tuple(map(type, content))), content)


def seal(row: FileRow) -> FileRow:
    """Return the row of a file with its root and its own digest filled in."""
    row = row._replace(root=compute_root(row))
    return row._replace(digest=digest_row("snapshot", row[:-1]))


def _hash(layout: "_Layout", values: Sequence[Any]) -> bytes:
    """Return the SHA-256 of values.

    Its input begins with the label, a zero byte, a letter for the type of each value, and a zero
    byte. Then come the integers and after them the lengths of the blobs, each in 8 bytes, signed
    and little-endian; the texts in UTF-8, with a zero byte after each; and the blobs. So no two
    different rows have the same input: no text of ours holds a zero byte.
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
    """What the input of a row's hash begins with, and what picks and packs the rest."""

    head: bytes
    pack: Callable[..., bytes]
    integers: _Pick
    texts: _Pick
    blobs: _Pick
    text_count: int


@cache
def _layout(label: str, types: tuple[type, ...]) -> _Layout:
    if not set(types) <= _LETTERS.keys():
        raise ValueError("a value of no type of ours")
    letters = "".join(_LETTERS[kind] for kind in types)
    integers, texts, blobs = (
        [at for at, kind in enumerate(types) if kind is wanted] for wanted in (int, str, bytes)
    )
    return _Layout(
        head=f"{label}\0{letters}\0".encode(),
        pack=Struct(f"<{len(integers) + len(blobs)}q").pack,
        integers=_picker(integers),
        texts=_picker(texts),
        blobs=_picker(blobs),
        text_count=len(texts),
    )


def _picker(positions: Sequence[int]) -> _Pick:
    if len(positions) > 1:
        return itemgetter(*positions)
    return lambda values: tuple(values[at] for at in positions)


def build_directory(servers: Sequence[ServerRow]) -> list[tuple[int, bytes]]:
    """Return the rows of directory for all servers of a file."""
    digests = [digest_row("servers", server) for server in servers]
    buckets: list[bytes] = []
    for namespace in NAMESPACES:
        entries = [
            hash_identifier(namespace, server.get_identifier(namespace))
            + server.server.to_bytes(_KEY_BYTES)
            + digest
            for server, digest in zip(servers, digests, strict=True)
        ]
        buckets += _buckets(sorted(entries))
    return list(enumerate(buckets))


def bucket_digests(directory: Iterable[tuple[int, bytes]]) -> bytes:
    """Return the digests of all rows of directory, one after another."""
    return b"".join(digest_row("directory", row) for row in directory)


def _buckets(entries: Sequence[bytes]) -> list[bytes]:
    count = -(-len(entries) // _ENTRIES_PER_BUCKET) or 1
    buckets = [bytearray() for _ in range(count)]
    for entry in entries:
        buckets[find_bucket(entry[:_HASH_BYTES], count)] += entry
    return [bytes(bucket) for bucket in buckets]


def find_bucket(hash: bytes, count: int) -> int:
    """Return which of a namespace's buckets has the identifier with a hash, if any has."""
    return int.from_bytes(hash) * count >> 8 * _HASH_BYTES


def find_entries(entries: bytes, sought: bytes) -> list[tuple[int, bytes]]:
    """Return, of a bucket, the key and the row's digest of each server whose identifier has a hash.

    That is hardly ever more than one; of two identifiers with one hash, only the row can tell.
    """
    found = []
    at = entries.find(sought)
    while at >= 0:
        if at % _ENTRY_BYTES == 0:
            found.append(_entry(entries, at))
        at = entries.find(sought, at + 1)
    return found


def read_entries(entries: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the key and the row's digest of each server of a bucket."""
    for at in range(0, len(entries), _ENTRY_BYTES):
        yield _entry(entries, at)


def _entry(entries: bytes, at: int) -> tuple[int, bytes]:
    digest_at = at + _HASH_BYTES + _KEY_BYTES
    digest = entries[digest_at : digest_at + DIGEST_BYTES]
    return int.from_bytes(entries[at + _HASH_BYTES : digest_at]), digest


def hash_identifier(namespace: Namespace, identifier: str) -> bytes:
    """Return what an identifier is sought by in the directory."""
    return sha256(f"{namespace}\0{identifier}".encode()).digest()[:_HASH_BYTES]
