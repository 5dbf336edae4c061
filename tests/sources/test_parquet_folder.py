"""Folders of Parquet files: their order, Hive partitions, and what a snapshot stores of them."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from conftest import AS_OF, Cli
from sources.tables import read_table
from srvstat.contract.errors import SourceError
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.source import Source, check_sources, split_folder

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a file of one row below the folder `history`."""

    def run(name: str, **columns: Any) -> None:
        path = tmp_path / "history" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        row = {"serverId": "a", "observedAt": AS_OF, "players": 1, **columns}
        present = {key: [value] for key, value in row.items() if value is not None}
        parquet.write_table(pa.table(present), path)

    return run


def split(tmp_path: Path, mapping: ColumnMapping | None = None) -> list[Source]:
    """Return the files of the folder `history`."""
    folder = Source.from_name(str(tmp_path / "history"), None, mapping or ColumnMapping())
    return split_folder(folder)


def test_the_files_of_a_folder_are_read_in_the_order_of_their_names(
    write: Write, tmp_path: Path
) -> None:
    for name in ("b.parquet", "a/2.parquet", "a/10.parquet", "_metadata.parquet", "a/.x.parquet",
                 "_tmp/c.parquet", "a/notes.PARQUET"):  # fmt: skip
        write(name)
    (tmp_path / "history" / "_SUCCESS").touch()
    (tmp_path / "history" / "readme.txt").touch()

    names = [os.path.relpath(each.name, tmp_path / "history") for each in split(tmp_path)]

    assert names == ["a/10.parquet", "a/2.parquet", "a/notes.PARQUET", "b.parquet"]


def test_a_partition_can_be_the_identifier(tmp_path: Path) -> None:
    rows = [("play.example.net:1", AS_OF, 5), ("Lobby 1/2", AS_OF, 6), (None, AS_OF, 7)]
    columns = dict(zip(("host", "observedAt", "players"), zip(*rows, strict=True), strict=True))
    with duckdb.connect() as connection:
        table = connection.from_arrow(pa.table({key: list(each) for key, each in columns.items()}))
        connection.register("rows", table)
        connection.execute(f"COPY rows TO '{tmp_path}/history' (FORMAT parquet, PARTITION_BY host)")

    found = [read_table(each) for each in split(tmp_path, ColumnMapping(id="host"))]

    kept = {(name, players) for table in found for _, name, _, players in table.kept}
    assert kept == {("play.example.net:1", 5), ("Lobby 1/2", 6)}
    assert [reason for table in found for _, reason, _ in table.rejects] == ["serverId: missing"]


def test_partitions_are_not_servers_of_a_wide_file(tmp_path: Path) -> None:
    path = tmp_path / "history" / "month=2026-03" / "x.parquet"
    path.parent.mkdir(parents=True)
    parquet.write_table(pa.table({"at": [AS_OF], "a": [1], "b": [2]}), path)
    (source,) = split(tmp_path, ColumnMapping(at="at", is_wide=True))

    assert read_table(source).kept == [(1, "a", AS_OF, 1), (1, "b", AS_OF, 2)]


def test_a_build_names_the_file_of_a_reject_and_stores_the_name_of_the_folder(
    write: Write, tmp_path: Path, cli: Cli
) -> None:
    write("month=2026-02/x.parquet", observedAt=AS_OF - 1)
    write("month=2026-03/x.parquet")
    write("month=2026-03/y.parquet", players=2)
    write("month=2026-03/z.parquet", players=-2)
    built = cli(
        "snapshot", "build", f"{tmp_path}/s.db", "--game=game_a", f"--rejects={tmp_path}/rejects",
        f"--observations={tmp_path}/history/",
    )  # fmt: skip

    assert built.exit_code == 0, built.stderr
    rejects = [json.loads(line) for line in (tmp_path / "rejects").read_text().splitlines()]
    assert [os.path.basename(each["file"]) for each in rejects] == ["y.parquet", "z.parquet"]
    info = cli("snapshot", "info", f"{tmp_path}/s.db", "--json").json
    assert (info["sources"], info["observations"]) == (["history"], 2)


def test_files_whose_times_differ_in_kind_are_refused(write: Write, tmp_path: Path) -> None:
    write("a.parquet")
    write("b.parquet", players=1.0)
    assert len(split(tmp_path)) == 2

    write("c.parquet", observedAt="2026-03-01T00:00Z")
    reason = "c.parquet: column observedAt has text, but the files before it have numbers"
    with pytest.raises(SourceError, match=re.escape(reason)):
        check_sources(split(tmp_path))


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    with pytest.raises(SourceError, match=r"history: has no \.parquet files"):
        split(tmp_path)


@pytest.mark.parametrize(
    ("library", "name"),
    [("pyarrow", "x.parquet"), ("duckdb", "x.duckdb"), ("psycopg", "postgresql://host/db")],
)
def test_a_missing_library_is_named_with_its_command(
    library: str, name: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [each for each in sys.modules if each.startswith("srvstat.sources.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    ran = cli("snapshot", "build", "s.db", "--game=game_a", f"--observations={name}")

    assert ran.exit_code == 2
    assert f"needs the library {library}; run pip install 'srvstat[bulk]'" in ran.stderr
