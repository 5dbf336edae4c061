"""Resolve repeated and conflicting observations in DuckDB, and count the others by value."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from srvstat.contract.errors import SourceError
from srvstat.contract.instants import format_instant
from srvstat.contract.ranges import Window
from srvstat.fleet.counts import COUNTS, ORDER_BITS, Job, Resolved, Servers
from srvstat.fleet.duckdb_rows import NativeFile, select_rows
from srvstat.fleet.duckdb_session import Session
from srvstat.fleet.reader_rows import has_order
from srvstat.fleet.slices import Span, cut_window
from srvstat.sources.sql import quote_text

_KEY_BITS = 63
_ROWS_PER_SLICE = 8_000_000
"""Groups of so many rows fit in about 1 GiB, and mostly in the processor's caches."""

_NUMBERS = pa.schema([("identifier", pa.string()), ("number", pa.int32())])
_SHARDS = pa.schema([("number", pa.int32()), ("id", pa.string()), ("shard", pa.int32())])

# A key packs a server and an instant into one integer, which is grouped much faster than text.
# Observations of one key are compared in the order of sources only if they differ.
_COUNTED = """
CREATE OR REPLACE TEMP TABLE counted (
    server INTEGER, players BIGINT, conflict {key_type}, kept BIGINT, rows BIGINT,
    first_key {key_type}, last_key {key_type}
)"""

_RESOLVED = """
SELECT key, count(*) AS rows, min(players) AS least, max(players) AS greatest
FROM ({keyed})
GROUP BY key"""

_STORED = """
CREATE OR REPLACE TEMP TABLE resolved (
    key {key_type}, rows BIGINT, least BIGINT, greatest BIGINT
)"""

_COUNT = """
INSERT INTO counted
SELECT
    key >> {bits} AS server,
    least AS players,
    CASE WHEN least <> greatest THEN key END AS conflict,
    count(*) AS kept,
    sum(rows)::BIGINT AS rows,
    min(key) AS first_key,
    max(key) AS last_key
FROM ({resolved})
GROUP BY ALL"""

_KEYED = """
SELECT (number::{key_type} << {bits}) + ("at" - {start}) AS key, players, position
FROM ({rows}) JOIN numbers USING (identifier)"""

_TOTALS = """
SELECT
    coalesce(sum(kept), 0)::BIGINT AS kept, coalesce(sum(rows), 0)::BIGINT AS rows,
    count(conflict) > 0 AS has_conflict
FROM counted"""

_CONTESTED = """
CREATE OR REPLACE TEMP TABLE contested AS
SELECT key, players, position
FROM ({keyed})
SEMI JOIN (SELECT conflict AS key FROM counted WHERE conflict IS NOT NULL) USING (key)"""

_NO_KEYS = "SELECT first_key AS key, players, 0 AS position FROM counted LIMIT 0"
"""Saves reading all rows again."""

_STANDING = """
CREATE OR REPLACE TEMP TABLE standing AS
SELECT key, min({order}) AS first FROM contested GROUP BY key"""

_DIFFERENT = """
SELECT key, contested.players AS players, position, first.players AS first_players,
    first.position AS first_position
FROM contested JOIN standing USING (key)
WHERE contested.players <> first.players"""

_HISTOGRAM = """
CREATE OR REPLACE TEMP TABLE histogram AS
SELECT
    server, players, sum(kept)::BIGINT AS kept, min(first_key) AS first_key,
    max(last_key) AS last_key
FROM (
    SELECT server, players, kept, first_key, last_key FROM counted WHERE conflict IS NULL
    UNION ALL
    SELECT key >> {bits}, first.players, 1, key, key FROM standing
)
GROUP BY server, players"""

