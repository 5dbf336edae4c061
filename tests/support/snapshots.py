"""Build, read, change and divide snapshots."""

import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from conftest import Ran, csv, ndjson
from srvstat.cli.app import main
from srvstat.contract.time import LATEST, format_instant
from srvstat.contract.windows import BEFORE_ALL, Window
from srvstat.documents.snapshot import Manifest, ManifestShard, seal_manifest
from srvstat.snapshot.read import observations as stored
from srvstat.snapshot.read.file import SnapshotFile, open_file
from srvstat.snapshot.rows import (
    BLOCKS_PER_SERVER,
    DIGEST_BYTES,
    MANIFEST,
    Block,
    FileRow,
    ServerRow,
    build_directory,
    compute_shards_root,
    digest_counts,
    digest_row,
    find_shard,
    name_shard,
    seal,
)
from srvstat.snapshot.write.roster import build_record
from srvstat.sources.servers import format_records

_Row = tuple[Any, ...]

PAGE_SIZE = 8_192
"""The bytes of a page of a snapshot."""

COMMAND = ["snapshot", "build", "out.db", "--servers", "servers.ndjson"]
WEEK = [*COMMAND, "--observations", "week.csv"]
EXISTS = "error: out.db: already exists; add --overwrite to replace it\n"


def read_directory(directory: Path) -> dict[str, bytes | None]:
    """Return the content of each file by its name; None for what is not a file."""
    return {
        path.name: path.read_bytes() if path.is_file() else None for path in directory.iterdir()
    }


def read_observations(path: str) -> list[tuple[str, int, int]]:
    """Return the observations of a snapshot as (id, observed at, players)."""
    query = "SELECT id, observed_at, players FROM observations JOIN servers USING (server)"
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def read_root(path: str) -> bytes:
    """Return the root of a snapshot."""
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT root FROM snapshot").fetchone()
    return bytes(root)


def parse_summary(ran: Ran) -> dict[str, str]:
    """Return the lines of a build's summary by their names."""
    return dict(re.findall(r"^  (\S+(?: \S+)*)  +(.*)$", ran.stderr, re.MULTILINE))


def read_rejects(path: str = "rejects.ndjson") -> list[dict[str, Any]]:
    """Return the entries of a rejects file."""
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def expect_conflict(name: str, line: int, first: int, row: tuple[str, int, int]) -> dict[str, Any]:
    """Return the reject of a row whose players differ from those of an earlier row."""
    reason = f"conflicts with an earlier row for the same server and time, which has {first}"
    return {"file": name, "line": line, "reason": f"players: {reason}", "text": format_row(*row)}


def format_row(name: str, at: int, players: int) -> str:
    """Return the text of a well-formed row that is rejected."""
    return f"{name},{format_instant(at)},{players}"


def change(path: str, sql: str) -> None:
    """Run SQL on a snapshot without the checks of its tables; the schema is restored afterwards."""
    with _open_unchecked(path) as connection:
        connection.executescript(sql)


def forge(path: str, sql: str) -> None:
    """Change a snapshot with SQL, then update all digests to match.

    Digests that the SQL changed are kept. The digest of a deleted row stays in the row above it.
    """
    with _open_unchecked(path) as connection:
        before = _read_tables(connection)
        connection.executescript(sql)
        with connection:
            _reseal(connection, before)


@contextmanager
def _open_unchecked(path: str) -> Iterator[sqlite3.Connection]:
    """Open a snapshot without the checks of its tables."""
    with closing(sqlite3.connect(path)) as connection, connection:
        schema = connection.execute("SELECT sql, name FROM sqlite_schema").fetchall()
        connection.execute("PRAGMA writable_schema = ON")
        for old, new in ((") STRICT,", ")"), (") STRICT", ")"), ("NOT NULL", "")):
            connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ?, ?)", (old, new))
    with closing(sqlite3.connect(path)) as connection:
        yield connection
        connection.execute("PRAGMA writable_schema = ON")
        with connection:
            connection.executemany("UPDATE sqlite_schema SET sql = ? WHERE name = ?", schema)


class _Tables(NamedTuple):
    """The rows that hold digests of other rows, or of their own columns, by key."""

    servers: Mapping[int, ServerRow]
    blocks: Mapping[int, Block]


def _read_tables(connection: sqlite3.Connection) -> _Tables:
    servers = map(ServerRow._make, connection.execute("SELECT * FROM servers ORDER BY server"))
    blocks = map(Block._make, connection.execute("SELECT * FROM blocks"))
    return _Tables({row.server: row for row in servers}, {row.server_block: row for row in blocks})


