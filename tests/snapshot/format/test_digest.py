"""Compute digests: different rows hash different bytes, and each identifier has one place."""

import sqlite3
from contextlib import closing
from hashlib import sha256
from itertools import product
from types import NoneType
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from snapshot.server_rows import build_server
from srvstat.contract.requests import NAMESPACES, Namespace
from srvstat.snapshot.digests import (
    build_directory,
    compute_root,
    digest_row,
    find_bucket,
    find_entries,
    has_digest,
    hash_identifier,
    read_entries,
)
from srvstat.snapshot.rows import DIGEST_BYTES, KINDS, Bucket, FileRow, read_schema

LEAST, MOST = -(2**63), 2**63 - 1
TEXTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=5)
VALUES = st.none() | st.integers(LEAST, MOST) | TEXTS | st.binary(max_size=5)
ROWS = st.lists(VALUES, max_size=5)


def hash_to_16_bytes(text: bytes) -> bytes:
    return sha256(text).digest()[:16]


def encode_integers(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)


@pytest.mark.parametrize(
    ("row", "hashed"),
    [
        ((), b"table\0\0"),
        ((1,), b"table\0i\0" + encode_integers(1)),
        ((-12, None, "x"), b"table\0int\0" + encode_integers(-12) + b"x\0"),
        (("ä夜", b"\0\1"), b"table\0tb\0" + encode_integers(2) + b"\xc3\xa4\xe5\xa4\x9c\0\0\1"),
        ((b"", 5, b"abc"), b"table\0bib\0" + encode_integers(5, 0, 3) + b"abc"),
        (("x", 5, "y"), b"table\0tit\0" + encode_integers(5) + b"x\0y\0"),
    ],
)
def test_a_row_is_hashed_as_documented(row: tuple[Any, ...], hashed: bytes) -> None:
    assert digest_row("table", row) == hash_to_16_bytes(hashed)


@given(one=ROWS, other=ROWS)
def test_different_rows_have_different_digests(one: list[Any], other: list[Any]) -> None:
    assume([*map(type, one)] != [*map(type, other)] or one != other)

    assert digest_row("table", one) != digest_row("table", other)


VALUES_BY_TYPE = {
    int: st.integers(LEAST, MOST),
    str: TEXTS,
    bytes: st.binary(max_size=5),
    NoneType: st.none(),
}


@st.composite
def draw_table_rows(draw: st.DrawFn) -> tuple[str, tuple[Any, ...]]:
    """Draw a table and a row with the types of its columns."""
    table = draw(st.sampled_from(sorted(KINDS)))
    kinds = draw(st.sampled_from(sorted(KINDS[table], key=str)))
    return table, draw(st.tuples(*(VALUES_BY_TYPE[kind] for kind in kinds)))


@given(case=draw_table_rows())
def test_a_digest_matches_only_its_table_and_row(case: tuple[str, tuple[Any, ...]]) -> None:
    table, row = case
    digest = digest_row(table, row)

    assert len(digest) == DIGEST_BYTES
    assert [name for name in KINDS if has_digest(name, row, digest)] == [table]
    assert not has_digest(table, row, digest[:-1])
    assert not has_digest(table, [*row, None], digest_row(table, [*row, None]))


@pytest.mark.parametrize("table", KINDS)
def test_rows_have_the_types_that_the_schema_declares(table: str) -> None:
    types = {"INTEGER": int, "TEXT": str, "BLOB": bytes}
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(read_schema())
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    declared = [
        (types[kind],) if is_key or not_null else (types[kind], NoneType)
        for _, _, kind, not_null, _, is_key in columns
    ]
    if table == "snapshot":
        del declared[-1]
    kinds = frozenset(product(*declared))

    # Counts have a digest of their own, and most readers leave them out.
    assert KINDS[table] == kinds | {kind[:-2] for kind in kinds if table == "blocks"}


@pytest.mark.parametrize("value", [1.5, True, bytearray(b"x"), "a\0b", "\ud800"])
def test_values_that_no_column_holds_have_no_digest(value: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^a value of an unexpected type$|^a text with a zero byte$|surrogates"
    ):
        digest_row("table", [value])
    assert not has_digest("directory", [value, b""], b"")


