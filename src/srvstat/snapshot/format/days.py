"""Derive and read the rows of `days`: for each server and day, its observations and a prefix.

A prefix is the cumulative count, sum and histogram of a server's observations up to the middle of
the day. So two rows, at the ends of a window, are enough for a window of any length.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from operator import lt
from typing import TYPE_CHECKING, NamedTuple

from srvstat.contract.windows import DAY_MS, Window
from srvstat.snapshot.format.packing import pack, pack_offsets, pack_values, unpack
from srvstat.snapshot.format.rows import DAYS_PER_SERVER, Day, ForgedRowError, ServerRow
from srvstat.stats import Growth, Prefix, Ranking, compute_growth

if TYPE_CHECKING:
    from array import array


class Totals(NamedTuple):
    """The totals of the observations before a day.

    `histogram` has the number of observations in each band, in the order of the bands.
    """

    observations: int
    player_sum: int
    last_players: int | None
    histogram: "Counter[int]"


def create_totals(bands: int) -> Totals:
    """Return the totals before the first day of a server with a number of bands."""
    return Totals(0, 0, None, Counter(dict.fromkeys(range(bands), 0)))


def derive_days(
    server: int,
    instants: "array[int]",
    players: "array[int]",
    bands: Mapping[int, int],
    before: Totals,
) -> Iterator[Day]:
    """Yield successive days of a server from their observations in ascending order.

    `bands` maps each value to the number of its band. Adds the observations to the histogram of
    `before`.
    """
    count, total, last_players, histogram = before
    # Those of observations that the histogram does not include yet.
    numbers: list[int] = []
    for start, end in pairwise([*find_day_starts(instants), len(instants)]):
        day = instants[start] // DAY_MS
        half = (end - start) // 2
        # A list takes less time than an array.
        of_day = players[start:end].tolist()
        numbers += map(bands.__getitem__, of_day)
        rest = len(numbers) - len(of_day) + half
        histogram.update(numbers[:rest])
        middle_total = total + sum(of_day[:half])
        yield Day(
            server_day=server * DAYS_PER_SERVER + day,
            observation_count=end - start,
            times=pack_offsets(instants[start:end], day * DAY_MS),
            players=pack_values(of_day),
            players_before=last_players,
            players_after=players[end] if end < len(players) else None,
            prefix_count=count + half,
            prefix_sum=pack_sum(middle_total),
            cumulative=pack(list(accumulate(histogram.values())), count + half),
        )
        count += end - start
        total = middle_total + sum(of_day[half:])
        last_players = of_day[-1]
        numbers = numbers[rest:]
    histogram.update(numbers)


def find_day_starts(instants: Sequence[int]) -> Iterator[int]:
    """Yield the position of the first observation of each day with observations."""
    start = 0
    while start < len(instants):
        yield start
        start = bisect_left(instants, (instants[start] // DAY_MS + 1) * DAY_MS, start)


def pack_sum(total: int) -> bytes:
    """Return a sum, which may exceed SQLite's integers, in the fewest little-endian bytes."""
    return total.to_bytes((total.bit_length() + 7) // 8, "little")


class State(NamedTuple):
    """A server at an instant: its prefix, and the players last before and first after it."""

    prefix: Prefix
    players_before: int | None
    players_after: int | None


def read_state(day: Day, instant: int, starts: Sequence[int]) -> State:
    """Return the state of a server at an instant; `starts` are the starts of its bands.

    `day` is the day of the instant or, if that day has no observations, the next or previous one
    that has.
    """
    count = day.observation_count
    players = unpack(day.players, count)
    past = bisect_right(unpack(day.times, count), instant - _find_midnight(day))
    # The prefix ends in the middle of the day: at most half a day is added or removed.
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


def read_totals(day: Day, instant: int) -> tuple[int, int]:
    """Return the number of observations of a server up to an instant, and their sum.

    `day` is as in `read_state`, which takes longer.
    """
    count = day.observation_count
    past = bisect_right(unpack(day.times, count), instant - _find_midnight(day))
    middle = count // 2
    total = int.from_bytes(day.prefix_sum, "little")
    if past != middle:
        players = unpack(day.players, count)
        total += sum(players[middle:past]) - sum(players[past:middle])
    return day.prefix_count + past - middle, total


def read_last_state(server: ServerRow, starts: Sequence[int]) -> State:
    """Return the state of a server after its last observation; it must have one."""
    prefix = Prefix(
        observations=server.observation_count,
        total=int.from_bytes(server.player_sum, "little"),
        cumulative=unpack(server.cumulative, len(starts)),
        added=(),
        removed=(),
    )
    return State(prefix, server.last_players, None)


def build_ranking(start: State, end: State, starts: Sequence[int]) -> tuple[Ranking, Growth]:
    """Return the ranking and the growth of the observations between two states of a server."""
    ranking = Ranking(start.prefix, end.prefix, starts)
    if ranking.count < 0:
        raise ForgedRowError("fewer observations at the end of a window than at its start")
    growth = Growth(None, None)
    if ranking.count > 1:
        if start.players_after is None or end.players_before is None:
            raise ForgedRowError("a day without the players before or after it")
        growth = compute_growth(start.players_after, end.players_before)
    return ranking, growth


def read_day_observations(days: Iterable[Day], window: Window) -> tuple[list[int], list[int]]:
    """Return the ascending instants of the observations in a window, and the players.

    `days` are the days of the window in ascending order.
    """
    instants: list[int] = []
    players: list[int] = []
    for day in days:
        midnight = _find_midnight(day)
        times = unpack(day.times, day.observation_count)
        first = bisect_right(times, window.start - midnight)
        last = bisect_right(times, window.end - midnight)
        instants.extend([midnight + time for time in times[first:last]])
        players.extend(unpack(day.players, day.observation_count)[first:last])
    if not is_ascending([window.start, *instants]) or (instants and instants[-1] > window.end):
        raise ForgedRowError("not the observations of a window")
    return instants, players


def read_day_steps(days: Iterable[Day], edges: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return positions and players: `players[positions[i] : positions[i + 1]]` are those of a step.

    A step is the interval `(edges[i], edges[i + 1]]`. `days` are the days of all edges, both in
    ascending order.
    """
    players: list[int] = []
    positions: list[int] = []
    for day in days:
        midnight, before = _find_midnight(day), len(players)
        times = unpack(day.times, day.observation_count)
        next_day = bisect_left(edges, midnight + DAY_MS, len(positions))
        positions += [
            before + bisect_right(times, edge - midnight)
            for edge in edges[len(positions) : next_day]
        ]
        players.extend(unpack(day.players, day.observation_count))
    positions += [len(players)] * (len(edges) - len(positions))
    return positions, players


def _find_midnight(day: Day) -> int:
    return day.server_day % DAYS_PER_SERVER * DAY_MS


def is_ascending(instants: Sequence[int]) -> bool:
    """Check that instants are strictly ascending."""
    return all(map(lt, instants, islice(instants, 1, None)))
