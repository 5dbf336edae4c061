"""The rows of a build's sources that were not kept as they are, in the order they were read."""

import sqlite3
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from srvstat.sources.batch import Batch
from srvstat.sources.source import Source

# A build finds what conflicts last, when it has put everything in order, so the rejects wait in
# the temporary database. So do lines that can't be written again from what was read of them.
_SCHEMA = """
    CREATE TEMP TABLE rejects (
        place       INTEGER PRIMARY KEY,
        reason      TEXT NOT NULL,
        text        TEXT NOT NULL,
        is_conflict INTEGER NOT NULL
    );
    CREATE TEMP TABLE texts (
        place INTEGER PRIMARY KEY, -- of the first line
        lines TEXT NOT NULL
    );
"""
_STARTS = "SELECT place FROM texts ORDER BY place"
_LINES_A_SOURCE = 1 << 40


class PlacedReject(NamedTuple):
    """A reject and where it was read."""

    source: Source
    line: int
    reason: str
    text: str


class Rejects:
    """Keeps rejects until all of them are known.

    A place is the number of a source, in the order they are read, and a line of it, in one number.
    May raise sqlite3.Error, where temporary space runs out.
    """

    def __init__(self, connection: sqlite3.Connection, sources: Sequence[Source]) -> None:
        connection.executescript(_SCHEMA)
        self._connection = connection
        self._sources = sources
        self.malformed = 0
        self.conflicting = 0

    def places(self, source: int, batch: Batch) -> Sequence[int]:
        """Return the place of each observation of a batch."""
        lines, start = batch.lines, source * _LINES_A_SOURCE
        if isinstance(lines, range):
            return range(start + lines.start, start + lines.stop)
        return [start + line for line in lines]

    def add_batch(self, source: int, batch: Batch) -> None:
        """Add the lines of a batch that are no observations, and keep the text of the others.

        A conflict may be found among them later. Text that can be written again is not kept.
        """
        start = source * _LINES_A_SOURCE
        self.malformed += len(batch.rejects)
        self._connection.executemany(
            "INSERT INTO rejects VALUES (?, ?, ?, 0)",
            ((start + reject.line, reject.reason, reject.text) for reject in batch.rejects),
        )
        if batch.text is not None and batch.server_ids:
            self._connection.execute(
                "INSERT INTO texts VALUES (?, ?)", (start + batch.first_line, batch.text)
            )

    def add_conflict(self, place: int, standing_players: int, text: str) -> None:
        """Add an observation that is not what stands for its server and instant (D16).

        `text` is the line as it would be written.
        """
        self.conflicting += 1
        reason = (
            f"conflicts with {standing_players} players, read before for this server and instant"
        )
        self._connection.execute("INSERT INTO rejects VALUES (?, ?, ?, 1)", (place, reason, text))

    def __iter__(self) -> Iterator[PlacedReject]:
        """Return all rejects in the order they were read."""
        starts = [place for (place,) in self._connection.execute(_STARTS)]
        block, lines = 0, list[str]()
        found = self._connection.execute("SELECT * FROM rejects ORDER BY place")
        for place, reason, text, is_conflict in found:
            source, line = divmod(place, _LINES_A_SOURCE)
            written = text
            if is_conflict and (now := bisect_right(starts, place)):
                if now != block:
                    block, lines = now, self._lines(starts[now - 1])
                # Beyond the last line kept there, lines are as they would be written.
                if place - starts[now - 1] < len(lines):
                    written = lines[place - starts[now - 1]].removesuffix("\r")
            yield PlacedReject(self._sources[source], line, reason, written)

    def _lines(self, start: int) -> list[str]:
        """Return the lines kept that begin at a place."""
        query = "SELECT lines FROM texts WHERE place = ?"
        (lines,) = self._connection.execute(query, (start,)).fetchone()
        return str(lines).split("\n")
