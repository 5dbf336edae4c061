"""Read the sources of a build and stage the observations to keep."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

from srvstat.contract.errors import SourceError
from srvstat.contract.instants import YEAR_2001
from srvstat.snapshot.write.rejects import Rejects
from srvstat.snapshot.write.roster import MALFORMED, MALFORMED_REASON, SKIP_REASONS, Roster
from srvstat.snapshot.write.staging import Staging
from srvstat.sources.batch import Batch, Runs
from srvstat.sources.observations import read_batches
from srvstat.sources.servers import ServerRecord
from srvstat.sources.source import Source

AFTER_AS_OF = "after the as-of time"
"""The reason to skip an observation later than the given instant."""

Progress = Callable[[str, int, int], None]
"""Called with the current step, `reading` or `storing`, and the bytes and rows just processed."""


class Intake:
    """Reads one source after another and stages the observations to keep."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        records: Sequence[ServerRecord],
        sources: Sequence[Source],
        as_of: int | None,
    ) -> None:
        self.roster = Roster(records)
        self.sources = sources
        self.as_of = as_of
        self.staging = Staging(connection)
        self.rejects = Rejects(connection, sources)
        self.rows = 0
        self.skipped: Counter[str] = Counter()
        self.warnings: list[str] = []

    def read(self, progress: Progress, *, strict: bool) -> None:
        """Read all sources; with `strict`, stop after the first batch with a malformed row.

        Raises SourceError if a source can't be read; with `strict` also if one may be cut off.
        """
        for number, source in enumerate(self.sources):
            latest = self._read_source(number, source, progress, strict=strict)
            if strict and self.rejects.malformed:
                return
            if latest is not None and latest < YEAR_2001:
                self.warnings.append(
                    f"{source.title}: every integer instant is before 2001; convert them"
                    " to milliseconds if they are seconds"
                )

    def _read_source(
        self, number: int, source: Source, progress: Progress, *, strict: bool
    ) -> int | None:
        """Read one source and return the latest instant that is written as an integer."""
        warnings: list[str] = []
        watched = replace(
            source,
            on_bytes=lambda count: progress("reading", count, 0),
            on_warning=warnings.append,
            keep_text=self.rejects.create_text_store(number).keep,
        )
        latest = None
        for batch in read_batches(watched):
            before = self.rejects.malformed
            self.rejects.add_batch(number, batch)
            self._stage(batch, self.rejects.locate_rows(number, batch))
            if batch.latest_integer is not None:
                latest = max(latest or 0, batch.latest_integer)
            self.skipped.update(batch.skipped)
            rows = len(batch.server_ids) + len(batch.rejects) + sum(batch.skipped.values())
            self.rows += rows
            progress("reading", 0, rows)
            if strict and self.rejects.malformed > before:
                break
        if strict and warnings:
            raise SourceError(warnings[0])
        self.warnings += warnings
        return latest

    def _stage(self, batch: Batch, places: Sequence[int]) -> None:
        """Stage the observations of publishable servers up to as of."""
        if not batch.server_ids:
            return
        if isinstance(batch.server_ids, Runs):
            self._stage_runs(batch, batch.server_ids, places)
            return
        keys = list(map(self.roster.__getitem__, batch.server_ids))
        columns: list[Sequence[Any]] = [keys, batch.instants, batch.players, places]
        if min(keys) < 1 or (self.as_of is not None and max(batch.instants) > self.as_of):
            is_kept = [*map(self._keep_or_count, keys, batch.instants)]
            for row, key in enumerate(keys):
                if key == MALFORMED:
                    self._reject_row(batch, row, places[row])
            columns = [list(compress(column, is_kept)) for column in columns]
        self.staging.add(*columns)

    def _stage_runs(self, batch: Batch, runs: Runs, places: Sequence[int]) -> None:
        """Stage the observations of a batch that is grouped by server, a run at a time."""
        columns = (batch.instants, batch.players, places)
        for name, rows in runs.iter_runs():
            key = self.roster[name]
            run = [column[rows] for column in columns]
            if key < 1 or (self.as_of is not None and max(run[0]) > self.as_of):
                part = Batch([name] * len(run[0]), run[0], run[1], run[2])
                self._stage(part, run[2])
            else:
                self.staging.add_run(key, *run)

    def _keep_or_count(self, key: int, instant: int) -> bool:
        """Return whether to keep an observation; count it as skipped if not."""
        if key == MALFORMED:
            return False
        if key < 1:
            self.skipped[SKIP_REASONS[key]] += 1
            return False
        if self.as_of is not None and instant > self.as_of:
            self.skipped[AFTER_AS_OF] += 1
            return False
        return True

    def _reject_row(self, batch: Batch, row: int, place: int) -> None:
        text = f"{batch.server_ids[row]},{batch.instants[row]},{batch.players[row]}"
        self.rejects.add_malformed(place, MALFORMED_REASON, text)
