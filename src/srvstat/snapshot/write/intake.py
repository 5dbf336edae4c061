"""Read the sources of a build: stage the observations to keep, and collect the rejected rows."""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from srvstat.contract import read_package_file
from srvstat.contract.arrays import Numbers
from srvstat.contract.errors import OutputError, SourceError
from srvstat.contract.time import format_instant
from srvstat.snapshot.blocks import NOTHING, Observations
from srvstat.snapshot.write.roster import REJECT_REASONS, Roster
from srvstat.sources.source import Batch, Reject, Source, read_batches

PLACES_PER_SOURCE = 1 << 40

_LIMIT = re.compile(
    r"(?P<rows>0|[1-9][0-9]{0,15})|(?P<percent>(0|[1-9][0-9]?|100)(\.[0-9]{1,15})?)%"
)

OnConflicts: TypeAlias = Callable[[Numbers], object]
"""Called with conflicting rows of a server. Columns: place in the build, time, players, players
kept.
"""


class PlacedReject(NamedTuple):
    """A rejected row and where it was read."""

    source: Source
    line: int
    reason: str
    text: str


class Reason(NamedTuple):
    """A reason why rows were rejected or skipped.

    - `rows`: the number of rows.
    - `first`: the source and the line of the first row, or None if unknown.
    - `value`: the malformed value of the first row, its text if the whole row is malformed, or None
      if unknown.
    """

    text: str
    rows: int
    first: str | None
    is_rejected: bool
    value: str | None = None


