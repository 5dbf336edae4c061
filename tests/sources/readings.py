"""Read a file of observations, and index the results by line number."""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.source import Batch, Block, Source, read_batches


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


class Reading(NamedTuple):
    """The observations of a file, and its rejects as (reason, text)."""

    kept: dict[int, tuple[str, int, int]]
    rejects: dict[int, tuple[str, str]]

    @property
    def rejected_texts(self) -> dict[int, str]:
        """The rejected rows without their reasons."""
        return {line: text for line, (_, text) in self.rejects.items()}


class Rows(NamedTuple):
    """The observations and rejects of a source by place, and the number of skipped rows."""

    kept: dict[int, tuple[str, int, int]]
    rejects: dict[int, str]
    skipped: Counter[str]


def read_rows(path: Path, kind: str, mapping: ColumnMapping = STRICT) -> Rows:
    """Read a source of a kind whose rows have a place each."""
    table = read_table(Source(str(path), kind, mapping))
    return Rows(
        {place: (server_id, at, players) for place, server_id, at, players in table.kept},
        {place: reason for place, reason, _ in table.rejects},
        table.skipped,
    )


def read_file(path: Path, data: bytes) -> Reading:
    """Write a file, read it, and check the originals of its observations."""
    path.write_bytes(data)
    lines = data.decode().removeprefix("\ufeff").split("\n")
    kept: dict[int, tuple[str, int, int]] = {}
    rejects: dict[int, tuple[str, str]] = {}
    blocks: list[Block] = []
    source = replace(Source.from_name(str(path), None), keep_text=blocks.append)
    for batch in read_batches(source):
        rows = {place: (name, at, players) for name, at, players, place in list_rows(batch)}
        kept.update(rows)
        for place in list(rows)[:: len(rows) // 20 + 1]:
            texts = [
                text for block in blocks for line, text in block.split_lines() if line == place
            ]
            written, *_ = [*texts, "{},{},{}".format(*kept[place])]
            assert written.removesuffix("\r") == lines[place - 1].removesuffix("\r")
        rejects.update({each.place: (each.reason, each.text) for each in batch.rejects})
    assert list(kept) == sorted(kept)
    return Reading(kept, rejects)
