"""Describe which rows of an old format have the digests of others, and compute them."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from srvstat.contract.requests import NAMESPACES, Namespace
from srvstat.snapshot.format.digest import (
    DIGEST_BYTES,
    ENTRIES_PER_BUCKET,
    HASH_BYTES,
    find_bucket,
    hash_identifier,
    hash_values,
)
from srvstat.snapshot.format.packing import unpack
from srvstat.snapshot.format.rows import (
    BANDS_PER_SERVER,
    BLOCKS_PER_SERVER,
    DAYS_PER_SERVER,
    Value,
)

Row = Mapping[str, Any]
"""A row: its values by the names of its columns, in the table's order."""

_COLUMNS: Mapping[Namespace, str] = {"id": "id", "cfxId": "cfx_id"}
_PROVENANCE = ("parent_root", "covered_from")
_NUMBER_BYTES = 4
_NO_DIGEST = bytes(DIGEST_BYTES)


class Holder(NamedTuple):
    """Where rows have their digests: joined in a column of each row of a table.

    `numbers` is the column with the packed numbers of the rows. Without it, they are numbered from
    0, and a digest of zeros stands for no row.
    """

    table: str
    digests: str
    numbers: str | None = None

    def list_digests(self, row: Row) -> dict[int, bytes]:
        """Return the digests in a row by the number of the row that each belongs to.

        Raises ValueError for values that no build wrote.
        """
        joined = row[self.digests]
        starts = range(0, len(joined), DIGEST_BYTES)
        digests = [joined[start : start + DIGEST_BYTES] for start in starts]
        if self.numbers:
            numbers = unpack(row[self.numbers], len(digests)) if digests else ()
            return dict(zip(numbers, digests, strict=True))
        return {at: digest for at, digest in enumerate(digests) if digest != _NO_DIGEST}


class Link(NamedTuple):
    """A table with rows of each server, which are verified by digests in rows of other tables.

    The key of a row is the number of its server times `per_server`, plus its own number; with
    `omits_server`, digests cover the latter only. `part` is how messages name the rows.
    """

    table: str
    per_server: int
    part: str
    holders: Sequence[Holder]
    omits_server: bool = False

    def list_digests(self, found: Mapping[str, Mapping[int, Row]]) -> dict[int, bytes]:
        """Return the digests of the rows of a server by their number.

        `found` has the rows of the holders by table and number.

        Raises ValueError for values that no build wrote.
        """
        digests: dict[int, bytes] = {}
        for holder in self.holders:
            for row in found[holder.table].values():
                digests |= holder.list_digests(row)
        return digests


class Chain(NamedTuple):
    """The digests of a format: the function that hashes a label and values, and the links."""

    hash_values: Callable[[str, Sequence[Value]], bytes]
    links: Sequence[Link]

    def digest_linked_row(self, link: Link, row: Row) -> bytes:
        """Return the digest of a row that a link verifies."""
        key, *values = row.values()
        number = key % link.per_server if link.omits_server else key
        return self.hash_values(link.table, [number, *values])[:DIGEST_BYTES]

    def digest_row(self, table: str, row: Row) -> bytes:
        """Return the digest of a row.

        Raises ValueError for a text with a zero byte.
        """
        return self.hash_values(table, [*row.values()])[:DIGEST_BYTES]

    def digest_file_row(self, row: Row) -> bytes:
        """Return the digest of the row of `snapshot`, which its last column has.

        Raises ValueError for a text with a zero byte.
        """
        return self.hash_values("snapshot", [*row.values()][:-1])[:DIGEST_BYTES]

    def compute_root(self, row: Row) -> bytes:
        """Return the root of the row of `snapshot`."""
        provenance = [row[name] for name in _PROVENANCE if row.get(name) is not None]
        label = "bundle" if provenance else "root"
        counts = ("as_of", "server_count", "observation_count")
        ends = ("first_observed_at", "last_observed_at")
        content = [*(row[name] for name in counts + ends), *provenance, row["bucket_digests"]]
        return self.hash_values(label, content)

    def build_directory(self, servers: Sequence[Row]) -> list[tuple[int, bytes]]:
        """Return the rows of `directory` for the rows of all servers.

        Raises ValueError and OverflowError for values that no build wrote.
        """
        digests = [self.digest_row("servers", row) for row in servers]
        count = -(-len(servers) // ENTRIES_PER_BUCKET) or 1
        buckets = [bytearray() for _ in range(len(NAMESPACES) * count)]
        for at, namespace in enumerate(NAMESPACES):
            entries = [
                hash_identifier(namespace, row[_COLUMNS[namespace]])
                + row["server"].to_bytes(_NUMBER_BYTES)
                + digest
                for row, digest in zip(servers, digests, strict=True)
            ]
            for entry in sorted(entries):
                buckets[at * count + find_bucket(entry[:HASH_BYTES], count)] += entry
        return list(enumerate(map(bytes, buckets)))


def _hash_as_text(label: str, values: Sequence[Value]) -> bytes:
    """Return the SHA-256 of a label and values as in format 3.

    The hashed bytes are: the label; a letter for the type of each value; integers in decimal,
    texts, and None; the lengths of blobs; each followed by a zero byte. The blobs follow.

    Raises ValueError for a text with a zero byte.
    """
    letters = "".join({int: "i", str: "t", bytes: "b"}.get(type(value), "n") for value in values)
    blobs = [value for value in values if isinstance(value, bytes)]
    plain = [str(value) for value in values if not isinstance(value, bytes)]
    parts = [label, letters, *plain, *(str(len(blob)) for blob in blobs)]
    if any("\0" in part for part in parts):
        raise ValueError("a text with a zero byte")
    head = "".join(f"{part}\0" for part in parts)
    return sha256(b"".join((head.encode(), *blobs))).digest()


_LINKS_3 = (
    Link("calendars", 1, "the calendar", [Holder("servers", "calendar_digest")]),
    Link("days", DAYS_PER_SERVER, "the days", [Holder("calendars", "digests", "days")]),
)
_BLOCKS = Link("calendars", BLOCKS_PER_SERVER, "the calendar", [Holder("servers", "block_digests")])
_DAYS = Link(
    "days",
    DAYS_PER_SERVER,
    "the days",
    [Holder("calendars", "digests", "days"), Holder("servers", "day_digests", "days")],
)
_BANDS = Link("bands", BANDS_PER_SERVER, "the bands", [Holder("servers", "band_digests")])
_LINKS_4 = (_BLOCKS, _DAYS, _BANDS)
_LINKS_6 = (_BLOCKS, _DAYS._replace(omits_server=True), _BANDS)
_SUMMARIES = tuple(
    Link(table, per_server, "the summaries", [Holder(holder, digests)])
    for table, per_server, holder, digests in (
        ("summary_index", 1, "servers", "summary_digest"),
        ("summaries", BLOCKS_PER_SERVER, "summary_index", "digests"),
        ("interval_counts", BLOCKS_PER_SERVER, "summary_index", "count_digests"),
        ("intervals", BANDS_PER_SERVER, "summary_index", "band_digests"),
    )
)

CHAINS: Mapping[int, Chain] = {
    3: Chain(_hash_as_text, _LINKS_3),
    4: Chain(hash_values, _LINKS_4),
    5: Chain(hash_values, _LINKS_4),
    6: Chain(hash_values, _LINKS_6),
    7: Chain(hash_values, _LINKS_6 + _SUMMARIES),
}
"""The digests of the formats that have some, by version. Each link follows those of its holders."""
