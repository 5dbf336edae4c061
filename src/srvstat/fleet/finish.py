"""Compute the figures of servers from an engine's counts."""

from typing import Any

import pyarrow as pa

from srvstat.fleet.counts import FIGURES
from srvstat.stats import Growth, compute_growth, compute_histogram_statistics


def finish_counts(counts: pa.RecordBatch) -> pa.RecordBatch:
    """Return the figures of a batch of COUNTS, in the same order."""
    rows = [_finish_row(*row.values()) for row in counts.to_pylist()]
    return pa.RecordBatch.from_pylist(rows, FIGURES)


def _finish_row(
    server: int, values: list[int], counts: list[int], first: int, last: int
) -> dict[str, Any]:
    growth = compute_growth(first, last) if sum(counts) > 1 else Growth(None, None)
    statistics = compute_histogram_statistics(dict(zip(values, counts, strict=True)), growth)
    (*figures, growth) = statistics
    return dict(zip(FIGURES.names, (server, *figures, *growth), strict=True))
