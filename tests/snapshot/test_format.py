"""Keep the stored schema equal in all files of a format version."""

import random
import sqlite3
from contextlib import closing
from hashlib import sha256
from itertools import product
from pathlib import Path
from runpy import run_path
from types import NoneType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, ROOT, Build, Cli, build_in, few_examples, server
from snapshot.observed import Observed, build_server, draw_fleets, windows
from srvstat.contract.requests import NAMESPACES, Namespace
from srvstat.contract.stats import compute_statistics
from srvstat.contract.time import LATEST
from srvstat.snapshot.rows import (
    DIGEST_BYTES,
    FORMAT_VERSION,
    KINDS,
    Bucket,
    FileRow,
    ForgedRowError,
    build_directory,
    choose_width,
    compute_root,
    digest_row,
    find_bucket,
    find_entries,
    find_width,
    has_digest,
    hash_identifier,
    pack_sum,
    read_entries,
    read_schema,
    unpack,
)
from support.snapshots import change, read_observations

SCHEMA_HASHES = {2: "0c0d8daa5c6fbb7e21d4fd82005b688f9d2a9bd4c3d8d4871e030285db23b173"}
"""The SHA-256 of the stored CREATE statements, with their comments, by format version."""


def test_a_change_of_the_stored_schema_raises_the_format_version() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(read_schema())
        query = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
        statements = [sql for (sql,) in connection.execute(query)]
    found = sha256("\n".join(statements).encode()).hexdigest()

    assert SCHEMA_HASHES.get(FORMAT_VERSION) == found, (
        "schema.sql: the stored tables or the comments in them differ, so readers would refuse"
        f" existing snapshots; raise FORMAT_VERSION and add its hash, {found}, here"
    )


WIDTHS = (1, 2, 4, 8)
BORDERS = [2**bits + step for bits in (8, 16, 32, 53, 63) for step in (-1, 0, 1)]
NUMBERS = st.sampled_from([0, 1, *BORDERS, 2**64 - 1]) | st.integers(0, 2**64 - 1)


@given(numbers=st.lists(NUMBERS, min_size=1, max_size=50))
def test_numbers_of_the_least_width_are_unpacked(numbers: list[int]) -> None:
    width = choose_width(max(numbers))
    packed = b"".join(number.to_bytes(width, "little") for number in numbers)

    assert width == next(width for width in WIDTHS if max(numbers) < 256**width)
    assert find_width(packed, len(numbers)) == width
    assert [*unpack(packed, width)] == numbers


@given(packed=st.binary(max_size=40), count=st.integers(-3, 45))
def test_numbers_have_one_width_or_are_refused(packed: bytes, count: int) -> None:
    fitting = [width for width in WIDTHS if count > 0 and width * count == len(packed)]

    if fitting:
        assert [find_width(packed, count)] == fitting
    else:
        with pytest.raises(ForgedRowError, match=r"^not numbers of one width$"):
            find_width(packed, count)


@given(total=NUMBERS | st.integers(0, 2**80))
def test_a_sum_takes_the_fewest_bytes(total: int) -> None:
    packed = pack_sum(total)

    assert int.from_bytes(packed, "little") == total
    assert not packed.endswith(b"\0")


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
    with pytest.raises((KeyError, ValueError), match=r"class|^a text with a zero byte$|surrogates"):
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

    for row in servers:
        claim = (row.server, digest_row("servers", row))
        assert find_claims(rows, "id", row.id) == [claim]
        assert find_claims(rows, "cfxId", row.cfx_id) == [claim]
        assert find_claims(rows, "cfxId", row.id) == find_claims(rows, "id", row.cfx_id) == []
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


FILE_ROW = FileRow(5, 1, 2, 3, 4, '["a.csv"]', 6, 7, 8, 1, "{}", None, None, b"buckets", b"", b"")


