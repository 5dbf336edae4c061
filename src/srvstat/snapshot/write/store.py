"""Store the staged observations and the rows derived from them."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from srvstat.snapshot.format.derive import DerivedColumns
from srvstat.snapshot.format.rows import Value
from srvstat.snapshot.write.ingest import Intake, Progress
from srvstat.snapshot.write.limits import derive_within_limits
from srvstat.snapshot.write.staging import Series

_ROWS_PER_REPORT = 10_000
"""Reporting the progress of each small server would take longer than storing it."""


class Stored(NamedTuple):
    """Derived columns by the key of the server, and the counts of rows."""

    derived: Mapping[int, DerivedColumns]
    kept: int
    repeated: int


def store(connection: sqlite3.Connection, intake: Intake, progress: Progress) -> Stored:
    """Store all staged observations, in the order of the tables' keys.

    Raises SourceError for a server with too many observations on a day, or on too many days.
    """
    derived: dict[int, DerivedColumns] = {}
    kept = repeated = reported = 0
    for server_id, key in intake.roster.server_keys.items():
        series = intake.staging.take_series(key)
        repeated += count_repeats(intake, server_id, series)
        kept += len(series.instants)
        derived[key] = store_server(connection, server_id, key, series.instants, series.players)
        if kept - reported >= _ROWS_PER_REPORT:
            progress("storing", 0, kept - reported)
            reported = kept
    return Stored(derived, kept, repeated)


def count_repeats(intake: Intake, server_id: str, series: Series) -> int:
    """Return the number of repeats that are equal to the one kept; the others become rejects."""
    equal = 0
    for place, instant, players, kept_players in series.repeats:
        if players == kept_players:
            equal += 1
        else:
            text = f"{server_id},{instant},{players}"
            intake.rejects.add_conflict(place, kept_players, text)
    return equal


def store_server(
    connection: sqlite3.Connection,
    server_id: str,
    key: int,
    instants: Sequence[int],
    players: Sequence[int],
) -> DerivedColumns:
    """Store the rows of a server, which hold all its observations, given in ascending order.

    Returns the server's derived columns.

    Raises SourceError for too many observations on a day, or on too many days.
    """

    def insert(table: str, row: tuple[Value, ...]) -> None:
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)  # noqa: S608 - our own names

    return derive_within_limits(server_id, key, instants, players, insert)
