"""Store the observations of servers and the rows derived from them, within limits."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from srvstat.contract.errors import SourceError
from srvstat.contract.instants import format_instant
from srvstat.contract.windows import DAY_MS
from srvstat.snapshot.format.derive import DerivedColumns, derive
from srvstat.snapshot.format.rows import DAYS_PER_SERVER, Day, Value
from srvstat.snapshot.write.intake import Intake, Progress, Series

MAX_OBSERVATIONS_PER_DAY = 1_000_000
"""Keeps each row of `days` below the size that readers accept."""

MAX_DAYS = 100_000
"""Days per server; keeps each calendar below that size too."""


def derive_within_limits(
    server_id: str,
    number: int,
    instants: Sequence[int],
    players: Sequence[int],
    take: Callable[[str, tuple[Value, ...]], None],
) -> DerivedColumns:
    """Derive all rows of a server as `derive` does.

    Raises SourceError for too many observations on a day, or on too many days.
    """
    days = 0

    def check(table: str, row: tuple[Value, ...]) -> None:
        nonlocal days
        if isinstance(row, Day):
            days += 1
            check_day(server_id, row, days)
        take(table, row)

    return derive(server_id, number, instants, players, check)


def check_day(server_id: str, day: Day, days: int) -> None:
    """Check a day, and the number of days up to and including it.

    Raises SourceError.
    """
    if day.observation_count > MAX_OBSERVATIONS_PER_DAY:
        number = day.server_day % DAYS_PER_SERVER
        raise SourceError(
            f"server {server_id} has {day.observation_count:,} observations on"
            f" {format_instant(number * DAY_MS)[:10]}; a snapshot holds up to"
            f" {MAX_OBSERVATIONS_PER_DAY:,} per day"
        )
    if days > MAX_DAYS:
        raise SourceError(
            f"server {server_id} was observed on more than {MAX_DAYS:,} days, the most that a"
            " snapshot holds per server"
        )


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
    kept = reported = repeated = 0
    for server_id, key in intake.roster.server_keys.items():
        series = intake.staging.take_series(key)
        repeated += count_repeats(intake, server_id, series)
        derived[key] = store_server(connection, server_id, key, series.instants, series.players)
        kept += len(series.instants)
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
    return derive_within_limits(server_id, key, instants, players, partial(_insert, connection))


def _insert(connection: sqlite3.Connection, table: str, row: tuple[Value, ...]) -> None:
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)  # noqa: S608 - our own names
