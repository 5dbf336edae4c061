"""Read a source whose rows are columns, and collect what it yields by row number."""

from collections import Counter
from dataclasses import dataclass, field

from srvstat.sources.source import Batch, Source, read_batches


@dataclass
class Table:
    """The observations as (place, id, instant, players), the rejects, and the skipped rows."""

    kept: list[tuple[int, str, int, int]] = field(default_factory=list)
    rejects: list[tuple[int, str, str]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def list_rows(batch: Batch) -> list[tuple[str, int, int, int]]:
    """Return the identifier, the instant, the players and the place of each observation."""
    names = [batch.names[code] for code in batch.codes]
    instants, players, places = (
        column.tolist() for column in (batch.instants, batch.players, batch.places)
    )
    return list(zip(names, instants, players, places, strict=True))


def read_table(source: Source) -> Table:
    """Read a source completely."""
    table = Table()
    for batch in read_batches(source):
        table.kept += ((place, name, at, players) for name, at, players, place in list_rows(batch))
        table.rejects += (reject[:3] for reject in batch.rejects)
        table.skipped.update(batch.skipped)
    table.kept.sort()
    return table
