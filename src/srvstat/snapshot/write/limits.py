"""Keep rows below the size that readers accept."""

from collections.abc import Callable, Sequence

from srvstat.contract.errors import SourceError
from srvstat.contract.instants import format_instant
from srvstat.contract.ranges import DAY_MS
from srvstat.snapshot.format.derive import DerivedColumns, derive
from srvstat.snapshot.format.rows import DAYS_PER_SERVER, Day, Value

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
