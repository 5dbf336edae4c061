"""Collect the rows that a build rejects, and return them in the order they were read."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from srvstat.contract.arrays import Numbers
from srvstat.sources.source import Batch, Block, Source, cut_value

# Conflicts are found last, once the observations are sorted. Until then, the
# temporary database stores the rejects and the text of rows.
_SCHEMA = """
    CREATE TEMP TABLE rejects (
        place       INTEGER NOT NULL, -- rows of several servers may have one place
        reason      TEXT NOT NULL,
        text        TEXT NOT NULL,
        has_kept    INTEGER NOT NULL, -- 1: the block of the row may have been kept, with its text
        is_conflict INTEGER NOT NULL,
        value       TEXT, -- the malformed value, cut
        column_name TEXT,
        lost        INTEGER NOT NULL -- the number of rows
    );
    CREATE TEMP TABLE texts (
        place INTEGER PRIMARY KEY, -- of the first line
        lines TEXT NOT NULL
    );
"""
_PLACES_PER_SOURCE = 1 << 40

Conflicts: TypeAlias = Sequence[Numbers]
"""Rows of a server, each the place in the build, the instant, the players and those kept."""


class PlacedReject(NamedTuple):
    """A rejected row and where it was read."""

    source: Source
    line: int
    reason: str
    text: str

    def describe(self) -> str:
        """Return the place and the reason."""
        return f"{self.source.format_place(self.line)}: {self.reason}"


class Reason(NamedTuple):
    """A reason why rows were rejected or skipped.

    `rows` is their number, and `first` is the source and the line of the first of them; it is None
    if the source does not tell. `value` is the malformed value of that row, and `column` its
    column; the value is the text of the row, and the column empty, if the row as a whole is
    malformed. The value is None if it is not known. `kind` is the kind of that row's source.
    """

    text: str
    rows: int
    first: str | None
    is_rejected: bool
    value: str | None = None
    column: str = ""
    kind: str | None = None


def find_column(source: Source, reason: str, column: str | None) -> str:
    """Return the column of a malformed value: the given one, or that of the reason's field."""
    if column is not None:
        return column
    mapping, field = source.mapping, reason.partition(":")[0]
    names = {"serverId": mapping.id, "observedAt": mapping.at, "players": mapping.players}
    return names.get(field, field)


class Rejects:
    """Collects the rejected rows of all sources of a build.

    A place in the build combines the number of a source, in reading order, with a place in that
    source. May raise sqlite3.Error, for example when temporary space runs out.
    """

    def __init__(self, connection: sqlite3.Connection, sources: Sequence[Source]) -> None:
        connection.executescript(_SCHEMA)
        self._connection = connection
        self._sources = sources
        self._block = 0, [""]  # the place of the first line of a block, and its lines
        self.malformed_of: Counter[int] = Counter()  # by the number of the source
        self.conflicting = 0

    @property
    def malformed(self) -> int:
        """The number of malformed rows of all sources."""
        return self.malformed_of.total()

    def keep_text(self, source: int, block: Block) -> None:
        """Keep the text of a block of a source."""
        place = source * _PLACES_PER_SOURCE + block.first_line
        self._connection.execute("INSERT INTO texts VALUES (?, ?)", (place, block.text))

    def locate(self, source: int, places: Numbers) -> Numbers:
        """Return the places in the build of places in a source."""
        return places + source * _PLACES_PER_SOURCE

    def add_batch(self, source: int, batch: Batch) -> None:
        """Add the malformed rows of a batch."""
        start = source * _PLACES_PER_SOURCE
        self.malformed_of[source] += batch.count_rejected()
        self._connection.executemany(
            "INSERT INTO rejects VALUES (?, ?, ?, 0, 0, ?, ?, ?)",
            (
                (start + each.place, each.reason, each.text, *each.find_value(), each.rows)
                for each in batch.rejects
            ),
        )

    def add_malformed(self, place: int, reason: str, text: str, value: str) -> None:
        """Add a row of a batch that the build rejects. `text` is used as in `add_conflicts`."""
        self.malformed_of[place // _PLACES_PER_SOURCE] += 1
        query = "INSERT INTO rejects VALUES (?, ?, ?, 1, 0, ?, NULL, 1)"
        self._connection.execute(query, (place, reason, text, cut_value(value)))

    def add_conflicts(self, server_id: str, conflicts: Conflicts) -> None:
        """Add observations that conflict with those kept for their server and instants (D16).

        If the text of an observation was not kept, it is its columns.
        """
        reason = "players: an earlier row of this server and instant has"
        for part in conflicts:
            self.conflicting += len(part)
            self._connection.executemany(
                "INSERT INTO rejects VALUES (?, ?, ?, 1, 1, NULL, NULL, 1)",
                (
                    (place, f"{reason} {kept}", f"{server_id},{instant},{players}")
                    for place, instant, players, kept in map(np.ndarray.tolist, part)
                ),
            )

    def __iter__(self) -> Iterator[PlacedReject]:
        """Yield all rejected rows in the order they were read."""
        query = "SELECT place, reason, text, has_kept FROM rejects ORDER BY place, rowid"
        found = self._connection.execute(query)
        for place, reason, text, has_kept in found:
            number, line = divmod(place, _PLACES_PER_SOURCE)
            written = self._find_text(place) if has_kept else None
            yield PlacedReject(
                self._sources[number], line, reason, text if written is None else written
            )

    def list_reasons(self, number: int | None = None) -> list[Reason]:
        """Return why rows of all sources were rejected, or why rows of one are malformed."""
        found = self._connection.execute(
            """
            SELECT reason, sum(lost), min(place), value, column_name FROM rejects
            WHERE ?1 IS NULL OR place / ?2 = ?1 AND NOT is_conflict
            GROUP BY reason
            """,
            (number, _PLACES_PER_SOURCE),
        )
        reasons = []
        for text, rows, first, value, column in found:
            source = self._sources[first // _PLACES_PER_SOURCE]
            reasons.append(
                Reason(
                    text,
                    rows,
                    self.format_place(first),
                    is_rejected=True,
                    value=value,
                    column=find_column(source, text, column),
                    kind=source.kind,
                )
            )
        return reasons

    def format_place(self, place: int) -> str:
        """Return a place in the build as text: the title of its source, and the line."""
        number, line = divmod(place, _PLACES_PER_SOURCE)
        return self._sources[number].format_place(line)

    def _find_text(self, place: int) -> str | None:
        """Return the line at a place if its block was kept."""
        first, lines = self._block
        if not first <= place < first + len(lines):
            query = "SELECT place, lines FROM texts WHERE place <= ? ORDER BY place DESC LIMIT 1"
            for first, text in self._connection.execute(query, (place,)):
                self._block = first, text.split("\n")
            first, lines = self._block
        at = place - first
        return lines[at].removesuffix("\r") if 0 <= at < len(lines) else None
