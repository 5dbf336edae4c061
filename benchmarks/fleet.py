"""The reference fleet: servers polled every 5 minutes for 370 days, the same on every machine.

A course is a pure function of a server's number and a poll's number. All arithmetic is on integers
and all noise is a hash of such numbers, so neither the machine nor the version of numpy changes a
bit, any part can be had without the rest, and a fleet of 20 is the first 20 of a fleet of 1,000.
"""

import json
from collections.abc import Iterator
from enum import IntEnum, auto
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

VERSION = 1
"""Raised whenever a byte of what is generated changes; kept data bears it."""

DAYS = 370
POLLS_A_DAY = 288
POLLS = DAYS * POLLS_A_DAY
POLL_MS = 300_000
# 2025-02-25T07:50Z: neither the first poll nor the last one lies on the border of a day.
START_MS = 1_740_469_800_000

_POLLS_A_FORTNIGHT = 14 * POLLS_A_DAY
_LATEST_MS = 9_000
_LONGEST_GAP = 3 * POLLS_A_DAY
_RAMP = 7
"""How many polls a server needs to be full again after a restart."""

_ROWS_A_CHUNK = 250_000

# Percent of the busiest hour (from midnight) and day (from Thursday, as 1970 began).
_DAILY = np.array(
    [
        44,
        33,
        24,
        17,
        12,
        10,
        11,
        14,
        20,
        27,
        34,
        41,
        47,
        52,
        57,
        63,
        70,
        79,
        88,
        96,
        100,
        95,
        80,
        61,
    ]
)
_WEEKLY = np.array([72, 86, 100, 98, 74, 68, 69])

Integers: TypeAlias = NDArray[np.int64]
"""In the private functions a row is a server and a column is a poll; either may be a single one."""


class Course(NamedTuple):
    """Observations as three columns of one length."""

    servers: Integers
    """Numbers of servers, from 0."""
    instants: Integers
    """Unix milliseconds."""
    players: Integers


def server_id(number: int) -> str:
    """Return the id of a server; the ids sort like the numbers."""
    return f"srv-{number + 1:04}"


def servers_ndjson(size: int) -> bytes:
    """Return the servers file of a fleet."""
    records = (
        {
            "id": server_id(number),
            "cfxId": f"x{number + 1:04}",
            "game": ("game_a", "game_b")[number % 2],
            "hostname": f"Server {number + 1}",
        }
        for number in range(size)
    )
    return b"".join(json.dumps(record).encode("ascii") + b"\n" for record in records)


def course_of(number: int) -> Course:
    """Return all observations of one server in the order of their instants."""
    return _observed(np.array([number]), np.arange(POLLS))


def fleet_of(size: int) -> Course:
    """Return all observations of a fleet, server by server in the order of their instants."""
    courses = [course_of(number) for number in range(size)]
    return Course(*(np.concatenate(columns) for columns in zip(*courses, strict=True)))


def recorded(size: int) -> Iterator[bytes]:
    """Yield a fleet's observations as CSV in the order of their instants, as a collector writes."""
    yield _HEADER
    for day in range(DAYS):
        course = _observed(np.arange(size), np.arange(day * POLLS_A_DAY, (day + 1) * POLLS_A_DAY))
        # A poll ends before the next one starts: days in order are instants in order.
        yield from _lines(course, np.argsort(course.instants, kind="stable"))


def shuffled(size: int) -> Iterator[bytes]:
    """Yield a fleet's observations as CSV in an order that has none."""
    yield _HEADER
    course = fleet_of(size)
    keys, _, _ = _noise(_Of.SHUFFLE, course.servers, course.instants)
    yield from _lines(course, np.argsort(keys, kind="stable"))


_HEADER = b"serverId,observedAt,players\n"


def _lines(course: Course, order: Integers) -> Iterator[bytes]:
    for start in range(0, len(order), _ROWS_A_CHUNK):
        chosen = order[start : start + _ROWS_A_CHUNK]
        rows = zip(*(column[chosen].tolist() for column in course), strict=True)
        lines = [f"{server_id(number)},{at},{players}\n" for number, at, players in rows]
        yield "".join(lines).encode("ascii")