def _reseal(connection: sqlite3.Connection, before: _Tables) -> None:
    after = _read_tables(connection)
    digests: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
    for key, block in after.blocks.items():
        sealed = block._replace(counts_digest=digest_counts(block.counts_before, block.marks))
        kept = _keep_changes(before.blocks.get(key, block), block, sealed)
        _insert(connection, "blocks", [kept])
        server, number = divmod(key, BLOCKS_PER_SERVER)
        digests[server][number] = digest_row("blocks", kept)
    servers = []
    for key, row in after.servers.items():
        fitting = row._replace(block_digests=_update_digests(row.block_digests, digests[key]))
        servers.append(ServerRow._make(_keep_changes(before.servers.get(key, row), row, fitting)))
    _insert(connection, "servers", servers)
    directory = build_directory(servers)
    _insert(connection, "directory", directory)
    of_buckets = b"".join(digest_row("directory", row) for row in directory)
    own = FileRow._make(connection.execute("SELECT * FROM snapshot").fetchone())
    own = seal(own._replace(bucket_digests=of_buckets))
    query = "UPDATE snapshot SET bucket_digests = ?, root = ?, digest = ?"
    connection.execute(query, (own.bucket_digests, own.root, own.digest))


def _update_digests(stored: Any, of_blocks: Mapping[int, bytes]) -> Any:
    if not isinstance(stored, bytes):  # the SQL stored an integer, which would be a length
        return stored
    digests = bytearray(stored)
    for number, digest in of_blocks.items():
        if number * DIGEST_BYTES < len(digests):
            digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES] = digest
    return bytes(digests)


def _keep_changes(before: _Row, after: _Row, fitting: _Row) -> _Row:
    return tuple(
        fit if now == was else now for was, now, fit in zip(before, after, fitting, strict=True)
    )


def _insert(connection: sqlite3.Connection, table: str, rows: Sequence[_Row]) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"REPLACE INTO {table} VALUES ({marks})", rows)  # noqa: S608 - our own names


def write_shards(path: Path, folder: Path, count: int) -> Path:
    """Write the content of a snapshot file as a folder of shards, and return the folder."""
    folder.mkdir()
    with closing(open_file(str(path))) as snapshot:
        servers = list(snapshot.iter_servers())
        for number in range(count):
            chosen = [one for one in servers if find_shard(one.id, count) == number]
            _build_shard(snapshot, chosen, folder / name_shard(number))
        write_manifest(folder, snapshot, [name_shard(number) for number in range(count)])
    return folder


def _build_shard(snapshot: SnapshotFile, servers: Sequence[ServerRow], path: Path) -> None:
    records, observations = path.with_suffix(".ndjson"), path.with_suffix(".csv")
    records.write_bytes(b"".join(format_records(map(build_record, servers))) or ndjson([]))
    rows = [
        (server.id, at, players)
        for server in servers
        for at, players in zip(
            *map(list, stored.read_observations(snapshot, server, Window(BEFORE_ALL, LATEST))),
            strict=True,
        )
    ]
    observations.write_bytes(csv(rows))
    sources = [f"--servers={records}", f"--observations={observations}", "--allow-empty"]
    as_of = f"--at={snapshot.as_of}"
    assert main(["snapshot", "build", str(path), *sources, as_of, "--quiet"]) == 0
    records.unlink()
    observations.unlink()


def write_manifest(folder: Path, snapshot: SnapshotFile, names: Sequence[str]) -> None:
    """Write the manifest of shards that have the content of a snapshot."""
    shards = []
    for name in names:
        with closing(open_file(str(folder / name))) as file:
            row = file.file_row
            shards.append(
                ManifestShard(
                    file=name,
                    root=file.root,
                    servers=row.server_count,
                    observations=row.observation_count,
                )
            )
    row = snapshot.file_row
    manifest = Manifest(
        as_of=snapshot.as_of,
        root=compute_shards_root(snapshot.as_of, [shard.root for shard in shards]),
        servers=sum(shard.servers for shard in shards),
        shards=tuple(shards),
        observations=row.observation_count,
        first_observed_at=row.first_observed_at,
        last_observed_at=row.last_observed_at,
        sources=snapshot.sources,
        repeated=row.repeated,
        conflicting=row.conflicting,
        rejected=row.rejected,
    )
    (folder / MANIFEST).write_bytes(seal_manifest(manifest).to_json())
