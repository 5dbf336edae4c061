"""Store what was staged: the observations, the days that index them, and the calendars of these."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, repeat
from typing import NamedTuple

from srvstat.contract.errors import SourceError
from srvstat.contract.instants import format_instant
from srvstat.contract.ranges import DAY_MS
from srvstat.snapshot.days import DAYS_A_SERVER, Day, days_of
from srvstat.snapshot.digest import calendar_row, row_digest
from srvstat.snapshot.intake import Intake, Progress
from srvstat.snapshot.staging import Series

MOST_OBSERVATIONS_A_DAY = 1_000_000
"""So that no row of `days` is longer than what a reader takes."""

MOST_DAYS = 100_000
"""Of one server, for the same of its calendar."""

_ROWS_A_STATEMENT = 100
"""One statement for many rows takes half the time of as many statements."""

_ROWS_A_REPORT = 10_000
"""Servers can be many and small, and drawing takes longer than storing one."""


class Span(NamedTuple):
    """How often a server was observed, and its first and last observation."""

    observations: int
    first_at: int
    last_at: int
    last_players: int


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of the observations staged.

    By the keys of the servers: the span of each with any, and the digest of each one's calendar.
    """

    spans: Mapping[int, Span]
    calendar_digests: Mapping[int, bytes]
    kept: int
    repeated: int


def store(connection: sqlite3.Connection, intake: Intake, progress: Progress) -> Stored:
    """Store all that is staged, in the order of the tables' keys.

    Raises SourceError for a server with more observations in a day than a snapshot takes.
    """
    spans: dict[int, Span] = {}
    calendar_digests: dict[int, bytes] = {}
    kept = repeated = told = 0
    for server_id, key in intake.keys.items():
        series = intake.staging.series(key)
        for place, instant, players, standing_players in series.repeats:
            if players == standing_players:
                repeated += 1
            else:
                text = f"{server_id},{instant},{players}"
                intake.rejects.add_conflict(place, standing_players, text)
        if series.instants:
            _insert_observations(connection, key, series)
            instants = series.instants
            spans[key] = Span(len(instants), instants[0], instants[-1], series.players[-1])
            kept += len(series.instants)
        calendar_digests[key] = _insert_days(connection, server_id, key, series)
        if kept - told >= _ROWS_A_REPORT:
            progress("storing", 0, kept - told)
            told = kept
    return Stored(spans, calendar_digests, kept, repeated)


def _insert_observations(connection: sqlite3.Connection, key: int, series: Series) -> None:
    instants, players = series.instants, series.players
    many = len(instants) - len(instants) % _ROWS_A_STATEMENT
    for rows, start, end in ((_ROWS_A_STATEMENT, 0, many), (1, many, len(instants))):
        values = ", ".join(["(?, ?, ?)"] * rows)
        parts = (
            zip(repeat(key, rows), instants[at : at + rows], players[at : at + rows], strict=True)
            for at in range(start, end, rows)
        )
        connection.executemany(
            f"INSERT INTO observations VALUES {values}",  # noqa: S608 - question marks
            (list(chain.from_iterable(part)) for part in parts),
        )


def _insert_days(connection: sqlite3.Connection, server_id: str, key: int, series: Series) -> bytes:
    """Store the days of a server and its calendar, and return the digest of that."""
    days: list[int] = []
    digests: list[bytes] = []
    statement = f"INSERT INTO days VALUES ({', '.join('?' * len(Day._fields))})"  # noqa: S608 - question marks
    for day in days_of(key, series.instants, series.players):
        number = day.server_day % DAYS_A_SERVER
        if day.observation_count > MOST_OBSERVATIONS_A_DAY:
            raise SourceError(
                f"server {server_id} has {day.observation_count:,} observations on"
                f" {format_instant(number * DAY_MS)[:10]}; a snapshot takes up to"
                f" {MOST_OBSERVATIONS_A_DAY:,} a day"
            )
        if len(days) == MOST_DAYS:
            raise SourceError(
                f"server {server_id} was observed on more than {MOST_DAYS:,} days, the most that a"
                " snapshot takes"
            )
        days.append(number)
        digests.append(row_digest("days", day))
        connection.execute(statement, day)
    calendar = calendar_row(key, days, digests)
    connection.execute("INSERT INTO calendars VALUES (?, ?, ?)", calendar)
    return row_digest("calendars", calendar)