class Rejects:
    """Collects the rejected rows of all sources of a build.

    A place in the build combines the number of a source, in reading order, with a place in that
    source. Staging must create the tables first.

    May raise sqlite3.Error, for example when temporary space runs out.
    """

    def __init__(self, connection: sqlite3.Connection, sources: Sequence[Source]) -> None:
        self._connection = connection
        self._sources = sources
        self.malformed_of: Counter[int] = Counter()  # source number → malformed rows
        self.conflicting = 0

    @property
    def malformed(self) -> int:
        """The number of malformed rows in all sources."""
        return self.malformed_of.total()

    def add(self, place: int, reject: Reject) -> None:
        """Add a malformed row."""
        self.malformed_of[place // PLACES_PER_SOURCE] += reject.rows
        self._connection.execute(
            "INSERT INTO rejects VALUES (?, ?, ?, 0, ?, ?)",
            (place, reject.reason, reject.text, reject.cut_value(), reject.rows),
        )

    def add_conflicts(self, server_id: str, conflicts: Numbers) -> None:
        """Add observations that conflict with the kept ones for the same server and time (D16)."""
        reason = "players: conflicts with an earlier row for the same server and time, which has"
        self.conflicting += len(conflicts)
        self._connection.executemany(
            "INSERT INTO rejects VALUES (?, ?, ?, 1, NULL, 1)",
            (
                (place, f"{reason} {kept}", _format_row(server_id, instant, players))
                for place, instant, players, kept in map(np.ndarray.tolist, conflicts)
            ),
        )

    def __iter__(self) -> Iterator[PlacedReject]:
        """Yield all rejected rows in the order they were read."""
        return self._iter_first(-1)

    def find_first(self) -> PlacedReject | None:
        """Return the rejected row that was read first, or None if there is none."""
        return next(self._iter_first(1), None)

    def describe_first(self) -> str | None:
        """Return the place and reason of the rejected row that was read first, or None."""
        first = self.find_first()
        return first and f"{_format_place(first.source, first.line)}: {first.reason}"

    def _iter_first(self, count: int) -> Iterator[PlacedReject]:
        query = "SELECT place, reason, text FROM rejects ORDER BY place, rowid LIMIT ?"
        for place, reason, text in self._connection.execute(query, (count,)):
            number, line = divmod(place, PLACES_PER_SOURCE)
            yield PlacedReject(self._sources[number], line, reason, text)

    def list_reasons(self, number: int | None = None) -> list[Reason]:
        """Return the reasons for rejected rows, the most frequent first.

        With the number of a source, return only the reasons for its malformed rows.
        """
        found = self._connection.execute(
            """
            SELECT reason, sum(lost), min(place), value FROM rejects
            WHERE ?1 IS NULL OR place / ?2 = ?1 AND NOT is_conflict
            GROUP BY reason ORDER BY sum(lost) DESC, reason
            """,
            (number, PLACES_PER_SOURCE),
        )
        return [
            Reason(text, rows, self.format_place(place), is_rejected=True, value=value)
            for text, rows, place, value in found
        ]

    def format_place(self, place: int) -> str:
        """Format a place in the build: the title of its source, and the line, if any."""
        number, line = divmod(place, PLACES_PER_SOURCE)
        return _format_place(self._sources[number], line)


def _format_row(name: str, instant: int, players: int) -> str:
    """Format a well-formed row that is rejected, as an export does."""
    return f"{name},{format_instant(instant)},{players}"


def _format_place(source: Source, line: int) -> str:
    return source.format_place(line) if line else source.title


MAX_IN_MEMORY = 1_000_000
"""The number of observations in memory, 32 bytes each, before they are moved to disk."""

_RUNS_PER_SERVER = 10_000_000


class Series(NamedTuple):
    """All observations of one server in ascending order, one for each instant.

    If several observations share an instant, the first one read is kept. `repeated` counts the
    others with the same player count. The others with a different count are conflicts.
    """

    observations: Observations
    repeated: int = 0


class Staging:
    """Collects observations in any order and returns them by server.

    Storing rows in input order would make SQLite split pages all over the file. So batches of a
    million rows, 32 bytes each, are sorted by server and moved to the temporary database, where a
    row takes about 10 bytes. Each server's rows are sorted in memory.

    May raise sqlite3.Error, for example when temporary space runs out.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.executescript(read_package_file("snapshot/write/staging.sql").decode())
        self._connection = connection
        self._in_memory: list[Numbers] = []
        self._count = 0
        self._moves = 0

    def add(self, servers: Numbers, instants: Numbers, players: Numbers, places: Numbers) -> None:
        """Add observations. Servers are keys from 1.

        Places never descend, not even between calls.
        """
        self._in_memory.append(np.stack((servers, instants, players, places)))
        self._count += len(servers)
        if self._count >= MAX_IN_MEMORY:
            self._move_to_disk()

    def find_first(self, server: int) -> int | None:
        """Return the earliest time of a server's observations, or None if it has none."""
        if self._count:
            self._move_to_disk()
        query = f"SELECT min(first_at) FROM runs {self._select(server)}"  # noqa: S608 - numbers
        ((first,),) = self._connection.execute(query)
        return None if first is None else int(first)

    def take_series(
        self, server: int, on_conflicts: OnConflicts, earlier: Observations = NOTHING
    ) -> Series:
        """Return all observations of a server. `earlier` ones count as read before them."""
        if self._count:
            self._move_to_disk()
        series = Series(earlier)
        waiting: list[Numbers] = []
        rows = self._connection.execute(
            "SELECT count, instant, 0, place, instants, players, places FROM runs"  # noqa: S608 - numbers
            f" {self._select(server)} ORDER BY run"
        )
        for count, *columns in rows:
            waiting.append(
                np.array(
                    [
                        np.frombuffer(packed, f"u{len(packed) // count}").astype(np.int64) + base
                        for base, packed in zip(columns[:3], columns[3:], strict=True)
                    ]
                )
            )
            # Merge early, so that repeats and conflicts do not fill the memory.
            most = max(len(series.observations.instants), MAX_IN_MEMORY)
            if sum(each.shape[1] for each in waiting) >= most:
                series, waiting = _merge(series, waiting, on_conflicts), []
        return _merge(series, waiting, on_conflicts)

    def _select(self, server: int) -> str:
        first = server * _RUNS_PER_SERVER
        return f"WHERE run BETWEEN {first} AND {first + self._moves}"

    def _move_to_disk(self) -> None:
        """Move the rows in memory to the temporary database, sorted by server."""
        rows = np.concatenate(self._in_memory, axis=1)
        self._in_memory.clear()
        # Narrow numbers are sorted faster.
        rows = rows.take(np.argsort(_narrow(rows[0]), kind="stable"), axis=1)
        servers, instants, players, places = rows
        bases = int(instants.min()), int(places.min())
        packed = [_narrow(column) for column in (instants - bases[0], players, places - bases[1])]
        starts = np.flatnonzero(np.diff(servers, prepend=0))
        runs = zip(
            (servers[starts] * _RUNS_PER_SERVER + self._moves).tolist(),
            np.minimum.reduceat(instants, starts).tolist(),
            starts.tolist(),
            [*starts[1:].tolist(), self._count],
            strict=True,
        )
        self._connection.executemany(
            "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (run, end - start, first, *bases, *(each[start:end].tobytes() for each in packed))
                for run, first, start, end in runs
            ),
        )
        self._count = 0
        self._moves += 1


