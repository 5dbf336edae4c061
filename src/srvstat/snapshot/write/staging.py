"""Collect observations in any order and return them sorted by server and instant.

They are grouped by server in memory. When there are many, they are moved to SQLite's temporary
database, one row of blobs for each server.
"""

import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, repeat
from operator import add, itemgetter
from typing import NamedTuple

from srvstat.snapshot.format.days import is_ascending

_MAX_IN_MEMORY = 3_000_000
"""Number of observations after which those in memory move to disk; each takes 24 bytes."""

# The temporary database ends with its connection, so it needs no journal.
_SCHEMA = """
    PRAGMA temp.journal_mode = OFF;
    CREATE TEMP TABLE runs (
        run      INTEGER PRIMARY KEY, -- the server times _RUNS_PER_SERVER, plus the run
        instants BLOB NOT NULL,
        players  BLOB NOT NULL,
        places   BLOB NOT NULL
    );
"""
_RUNS_PER_SERVER = 10_000_000

_EARLIER = -1
"""The place of observations that no source has."""

ReadEarlier = Callable[[int], tuple[Sequence[int], Sequence[int]]]


class _Columns(NamedTuple):
    """Observations of one server, in the order they were read."""

    instants: "array[int]"
    players: "array[int]"
    places: "array[int]"

    @classmethod
    def empty(cls) -> "_Columns":
        return cls(array("q"), array("q"), array("q"))


class Repeat(NamedTuple):
    """An observation that is not kept, because another one of its instant was read earlier."""

    place: int
    instant: int
    players: int
    kept_players: int


class Series(NamedTuple):
    """All observations of one server in ascending order, one for each instant.

    Of several observations of one instant the first one read is kept. The others are `repeats`.
    """

    instants: Sequence[int]
    players: Sequence[int]
    repeats: Sequence[Repeat]


class Staging:
    """Collects observations in any order and returns them by server.

    Servers are integer keys. Places are integers that increase in reading order. May raise
    sqlite3.Error, for example when temporary space runs out.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.executescript(_SCHEMA)
        self._connection = connection
        self._columns: defaultdict[int, _Columns] = defaultdict(_Columns.empty)
        self._in_memory = 0
        self._moves = 0

    def add(
        self, server: int, instants: Sequence[int], players: Sequence[int], places: Sequence[int]
    ) -> None:
        """Add observations of a server, in columns of equal length."""
        for column, read in zip(self._columns[server], (instants, players, places), strict=True):
            if isinstance(read, memoryview):
                column.frombytes(read.cast("B"))
            else:
                column.extend(read)
        self._in_memory += len(instants)
        if self._in_memory >= _MAX_IN_MEMORY:
            self._move_to_disk()

    def take_series(self, server: int, read_earlier: ReadEarlier | None = None) -> Series:
        """Return all observations of a server. Can be called once for each server.

        `read_earlier` is called with the first instant of these observations, if there are any. It
        returns instants and players that count as read before them.
        """
        columns = self._columns.pop(server, _Columns.empty())
        if self._moves:
            columns = _Columns._make(map(add, self._read_moved(server), columns))
        if read_earlier and columns.instants:
            instants, players = read_earlier(min(columns.instants))
            places = repeat(_EARLIER, len(instants))
            earlier = _Columns(array("q", instants), array("q", players), array("q", places))
            columns = _Columns._make(map(add, earlier, columns))
        return _sort(columns)

    def _read_moved(self, server: int) -> _Columns:
        """Return the observations of a server that were moved to disk."""
        columns = _Columns.empty()
        first = server * _RUNS_PER_SERVER
        runs = self._connection.execute(
            "SELECT instants, players, places FROM runs WHERE run BETWEEN ? AND ? ORDER BY run",
            (first, first + self._moves),
        )
        for run in runs:
            for column, moved in zip(columns, run, strict=True):
                column.frombytes(moved)
        return columns

    def _move_to_disk(self) -> None:
        """Move the observations in memory to the temporary database."""
        self._connection.executemany(
            "INSERT INTO runs VALUES (?, ?, ?, ?)",
            (
                (server * _RUNS_PER_SERVER + self._moves, *map(array.tobytes, columns))
                for server, columns in sorted(self._columns.items())
            ),
        )
        self._columns.clear()
        self._in_memory = 0
        self._moves += 1


def _sort(columns: _Columns) -> Series:
    if is_ascending(columns.instants):
        return Series(columns.instants, columns.players, ())
    order = sorted(range(len(columns.instants)), key=columns.instants.__getitem__)
    in_order = itemgetter(*order)
    instants, players = (
        array("q", in_order(columns.instants)),
        array("q", in_order(columns.players)),
    )
    if is_ascending(instants):
        return Series(instants, players, ())
    places = array("q", in_order(columns.places))
    return _separate_repeats(zip(instants, places, players, strict=True))


def _separate_repeats(rows: Iterable[tuple[int, int, int]]) -> Series:
    """Separate the repeats from rows of instant, place and players, in the order of instants."""
    kept_instants, kept_players = array("q"), array("q")
    repeats = []
    for instant, of_instant in groupby(rows, key=itemgetter(0)):
        (_, _, kept), *others = sorted(of_instant)
        kept_instants.append(instant)
        kept_players.append(kept)
        repeats += [Repeat(place, instant, players, kept) for _, place, players in others]
    return Series(kept_instants, kept_players, repeats)
