"""Run the DuckDB engine on files, and compute the same from the rows of our own readers."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from srvstat.contract.stats import Statistics, compute_statistics
from srvstat.contract.time import Window
from srvstat.fleet.engine import Engine, Job, Located, Resolved, Servers, open_engine
from srvstat.fleet.rows import Conflicts, Rejected, Remarks, read_rows
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.source import Source

NOON = 1_700_000_000_000
WINDOW = Window(NOON - 5, NOON + 5)
IDS = ("a", "b", "c")
SERVERS = Servers(IDS, {name: number for number, name in enumerate(IDS)})


def write_rows(path: Path, rows: list[tuple[Any, Any, Any]], **types: pa.DataType) -> Path:
    """Write observations as a Parquet file, whose columns may have other types."""
    given_types = {"serverId": pa.string(), "observedAt": pa.int64(), "players": pa.int64()} | types
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    table = pa.table(
        {
            name: pa.array(column, pa.int64()).cast(kind) if name == "observedAt" and rows
            else _build_array(column, kind)
            for (name, kind), column in zip(given_types.items(), columns, strict=True)
        }
    )  # fmt: skip
    parquet.write_table(table, path)
    return path


def forge_statistics(path: Path, true: int, wrong: int) -> None:
    """Replace a number in the statistics of a Parquet file, but not in its rows."""
    stored = path.read_bytes()
    footer = len(stored) - 8 - int.from_bytes(stored[-8:-4], "little")
    old, new = (number.to_bytes(8, "little", signed=True) for number in (true, wrong))
    assert old in stored[footer:]
    path.write_bytes(stored[:footer] + stored[footer:].replace(old, new))


def _build_array(column: Sequence[Any], kind: pa.DataType) -> pa.Array:
    # Not every version of PyArrow can build all dictionaries directly.
    if pa.types.is_dictionary(kind):
        return pa.array(column, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(column, kind)


class Outcome(NamedTuple):
    """What an engine says about the servers of IDS."""

    last_players: Mapping[str, int]
    rows: Mapping[int, int]
    located: Sequence[Located]
    rejected: Sequence[Rejected]
    skipped: Mapping[str, int]
    figures: Mapping[int, Statistics]
    resolved: Resolved
    warnings: Sequence[str]


def open_sources(*paths: Path, mapping: ColumnMapping = STRICT) -> list[Source]:
    """Return the sources at some paths."""
    return [Source.from_name(str(path), None, mapping) for path in paths]


def run_engine(sources: Sequence[Source], window: Window, conflicts: Conflicts) -> Outcome:
    """Return the outcome of the DuckDB engine."""
    job = Job(sources, None, conflicts)
    with open_engine(job, memory=512 << 20, threads=2, progress=lambda *_: None) as engine:
        return ask_engine(engine, window)


def ask_engine(engine: Engine, window: Window) -> Outcome:
    """Return the outcome of an engine that is open."""
    last_players = {row.identifier: row.last_players or 0 for row in engine.survey()}
    figures, resolved = engine.count(SERVERS, window)
    return Outcome(
        last_players,
        +Counter(engine.remarks.rows),
        sorted(engine.locate(["a", "c"])),
        _sort_rejects(engine.remarks.rejects.values()),
        dict(engine.remarks.skipped),
        figures,
        resolved._replace(conflict=None),
        engine.remarks.warnings,
    )


def compute_outcome(sources: Sequence[Source], window: Window, conflicts: Conflicts) -> Outcome:
    """Return the outcome that follows from the rows of our own readers."""
    remarks = Remarks()
    by_instant: defaultdict[str, defaultdict[int, list[tuple[int, int]]]]
    by_instant = defaultdict(lambda: defaultdict(list))
    for number, source in enumerate(sources):
        for batch in read_rows(source, number, remarks):
            for row in batch.to_pylist():
                pair = (row["position"], row["players"])
                order = pair if conflicts == "first" else pair[::-1]
                by_instant[row["identifier"]][row["at"]].append(order)
    of_pair = 1 if conflicts == "first" else 0
    standing = {
        name: {at: min(rows)[of_pair] for at, rows in sorted(of_server.items())}
        for name, of_server in by_instant.items()
    }
    figures = {}
    equal = different = kept = 0
    for number, name in enumerate(IDS):
        inside = {
            at: n for at, n in standing.get(name, {}).items() if window.start < at <= window.end
        }
        kept += len(inside)
        for at, players in inside.items():
            values = [row[of_pair] for row in by_instant[name][at]]
            equal += values.count(players) - 1
            different += len(values) - values.count(players)
        if inside:
            figures[number] = compute_statistics([*inside.values()])
    lasts = {name: of_server[max(of_server)] for name, of_server in standing.items()}
    return Outcome(
        lasts,
        +remarks.rows,
        _locate(sources, ["a", "c"]),
        _sort_rejects(remarks.rejects.values()),
        dict(remarks.skipped),
        figures,
        Resolved(kept, equal, different),
        remarks.warnings,
    )


def _locate(sources: Sequence[Source], names: Sequence[str]) -> list[Located]:
    located = []
    for number, source in enumerate(sources):
        batches = [batch.to_pylist() for batch in read_rows(source, number, Remarks())]
        rows = [row for batch in batches for row in batch if row["identifier"] in names]
        if rows:
            first = min(rows, key=lambda row: row["position"])
            located.append(Located(number, len(rows), first["position"], first["identifier"]))
    return located


def _sort_rejects(rejects: Iterable[Rejected]) -> list[Rejected]:
    """Return rejects without times that are no dates of Python: engines read them in their unit."""
    return sorted(
        each._replace(value=None) if each.reason.endswith("9999") else each for each in rejects
    )