@pytest.mark.parametrize("hostname", ["a\0b", "\ud800"])
def test_a_row_with_a_text_that_cannot_be_hashed_has_no_digest(hostname: str) -> None:
    row = build_server(1, hostname=hostname)

    assert not has_digest("servers", row, bytes(DIGEST_BYTES))


def find_claims(rows: list[Bucket], by: Namespace, identifier: str) -> list[tuple[int, bytes]]:
    """Return the entries that a directory has for an identifier."""
    count = len(rows) // len(NAMESPACES)
    bucket = NAMESPACES.index(by) * count + find_bucket(hash_identifier(by, identifier), count)
    return list(find_entries(rows[bucket], hash_identifier(by, identifier)))


@pytest.mark.parametrize("number", [0, 1, 2, 128, 129, 1000])
def test_a_directory_has_all_identifiers_and_no_others(number: int) -> None:
    servers = [build_server(key) for key in range(1, number + 1)]
    rows = build_directory(servers)

    for server in servers:
        claim = (server.server, digest_row("servers", server))
        assert find_claims(rows, "id", server.id) == [claim]
        assert find_claims(rows, "cfxId", server.cfx_id) == [claim]
        assert find_claims(rows, "cfxId", server.id) == find_claims(rows, "id", server.cfx_id) == []
    assert find_claims(rows, "id", "id-0") == []


def test_a_hash_is_found_only_at_the_start_of_an_entry() -> None:
    wanted = sha256(b"id\0a").digest()[:8]
    entry = wanted + bytes(16)
    misplaced = bytes(4) + wanted + bytes(12)

    assert find_entries(Bucket(0, misplaced + entry, bytes(8)), wanted) == [(0, bytes(16))]
    assert find_entries(Bucket(0, misplaced, bytes(4)), wanted) == []


def test_identifiers_with_equal_hashes_are_all_found() -> None:
    wanted = sha256(b"id\0a").digest()[:8]
    entries = b"".join(wanted + bytes([key]) * 16 for key in (1, 2, 3))
    bucket = Bucket(0, entries, b"".join(key.to_bytes(4, "little") for key in (1, 2, 3)))
    all_of_them = [(1, b"\1" * 16), (2, b"\2" * 16), (3, b"\3" * 16)]

    assert find_entries(bucket, wanted) == all_of_them
    assert list(read_entries(bucket)) == all_of_them


FILE_ROW = FileRow(5, 1, 2, 3, 4, '["a.csv"]', 6, 7, 8, 1, None, None, b"buckets", b"", b"")


def test_the_root_covers_the_content_but_not_its_sources() -> None:
    root = sha256(b"root\0iiiiib\0" + encode_integers(5, 1, 2, 3, 4, 7) + b"buckets").digest()

    assert compute_root(FILE_ROW) == root
    assert (
        compute_root(
            FILE_ROW._replace(sources="[]", repeated=0, conflicting=0, rejected=0, is_open=0)
        )
        == root
    )
    for other in (
        FILE_ROW._replace(as_of=9),
        FILE_ROW._replace(server_count=9),
        FILE_ROW._replace(observation_count=9),
        FILE_ROW._replace(first_observed_at=9),
        FILE_ROW._replace(last_observed_at=None),
        FILE_ROW._replace(bucket_digests=b"bucket"),
    ):
        assert compute_root(other) != root


def test_the_root_of_a_bundle_covers_its_provenance() -> None:
    bundle = FILE_ROW._replace(parent_root=b"parent", covered_from=2)
    hashed = b"bundle\0iiiiibib\0" + encode_integers(5, 1, 2, 3, 4, 2, 6, 7) + b"parentbuckets"

    assert compute_root(bundle) == sha256(hashed).digest()
    others = [bundle._replace(parent_root=b"another"), bundle._replace(covered_from=1), FILE_ROW]
    assert compute_root(bundle) not in map(compute_root, others)
