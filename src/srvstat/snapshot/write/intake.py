"""Read the sources of a build and stage the observations to keep."""

import sqlite3
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, compress, groupby
from operator import itemgetter, lt
from typing import NamedTuple

from srvstat.contract.errors import SourceError
from srvstat.snapshot.write.rejects import Rejects
from srvstat.snapshot.write.roster import REJECT_REASONS, Roster
from srvstat.sources.batch import Batch, Runs, group_rows, read_batches
from srvstat.sources.source import Source

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


def _is_ascending(numbers: "array[int]") -> bool:
    return all(map(lt, numbers, numbers[1:]))


def _sort(instants: "array[int]", players: "array[int]", places: "array[int]") -> Series:
    if _is_ascending(instants):
        return Series(instants, players, ())
    in_order = itemgetter(*sorted(range(len(instants)), key=instants.__getitem__))
    instants, players = array("q", in_order(instants)), array("q", in_order(players))
    if _is_ascending(instants):
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


AFTER_AS_OF = "after the as-of time"
"""The reason to skip an observation later than the given instant."""

Progress = Callable[[str, int, int], None]
"""Called with the current step, `reading` or `storing`, and the bytes and rows just processed."""


class Intake:
    """Reads one source after another and stages the observations to keep."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        roster: Roster,
        sources: Sequence[Source],
        as_of: int | None,
    ) -> None:
        self.roster = roster
        self.sources = sources
        self.as_of = as_of
        self.staging = Staging(connection)
        self.rejects = Rejects(connection, sources)
        self.rows_of: Counter[int] = Counter()  # by the number of the source
        self.skipped: Counter[str] = Counter()
        self.first_skipped: dict[str, int] = {}  # the place of the first row by reason
        self.warnings: list[str] = []

    @property
    def rows(self) -> int:
        """The number of rows of all sources."""
        return self.rows_of.total()

    def read(self, progress: Progress, *, strict: bool) -> None:
        """Read all sources; with `strict`, stop after the first batch with a malformed row.

        Raises SourceError if a source can't be read; with `strict` also if one may be cut off.
        """
        for number, source in enumerate(self.sources):
            self._read_source(number, source, progress, strict=strict)
            if strict and self.rejects.malformed:
                return
        self.warnings += self.roster.describe_unknown()

    def _read_source(
        self, number: int, source: Source, progress: Progress, *, strict: bool
    ) -> None:
        """Read one source; with `strict`, stop after the first batch with a malformed row."""
        warnings: list[str] = []
        watched = replace(
            source,
            on_bytes=lambda count: progress("reading", count, 0),
            on_warning=warnings.append,
            keep_text=self.rejects.create_text_store(number).keep,
            accepts_any_id=self.roster.accepts_any_id,
        )
        for batch in map(group_rows, read_batches(watched)):
            before = self.rejects.malformed
            self.take_batch(number, batch)
            rows = len(batch.instants) + batch.count_rejected() + sum(batch.skipped.values())
            self.rows_of[number] += rows
            progress("reading", 0, rows)
            if strict and self.rejects.malformed > before:
                break
        if strict and warnings:
            raise SourceError(warnings[0])
        self.warnings += warnings

    def take_batch(self, number: int, batch: Batch) -> None:
        """Stage the observations to keep of a batch of a source; count and keep the other rows."""
        self.rejects.add_batch(number, batch)
        if isinstance(batch.server_ids, Runs):  # pragma: no branch - group_rows makes them
            self._stage(batch, batch.server_ids, self.rejects.locate_rows(number, batch))
        self.skipped.update(batch.skipped)

    def _stage(self, batch: Batch, runs: Runs, places: Sequence[int]) -> None:
        """Stage the observations of publishable servers up to as of."""
        rows = interleave(batch.instants, batch.players, places)
        is_late = self.as_of is not None and max(batch.instants, default=0) > self.as_of
        start = 0
        for name, end in zip(runs.names, runs.ends, strict=True):
            of_server, start = rows[3 * start : 3 * end], end
            key = self.roster[name]
            if key < 1:
                self._leave_out(name, key, of_server)
            else:
                self.staging.add(key, self._take_earlier(of_server) if is_late else of_server)

    def _leave_out(self, name: str, key: int, rows: "array[int]") -> None:
        """Reject or skip the rows of an identifier without a server."""
        if reason := REJECT_REASONS.get(key):
            for instant, count, place in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
                self.rejects.add_malformed(place, reason, f"{name},{instant},{count}", name)
        else:
            self._skip(self.roster.skip_reasons[key], rows[2::3])

    def _take_earlier(self, rows: "array[int]") -> "array[int]":
        """Return the rows up to as of, and count the others."""
        is_late = [instant > (self.as_of or 0) for instant in rows[::3]]
        if any(is_late):
            self._skip(AFTER_AS_OF, [*compress(rows[2::3], is_late)])
        is_kept = chain.from_iterable((not late,) * 3 for late in is_late)
        return array("q", compress(rows, is_kept))

    def _skip(self, reason: str, places: Sequence[int]) -> None:
        """Count rows as skipped; their places ascend."""
        self.skipped[reason] += len(places)
        self.first_skipped[reason] = min(self.first_skipped.get(reason, places[0]), places[0])
