"""Collect observations in any order and return them sorted by server and instant.

They are grouped by server in memory. When there are many, they are moved to SQLite's temporary
database, one blob for each server.
"""

import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from srvstat.snapshot.format.lanes import is_ascending_array

_MAX_IN_MEMORY = 3_000_000
"""Number of observations after which those in memory move to disk; each takes 24 bytes."""

# The temporary database ends with its connection, so it needs no journal.
_SCHEMA = """
    PRAGMA temp.journal_mode = OFF;
    CREATE TEMP TABLE runs (
        run  INTEGER PRIMARY KEY, -- the server times _RUNS_PER_SERVER, plus the run
        rows BLOB NOT NULL
    );
"""
_RUNS_PER_SERVER = 10_000_000

_EARLIER = -1
"""The place of observations that no source has."""

_COLUMNS = 3
"""Instants, players and places."""

_NO_ROWS = array("q")

ReadEarlier = Callable[[int], tuple[Sequence[int], Sequence[int]]]


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
        self._rows: defaultdict[int, array[int]] = defaultdict(partial(array, "q"))
        self._numbers_in_memory = 0
        self._moves = 0

    def add(self, server: int, rows: "array[int]") -> None:
        """Add rows of a server as `interleave` returns them."""
        self._rows[server].extend(rows)
        self._numbers_in_memory += len(rows)
        if self._numbers_in_memory >= _COLUMNS * _MAX_IN_MEMORY:
            self._move_to_disk()

    def take_series(self, server: int, read_earlier: ReadEarlier | None = None) -> Series:
        """Return all observations of a server. Can be called once for each server.

        `read_earlier` is called with the first instant of these observations, if there are any. It
        returns instants and players that count as read before them.
        """
        rows = self._rows.pop(server, _NO_ROWS)
        if self._moves:
            rows = self._read_moved(server) + rows
        instants, players = rows[::_COLUMNS], rows[1::_COLUMNS]
        if not read_earlier and is_ascending_array(instants):
            return Series(instants, players, ())
        places = rows[2::_COLUMNS]
        if read_earlier and instants:
            before, players_before = read_earlier(min(instants))
            instants = array("q", before) + instants
            players = array("q", players_before) + players
            places = array("q", [_EARLIER]) * len(before) + places
        return _sort(instants, players, places)

    def _read_moved(self, server: int) -> "array[int]":
        """Return the rows of a server that were moved to disk."""
        rows = array("q")
        first = server * _RUNS_PER_SERVER
        runs = self._connection.execute(
            "SELECT rows FROM runs WHERE run BETWEEN ? AND ? ORDER BY run",
            (first, first + self._moves),
        )
        for (moved,) in runs:
            rows.frombytes(moved)
        return rows

    def _move_to_disk(self) -> None:
        """Move the rows in memory to the temporary database."""
        self._connection.executemany(
            "INSERT INTO runs VALUES (?, ?)",
            (
                (server * _RUNS_PER_SERVER + self._moves, rows.tobytes())
                for server, rows in sorted(self._rows.items())
            ),
        )
        self._rows.clear()
        self._numbers_in_memory = 0
        self._moves += 1


def interleave(
    instants: Sequence[int], players: Sequence[int], places: Sequence[int]
) -> "array[int]":
    """Return the rows of three columns one after another, so that a run of rows is one slice."""
    rows = array("q", bytes(8 * _COLUMNS * len(instants)))
    with memoryview(rows) as view:
        for number, column in enumerate((instants, players, places)):
            view[number::_COLUMNS] = _copy_list(column)
    return rows


def _copy_list(column: Sequence[int]) -> "array[int] | memoryview[int]":
    """Return a column as an array, if it is neither an array nor a view of one."""
    return column if isinstance(column, array | memoryview) else array("q", column)


def _sort(instants: "array[int]", players: "array[int]", places: "array[int]") -> Series:
    if is_ascending_array(instants):
        return Series(instants, players, ())
    in_order = itemgetter(*sorted(range(len(instants)), key=instants.__getitem__))
    instants, players = array("q", in_order(instants)), array("q", in_order(players))
    if is_ascending_array(instants):
        return Series(instants, players, ())
    places = array("q", in_order(places))
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
