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
from srvstat.snapshot.write.staging import Staging
from srvstat.sources.batch import Batch
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
        publishable_ids = sorted(record.id for record in records if record.publishable)
        self.keys = {server_id: key for key, server_id in enumerate(publishable_ids, 1)}
        self.sources = sources
        self.as_of = as_of
        self.staging = Staging(connection)
        self.rejects = Rejects(connection, sources)
        self.rows = 0
        self.skipped: Counter[str] = Counter()
        self.warnings: list[str] = []
        self.withheld = {record.id for record in records if not record.publishable}

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
            self.rejects.add_batch(number, batch)
            self._stage(batch, self.rejects.locate_rows(number, batch))
            if batch.latest_integer is not None:
                latest = max(latest or 0, batch.latest_integer)
            rows = len(batch.server_ids) + len(batch.rejects)
            self.rows += rows
            progress("reading", 0, rows)
            if strict and batch.rejects:
                break
        if strict and warnings:
            raise SourceError(warnings[0])
        self.warnings += warnings
        return latest

    def _stage(self, batch: Batch, places: Sequence[int]) -> None:
        """Stage the observations of publishable servers up to as of."""
        if not batch.server_ids:
            return
        columns: list[Sequence[Any]] = [
            list(map(self.keys.get, batch.server_ids)),
            batch.instants,
            batch.players,
            places,
        ]
        if None in columns[0] or (self.as_of is not None and max(batch.instants) > self.as_of):
            is_kept = [*map(self._keep_or_count, batch.server_ids, batch.instants)]
            columns = [list(compress(column, is_kept)) for column in columns]
        self.staging.add(*columns)

    def _keep_or_count(self, server_id: str, instant: int) -> bool:
        """Return whether to keep an observation; count it as skipped if not."""
        if server_id not in self.keys:
            is_withheld = server_id in self.withheld
            self.skipped["not publishable" if is_withheld else "not in the servers file"] += 1
            return False
        if self.as_of is not None and instant > self.as_of:
            self.skipped[AFTER_AS_OF] += 1
            return False
        return True
