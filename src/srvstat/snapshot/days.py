"""The index that answers read: for each server and day, its prefix and the day itself.

A window is what lies between two instants. A row of `days` holds what all of a server's
observations up to it add up to, so the rows at a window's two ends answer for any length of it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, product
from types import NoneType
from typing import Any, NamedTuple

from srvstat.contract.ranges import DAY_MS, Window
from srvstat.snapshot.packing import pack, unpack
from srvstat.stats import (
    Growth,
    Prefix,
    Statistics,
    growth_between,
    statistics_between,
)

DAYS_A_SERVER = 10_000_000
"""More days than the years up to 9999 have: `server_day` is the server times this, plus the day."""

_MOST_VALUES = 4_096
_MOST_VALUES_AN_OBSERVATION = 16
_SUM_LIMIT = 1 << 63


class Day(NamedTuple):
    """A row of `days`; schema.sql explains its columns."""

    server_day: int
    observation_count: int
    times: bytes
    players: bytes
    players_before: int | None
    players_after: int | None
    prefix_count: int
    prefix_sum: int | None
    lowest: int | None
    highest: int | None
    cumulative: bytes | None


_WITH_NEIGHBOURS = product([int], [int], [bytes], [bytes], [int, NoneType], [int, NoneType], [int])
_KINDS = frozenset(
    (*kinds, *rest)
    for kinds in _WITH_NEIGHBOURS
    for rest in ([int, int, int, bytes], [NoneType] * 4)
)
"""What the values of a row may be: a file that was changed may hold anything anywhere."""


def day_of(row: Iterable[Any]) -> Day:
    """Return a row of `days`.

    Raises ValueError for one whose values are not of their kinds.
    """
    day = Day._make(row)
    if tuple(map(type, day)) not in _KINDS:
        raise ValueError("not a row of days")
    return day


def days_of(server: int, instants: Sequence[int], players: Sequence[int]) -> Iterator[Day]:
    """Return the days of a server, from all its observations in the order of their instants."""
    starts = list(_day_starts(instants))
    lowest, highest = min(players, default=0), max(players, default=0)
    is_worth_it = _is_worth_prefixes(lowest, highest, len(players), len(starts))
    histogram = [0] * (highest - lowest + 1 if is_worth_it else 0)
    total = 0
    for start, end in pairwise([*starts, len(instants)]):
        day = instants[start] // DAY_MS
        middle = start + (end - start) // 2
        if is_worth_it:
            total += _counted(players[start:middle], histogram, lowest)
        yield Day(
            server_day=server * DAYS_A_SERVER + day,
            observation_count=end - start,
            times=pack([at - day * DAY_MS for at in instants[start:end]], DAY_MS),
            players=pack(players[start:end], max(players[start:end])),
            players_before=players[start - 1] if start else None,
            players_after=players[end] if end < len(players) else None,
            prefix_count=middle,
            prefix_sum=total if is_worth_it else None,
            lowest=lowest if is_worth_it else None,
            highest=highest if is_worth_it else None,
            cumulative=pack(list(accumulate(histogram)), middle) if is_worth_it else None,
        )
        if is_worth_it:
            total += _counted(players[middle:end], histogram, lowest)


def _counted(players: Sequence[int], histogram: list[int], lowest: int) -> int:
    """Add observations to a histogram that begins with the lowest, and return their sum."""
    for count in players:
        histogram[count - lowest] += 1
    return sum(players)


def _day_starts(instants: Sequence[int]) -> Iterator[int]:
    """Return the position of each day's first observation."""
    start = 0
    while start < len(instants):
        yield start
        start = bisect_left(instants, (instants[start] // DAY_MS + 1) * DAY_MS, start)


def _is_worth_prefixes(lowest: int, highest: int, observations: int, days: int) -> bool:
    """Say whether a server's days keep cumulative histograms with a place for each of its values.

    Every day has one. Where few observations share many values, it would take far more space than
    they do, and merging the days of a window is quick. The sum has to be an integer of SQLite.
    """
    most = min(_MOST_VALUES, _MOST_VALUES_AN_OBSERVATION * observations // max(days, 1))
    return highest - lowest < most and highest * observations < _SUM_LIMIT


def has_prefix(day: Day) -> bool:
    """Say whether a day tells what its server's earlier days add up to; all of a server do."""
    return day.cumulative is not None


def statistics_from_ends(first: Day, last: Day, window: Window) -> Statistics:
    """Return the statistics of a window from the days at its ends.

    `first` is the server's first day with an observation that is not before the day of the
    window's start, `last` the last one not after the day of its end.

    Raises ValueError, TypeError and LookupError for rows that no build made.
    """
    start, end = _state(first, window.start), _state(last, window.end)
    count = end.prefix.observations - start.prefix.observations
    if count < 0:
        raise ValueError("fewer observations at the end of a window than at its start")
    growth = Growth(None, None)
    if count > 1:
        if start.players_after is None or end.players_before is None:
            raise ValueError("a day that does not know its neighbours")
        growth = growth_between(start.players_after, end.players_before)
    return statistics_between(start.prefix, end.prefix, growth)


def observed_in(days: Iterable[Day], window: Window) -> tuple[list[int], list[int]]:
    """Return the instants of what was observed in a window, in order, and the players of each.

    `days` are the window's, in their order. Raises ValueError and TypeError for rows that no build
    made.
    """
    instants: list[int] = []
    players: list[int] = []
    for day in days:
        midnight = _midnight(day)
        times = unpack(day.times, day.observation_count)
        first = bisect_right(times, window.start - midnight)
        last = bisect_right(times, window.end - midnight)
        instants.extend([midnight + time for time in times[first:last]])
        players.extend(unpack(day.players, day.observation_count)[first:last])
    return instants, players


class _State(NamedTuple):
    """A server at an instant: its prefix, and the players last before it and first after it."""

    prefix: Prefix
    players_before: int | None
    players_after: int | None


def _state(day: Day, instant: int) -> _State:
    if day.prefix_sum is None or day.lowest is None or day.highest is None or not day.cumulative:
        raise ValueError("a day without its prefix")
    count = day.observation_count
    players = unpack(day.players, count)
    past = bisect_right(unpack(day.times, count), instant - _midnight(day))
    # The prefix is that of the day's middle: at most half a day is to be added or taken away.
    middle = count // 2
    added, removed = players[middle:past], players[past:middle]
    return _State(
        Prefix(
            observations=day.prefix_count + past - middle,
            total=day.prefix_sum + sum(added) - sum(removed),
            lowest=day.lowest,
            cumulative=unpack(day.cumulative, day.highest - day.lowest + 1),
            added=added,
            removed=removed,
        ),
        players[past - 1] if past else day.players_before,
        players[past] if past < count else day.players_after,
    )


def _midnight(day: Day) -> int:
    return day.server_day % DAYS_A_SERVER * DAY_MS
