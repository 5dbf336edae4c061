"""Read the sources of a build and stage the observations to keep."""

import sqlite3
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, compress

from srvstat.contract.errors import SourceError
from srvstat.snapshot.write.processes import SecondProcess
from srvstat.snapshot.write.rejects import Rejects
from srvstat.snapshot.write.roster import REJECT_REASONS, Roster
from srvstat.snapshot.write.staging import Staging, interleave
from srvstat.sources.batch import Batch, Runs, group_rows
from srvstat.sources.observations import read_batches
from srvstat.sources.source import Block, Source

AFTER_AS_OF = "after the as-of time"
"""The reason to skip an observation later than the given instant."""

_ROWS_OF_ONE_PROCESS = 100_000
_BYTES_OF_ONE_PROCESS = 4 << 20
"""A build of more rows, or of larger files, starts a second process: it takes so long that this
pays."""

ParseBlock = Callable[[Block], Batch | None]

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
        second: SecondProcess | None = None,
    ) -> None:
        self.roster = roster
        self.sources = sources
        self.as_of = as_of
        self.second = second or SecondProcess()
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
        if sum(source.get_size() or 0 for source in self.sources) > _BYTES_OF_ONE_PROCESS:
            self.second.start()
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
            compute=self._compute,
        )
        for batch in map(group_rows, read_batches(watched)):
            before = self.rejects.malformed
            self.take_batch(number, batch)
            rows = len(batch.instants) + batch.count_rejected() + sum(batch.skipped.values())
            self.rows_of[number] += rows
            progress("reading", 0, rows)
            if self.rows > _ROWS_OF_ONE_PROCESS:
                self.second.start()
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

    def _compute(
        self, parse: ParseBlock, blocks: Iterable[Block]
    ) -> Iterator[tuple[Block, Batch | None]]:
        return self.second.compute(partial(_parse_groups, parse), blocks)

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


def _parse_groups(parse: ParseBlock, block: Block) -> Batch | None:
    """Parse a block, and group its rows in the process that has them."""
    batch = parse(block)
    return batch and group_rows(batch)
