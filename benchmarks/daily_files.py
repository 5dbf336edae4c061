"""Write a fleet as Parquet files, one a day, with the flaws of real data.

`python -m benchmarks.daily_files DIRECTORY --servers 1000 --rows 105000000`

The observations are those of `benchmarks.fleet`, in order of time, as a collector writes them. One
of 1,000 is delivered again, one of 10,000 with another count, at the end of its file or at the
start of the next one; one of 100,000 is followed by a malformed row. One of 100 servers is unknown
or not publishable. The same arguments give the same rows.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks import fleet
from benchmarks.fleet import POLL_MS, POLLS, POLLS_PER_DAY, Course, Integers, NoiseKind
from benchmarks.measure import print_progress

VERSION = 1
"""Part of the names of kept folders: increase it when the generated data changes."""

SERVERS_FILE = "servers.ndjson"
FOLDER = "observations"

_ARRIVED = 0.98
"""The approximate share of polls that have an observation."""

_REPEATED, _CONFLICTING, _MALFORMED = 1_049, 105, 10
"""How many of 2^20 observations are followed by such a row."""

_NULL = -(1 << 62)
"""Stands for null in a column of integers."""

_FLAWS = (
    ("servers", _NULL),
    ("instants", _NULL),
    ("instants", -1),
    ("instants", 253_402_300_800_000),  # in the year 10000
    ("players", _NULL),
    ("players", -1),
    ("players", 1 << 53),
)
"""The kinds of malformed rows: a column, and its value."""


class Shape(NamedTuple):
    """The size of a fleet: the number of servers and polls, and of observations in a poll.

    The first server has `skew` times as many observations as the others.
    """

    servers: int
    polls: int
    per_poll: int = 1
    skew: int = 1


def choose_shape(servers: int, rows: int, skew: int = 1) -> Shape:
    """Return the shape of a fleet of about so many rows.

    Servers are polled more often than every five minutes if a year is too short.
    """
    per_server = rows / _ARRIVED / (_count_all(servers) + skew - 1)
    per_poll = ceil(per_server / POLLS)
    return Shape(servers, ceil(per_server / per_poll), per_poll, skew)


def create_fleet(root: str, servers: int, rows: int, skew: int = 1) -> str:
    """Return the folder of a fleet of about so many rows; create it on first use."""
    directory = os.path.join(root, f"daily-{servers}-{rows}-{skew}-v{VERSION}")
    if not os.path.exists(directory):
        print_progress(f"creating {rows:,} rows of {servers:,} servers")
        with tempfile.TemporaryDirectory(dir=root) as draft:
            write_fleet(os.path.join(draft, "fleet"), choose_shape(servers, rows, skew))
            os.rename(os.path.join(draft, "fleet"), directory)
    return directory


def write_fleet(directory: str, shape: Shape) -> int:
    """Write the servers file and the folder of observations, and return the number of rows."""
    os.makedirs(os.path.join(directory, FOLDER))
    with open(os.path.join(directory, SERVERS_FILE), "wb") as file:
        file.write(_generate_servers_file(shape.servers))
    ids = pa.array([fleet.build_server_id(one) for one in range(_count_all(shape.servers))])
    written = 0
    for day, course in enumerate(_generate_days(shape)):
        path = os.path.join(directory, FOLDER, f"day-{day:03}.parquet")
        parquet.write_table(_build_table(course, ids), path)
        written += len(course.servers)
    return written


def _count_all(servers: int) -> int:
    """Return the number of servers with observations, also of those that are left out."""
    return servers + 2 * _count_hidden(servers)


def _count_hidden(servers: int) -> int:
    """Return the number of servers that are not publishable; as many are unknown."""
    return ceil(servers / 200)


def _generate_servers_file(servers: int) -> bytes:
    """Return the servers file of a fleet and of the servers that are not publishable."""
    lines = fleet.generate_servers_ndjson(servers + _count_hidden(servers)).splitlines()
    records = [json.loads(line) | {"publishable": False} for line in lines[servers:]]
    lines[servers:] = [json.dumps(record).encode("ascii") for record in records]
    return b"".join(line + b"\n" for line in lines)


def _generate_days(shape: Shape) -> Iterator[Course]:
    """Yield the rows of each day: those held back the day before, its own, and flawed ones."""
    everyone = np.arange(_count_all(shape.servers))
    first, others = everyone[:1], everyone[1:]
    held = _generate_polls(first, range(0), 1)
    for start in range(0, shape.polls, POLLS_PER_DAY):
        polls = range(start, min(start + POLLS_PER_DAY, shape.polls))
        parts = [
            _generate_polls(first, polls, shape.per_poll * shape.skew),
            _generate_polls(others, polls, shape.per_poll),
        ]
        day = _concatenate(parts)
        day = _select(day, np.argsort(day.instants, kind="stable"))
        flawed = _draw_flawed(day)
        is_held = flawed.instants % 2 == 0
        yield _concatenate([held, day, _select(flawed, ~is_held)])
        held = _select(flawed, is_held)


def _generate_polls(numbers: Integers, polls: range, per_poll: int) -> Course:
    """Return the observations of some servers in some polls, several in each poll."""
    course = fleet.generate_observations(numbers, np.array(polls, np.int64))
    place = np.tile(np.arange(per_poll), len(course.servers))
    return Course(
        np.repeat(course.servers, per_poll),
        np.repeat(course.instants, per_poll) + place * POLL_MS // per_poll,
        np.repeat(course.players, per_poll) + place % 5,
    )


def _draw_flawed(course: Course) -> Course:
    """Return the rows to add: repeated, conflicting and malformed ones."""
    repeated, conflicting, malformed = (
        _select(course, noise < limit)
        for noise, limit in zip(
            fleet.draw_noise(NoiseKind.FLAW, course.servers, course.instants),
            (_REPEATED, _CONFLICTING, _MALFORMED),
            strict=True,
        )
    )
    changed = conflicting._replace(players=conflicting.players + 1 + conflicting.instants % 7)
    kinds = (malformed.instants + malformed.servers) % len(_FLAWS)
    for kind, (name, value) in enumerate(_FLAWS):
        getattr(malformed, name)[kinds == kind] = value
    return _concatenate([repeated, changed, malformed])


def _build_table(course: Course, ids: pa.Array) -> pa.Table:
    codes, instants, players = (pa.array(column, mask=column == _NULL) for column in course)
    columns = {"serverId": ids.take(codes), "observedAt": instants, "players": players}
    return pa.table(columns)


def _select(course: Course, chosen: Integers) -> Course:
    return Course(*(column[chosen] for column in course))


def _concatenate(courses: Sequence[Course]) -> Course:
    return Course(*(np.concatenate(columns) for columns in zip(*courses, strict=True)))


def main() -> None:
    """Write a fleet of the shape in the arguments, and print the number of rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.daily_files")
    parser.add_argument("directory", help="a folder that does not exist yet, or is empty")
    parser.add_argument("--servers", type=int, default=1_000, help="[1000]")
    parser.add_argument("--rows", type=int, default=105_000_000, help="approximately [105000000]")
    parser.add_argument("--skew", type=int, default=1, help="rows of the first server [1]")
    arguments = parser.parse_args()
    shape = choose_shape(arguments.servers, arguments.rows, arguments.skew)
    sys.stdout.write(f"{write_fleet(arguments.directory, shape):,} rows\n")


if __name__ == "__main__":
    main()
