"""Read a source whose rows are columns, and collect what it yields by row number."""

from collections import Counter
from dataclasses import dataclass, field

from srvstat.sources.batch import read_batches
from srvstat.sources.source import Source


@dataclass
class Table:
    """The observations as (place, id, instant, players), the rejects, and the skipped rows."""

    kept: list[tuple[int, str, int, int]] = field(default_factory=list)
    rejects: list[tuple[int, str, str]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def read_table(source: Source) -> Table:
    """Read a source completely."""
    table = Table()
    for batch in read_batches(source):
        columns = (batch.places, batch.server_ids, batch.instants, batch.players)
        table.kept += zip(*columns, strict=True)
        table.rejects += (reject[:3] for reject in batch.rejects)
        table.skipped.update(batch.skipped)
    table.kept.sort()
    return table
