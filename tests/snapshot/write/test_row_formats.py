"""A format of rows without text: its reader fetches the original of a row only for rejects."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from conftest import AS_OF, ndjson, server
from srvstat.snapshot.write.build import build
from srvstat.sources import registry
from srvstat.sources.batch import Batch, Reject
from srvstat.sources.registry import Kind
from srvstat.sources.source import Source
from support.snapshots import read_rejects

fetched: list[int] = []


def fetch_row(place: int) -> str:
    fetched.append(place)
    return f"row {place}"


def read(_source: Source) -> Iterator[Batch]:
    """Return rows 10, 20 and 30 with originals, row 40 without one, and malformed row 25."""
    instants = [AS_OF, AS_OF, AS_OF + 1]
    malformed = [Reject(25, "null players", "row 25")]
    yield Batch(["a", "a", "a"], instants, [1, 2, 3], [10, 20, 30], malformed, fetch_row)
    yield Batch(["a"], [AS_OF + 1], [4], range(40, 41))


def test_a_format_of_rows_is_one_module_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("row_format")
    module.__dict__["read"] = read
    monkeypatch.setitem(sys.modules, "row_format", module)
    monkeypatch.setattr(
        registry, "KINDS", {**registry.KINDS, "rows": Kind((".rows",), "row_format")}
    )
    Path("week.rows").touch()
    Path("servers.ndjson").write_bytes(ndjson([server("a")]))

    summary = build(
        "out.db",
        servers_source=Source("servers.ndjson", "ndjson"),
        observation_sources=[Source("week.rows", "rows")],
        rejects="rejects.ndjson",
    )

    assert (summary.read, summary.kept, summary.conflicting, summary.rejected) == (5, 2, 2, 1)
    assert [(reject["line"], reject["text"]) for reject in read_rejects()] == [
        (20, "row 20"),
        (25, "row 25"),
        (40, f"a,{AS_OF + 1},4"),
    ]
    assert fetched == [20]
