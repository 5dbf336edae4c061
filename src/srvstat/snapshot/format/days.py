"""The index that answers read: for each server and day, its prefix and the day itself.

A window is what lies between two instants. A row of `days` holds what all of a server's
observations up to it add up to, so the rows at a window's two ends answer for any length of it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from operator import lt
from typing import NamedTuple

from srvstat.contract.ranges import DAY_MS, Window
from srvstat.snapshot.format.packing import pack, unpack
from srvstat.snapshot.format.rows import Day, ServerRow
from srvstat.stats import Growth, Prefix, Ranking, compute_growth

DAYS_PER_SERVER = 10_000_000
"""More days than the years up to 9999 have: `server_day` is the server times this, plus the day."""


def derive_days(
    server: int,
    instants: Sequence[int],
    players: Sequence[int],
    band_count: int,
    bands: Mapping[int, int],
) -> Iterator[Day]:
    """Yield the days of a server, from all its observations in the order of their instants.

    `bands` has the number of each value's band.
    """
    histogram = [0] * band_count
    total = 0
    for start, end in pairwise([*find_day_starts(instants), len(instants)]):
        day = instants[start] // DAY_MS
        middle = start + (end - start) // 2
        total += _count(players[start:middle], histogram, bands)
        yield Day(
            server_day=server * DAYS_PER_SERVER + day,
            observation_count=end - start,
            times=pack([at - day * DAY_MS for at in instants[start:end]], DAY_MS),
            players=pack(players[start:end], max(players[start:end])),
            players_before=players[start - 1] if start else None,
            players_after=players[end] if end < len(players) else None,
            prefix_count=middle,
            prefix_sum=pack_sum(total),
            cumulative=pack(list(accumulate(histogram)), middle),
        )
        total += _count(players[middle:end], histogram, bands)


def _count(players: Sequence[int], histogram: list[int], bands: Mapping[int, int]) -> int:
    """Add observations to a histogram of bands, and return the sum of their players."""
    for value in players:
        histogram[bands[value]] += 1
    return sum(players)


def find_day_starts(instants: Sequence[int]) -> Iterator[int]:
    """Yield the position of the first observation of each day."""
    start = 0
    while start < len(instants):
        yield start
        start = bisect_left(instants, (instants[start] // DAY_MS + 1) * DAY_MS, start)


def pack_sum(total: int) -> bytes:
    """Return a sum, which may exceed the integers of SQLite, in the fewest little-endian bytes."""
    return total.to_bytes((total.bit_length() + 7) // 8, "little")


class State(NamedTuple):
    """A server at an instant: its prefix, and the players last before it and first after it."""

    prefix: Prefix
    players_before: int | None
    players_after: int | None


def read_state(day: Day, instant: int, starts: Sequence[int]) -> State:
    """Return the state of a server whose bands have these starts.

    `day` is the day of the instant. Where the server was not observed on that, it is the next day
    it was observed on, or the one before.

    Raises ValueError, TypeError and LookupError for a row that no build wrote.
    """
    count = day.observation_count
    players = unpack(day.players, count)
    past = bisect_right(unpack(day.times, count), instant - _midnight(day))
    # The prefix is that of the day's middle: at most half a day is to be added or taken away.
    middle = count // 2
    added, removed = players[middle:past], players[past:middle]
    return State(
        Prefix(
            observations=day.prefix_count + past - middle,
            total=int.from_bytes(day.prefix_sum, "little") + sum(added) - sum(removed),
            cumulative=unpack(day.cumulative, len(starts)),
            added=added,
            removed=removed,
        ),
        players[past - 1] if past else day.players_before,
        players[past] if past < count else day.players_after,
    )


def read_last_state(server: ServerRow, starts: Sequence[int]) -> State:
    """Return the state of an observed server after its last observation.

    Raises ValueError for a row that no build wrote.
    """
    prefix = Prefix(
        observations=server.observation_count,
        total=int.from_bytes(server.player_sum, "little"),
        cumulative=unpack(server.cumulative, len(starts)),
        added=(),
        removed=(),
    )
    return State(prefix, server.last_players, None)


def rank_between(start: State, end: State, starts: Sequence[int]) -> tuple[Ranking, Growth]:
    """Return the ranking of the observations between two states of a server, and their growth.

    Raises ValueError and LookupError for states that no build wrote.
    """
    ranking = Ranking(start.prefix, end.prefix, starts)
    if ranking.count < 0:
        raise ValueError("fewer observations at the end of a window than at its start")
    growth = Growth(None, None)
    if ranking.count > 1:
        if start.players_after is None or end.players_before is None:
            raise ValueError("a day that does not know its neighbours")
        growth = compute_growth(start.players_after, end.players_before)
    return ranking, growth


def read_day_observations(days: Iterable[Day], window: Window) -> tuple[list[int], list[int]]:
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


def _midnight(day: Day) -> int:
    return day.server_day % DAYS_PER_SERVER * DAY_MS


def is_ascending(instants: Sequence[int]) -> bool:
    """Check that instants are in ascending order without repeats."""
    return all(map(lt, instants, islice(instants, 1, None)))
