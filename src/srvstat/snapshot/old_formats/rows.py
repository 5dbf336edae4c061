"""Read rows of a snapshot of an old format."""

from collections import Counter

from srvstat.snapshot.old_formats.digests import Row
from srvstat.snapshot.old_formats.tables import list_columns, list_tables
from srvstat.snapshot.read.connection import SnapshotConnection


class OldRows:
    """The rows of a file.

    SQLite's check of the structure also checks the types of all values, as the tables are STRICT.
    Every method raises SnapshotError for a damaged file.
    """

    def __init__(self, connection: SnapshotConnection) -> None:
        self.connection = connection
        self.version = connection.version
        self._counts: Counter[str] = Counter()

    def read(self, table: str, clauses: str, *parameters: object, part: str) -> list[Row]:
        """Return rows of a table; `part` is how messages name them."""
        columns = list_columns(self.version, table)
        query = f"SELECT * FROM {table} {clauses}"  # noqa: S608 - our own names
        found = self.connection.stream(query, *parameters, part=part)
        rows: list[Row] = [dict(zip(columns, values, strict=True)) for values in found]
        self.count(table, len(rows))
        return rows

    def read_of_server(self, table: str, server: int, per_server: int, part: str) -> dict[int, Row]:
        """Return the rows of a server by their number, in ascending order."""
        key = list_columns(self.version, table)[0]
        first = server * per_server
        last = first + per_server - 1
        clauses = f"WHERE {key} BETWEEN ? AND ? ORDER BY {key}"
        rows = self.read(table, clauses, first, last, part=part)
        return {row[key] - first: row for row in rows}

    def count(self, table: str, rows: int) -> None:
        """Count rows of a table that were read."""
        self._counts[table] += rows

    def check_counts(self) -> None:
        """Check that no table has rows besides those that were read."""
        for table in list_tables(self.version):
            if self.connection.count_rows(table, self._counts[table] + 1) != self._counts[table]:
                raise self.connection.build_damage_error(f"the table {table}")