_COUNTS = """
SELECT
    server::INTEGER AS server, list(players) AS "values", list(kept) AS counts,
    arg_min(players, first_key) AS "first", arg_max(players, last_key) AS "last"
FROM histogram
GROUP BY server"""

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
    """Counts the observations of servers in a window, with tables of a session."""

    def __init__(self, session: Session, job: Job, servers: Servers, window: Window) -> None:
        self._session = session
        self._job = job
        self._servers = servers
        self._start = max(window.start, -1)
        self._window = window._replace(start=self._start)
        self._bits = max(window.end - self._start, 1).bit_length()
        # Only a count of all time over very many servers needs more bits.
        is_long = self._bits + len(servers.ids).bit_length() > _KEY_BITS
        self._key_type = "HUGEINT" if is_long else "BIGINT"
        numbers = {"identifier": list(servers.numbers), "number": list(servers.numbers.values())}
        session.create_table("numbers", pa.table(numbers, _NUMBERS))

    def resolve(
        self, files: Sequence[NativeFile], spans: Sequence[Span], *, is_stored: bool = False
    ) -> Resolved:
        """Resolve the rows of files and of the staged table, and count those that are kept.

        `spans` are those of all rows. With `is_stored`, the rows are kept for `write_rows`.

        Raises SourceError if unequal observations have no order.
        """
        for table in (_COUNTED, _STORED):
            self._session.execute("counting", table.format(key_type=self._key_type))
        slices = cut_window(spans, self._window, _ROWS_PER_SLICE)
        for number, each in enumerate(slices):
            rows = _RESOLVED.format(keyed=self._select_keys(files, each))
            query = f"INSERT INTO resolved {rows}" if is_stored else self._build_count(rows)
            self._session.execute("counting", query, (number, len(slices)))
        if is_stored:
            self._session.execute("counting", self._build_count("FROM resolved"))
        keyed = self._select_keys(files, self._window)
        totals = self._session.fetch("counting", _TOTALS).to_pylist()[0]
        self._session.execute(
            "conflicts", _CONTESTED.format(keyed=keyed if totals["has_conflict"] else _NO_KEYS)
        )
        self._session.execute("conflicts", _STANDING.format(order=build_order(self._job)))
        self._check_order()
        conflicting, conflict = self._describe_conflicts()
        self._session.execute("counting", _HISTOGRAM.format(bits=self._bits))
        kept, read = totals["kept"], totals["rows"]
        return Resolved(kept, read - kept - conflicting, conflicting, conflict)

    def _build_count(self, resolved: str) -> str:
        return _COUNT.format(resolved=resolved, bits=self._bits)

    def _select_keys(self, files: Sequence[NativeFile], window: Window) -> str:
        return _KEYED.format(
            rows=select_rows(files, window),
            key_type=self._key_type,
            bits=self._bits,
            start=self._start,
        )

    def read_counts(self) -> Iterator[pa.RecordBatch]:
        """Return the counts of the last rows that were resolved."""
        for batch in self._session.stream("finishing", _COUNTS):
            yield batch.cast(COUNTS)

    def write_rows(self, folder: str) -> None:
        """Write the rows that were resolved and stored last as Parquet files, by shard."""
        servers = self._servers
        columns = (range(len(servers.ids)), servers.ids, servers.shards)
        table = pa.table(dict(zip(_SHARDS.names, columns, strict=True)), _SHARDS)
        self._session.create_table("shards", table)
        query = _WRITE.format(
            key_type=self._key_type, bits=self._bits, start=self._start, folder=quote_text(folder)
        )
        self._session.execute("writing", query)

    def _check_order(self) -> None:
        """Refuse unequal observations in a source whose rows have no order."""
        unordered = [
            number for number, source in enumerate(self._job.sources) if not has_order(source)
        ]
        if not unordered or self._job.conflicts == "lowest":
            return
        found = self._session.fetch(
            "conflicts",
            f"{_DIFFERENT} AND position = first.position AND position >> {ORDER_BITS}"
            f" IN ({', '.join(map(str, unordered))}) ORDER BY key, players LIMIT 1",
        )
        for row in found.to_pylist():
            raise SourceError(
                f"{self._describe(row)}; the rows of a database have no order in which one is the"
                " first: add --conflicts lowest, or remove one of them"
            )

    def _describe_conflicts(self) -> tuple[int, str | None]:
        """Return the number of conflicting rows, and a description of the first of them."""
        counted = f"SELECT count(*) AS rows FROM ({_DIFFERENT})"
        rows = self._session.fetch("conflicts", counted)["rows"][0].as_py()
        first = f"{_DIFFERENT} ORDER BY key, position, players LIMIT 1"
        for row in self._session.fetch("conflicts", first).to_pylist():
            return rows, self._describe(row)
        return 0, None

    def _describe(self, row: dict[str, int]) -> str:
        """Describe two observations of one instant."""
        number, at = divmod(row["key"], 1 << self._bits)
        places = [self._format_place(row[name]) for name in ("position", "first_position")]
        return (
            f"{places[0]}: server {self._servers.ids[number]} has {row['players']} players at"
            f" {format_instant(at + self._start)}, but {row['first_players']} in {places[1]}"
        )

    def _format_place(self, position: int) -> str:
        number, place = divmod(position, 1 << ORDER_BITS)
        source = self._job.sources[number]
        return source.format_place(place) if place else source.title


def build_order(job: Job) -> str:
    """Return the order of unequal observations, of which the first one stands, as a struct."""
    names = ("position", "players")
    if job.conflicts == "lowest":
        names = ("players", "position")
    return "struct_pack({})".format(", ".join(f"{name} := {name}" for name in names))
