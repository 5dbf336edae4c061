"""Read a snapshot file. Each row is compared with its digest before use."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, Self, cast

from srvstat.contract import wire
from srvstat.contract.errors import SnapshotError
from srvstat.contract.requests import NAMESPACES, Namespace, ServerReference
from srvstat.contract.responses import GAMES, Game, Players, ServerDetail
from srvstat.contract.time import LATEST, format_instant
from srvstat.contract.windows import DAY_MS, DAYS
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.snapshot import rows
from srvstat.snapshot.read.connection import SnapshotConnection, build_damage_error, open_connection

FILE_ROW = "the table snapshot"
DIRECTORY = "the directory of identifiers"
"""The names of a file's parts in messages."""

_ROOT_BYTES = 32

_COLUMNS: dict[Namespace, str] = {"id": "id", "cfxId": "cfx_id"}

_HEAD = ", ".join(rows.Block._fields[:-2])
"""The columns of a block without its counts."""

_KEYS_PER_STATEMENT = 500
"""The maximum number of keys per statement."""

_MIN_ROW_BYTES = 4
"""The minimum number of file bytes per row."""

_MAX_BYTES_KEPT = 1 << 25
"""The approximate memory limit for cached servers, in bytes."""

_BYTES_PER_SERVER = 4_000
"""The approximate memory of a server in bytes, without its description and blobs."""

Reference = tuple[Namespace, str]
"""A namespace and an identifier."""


def check_instants(*instants: int | None) -> None:
    """Check that numbers are valid times in Unix milliseconds. None is ignored.

    Raises ForgedRowError for an invalid time.
    """
    if not all(instant is None or 0 <= instant <= LATEST for instant in instants):
        raise rows.ForgedRowError("not a time")


def _check_coverage(row: rows.FileRow) -> None:
    """Check the columns that only bundles use."""
    if row.parent_root is None and row.covered_from is None:
        return
    if row.parent_root is None or len(row.parent_root) != _ROOT_BYTES or row.covered_from is None:
        raise rows.ForgedRowError("not the provenance of a bundle")
    # The longest range of a snapshot as of 1970-01-01 reaches back one year.
    earliest = -max(DAYS.values()) * DAY_MS
    if row.covered_from % DAY_MS or not earliest <= row.covered_from <= row.as_of:
        raise rows.ForgedRowError("not the coverage of a bundle")


def read_texts(array: str) -> tuple[str, ...]:
    """Return the texts in a JSON array.

    Raises ValueError or TypeError for other JSON, and for text that is not Unicode.
    """
    texts = tuple(wire.decode_text(array))
    "".join(texts).encode("utf-8")
    return texts


def list_source_ids(server: rows.ServerRow) -> list[str]:
    """Return the identifiers that sources use for a server, if they differ from its id.

    Raises ValueError or TypeError for a forged value.
    """
    found = (server.source_id, *read_texts(server.other_source_ids))
    return [identifier for identifier in found if identifier is not None]


class MissingGameError(SnapshotError):
    """A server's record has no game, so it has no Get Server response."""

    exit_code = 2  # only the owner knows the game

    def __init__(self, path: str, server_id: str) -> None:
        from shlex import quote  # noqa: PLC0415 - only this error needs it

        remedy = f"set it with srvstat snapshot update {quote(path)}"
        if os.path.isdir(path):
            remedy = "run srvstat fleet --snapshots again with"
        super().__init__(
            f"server {server_id}: no game in its metadata, which the response of Get Server needs;"
            f" {remedy} --game {' or --game '.join(GAMES)}"
        )


