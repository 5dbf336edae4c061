"""Resolve repeated and conflicting observations in DuckDB, and count the others by value."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyarrow import compute as pc

from srvstat.contract.errors import SourceError
from srvstat.contract.ranges import BEFORE_ALL, Window
from srvstat.fleet.conflicts import Conflict
from srvstat.fleet.counts import COUNTS, ORDER_BITS, Job, Resolved, Servers
from srvstat.fleet.duckdb_rows import NativeFile, count_rows, select_rows
from srvstat.fleet.duckdb_session import Session
from srvstat.fleet.native import WRONG_STATISTICS
from srvstat.fleet.reader_rows import has_order
from srvstat.fleet.slices import Span, cut_window
from srvstat.sources.sql import quote_text

_KEY_BITS = 63
_INTEGER_BITS = 31
_SHARDS = pa.schema([("number", pa.int32()), ("id", pa.string()), ("shard", pa.int32())])
_NUMBERS = pa.schema([("identifier", pa.string()), ("number", pa.int32())])

_ROWS_PER_SLICE_AND_THREAD = 100_000
"""So many groups fit in the caches of a processor, which makes grouping twice as fast."""

_ROWS_PER_CHUNK = 8_000_000
"""Resolved rows that are counted at a time: few enough for 1 GiB, and many of each value."""

# A key packs a server and an instant into one integer, which is grouped faster than text. The
# rows of a key are compared in the order of sources only if their players differ.
_TABLES = """
CREATE OR REPLACE TEMP TABLE resolved (
    key {key_type}, rows BIGINT, least {players_type}, greatest {players_type}
);
CREATE OR REPLACE TEMP TABLE counted (server INTEGER, players BIGINT, kept BIGINT);
CREATE OR REPLACE TEMP TABLE ends (
    server INTEGER, first_key {key_type}, "first" BIGINT, last_key {key_type}, "last" BIGINT,
    kept BIGINT, rows BIGINT
);
CREATE OR REPLACE TEMP TABLE conflicts (key {key_type})"""

_KEYED = """
SELECT
    (number::{key_type} << {bits}) + ("at" - {start}) AS key, players::{players_type} AS players,
    position
FROM ({rows}) JOIN numbers USING (identifier)"""

_RESOLVE = """
INSERT INTO resolved
SELECT key, count(*), min(players), max(players) FROM ({keyed}) GROUP BY key"""

_COUNT = """
INSERT INTO counted
SELECT (key >> {bits})::INTEGER, least, count(*) FROM resolved WHERE least = greatest GROUP BY ALL;
INSERT INTO ends
SELECT
    (key >> {bits})::INTEGER, min(key), arg_min(least, key), max(key), arg_max(least, key),
    count(*), sum(rows)
FROM resolved GROUP BY ALL;
INSERT INTO conflicts SELECT key FROM resolved WHERE least <> greatest"""

_TOTALS = """
SELECT
    coalesce(sum(kept), 0)::BIGINT AS kept, coalesce(sum(rows), 0)::BIGINT AS rows,
    EXISTS (FROM conflicts) AS has_conflict
FROM ends"""

_CONTESTED = """
CREATE OR REPLACE TEMP TABLE contested AS
SELECT key, players::BIGINT AS players, position
FROM ({keyed}) SEMI JOIN conflicts USING (key)"""

_NO_KEYS = "SELECT key, least AS players, 0 AS position FROM resolved LIMIT 0"
"""Saves reading all rows again."""

_STANDING = """
CREATE OR REPLACE TEMP TABLE standing AS
SELECT key, min({order}) AS first FROM contested GROUP BY key"""

_DIFFERENT = """
SELECT
    key, contested.players AS players, position, first.players AS first_players,
    first.position AS first_position
FROM contested JOIN standing USING (key)
WHERE contested.players <> first.players"""

_HISTOGRAMS = """
SELECT server, players, sum(kept)::BIGINT AS kept
FROM (
    FROM counted
    UNION ALL
    SELECT (key >> {bits})::INTEGER AS server, first.players AS players, 1 AS kept FROM standing
)
GROUP BY server, players ORDER BY server"""

_GROWTHS = """
WITH growths AS (
    SELECT
        server,
        min(first_key) AS first_key, arg_min("first", first_key) AS "first",
        max(last_key) AS last_key, arg_max("last", last_key) AS "last"
    FROM ends GROUP BY server
)
SELECT
    server,
    coalesce(firsts.first.players, growths."first") AS "first",
    coalesce(lasts.first.players, growths."last") AS "last"