def _observed(numbers: Integers, polls: Integers) -> Course:
    """Return what was observed of some servers in some polls, server by server."""
    server, poll = numbers[:, np.newaxis], polls[np.newaxis, :]
    late, lost, shake = _noise(_Of.OBSERVATION, server, poll)
    _, loss, _ = _noise(_Of.TRAITS, server)
    # An observation comes up to 9 seconds late; 3 to 15 of 1,000 never come.
    instants = START_MS + poll * POLL_MS + late % _LATEST_MS
    arrived = (lost % 1_000 >= 3 + loss % 13) & ~_in_gap(server, poll)
    players = _demand(server, poll, shake) * _running(server, poll) // _RAMP
    rows, columns = np.nonzero(arrived)
    return Course(numbers[rows], instants[rows, columns], players[rows, columns])


def _demand(server: Integers, poll: Integers, shake: Integers) -> Integers:
    """Return how many would play if no server ever restarted."""
    zone, share, grows = _noise(_Of.DEMAND, server)
    minute = START_MS // 60_000 + poll * 5 + zone % 24 * 60
    hour, past = minute // 60, minute % 60
    daily = _DAILY[hour % 24] * (60 - past) + _DAILY[(hour + 1) % 24] * past
    weekly = _WEEKLY[hour // 24 % 7]
    thousandths = 1_000 * _peak(server) * daily // 6_000 * weekly // 100
    # A server grows to its peak from 25 to 95 % of it, or declines from it.
    low, risen = 250 + share % 700, np.where(grows % 2 == 0, poll, POLLS - 1 - poll)
    thousandths = thousandths * (low * POLLS + (1_000 - low) * risen) // (1_000 * POLLS)
    # An hour has its own level, 85 to 100 %; an observation is within 2 % of it.
    level, _, _ = _noise(_Of.HOUR, server, hour)
    thousandths = thousandths * (850 + level % 151) // 1_000 * (980 + shake % 41) // 1_000
    return (thousandths + 500) // 1_000


def _peak(server: Integers) -> Integers:
    """Return about how many play at most, 30 to 2,000, with more small servers than large ones.

    The number's bits in reverse order spread the first servers evenly, however many there are.
    """
    reverse = sum((server >> bit & 1) << (9 - bit) for bit in range(10))
    return 30 + 1_970 * reverse * reverse // (1_023 * 1_023)


def _running(server: Integers, poll: Integers) -> Integers:
    """Return the part of a server that runs, from 0 in a restart to all of _RAMP parts.

    Every fourth server restarts once a day, the others once in about twelve days.
    """
    daily, _, _ = _noise(_Of.TRAITS, server)
    whether, when, how_long = _noise(_Of.RESTART, server, poll // POLLS_A_DAY)
    since = poll % POLLS_A_DAY - when % POLLS_A_DAY
    restarted = (whether % np.where(daily % 4 == 0, 1, 12) == 0) & (since >= 0)
    return np.where(restarted, np.clip(since - how_long % 3, 0, _RAMP), _RAMP)


def _in_gap(server: Integers, poll: Integers) -> NDArray[np.bool_]:
    """Say whether a poll lies in a gap: 2 hours to 3 days long, in one of ten fortnights."""
    whether, when, how_long = _noise(_Of.GAP, server, poll // _POLLS_A_FORTNIGHT)
    since = poll % _POLLS_A_FORTNIGHT - when % (_POLLS_A_FORTNIGHT - _LONGEST_GAP)
    length = 24 + how_long % (_LONGEST_GAP - 24)
    return (whether % 10 == 0) & (since >= 0) & (since < length)


class _Of(IntEnum):
    """What a noise is of: each has numbers of its own."""

    TRAITS = auto()
    DEMAND = auto()
    HOUR = auto()
    OBSERVATION = auto()
    RESTART = auto()
    GAP = auto()
    SHUFFLE = auto()


def _noise(
    of: _Of, server: Integers, moment: Integers | int = 0
) -> tuple[Integers, Integers, Integers]:
    """Return three numbers below 2^20 for each server and moment, by SplitMix64's mixing."""
    mixed = (server.astype(np.uint64) << np.uint64(48)) + np.uint64(of)
    mixed = mixed + (np.asarray(moment).astype(np.uint64) << np.uint64(4))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    first, second, third = (
        ((mixed >> np.uint64(shift)) & np.uint64(0xFFFFF)).astype(np.int64) for shift in (0, 20, 40)
    )
    return first, second, third
