"""Derive the days of format 2. It has no digests, so they are compared with the observations."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from srvstat.contract.ranges import DAY_MS
from srvstat.snapshot.format.days import find_day_starts
from srvstat.snapshot.format.packing import pack
from srvstat.snapshot.format.rows import DAYS_PER_SERVER, Value

_MAX_VALUES = 4_096
_MAX_VALUES_PER_OBSERVATION = 16
_MAX_SUM = (1 << 63) - 1


def derive_days(
    server: int, instants: Sequence[int], players: Sequence[int]
) -> Iterator[tuple[Value, ...]]:
    """Yield the rows of `days` of a server from its observations in ascending order."""
    starts = [*find_day_starts(instants), len(instants)]
    lowest, highest = min(players, default=0), max(players, default=0)
    # A prefix has a count for each value from the lowest to the highest.
    histogram = [0] * (highest - lowest + 1) if _has_prefixes(lowest, highest, starts) else []
    total = counted = 0
    for start, end in pairwise(starts):
        day = instants[start] // DAY_MS
        middle = start + (end - start) // 2
        prefix: tuple[Value, ...] = (None, None, None, None)
        if histogram:
            for value in players[counted:middle]:
                histogram[value - lowest] += 1
            total += sum(players[counted:middle])
            counted = middle
            prefix = (total, lowest, highest, pack(list(accumulate(histogram)), middle))
        yield (
            server * DAYS_PER_SERVER + day,
            end - start,
            pack([instant - day * DAY_MS for instant in instants[start:end]], DAY_MS),
            pack(players[start:end], max(players[start:end])),
            players[start - 1] if start else None,
            players[end] if end < len(players) else None,
            middle,
            *prefix,
        )


def _has_prefixes(lowest: int, highest: int, starts: Sequence[int]) -> bool:
    """Return whether the days have prefixes; too many values or too high ones have none."""
    observations, days = starts[-1], len(starts) - 1
    most = min(_MAX_VALUES, _MAX_VALUES_PER_OBSERVATION * observations // max(days, 1))
    return highest - lowest < most and highest * observations <= _MAX_SUM
