"""Observations on their way into a snapshot: taken as they are read, handed out in order.

They may be read in any order. They are gathered by server in memory, and moved to SQLite's
temporary database, a few blobs a server, whenever they have become many.
"""

import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from srvstat.snapshot.format.days import is_ascending

_MOST_IN_MEMORY = 1_000_000
"""How many observations are held in memory; each takes 24 bytes."""

# Nothing here outlives its connection, so it need not survive anything.
_SCHEMA = """
    PRAGMA temp.journal_mode = OFF;
    CREATE TEMP TABLE runs (
        run      INTEGER PRIMARY KEY, -- the server times _RUNS_A_SERVER, plus the number of the run
        instants BLOB NOT NULL,
        players  BLOB NOT NULL,
        places   BLOB NOT NULL
    );
"""
_RUNS_A_SERVER = 10_000_000


class _Columns(NamedTuple):
    """Observations of one server, in the order they were read."""

    instants: "array[int]"
    players: "array[int]"
    places: "array[int]"

    @classmethod
    def empty(cls) -> "_Columns":
        return cls(array("q"), array("q"), array("q"))


class Repeat(NamedTuple):
    """An observation that gives way to another one, read before it, of the same instant."""

    place: int
    instant: int
    players: int
    standing_players: int


class Series(NamedTuple):
    """All that was observed of one server, in the order of the instants, each of them once.

    Of several observations of one instant the one read first stands, and the others are repeats.
    """

    instants: Sequence[int]
    players: Sequence[int]
    repeats: Sequence[Repeat]


class Staging:
    """Takes observations in any order and hands them out by server.

    A server is a whole number. A place is a number that says where an observation was read, and
    grows with reading. May raise sqlite3.Error, where temporary space runs out.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.executescript(_SCHEMA)
        self._connection = connection
        self._columns: defaultdict[int, _Columns] = defaultdict(_Columns.empty)
        self._in_memory = 0
        self._moves = 0

    def add(
        self,
        servers: Sequence[int],
        instants: Sequence[int],
        players: Sequence[int],
        places: Sequence[int],
    ) -> None:
        """Take observations, given by columns of one length."""
        positions: defaultdict[int, list[int]] = defaultdict(list)
        for position, server in enumerate(servers):
            positions[server].append(position)
        for server, chosen in positions.items():
            # Of a single position itemgetter would make no tuple.
            of_server = itemgetter(*chosen, chosen[-1])
            for column, read in zip(
                self._columns[server], (instants, players, places), strict=True
            ):
                column.extend(array("q", of_server(read)[:-1]))
        self._in_memory += len(servers)
        if self._in_memory >= _MOST_IN_MEMORY:
            self._move()

    def series(self, server: int) -> Series:
        """Return all that was taken of a server, and forget what was in memory of it."""
        columns = _Columns.empty()
        if self._moves:
            first = server * _RUNS_A_SERVER
            runs = self._connection.execute(
                "SELECT instants, players, places FROM runs WHERE run BETWEEN ? AND ? ORDER BY run",
                (first, first + self._moves),
            )
            for run in runs:
                for column, moved in zip(columns, run, strict=True):
                    column.frombytes(moved)
        for column, in_memory in zip(columns, self._columns.pop(server, ()), strict=False):
            column.extend(in_memory)
        return _ordered(columns)

    def _move(self) -> None:
        """Make room in memory."""
        self._connection.executemany(
            "INSERT INTO runs VALUES (?, ?, ?, ?)",
            (
                (server * _RUNS_A_SERVER + self._moves, *map(array.tobytes, columns))
                for server, columns in sorted(self._columns.items())
            ),
        )
        self._columns.clear()
        self._in_memory = 0
        self._moves += 1


def _ordered(columns: _Columns) -> Series:
    if is_ascending(columns.instants):
        return Series(columns.instants, columns.players, ())
    # Sorting is stable: of one instant, what was read first comes first.
    order = sorted(range(len(columns.instants)), key=columns.instants.__getitem__)
    in_order = itemgetter(*order)
    instants, players, places = (array("q", in_order(column)) for column in columns)
    if is_ascending(instants):
        return Series(instants, players, ())
    return _without_repeats(instants, players, places)


def _without_repeats(
    instants: Sequence[int], players: Sequence[int], places: Sequence[int]
) -> Series:
    kept_instants, kept_players = [instants[0]], [players[0]]
    repeats = []
    for instant, count, place in islice(zip(instants, players, places, strict=True), 1, None):
        if instant == kept_instants[-1]:
            repeats.append(Repeat(place, instant, count, kept_players[-1]))
        else:
            kept_instants.append(instant)
            kept_players.append(count)
    return Series(kept_instants, kept_players, repeats)