class SnapshotBase:
    """The common interface of a file and a folder of shards: time, root, totals and records.

    Times are Unix milliseconds. Every method raises SnapshotError for a forged value.
    """

    def __init__(self, path: str, file_row: rows.FileRow) -> None:
        self.path = path
        self.file_row = file_row
        """The verified row of `snapshot`."""
        with self.convert_decode_errors(FILE_ROW):
            check_instants(file_row.as_of, file_row.first_observed_at, file_row.last_observed_at)
            _check_coverage(file_row)
            counts = file_row.repeated, file_row.conflicting, file_row.rejected
            if not all(0 <= count <= MAX_SAFE_INTEGER for count in counts):
                raise rows.ForgedRowError("not counts of rows")
        self.as_of = file_row.as_of

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the observation files, in the order read. Responses do not use them."""
        with self.convert_decode_errors(FILE_ROW):
            return read_texts(self.file_row.sources)

    @property
    def reading(self) -> dict[str, Any]:
        """The reading options of the sources, by name."""
        return {name: value for name, value in self._decode_reading().items() if name != "case"}

    @property
    def case(self) -> dict[str, str] | None:
        """The finding of a bundle for a recording, or None for other snapshots.

        - `verdict`: the finding.
        - `command`: the command that reproduces the finding.
        - `explanation`: a command that explains the response without the recording. It is empty in
          bundles of earlier versions.
        """
        with self.convert_decode_errors(FILE_ROW):
            case: dict[str, str] | None = self._decode_reading().get("case")
            if case is None:
                return None
            case = {"explanation": "", **case}
            return {name: str(case[name]) for name in ("verdict", "command", "explanation")}

    def _decode_reading(self) -> dict[str, Any]:
        with self.convert_decode_errors(FILE_ROW):
            found: dict[str, Any] = wire.decode_text(self.file_row.reading)
            wire.encode(found)  # refuses texts that UTF-8 can't encode
            if not isinstance(found, dict):
                raise rows.ForgedRowError("not an object")
            return found

    @cached_property
    def is_held(self) -> bool:
        """Whether each count is valid until the next one, because `--hold` was given."""
        return self.reading.get("hold") is True

    @property
    def root(self) -> str:
        """The hash of the whole content, as 64 hexadecimal digits."""
        return self.file_row.root.hex()

    @property
    def parent_root(self) -> str | None:
        """The root of a bundle's parent, as 64 hexadecimal digits, or None for a whole snapshot."""
        root = self.file_row.parent_root
        return None if root is None else root.hex()

    @property
    def covered_from(self) -> int | None:
        """The first time that a bundle covers, or None for a whole snapshot."""
        return self.file_row.covered_from

    def get_detail(self, server: rows.ServerRow) -> ServerDetail:
        """Return a server's public record. Raises MissingGameError if the record has no game."""
        if not server.game:
            raise MissingGameError(self.path, server.id)
        return self._build_detail(server)

    def describe_record(self, server: rows.ServerRow) -> dict[str, Any]:
        """Return the fields of a server's public record. The game may be empty."""
        detail = self._build_detail(server._replace(game=server.game or GAMES[0]))
        return detail.model_dump() | {"game": server.game}

    def _build_detail(self, server: rows.ServerRow) -> ServerDetail:
        with self.convert_decode_errors(server.title):
            check_instants(server.first_seen_at, server.updated_at)
            read_texts(server.completed)
            read_texts(server.other_source_ids)
            return ServerDetail(
                id=server.id,
                game=cast("Game", server.game),  # which the model checks
                cfx_id=server.cfx_id,
                hostname=server.hostname,
                project_name=server.project_name,
                project_description=server.project_description,
                region=server.region,
                players=Players(current=server.players_current, max=server.players_max),
                tags=read_texts(server.tags),
                flags=read_texts(server.flags),
                chat_url=server.chat_url,
                icon_url=server.icon_url,
                offline=bool(server.offline),
                first_seen_at=format_instant(server.first_seen_at),
                updated_at=format_instant(server.updated_at),
            )

    def build_damage_error(self, part: str) -> SnapshotError:
        """Return the error that reports a damaged part of the snapshot."""
        return build_damage_error(self.path, part)

    @contextmanager
    def convert_decode_errors(self, part: str) -> Iterator[None]:
        """Report values that can't be decoded as damage of a part of the snapshot.

        A forged file with matching digests can contain any values, for which decoders raise
        ForgedRowError or Python's own errors. Their messages could show bytes of the file.
        """
        try:
            yield
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            raise self.build_damage_error(part) from None


