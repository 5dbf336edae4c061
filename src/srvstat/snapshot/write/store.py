"""Store the observations of servers and the rows derived from them."""

import sqlite3
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from srvstat.snapshot.format.blocks import Observations, derive
from srvstat.snapshot.format.rows import Block, DerivedColumns
from srvstat.snapshot.write.intake import Intake, Progress, Series

_ROWS_PER_REPORT = 10_000
"""Reporting the progress of each small server would take longer than storing it."""


class Stored(NamedTuple):
    """Derived columns by the key of the server, and the counts of rows."""

    derived: Mapping[int, DerivedColumns]
    kept: int
    repeated: int


def store(connection: sqlite3.Connection, intake: Intake, progress: Progress) -> Stored:
    """Store all staged observations, in the order of the tables' keys."""
    derived: dict[int, DerivedColumns] = {}
    kept = reported = repeated = 0
    for server_id, key in intake.roster.server_keys.items():
        series = intake.staging.take_series(key)
        repeated += count_repeats(intake, server_id, series)
        observations = Observations(np.asarray(series.instants), np.asarray(series.players))
        derived[key] = store_server(connection, key, observations)
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
    connection: sqlite3.Connection, key: int, observations: Observations
) -> DerivedColumns:
    """Store the blocks of a server, and return its derived columns."""
    return derive(key, observations, partial(connection.execute, INSERT_BLOCK))


INSERT_BLOCK = f"INSERT INTO blocks VALUES ({', '.join('?' * len(Block._fields))})"  # noqa: S608 - our own names