FROM growths
LEFT JOIN standing AS firsts ON firsts.key = first_key
LEFT JOIN standing AS lasts ON lasts.key = last_key
ORDER BY server"""

_WRITE = """
COPY (
    SELECT
        shard,
        id AS "serverId",
        (key - (number::{key_type} << {bits}) + {start})::BIGINT AS "observedAt",
        coalesce(standing.first.players, least) AS players
    FROM resolved LEFT JOIN standing USING (key) JOIN shards ON key >> {bits} = number
    ORDER BY shard, key
) TO {folder} (FORMAT parquet, PARTITION_BY (shard))"""


class Counter:
    """Counts the observations of servers in a window, with tables of a session.

    `most` is a limit of the players of all rows, if one is known.
    """

    def __init__(
        self, session: Session, job: Job, servers: Servers, window: Window, most: int | None
    ) -> None:
        self._session = session
        self._job = job
        self._servers = servers
        self._window = window._replace(start=max(window.start, BEFORE_ALL))
        length = self._window.end - self._window.start
        self._bits = max(length, 1).bit_length()
        # Only a count of all time over very many servers needs more bits.
        is_long = self._bits + len(servers.ids).bit_length() > _KEY_BITS
        is_small = most is not None and most.bit_length() <= _INTEGER_BITS
        self._types = {
            "key_type": "HUGEINT" if is_long else "BIGINT",
            "players_type": "INTEGER" if is_small else "BIGINT",
        }
        numbers = {"identifier": list(servers.numbers), "number": list(servers.numbers.values())}
        session.create_table("numbers", pa.table(numbers, _NUMBERS))

    def resolve(
        self, files: Sequence[NativeFile], spans: Sequence[Span], *, is_stored: bool = False
    ) -> Resolved:
        """Resolve the rows of files and of the staged table, and count those that are kept.

        `spans` are those of all rows. With `is_stored`, the rows are kept for `write_rows`.

        Raises SourceError if unequal observations have no order.
        """
        self._count_slices(files, spans, is_stored=is_stored)
        totals = self._session.fetch("counting", _TOTALS).to_pylist()[0]
        self._check_rows(files, totals["rows"])
        has_conflict = totals["has_conflict"]
        keyed = self._select_keys(files, self._window) if has_conflict else _NO_KEYS
        self._session.execute("resolving conflicts", _CONTESTED.format(keyed=keyed))
        order = build_order(self._job)
        self._session.execute("resolving conflicts", _STANDING.format(order=order))
        self._check_order()
        conflicting, conflict = self._describe_conflicts()
        kept, read = totals["kept"], totals["rows"]
        return Resolved(kept, read - kept - conflicting, conflicting, conflict)

    def read_counts(self) -> Iterator[pa.RecordBatch]:
        """Return the counts of the rows that were resolved, in the order of servers."""
        growths = self._session.fetch("finishing", _GROWTHS)
        # A list of all values of all servers would not fit in memory, but sorted rows do.
        rows = self._session.stream("finishing", _HISTOGRAMS.format(bits=self._bits))
        done = 0
        for histograms in _split_servers(rows):
            lists = _build_lists(histograms)
            ends = growths.slice(done, len(lists[0])).combine_chunks()
            done += len(lists[0])
            columns = [*lists, *(ends[name].chunk(0) for name in ("first", "last"))]
            yield pa.RecordBatch.from_arrays(columns, schema=COUNTS)

    def write_rows(self, folder: str) -> None:
        """Write the rows that were resolved and stored last as Parquet files, by shard."""
        servers = self._servers
        columns = (range(len(servers.ids)), servers.ids, servers.shards)
        table = pa.table(dict(zip(_SHARDS.names, columns, strict=True)), _SHARDS)
        self._session.create_table("shards", table)
        query = _WRITE.format(
            key_type=self._types["key_type"],
            bits=self._bits,
            start=self._window.start,
            folder=quote_text(folder),
        )
        self._session.execute("writing", query)

    def _count_slices(
        self, files: Sequence[NativeFile], spans: Sequence[Span], *, is_stored: bool
    ) -> None:
        """Resolve the rows of one slice of the window after the other, and count them."""
        session = self._session
        session.execute("counting", _TABLES.format(**self._types))
        rows_per_slice = _ROWS_PER_SLICE_AND_THREAD * session.threads
        slices = cut_window(spans, self._window, rows_per_slice)
        chunks = sum(span.rows for span in spans) // _ROWS_PER_CHUNK + 1
        slices_per_chunk = len(slices) // chunks + 1
        for number, each in enumerate(slices):
            query = _RESOLVE.format(keyed=self._select_keys(files, each))
            session.execute("counting", query, (number, len(slices)))
            if (number + 1) % slices_per_chunk == 0 and not is_stored:
                self._count_resolved(is_stored=False)
        self._count_resolved(is_stored=is_stored)

    def _count_resolved(self, *, is_stored: bool) -> None:
        self._session.execute("counting", _COUNT.format(bits=self._bits))
        if not is_stored:
            self._session.execute("counting", "TRUNCATE resolved")

    def _check_rows(self, files: Sequence[NativeFile], read: int) -> None:
        """Check that no row was left out because statistics of its file are wrong.

        Raises SourceError.
        """
        known = "SELECT identifier FROM numbers"
        counted = self._session.fetch("checking", count_rows(files, self._window, known))
        if missing := counted["rows"][0].as_py() - read:
            raise SourceError(f"{missing:,} rows were not found: {WRONG_STATISTICS}")

    def _select_keys(self, files: Sequence[NativeFile], window: Window) -> str:
        rows = select_rows(files, window)
        return _KEYED.format(rows=rows, bits=self._bits, start=self._window.start, **self._types)

    def _check_order(self) -> None:
        """Refuse unequal observations in a source whose rows have no order."""
        unordered = [
            number for number, source in enumerate(self._job.sources) if not has_order(source)
        ]
        if not unordered or self._job.conflicts == "lowest":
            return
        found = self._session.fetch(
            "resolving conflicts",
            f"{_DIFFERENT} AND position = first.position AND position >> {ORDER_BITS}"
            f" IN ({', '.join(map(str, unordered))}) ORDER BY key, players LIMIT 1",
        )
        for row in found.to_pylist():
            raise self._read_conflict(row).refuse(self._job.sources)

    def _describe_conflicts(self) -> tuple[int, str | None]:
        """Return the number of conflicting rows, and a description of the first of them."""
        counted = f"SELECT count(*) AS rows FROM ({_DIFFERENT})"
        rows = self._session.fetch("resolving conflicts", counted)["rows"][0].as_py()
        first = f"{_DIFFERENT} ORDER BY key, position, players LIMIT 1"
        for row in self._session.fetch("resolving conflicts", first).to_pylist():
            return rows, self._read_conflict(row).describe(self._job.sources)
        return 0, None

    def _read_conflict(self, row: dict[str, int]) -> Conflict:
        number, at = divmod(int(row["key"]), 1 << self._bits)  # Arrow has HUGEINT as decimals
        values = (row[name] for name in Conflict._fields[2:])
        return Conflict(self._servers.ids[number], at + self._window.start, *values)


def build_order(job: Job) -> str:
    """Return the order of unequal observations, of which the first one stands, as a struct."""
    names = ("position", "players")
    if job.conflicts == "lowest":
        names = ("players", "position")
    return "struct_pack({})".format(", ".join(f"{name} := {name}" for name in names))


def _split_servers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Split rows, sorted by server, into tables that have all rows of their servers."""
    parts: list[pa.RecordBatch] = []
    for batch in batches:
        last = batch["server"][-1]
        cut = pc.index(batch["server"], last).as_py()
        if cut:
            yield pa.Table.from_batches([*parts, batch.slice(0, cut)])
            parts = []
        elif parts and parts[-1]["server"][-1] != last:
            yield pa.Table.from_batches(parts)
            parts = []
        parts.append(batch.slice(cut))
    if parts:
        yield pa.Table.from_batches(parts)


def _build_lists(histograms: pa.Table) -> list[pa.Array]:
    """Return the servers of rows that are sorted by them, and the values and counts of each."""
    rows = histograms.combine_chunks().to_batches()[0]
    servers = pc.run_end_encode(rows["server"])
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), servers.run_ends])
    lists = (pa.ListArray.from_arrays(offsets, rows[name]) for name in ("players", "kept"))
    return [servers.values, *lists]