def test_the_root_covers_the_content_but_not_its_sources() -> None:
    root = sha256(b"root\0iiiiib\0" + encode_integers(5, 1, 2, 3, 4, 7) + b"buckets").digest()

    assert compute_root(FILE_ROW) == root
    assert (
        compute_root(
            FILE_ROW._replace(
                sources="[]", repeated=0, conflicting=0, rejected=0, is_open=0, reading="[]"
            )
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


READER = SimpleNamespace(**run_path(str(ROOT / "docs" / "examples" / "read_snapshot.py")))


@settings(max_examples=few_examples(), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fleet=draw_fleets(), data=st.data())
def test_a_plain_reader_finds_all_servers_and_observations_and_the_same_statistics(
    fleet: dict[str, Observed], data: st.DataObject, build: Build
) -> None:
    rows = [row for name, one in fleet.items() for row in one.rows(name)]
    random.Random(data.draw(st.integers(0, 99))).shuffle(rows)  # noqa: S311 - not for secrets
    path = build(map(server, fleet), rows, "--at", str(LATEST))

    with closing(sqlite3.connect(path)) as connection:
        assert READER.find_server(connection, "nobody") is None
        assert READER.find_server(connection, "lonely", "cfxId") is None
        for name, observed in fleet.items():
            found = READER.find_server(connection, name)
            assert found["id"] == name
            assert found == READER.find_server(connection, f"x-{name}", "cfxId")
            pairs = [*zip(*observed, strict=True)]
            start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(pairs))] * 2)))
            assert READER.read_observations(connection, found, 0, len(pairs)) == pairs
            assert READER.read_observations(connection, found, start, stop) == pairs[start:stop]
            for window in data.draw(st.lists(windows(*fleet.values()), min_size=3, max_size=3)):
                players = observed.within(window)
                own = compute_statistics(players)
                figures = (own.observations, own.mean, own.lowest, own.median, own.peak)
                expected = (*figures, players[0], players[-1]) if players else None
                assert READER.compute_figures(connection, found, *window) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE snapshot SET as_of = as_of + 1",
        "UPDATE snapshot SET parent_root = zeroblob(32)",
        "DELETE FROM directory",
        "UPDATE directory SET entries = x''",
        "UPDATE servers SET hostname = 'another'",
        "UPDATE servers SET counts = x''",
        "UPDATE blocks SET players = zeroblob(length(players))",
        "UPDATE blocks SET counts_before = x'00'",
        "UPDATE blocks SET marks = zeroblob(length(marks) + 2)",
        "DELETE FROM blocks",
    ],
)
def test_a_plain_reader_refuses_changed_rows(
    sql: str, demo_snapshot: str, tmp_path: Path, cli: Cli
) -> None:
    path = str(tmp_path / "case.db")
    cli("snapshot", "bundle", "harbor-city", "-o", path, "-s", demo_snapshot)

    def read(path: str) -> int:
        with closing(sqlite3.connect(path)) as connection:
            found = READER.find_server(connection, "harbor-city")
            return len(READER.read_observations(connection, found, 0, found["observation_count"]))

    assert read(path) > 700
    change(path, sql)
    with pytest.raises(ValueError, match=r"^damaged: "):
        read(path)


def test_the_page_about_the_format_stays_short() -> None:
    assert (
        len((ROOT / "docs/reference/snapshot.md").read_text(encoding="utf-8").splitlines()) <= 150
    )


MOST_PLAYERS = 2**53 - 1
# Every byte of a time and of a count, and all widths of counts, each day with another one.
EVERY_BYTE = sorted(
    {
        *(("b", AS_OF - DAY * at // 256, at) for at in range(256)),
        *(("b", AS_OF - 3 * DAY - 257 * at, 257 * at) for at in range(256)),
        *(("b", AS_OF - 6 * DAY - 65_537 * at, 0x01_01_01_01 * at) for at in range(256)),
        *(("c", AS_OF - 9 * DAY - at, MOST_PLAYERS >> at) for at in range(54)),
        *(("c", DAY * day - after, 5) for day in (1, 2) for after in (0, 1, DAY)),
    }
)


def test_any_sqlite_program_reads_all_observations(tmp_path: Path) -> None:
    path = str(build_in(tmp_path, list(map(server, "abc")), EVERY_BYTE))

    assert read_observations(path) == EVERY_BYTE
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA trusted_schema = 0")
        query = "SELECT observed_at, players FROM observations WHERE server = 2"
        assert connection.execute(query).fetchall() == [
            (at, players) for name, at, players in EVERY_BYTE if name == "b"
        ]
        plan = [step for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
    assert "SEARCH blocks USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in plan
    assert not [step for step in plan if step.startswith(("SCAN blocks", "SCAN servers"))]
