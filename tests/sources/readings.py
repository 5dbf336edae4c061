"""Read a file of observations, and index the results by line number."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.source import Batch, Source, read_batches


@dataclass
class Table:
    """The observations as (place, id, instant, players), the rejects, and the skipped rows."""

    kept: list[tuple[int, str, int, int]] = field(default_factory=list)
    rejects: list[tuple[int, str, str]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> dict[int, tuple[str, int, int]]:
        """The observations by place, in a source whose rows have a place each."""
        return {place: (server_id, at, players) for place, server_id, at, players in self.kept}

    @property
    def reasons(self) -> dict[int, str]:
        """The reasons of the rejects by place."""
        return {place: reason for place, reason, _ in self.rejects}


def _list_rows(batch: Batch) -> list[tuple[str, int, int, int]]:
    """Return the identifier, the instant, the players and the place of each observation."""
    names = [batch.names[code] for code in batch.codes]
    instants, players, places = (
        column.tolist() for column in (batch.instants, batch.players, batch.places)
    )
    return list(zip(names, instants, players, places, strict=True))


def read_table(source: Source) -> Table:
    """Read a source completely, and check that places never descend."""
    table = Table()
    for batch in read_batches(source):
        table.kept += ((place, name, at, players) for name, at, players, place in _list_rows(batch))
        table.rejects += (reject[:3] for reject in batch.rejects)
        table.skipped.update(batch.skipped)
    places = [place for place, *_ in table.kept]
    assert places == sorted(places)
    table.kept.sort()
    return table


class Reading(NamedTuple):
    """The observations of a file, and its rejects as (reason, text)."""

    kept: dict[int, tuple[str, int, int]]
    rejects: dict[int, tuple[str, str]]

    @property
    def rejected_texts(self) -> dict[int, str]:
        """The rejected rows without their reasons."""
        return {line: text for line, (_, text) in self.rejects.items()}


def read_rows(path: Path, kind: str, mapping: ColumnMapping = STRICT) -> Table:
    """Read a file of a kind."""
    return read_table(Source(str(path), kind, mapping))


def read_file(path: Path, data: bytes) -> Reading:
    """Write a file and read it."""
    path.write_bytes(data)
    table = read_table(Source.from_name(str(path), None))
    return Reading(table.rows, {place: (reason, text) for place, reason, text in table.rejects})
