"""Functions that run on executors; they need only pyarrow and what our readers need."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from srvstat.fleet.counts import COUNTS, ROWS, Rejected
from srvstat.fleet.finish import finish_counts
from srvstat.fleet.native import NativeColumns
from srvstat.fleet.reader_rows import Remarks, judge_rows, read_rows
from srvstat.sources.arrow_columns import Columns
from srvstat.sources.source import Source

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function for `mapInArrow`."""

REMARKS = "remarks"
"""The column with the remarks of a task as JSON; rows with remarks have nothing else."""

READ = ROWS.append(pa.field(REMARKS, pa.string()))
"""The columns that a task of `build_reader` returns."""

_SERVERS_AT_ONCE = 64
"""Servers whose histograms are Python objects at a time."""


def build_reader(sources: Sequence[tuple[int, Source]]) -> Task:
    """Return a task that reads sources, given with their numbers in the job.

    Its input has the positions of sources in the sequence; its output has the columns of READ.
    """

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at in batch.column(0).to_pylist():
                number, source = sources[at]
                remarks = Remarks()
                for rows in read_rows(source, number, remarks):
                    nothing = pa.nulls(rows.num_rows, pa.string())
                    yield pa.RecordBatch.from_arrays([*rows.columns, nothing], schema=READ)
                yield _write_remarks(remarks)

    return read


def build_judge(source: Source, columns: NativeColumns) -> Task:
    """Return a task that finds out why stored rows are no observations.

    Its input is their identifiers, their times and players as integers, and their positions; its
    output has remarks.
    """
    names = Columns(columns.id, columns.at, [columns.players])

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        remarks = Remarks()
        stored = (
            pa.RecordBatch.from_arrays(
                [ids, at.cast(columns.at_type), players.cast(columns.players_type), positions],
                [*"iapn"],  # the converter goes by their order
            )
            for ids, at, players, positions in (batch.columns for batch in batches)
        )
        judge_rows(source, names, stored, remarks)
        yield _write_remarks(remarks)

    return judge


def finish(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Compute the figures of servers; this is a task whose input has the columns of COUNTS."""
    for batch in batches:
        for start in range(0, batch.num_rows, _SERVERS_AT_ONCE):
            yield finish_counts(batch.slice(start, _SERVERS_AT_ONCE).cast(COUNTS))


def _write_remarks(remarks: Remarks) -> pa.RecordBatch:
    parts = (
        [*remarks.rows.items()],
        [*remarks.rejects.values()],
        remarks.skipped,
        remarks.warnings,
    )
    text = json.dumps(parts)
    row: dict[str, str | None] = {**dict.fromkeys(READ.names), REMARKS: text}
    return pa.RecordBatch.from_pylist([row], READ)


def add_remarks(remarks: Remarks, texts: Sequence[str]) -> None:
    """Add the remarks of tasks, as they wrote them."""
    for text in texts:
        rows, rejects, skipped, warnings = json.loads(text)
        more = Remarks(Counter(dict(rows)), {}, Counter(skipped), warnings)
        for rejected in rejects:
            more.add_rejected(Rejected(*rejected))
        remarks.add(more)