def _narrow(numbers: Numbers) -> npt.NDArray[np.unsignedinteger[Any]]:
    return numbers.astype(np.min_scalar_type(numbers.max()))


def _merge(series: Series, waiting: Sequence[Numbers], on_conflicts: OnConflicts) -> Series:
    """Return a series with additional observations, which were read later."""
    if not waiting:
        return series
    instants, players, places = np.concatenate(waiting, axis=1)
    before = series.observations
    instants = np.concatenate((before.instants, instants))
    players = np.concatenate((before.players, players))
    if (np.diff(instants) > 0).all():
        return series._replace(observations=Observations(instants, players))
    order = np.argsort(instants, kind="stable")
    instants, players = instants[order], players[order]
    is_kept = np.diff(instants, prepend=-1) > 0
    repeats, kept = np.flatnonzero(~is_kept), np.flatnonzero(is_kept)
    kept_players = players[kept[np.searchsorted(kept, repeats) - 1]]
    is_conflict = players[repeats] != kept_players
    found = repeats[is_conflict]
    places = places[order[found] - len(before.instants)]
    columns = (places, instants[found], players[found], kept_players[is_conflict])
    on_conflicts(np.stack(columns, axis=1))
    return Series(
        Observations(instants[kept], players[kept]), series.repeated + len(repeats) - len(found)
    )


AFTER_AS_OF = "after the as-of time"
"""The reason to skip an observation later than the given as-of time."""

Progress = Callable[[str, int, int], None]
"""Called with the current step, `reading` or `storing`, and the bytes and rows just processed."""


class RejectLimit(NamedTuple):
    """The maximum number or share of malformed rows that a build accepts."""

    text: str
    rows: int | None
    share: Fraction

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a limit such as `5` or `2.5%`. Raises ValueError for other text."""
        found = _LIMIT.fullmatch(text)
        if not found:
            raise ValueError("must be a number of rows or a percentage, such as 100 or 2.5%")
        if found["rows"]:
            return cls(text, int(found["rows"]), Fraction(0))
        share = Fraction(found["percent"]) / 100
        if share > 1:
            raise ValueError("must be at most 100%")
        return cls(text, None, share)

    def is_exceeded(self, rejected: int, read: int) -> bool:
        """Return whether more rows were rejected than the limit allows."""
        return rejected > (self.share * read if self.rows is None else self.rows)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The sources of a build or an update, and how to read them; see the command's options.

    - `servers`: the source of server records. If None, a build creates a server for each identifier
      in the observations.
    - `uses_slugs`: whether an identifier's slug can identify a server.
    - `game`: the game of servers without one in their record.
    - `reading`: the mapping options as a JSON object, stored for later updates. If None, an update
      keeps the stored options.
    - `as_of`: in Unix milliseconds. Default: the latest observation kept.
    - `strict`: whether the first malformed or conflicting row refuses its source.
    - `max_rejected`: the limit for malformed rows.
    - `allow_empty`: whether a snapshot may have no server or no observation.
    """

    servers: Source | None
    observations: Sequence[Source]
    uses_slugs: bool = False
    game: str | None = None
    reading: str | None = None
    as_of: int | None = None
    strict: bool = False
    max_rejected: RejectLimit | None = None
    allow_empty: bool = False
    progress: Progress = lambda _step, _bytes, _rows: None

    @property
    def unit(self) -> Literal["row", "cell"]:
        """What the counts of a build count: cells if a source is wide, otherwise rows."""
        return "cell" if any(each.mapping.is_wide for each in self.observations) else "row"

    @property
    def sources(self) -> list[Source]:
        """All sources, in the order in which they are read."""
        return [*([] if self.servers is None else [self.servers]), *self.observations]


@contextmanager
def open_temporary() -> Iterator[sqlite3.Connection]:
    """Open a temporary database for an intake.

    Raises OutputError in the block if temporary space runs out.
    """
    try:
        # SQLite stores a database without a name in a temporary file.
        with closing(sqlite3.connect("")) as connection:
            yield connection
    except sqlite3.Error as error:  # pragma: no cover - a test limits another process
        raise OutputError(f"SQLite's temporary files: {error}") from None


