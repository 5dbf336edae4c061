"""Read any source with our own readers, as Arrow rows with positions.

Spark calls this on executors, too: it needs only pyarrow, and the libraries of the source's reader.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyarrow import compute as pc

from srvstat.contract.instants import YEAR_2001
from srvstat.fleet.counts import ORDER_BITS, ROWS
from srvstat.sources.batch import Batch, Runs
from srvstat.sources.observations import read_batches
from srvstat.sources.registry import KINDS
from srvstat.sources.source import Source

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Remarks:
    """What readers say about rows that are no observations, and about whole sources."""

    rejected: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)

    def add_batch(self, batch: Batch) -> None:
        """Count the rows of a batch that are no observations."""
        self.rejected.update(reject.reason for reject in batch.rejects)
        self.skipped.update(batch.skipped)

    def count_rows(self) -> int:
        """Return the number of rows that are no observations."""
        return self.rejected.total() + self.skipped.total()

    def add_latest_integer(self, source: Source, latest: int | None) -> None:
        """Warn if all instants of a source that are integers look like seconds."""
        if latest is not None and latest < YEAR_2001:
            self.warnings.append(
                f"{source.title}: every integer instant is before 2001; add --time-unit s"
                " if they are seconds"
            )


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
    latest = None
    for batch in read_batches(watched):
        remarks.add_batch(batch)
        if batch.latest_integer is not None:
            latest = max(latest or 0, batch.latest_integer)
        if batch.instants:
            yield _convert_batch(batch, start, is_ordered=has_order(source))
    remarks.add_latest_integer(source, latest)


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
