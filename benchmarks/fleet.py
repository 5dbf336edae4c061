"""Generate the reference fleet: servers polled every 5 minutes for 370 days.

An observation is a pure function of the numbers of the server and the poll. All arithmetic is on
integers and all noise is a hash of integers. So the data is the same on every machine and with
every version of numpy, any part can be generated alone, and a fleet of 20 is the first 20 servers
of a fleet of 1,000.
"""

import json
from enum import IntEnum, auto
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

VERSION = 1
"""Part of the names of kept files: increase it when the generated data changes."""

DAYS = 370
POLLS_PER_DAY = 288
POLLS = DAYS * POLLS_PER_DAY
POLL_MS = 300_000
# 2025-02-25T07:50Z: neither the first nor the last poll is at midnight.
START_MS = 1_740_469_800_000

_POLLS_PER_FORTNIGHT = 14 * POLLS_PER_DAY
_LATEST_MS = 9_000
_LONGEST_GAP = 3 * POLLS_PER_DAY
_RAMP = 7
"""Number of polls until a server is full again after a restart."""

# Percent of the busiest hour (from midnight) and day (from Thursday, as in 1970).
_DAILY = np.ravel(
    [
        [44, 33, 24, 17, 12, 10, 11, 14, 20, 27, 34, 41],
        [47, 52, 57, 63, 70, 79, 88, 96, 100, 95, 80, 61],
    ]
)
_WEEKLY = np.array([72, 86, 100, 98, 74, 68, 69])

Integers: TypeAlias = NDArray[np.int64]
"""In the private functions, rows are servers and columns are polls."""


class Course(NamedTuple):
    """Observations as three columns of equal length."""

    servers: Integers
    """Server numbers, from 0."""
    instants: Integers
    """Unix milliseconds."""
    players: Integers


def build_server_id(number: int) -> str:
    """Return the id of a server; ids sort like numbers."""
    return f"srv-{number + 1:04}"


def generate_servers_ndjson(size: int) -> bytes:
    """Return the servers file of a fleet."""
    records = (
        {
            "id": build_server_id(number),
            "cfxId": f"x{number + 1:04}",
            "game": ("game_a", "game_b")[number % 2],
            "hostname": f"Server {number + 1}",
        }
        for number in range(size)
    )
    return b"".join(json.dumps(record).encode("ascii") + b"\n" for record in records)


def generate_course(number: int) -> Course:
    """Return all observations of one server, in order of time."""
    return generate_observations(np.array([number]), np.arange(POLLS))


def generate_recorded(size: int, polls: range) -> Course:
    """Return a fleet's observations of some polls in order of time, as a collector writes them."""
    course = generate_observations(np.arange(size), np.array(polls))
    order = np.argsort(course.instants, kind="stable")
    return Course(*(column[order] for column in course))


def generate_observations(numbers: Integers, polls: Integers) -> Course:
    """Return the observations of some servers in some polls, sorted by server and time."""
    server, poll = numbers[:, np.newaxis], polls[np.newaxis, :]
    late, lost, shake = draw_noise(NoiseKind.OBSERVATION, server, poll)
    _, loss, _ = draw_noise(NoiseKind.TRAITS, server)
    # An observation is up to 9 seconds late; 3 to 15 of 1,000 are missing.
    instants = START_MS + poll * POLL_MS + late % _LATEST_MS
    arrived = (lost % 1_000 >= 3 + loss % 13) & ~_is_in_gap(server, poll)
    players = _compute_demand(server, poll, shake) * _compute_running(server, poll) // _RAMP
    rows, columns = np.nonzero(arrived)
    return Course(numbers[rows], instants[rows, columns], players[rows, columns])


def _compute_demand(server: Integers, poll: Integers, shake: Integers) -> Integers:
    """Return the player counts without restarts."""
    zone, share, grows = draw_noise(NoiseKind.DEMAND, server)
    minute = START_MS // 60_000 + poll * 5 + zone % 24 * 60
    hour, past = minute // 60, minute % 60
    daily = _DAILY[hour % 24] * (60 - past) + _DAILY[(hour + 1) % 24] * past
    weekly = _WEEKLY[hour // 24 % 7]
    thousandths = 1_000 * _compute_peak(server) * daily // 6_000 * weekly // 100
    # A server grows from 25 to 95 % of its peak to its peak, or declines the other way.
    low, risen = 250 + share % 700, np.where(grows % 2 == 0, poll, POLLS - 1 - poll)
    thousandths = thousandths * (low * POLLS + (1_000 - low) * risen) // (1_000 * POLLS)
    # Each hour has a level of 85 to 100 %; an observation is within 2 % of it.
    level, _, _ = draw_noise(NoiseKind.HOUR, server, hour)
    thousandths = thousandths * (850 + level % 151) // 1_000 * (980 + shake % 41) // 1_000
    rounded: Integers = (thousandths + 500) // 1_000
    return rounded


def _compute_peak(server: Integers) -> Integers:
    """Return approximate peaks, 30 to 2,000, with more small servers than large ones.

    Reversing the bits of the number spreads a fleet of any size evenly.
    """
    reverse: Integers = sum(((server >> bit & 1) << (9 - bit) for bit in range(10)), server * 0)
    return 30 + 1_970 * reverse * reverse // (1_023 * 1_023)


def _compute_running(server: Integers, poll: Integers) -> Integers:
    """Return how full servers are after a restart, from 0 to _RAMP.

    Every fourth server restarts once a day, the others about every twelve days.
    """
    daily, _, _ = draw_noise(NoiseKind.TRAITS, server)
    whether, when, how_long = draw_noise(NoiseKind.RESTART, server, poll // POLLS_PER_DAY)
    since = poll % POLLS_PER_DAY - when % POLLS_PER_DAY
    restarted = (whether % np.where(daily % 4 == 0, 1, 12) == 0) & (since >= 0)
    return np.where(restarted, np.clip(since - how_long % 3, 0, _RAMP), _RAMP)


def _is_in_gap(server: Integers, poll: Integers) -> NDArray[np.bool_]:
    """Return whether polls are in a gap: 2 hours to 3 days long, in one of ten fortnights."""
    whether, when, how_long = draw_noise(NoiseKind.GAP, server, poll // _POLLS_PER_FORTNIGHT)
    since = poll % _POLLS_PER_FORTNIGHT - when % (_POLLS_PER_FORTNIGHT - _LONGEST_GAP)
    length = 24 + how_long % (_LONGEST_GAP - 24)
    is_in_gap: NDArray[np.bool_] = (whether % 10 == 0) & (since >= 0) & (since < length)
    return is_in_gap


class NoiseKind(IntEnum):
    """Kinds of noise; each gives independent numbers."""

    TRAITS = auto()
    DEMAND = auto()
    HOUR = auto()
    OBSERVATION = auto()
    RESTART = auto()
    GAP = auto()


def draw_noise(
    kind: NoiseKind, server: Integers, moment: Integers | int = 0
) -> tuple[Integers, Integers, Integers]:
    """Return three numbers below 2^20 for each server and moment, with SplitMix64."""
    mixed = (server.astype(np.uint64) << np.uint64(48)) + np.uint64(kind)
    mixed = mixed + (np.asarray(moment).astype(np.uint64) << np.uint64(4))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    first, second, third = (
        ((mixed >> np.uint64(shift)) & np.uint64(0xFFFFF)).astype(np.int64) for shift in (0, 20, 40)
    )
    return first, second, third