class SnapshotFile(SnapshotBase):
    """An open snapshot file. `open_file` opens one.

    Every method may raise SnapshotError, which names the damaged part of the file. Verified rows
    remain in memory, because the file does not change, so that later queries about the same server
    are faster.
    """

    shards: None = None
    """Always None: a single file has no shards."""

    def __init__(self, connection: SnapshotConnection) -> None:
        self.connection = connection
        super().__init__(connection.path, _read_file_row(connection))
        # The directory has one bucket per namespace and 128 servers.
        self._buckets: dict[int, rows.Bucket] = {}
        self._servers: dict[Reference, rows.ServerRow] = {}
        self._kept = 0

    def close(self) -> None:
        """Close the file; later reads raise sqlite3.ProgrammingError."""
        self.connection.close()

    def reread(self) -> Self:
        """Return the same open file with empty caches, so that queries read from the disk.

        Raises SnapshotError if the file is damaged or another snapshot was written over it.
        """
        self.connection.forget_pages()
        again = type(self)(self.connection)
        if again.file_row != self.file_row:
            raise self.build_damage_error(FILE_ROW)
        return again

    def iter_files(self) -> Iterator[Self]:
        """Yield the files of the snapshot: only this file."""
        yield self

    def get_file(self, _server: rows.ServerRow) -> Self:
        """Return the file that contains a server: this file."""
        return self

    def find_servers(self, references: Iterable[ServerReference]) -> list[rows.ServerRow | None]:
        """Return the server of each reference, or None for an unknown server. Compares exactly."""
        return self._find_servers([(one.by, one.identifier) for one in references])

    def find_server(self, by: Namespace, identifier: str) -> rows.ServerRow | None:
        """Return the server with an identifier, or None if there is none."""
        (server,) = self._find_servers([(by, identifier)])
        return server

    def has_identifier(self, by: Namespace, identifier: str) -> bool:
        """Check whether a server has an identifier."""
        return self.find_server(by, identifier) is not None

    def has_server(self, server: rows.ServerRow) -> bool:
        """Check whether all of a server's identifiers lead to its row."""
        references = [(by, server.get_identifier(by)) for by in NAMESPACES]
        return self._find_servers(references) == [server] * len(references)

    def _find_servers(self, references: Sequence[Reference]) -> list[rows.ServerRow | None]:
        """Return the server of each reference, reading all with one statement."""
        if self._kept > _MAX_BYTES_KEPT // self.connection.sharing:
            self._servers.clear()
            self._kept = 0
        found = {reference: self._servers.get(reference) for reference in references}
        entries = {
            reference: self._find_entries(*reference)
            for reference, known in found.items()
            if known is None
        }
        keys = [key for candidates in entries.values() for key, _ in candidates]
        stored = self._read_by_key("servers", "server", keys, part="the servers")
        for reference, candidates in entries.items():
            found[reference] = self._check_candidates(reference, candidates, stored)
        return [found[reference] for reference in references]

    def _find_entries(self, by: Namespace, identifier: str) -> list[tuple[int, bytes]]:
        count = self._buckets_per_namespace
        wanted = rows.hash_identifier(by, identifier)
        bucket = NAMESPACES.index(by) * count + rows.find_bucket(wanted, count)
        return rows.find_entries(self._read_bucket(bucket), wanted)

    def _check_candidates(
        self, reference: Reference, entries: Sequence[tuple[int, bytes]], stored: Mapping[Any, Any]
    ) -> rows.ServerRow | None:
        """Return the candidate with the identifier. All candidates have its hash."""
        by, identifier = reference
        for key, digest in entries:
            row = stored.get(key)
            if row is None or not rows.has_digest("servers", row, digest):
                raise self.build_damage_error(f"server {identifier}")
            server = rows.ServerRow._make(row)
            if server.get_identifier(by) == identifier:
                blobs = len(server.counts) + 2 * len(server.block_digests)
                self._kept += _BYTES_PER_SERVER + len(server.project_description) + blobs
                self._servers[reference] = server
                return server
        return None

    def iter_servers(self) -> Iterator[rows.ServerRow]:
        """Yield all servers, ordered by id."""
        part = "the servers"
        expected = {
            key: digest
            for number in range(self._buckets_per_namespace)
            for key, digest in rows.read_entries(self._read_bucket(number))
        }
        last = ""
        stored = self.connection.stream("SELECT * FROM servers ORDER BY id", part=part)
        with self.convert_decode_errors(part):
            for row in stored:
                # A damaged index can yield the rows in another order.
                if not rows.has_digest("servers", row, expected.pop(row[0], b"")) or row[1] <= last:
                    raise self.build_damage_error(part)
                server = rows.ServerRow._make(row)
                last = server.id
                check_instants(server.first_observed_at, server.last_observed_at)
                yield server
        if expected:
            raise self.build_damage_error(part)

    def iter_identifiers(
        self, by: Namespace, start: str = "", *, backwards: bool = False
    ) -> Iterator[str]:
        """Yield unverified identifiers of a namespace; `has_identifier` verifies an identifier.

        They ascend from `start`, or with `backwards` descend from the identifier before `start`.
        """
        column = _COLUMNS[by]
        operator, order = ("<", "DESC") if backwards else (">=", "ASC")
        stored = self.connection.stream(
            f"SELECT {column} FROM servers WHERE {column} {operator} ? ORDER BY {column} {order}",  # noqa: S608 - our own names
            start,
            part="the servers",
        )
        # Corrupt pages that point to each other could yield rows endlessly.
        limited = islice(stored, self.file_row.server_count)
        return (name for (name,) in limited if isinstance(name, str))

    def find_without_game(self) -> str | None:
        """Return the unverified id of a server whose record has no game, or None."""
        query = "SELECT id FROM servers WHERE game = '' LIMIT 1"
        stored = self.connection.stream(query, part="the servers")
        return next((str(name) for (name,) in stored), None)

    def read_blocks(
        self, servers: Sequence[tuple[rows.ServerRow, Sequence[int]]]
    ) -> list[list[rows.Block]]:
        """Return some of the servers' blocks, reading all with one statement.

        Does not verify counts.
        """
        keys = [server.get_block_key(number) for server, numbers in servers for number in numbers]
        stored = self._read_by_key("blocks", "server_block", keys, part="the observations")
        return [
            [
                self._check_block(server, number, stored.get(server.get_block_key(number)))
                for number in numbers
            ]
            for server, numbers in servers
        ]

    def iter_blocks(
        self,
        server: rows.ServerRow,
        first: int = 0,
        last: int = rows.BLOCKS_PER_SERVER,
        *,
        has_counts: bool = False,
    ) -> Iterator[rows.Block]:
        """Yield a server's blocks from number `first` to `last`.

        Counts are read only on request.
        """
        last = min(last, len(rows.read_block_ends(server)) - 1)
        columns = "*" if has_counts else _HEAD
        stored = self.connection.stream(
            f"SELECT {columns} FROM blocks"  # noqa: S608 - our own names
            " WHERE server_block BETWEEN ? AND ? ORDER BY server_block",
            server.get_block_key(first),
            server.get_block_key(last),
            part=f"the observations of {server.title}",
        )
        for number in range(first, last + 1):
            block = self._check_block(server, number, next(stored, None))
            if has_counts:
                self.check_counts(server, block)
            yield block

    def _check_block(self, server: rows.ServerRow, number: int, row: Any) -> rows.Block:
        """Verify the stored row of a block."""
        is_found = row is not None and row[0] == server.get_block_key(number)
        if is_found and rows.has_digest("blocks", row, server.get_block_digest(number)):
            return rows.Block(*row)
        raise self.build_block_error(server, number)

    def check_counts(self, server: rows.ServerRow, block: rows.Block) -> None:
        """Verify the counts of a verified block."""
        if rows.digest_counts(block.counts_before, block.marks) != block.counts_digest:
            raise self.build_block_error(server, block.number)

    def build_block_error(self, server: rows.ServerRow, number: int) -> SnapshotError:
        """Return the error that reports a damaged block by the times of its observations."""
        ends = rows.unpack(server.block_ends, rows.END_WIDTH)
        after = ends[number - 1] if number else (server.first_observed_at or 0) - 1
        # A forged row can contain any numbers.
        first, last = (format_instant(min(max(at, 0), LATEST)) for at in (after + 1, ends[number]))
        return self.build_damage_error(f"observations of {server.title} from {first} to {last}")

    def _read_by_key(
        self, table: str, column: str, keys: Sequence[int], *, part: str
    ) -> dict[Any, Any]:
        """Return rows by their keys, without verification."""
        found: dict[Any, Any] = {}
        for at in range(0, len(keys), _KEYS_PER_STATEMENT):
            some = keys[at : at + _KEYS_PER_STATEMENT]
            query = _build_query(table, column, len(some))
            found |= {row[0]: row for row in self.connection.fetch_rows(query, *some, part=part)}
        return found

    @property
    def _buckets_per_namespace(self) -> int:
        return len(self.file_row.bucket_digests) // (rows.DIGEST_BYTES * len(NAMESPACES))

    def _read_bucket(self, number: int) -> rows.Bucket:
        """Return a verified bucket of the directory."""
        if number not in self._buckets:
            stored = self.connection.fetch_rows(
                "SELECT * FROM directory WHERE bucket = ?", number, part=DIRECTORY
            )
            at = number * rows.DIGEST_BYTES
            digest = self.file_row.bucket_digests[at : at + rows.DIGEST_BYTES]
            if len(stored) != 1 or not rows.has_digest("directory", stored[0], digest):
                raise self.build_damage_error(DIRECTORY)
            self._buckets[number] = rows.Bucket._make(stored[0])
        return self._buckets[number]

    def iter_directory(self) -> Iterator[rows.Bucket]:
        """Yield the rows of `directory`, without verification."""
        stored = self.connection.stream("SELECT * FROM directory ORDER BY bucket", part=DIRECTORY)
        return map(rows.Bucket._make, stored)