class Intake:
    """Read the sources in order, stage the observations to keep, and count the other rows."""

    def __init__(self, connection: sqlite3.Connection, roster: Roster, inputs: Inputs) -> None:
        self.roster = roster
        self.inputs = inputs
        self.staging = Staging(connection)
        self.rejects = Rejects(connection, inputs.observations)
        self.repeated = 0
        self.rows_of: Counter[int] = Counter()  # source number → rows
        self.skipped: Counter[str] = Counter()
        self.first_skipped: dict[str, int] = {}  # reason → place of the first row
        self.warnings = [*roster.warnings]
        self._observed: set[int] = set()  # the keys of servers with an observation

    @property
    def rows(self) -> int:
        """The number of rows in all sources."""
        return self.rows_of.total()

    def read(self) -> None:
        """Read all sources. With `strict`, stop after the first batch with a malformed row.

        Raises SourceError if a source can't be read or, with `strict`, may be cut off.
        """
        for number, source in enumerate(self.inputs.observations):
            self._read_source(number, source)
            if self.inputs.strict and self.rejects.malformed:
                return
        self.warnings += self.roster.describe_unknown()

    def _read_source(self, number: int, source: Source) -> None:
        warnings: list[str] = []
        progress, strict = self.inputs.progress, self.inputs.strict
        watched = replace(
            source,
            on_bytes=lambda count: progress("reading", count, 0),
            on_warning=warnings.append,
            accepts_any_id=self.roster.accepts_any_id,
        )
        for batch in read_batches(watched):
            before = self.rejects.malformed
            self.take_batch(number, batch)
            progress("reading", 0, batch.count_rows())
            if strict and self.rejects.malformed > before:
                break
        if strict and warnings:
            raise SourceError(warnings[0])
        self.warnings += warnings

    def count_batch(self, number: int, batch: Batch) -> None:
        """Count the rows of a source's batch, and keep its malformed rows."""
        self.rows_of[number] += batch.count_rows()
        self.skipped.update(batch.skipped)
        for reject in batch.rejects:
            self.rejects.add(number * PLACES_PER_SOURCE + reject.place, reject)

    def take_batch(self, number: int, batch: Batch) -> None:
        """Stage the observations to keep from a source's batch. Count and keep the other rows."""
        self.count_batch(number, batch)
        keys = np.array([self.roster[name] for name in batch.names], np.int64)
        servers, places = keys[batch.codes], batch.places + number * PLACES_PER_SOURCE
        for code in set(keys[keys < 1].tolist()):
            self._leave_out(code, batch, servers == code, places)
        is_kept = servers > 0
        as_of = self.inputs.as_of
        if as_of is not None and (is_late := is_kept & (batch.instants > as_of)).any():
            self._skip(AFTER_AS_OF, places[is_late])
            is_kept &= ~is_late
        rows = (servers, batch.instants, batch.players, places)
        self.staging.add(*(rows if is_kept.all() else (each[is_kept] for each in rows)))
        self._observed.update(keys[np.bincount(batch.codes[is_kept]).nonzero()].tolist())

    def name_servers(self) -> None:
        """Choose the ids of new servers, after all rows were read."""
        self.roster.name_servers(self._observed)

    def take_series(self, server_id: str, earlier: Observations = NOTHING) -> Series:
        """Return all observations of a server, as Staging does, and reject its conflicts."""
        on_conflicts = partial(self.rejects.add_conflicts, server_id)
        key = self.roster.server_keys[server_id]
        series = self.staging.take_series(key, on_conflicts, earlier)
        self.repeated += series.repeated
        return series

    def _leave_out(
        self, code: int, batch: Batch, is_left_out: npt.NDArray[np.bool_], places: Numbers
    ) -> None:
        """Reject or skip the rows of identifiers without a server."""
        reason = REJECT_REASONS.get(code)
        if reason is None:
            self._skip(self.roster.skip_reasons[code], places[is_left_out])
            return
        for row in np.flatnonzero(is_left_out):
            name = batch.names[batch.codes[row]]
            text = _format_row(name, int(batch.instants[row]), int(batch.players[row]))
            self.rejects.add(int(places[row]), Reject(0, reason, text, name))

    def _skip(self, reason: str, places: Numbers) -> None:
        """Count rows as skipped. Their places must ascend."""
        self.skipped[reason] += len(places)
        self.first_skipped.setdefault(reason, int(places[0]))
