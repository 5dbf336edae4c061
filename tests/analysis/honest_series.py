"""Player counts of invented, honest servers.

They follow a birth-death process: players arrive at random, at a rate with a daily and a weekly
cycle, and each leaves at random. Servers restart, have events and updates; collectors are late,
miss observations and stop for hours.
"""

import math
from dataclasses import dataclass
from random import Random
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from conftest import AS_OF, DAY
from srvstat.analysis.integrity import Series
from srvstat.contract.time import Window
from srvstat.snapshot.blocks import Observations

SIZES = (5, 30, 200, 2_000)
"""The mean number of players."""

_MINUTE = 60_000
_HOUR = 60 * _MINUTE
_EXACT = 50
"""Below this, numbers are drawn exactly; above, from a normal distribution."""


class Shape(NamedTuple):
    """What a series is drawn from."""

    size: int
    days: int
    minutes: int
    seed: int


@dataclass(frozen=True)
class _Habits:
    """The properties of a server and its players, drawn from a seed."""

    stay: float
    night: float
    busiest_hour: float
    weekend: float
    trend: float
    update_at: int
    update_factor: float
    restart_hour: int | None
    event_day: int

    def compute_level(self, at: int, start: int, end: int) -> float:
        """Return the expected number of players over the mean, at an instant."""
        angle = 2 * math.pi * (at / _HOUR - self.busiest_hour) / 24
        daily = self.night + (1 - self.night) * (1 + math.cos(angle)) / 2
        level = daily * 2 / (1 + self.night)
        day = at // DAY
        if (day + 4) % 7 >= 5:
            level *= self.weekend
        if day % 30 == self.event_day:
            level *= 1.5
        if at >= self.update_at:
            level *= self.update_factor
        return level * math.exp(self.trend * (at - start) / (end - start))


def draw_series(shape: Shape) -> Series:
    """Return the observations of an honest server; equal shapes give equal series."""
    random = Random(f"{shape}")  # noqa: S311 - drawn from a seed, to be drawn again
    end = AS_OF
    start = end - shape.days * DAY
    habits = _draw_habits(random, start, end)
    instants: list[int] = []
    players: list[int] = []
    outages = _draw_outages(random, start, end)
    count = _draw_poisson(random, shape.size * habits.compute_level(start, start, end))
    before = start
    for due in range(start + _MINUTE, end - _MINUTE, shape.minutes * _MINUTE):
        at = due + random.randrange(20_000)
        level = shape.size * habits.compute_level(at, start, end)
        staying = math.exp((before - at) / habits.stay)
        count = _move(random, count // 3 if _is_restarting(habits, at) else count, level, staying)
        before = at
        is_missed = random.random() < 0.01 or any(first <= at < last for first, last in outages)
        if not is_missed:
            instants.append(at)
            players.append(0 if _is_restarting(habits, at) else count)
    maximum = 2 * max(*players, shape.size)
    observations = Observations(np.array(instants), np.array(players))
    return Series(observations, Window(start, end), ZoneInfo("UTC"), maximum)


def _draw_habits(random: Random, start: int, end: int) -> _Habits:
    return _Habits(
        stay=random.uniform(20, 120) * _MINUTE,
        night=random.uniform(0.15, 0.6),
        busiest_hour=random.uniform(0, 24),
        weekend=random.uniform(0.9, 1.4),
        trend=random.uniform(-0.5, 0.5),
        update_at=random.randrange(start, end) if random.random() < 0.3 else end,
        update_factor=random.uniform(0.6, 1.8),
        restart_hour=random.randrange(24) if random.random() < 0.7 else None,
        event_day=random.randrange(30),
    )


def _draw_outages(random: Random, start: int, end: int) -> list[tuple[int, int]]:
    firsts = [random.randrange(start, end) for _ in range(random.randrange(3))]
    return [(first, first + round(random.uniform(1, 12) * _HOUR)) for first in firsts]


def _move(random: Random, count: int, level: float, staying: float) -> int:
    """Return the players after a step of time: a share of them stays, and others arrive."""
    return _draw_binomial(random, count, staying) + _draw_poisson(random, level * (1 - staying))


def _is_restarting(habits: _Habits, at: int) -> bool:
    return habits.restart_hour is not None and 0 <= at % DAY - habits.restart_hour * _HOUR < 120_000


def _draw_poisson(random: Random, mean: float) -> int:
    if mean > _EXACT:
        return max(round(random.gauss(mean, math.sqrt(mean))), 0)
    limit, product, number = math.exp(-mean), random.random(), 0
    while product > limit:
        product *= random.random()
        number += 1
    return number


def _draw_binomial(random: Random, count: int, share: float) -> int:
    if count > _EXACT:
        deviation = math.sqrt(count * share * (1 - share))
        return min(max(round(random.gauss(count * share, deviation)), 0), count)
    return sum(random.random() < share for _ in range(count))
