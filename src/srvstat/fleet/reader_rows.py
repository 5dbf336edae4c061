"""Read any source with our own readers, as Arrow rows with positions.

Spark calls this on executors, too: it needs only pyarrow, and the libraries of the source's reader.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyarrow import compute as pc

from srvstat.contract.errors import SourceError
from srvstat.fleet.counts import ORDER_BITS, ROWS, Rejected
from srvstat.sources.arrow_columns import Columns, read_record_batches
from srvstat.sources.batch import Batch, Reject, Runs, read_batches
from srvstat.sources.registry import KINDS
from srvstat.sources.source import Source

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Remarks:
    """What readers say about rows that are no observations, and about whole sources."""

    rows: Counter[int] = field(default_factory=Counter)  # of each source, by its number
    rejects: dict[tuple[int, str], Rejected] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)

    def add_batch(self, number: int, batch: Batch) -> None:
        """Count the rows of a batch of a source, and those that are no observations."""
        skipped = sum(batch.skipped.values())
        self.rows[number] += len(batch.instants) + batch.count_rejected() + skipped
        self.skipped.update(batch.skipped)
        for reject in batch.rejects:
            self.add_reject(number, reject.place, reject)

    def add_reject(self, number: int, place: int, reject: Reject) -> None:
        """Add a malformed row of a source, at a place."""
        self.add_rejected(Rejected(number, reject.reason, reject.rows, place, *reject.find_value()))

    def add_rejected(self, more: Rejected) -> None:
        """Add rows of a source that were rejected for one reason."""
        key = more.source, more.reason
        known = self.rejects.get(key, more._replace(rows=0))
        first = min(known, more, key=lambda each: each.first)
        self.rejects[key] = first._replace(rows=known.rows + more.rows)

    def add(self, more: "Remarks") -> None:
        """Add other remarks."""
        self.rows.update(more.rows)
        for rejected in more.rejects.values():
            self.add_rejected(rejected)
        self.skipped.update(more.skipped)
        self.warnings += more.warnings

    def count_rows(self) -> int:
        """Return the number of rows that are no observations."""
        return sum(each.rows for each in self.rejects.values()) + self.skipped.total()


def has_order(source: Source) -> bool:
    """Return whether the rows of a source have an order; those of a database have none."""
    return not KINDS[source.kind].takes_query


def read_rows(source: Source, number: int, remarks: Remarks) -> Iterator[pa.RecordBatch]:
    """Read the observations of a source as batches with the columns of ROWS.

    `number` is that of the source in the job. `remarks` is complete after the last batch.

    Raises SourceError if the source can't be read, MissingLibraryError.
    """
    start = number << ORDER_BITS
    watched = replace(source, on_warning=remarks.warnings.append)
    for batch in read_batches(watched):
        remarks.add_batch(number, batch)
        if batch.instants:
            yield _convert_batch(batch, start, is_ordered=has_order(source))


def judge_rows(
    source: Source, columns: Columns, stored: Iterable[pa.RecordBatch], remarks: Remarks
) -> None:
    """Note why stored rows are no observations; the rows of their sources are counted already.

    `stored` has the columns of identifiers, times, players and positions. `source` has the same
    columns as the sources of the rows.
    """
    for batch in stored:
        positions = batch.column(3)
        for judged in read_record_batches(source, columns, [batch.select([0, 1, 2])]):
            if judged.instants:
                raise SourceError(
                    f"{source.given_title}: has times such as 20141123, which Spark can't read from"
                    " a URL; convert them, or name a path that all machines share"
                )
            remarks.skipped.update(judged.skipped)
            for reject in judged.rejects:
                number, place = divmod(positions[reject.place - 1].as_py(), 1 << ORDER_BITS)
                remarks.add_reject(number, place, reject)


def _convert_batch(batch: Batch, start: int, *, is_ordered: bool) -> pa.RecordBatch:
    count = len(batch.instants)
    if is_ordered:
        positions = pc.add(_convert_integers(batch.places), start)
    else:
        positions = pa.repeat(pa.scalar(start, pa.int64()), count)
    columns = [
        _convert_identifiers(batch.server_ids),
        _convert_integers(batch.instants),
        _convert_integers(batch.players),
        positions,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ROWS)


def _convert_identifiers(identifiers: Sequence[str]) -> pa.Array:
    if not isinstance(identifiers, Runs):
        return _convert_texts(identifiers)
    names = _convert_texts(identifiers.names)
    ends = pa.array(identifiers.ends, pa.int32())
    return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, names))


def _convert_texts(texts: Sequence[str]) -> pa.Array:
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        # JSON can have lone surrogates; as with U+0000, no identifier that has one means a server.
        return pa.array([_SURROGATE.sub("\x00", text) for text in texts], pa.string())


def _convert_integers(integers: Sequence[int]) -> pa.Array:
    """Return 64-bit integers as an Arrow array, without a copy if they are in one block."""
    block = integers if isinstance(integers, array | memoryview) else array("q", integers)
    return pa.Array.from_buffers(pa.int64(), len(block), [None, pa.py_buffer(block)])