def _read_file_row(connection: SnapshotConnection) -> rows.FileRow:
    stored = connection.fetch_rows("SELECT * FROM snapshot LIMIT 2", part=FILE_ROW)
    if len(stored) == 1 and rows.has_digest("snapshot", stored[0][:-1], stored[0][-1]):
        row = rows.FileRow._make(stored[0])
        # Without this limit, forged counts could make endless rows look complete.
        most = connection.size // _MIN_ROW_BYTES
        counts = (row.server_count, row.observation_count)
        if rows.compute_root(row) == row.root and all(0 <= count <= most for count in counts):
            return row
    raise build_damage_error(connection.path, FILE_ROW)


@lru_cache(maxsize=64)
def _build_query(table: str, column: str, count: int) -> str:
    marks = ", ".join("?" * count)
    return f"SELECT * FROM {table} WHERE {column} IN ({marks})"  # noqa: S608 - our own names


def open_file(path: str, *, sharing: int = 1) -> SnapshotFile:
    """Open a snapshot file for reading.

    `sharing`: the number of files that share the memory limit of one file.

    Raises SnapshotError with a one-line reason that names the problem and a remedy, and shows
    nothing of the file's content.
    """
    connection = open_connection(path, sharing=sharing)
    try:
        return SnapshotFile(connection)
    except BaseException:
        connection.close()
        raise
