"""The DuckDB engine refuses sources that change or can't be read, and names them."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from conftest import DAY
from fleet.engine_runs import (
    NOON,
    SERVERS,
    WINDOW,
    ask_engine,
    compute_outcome,
    forge_statistics,
    open_sources,
    run_engine,
    write_rows,
)
from srvstat.contract.errors import EngineError, SourceError, UsageError
from srvstat.fleet.engine import Job, open_engine
from srvstat.sources.source import Source, read_batches

ROWS = [("a", NOON + shift % 5, shift) for shift in range(2_000)]


def run(
    *paths: Path, memory: int | None = None, change: Callable[[], object] | None = None
) -> None:
    job = Job(open_sources(*paths), None, "first")
    with open_engine(job, memory=memory, threads=1, progress=lambda *_: None) as engine:
        if change:
            change()
        ask_engine(engine, WINDOW)


@pytest.mark.parametrize(
    "change",
    [
        Path.unlink,
        lambda path: path.rename(path.with_suffix(".old")),
        lambda path: write_rows(path, ROWS[:-1]),
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
    ],
    ids=["removed", "renamed", "replaced", "cut"],
)
def test_a_file_that_changes_is_refused(tmp_path: Path, change: Callable[[Path], object]) -> None:
    path = write_rows(tmp_path / "rows.parquet", ROWS)

    with pytest.raises(SourceError, match=r"rows\.parquet: changed while it was read"):
        run(path, change=lambda: change(path))


def test_a_file_that_changes_after_the_survey_is_refused(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.parquet", ROWS)
    job = Job(open_sources(path), None, "first")

    with open_engine(job, memory=None, threads=1, progress=lambda *_: None) as engine:
        engine.survey()
        write_rows(path, ROWS[:-1])
        with pytest.raises(SourceError, match=r"rows\.parquet: changed while it was read"):
            engine.count(SERVERS, WINDOW)


def test_a_damaged_page_is_found_in_its_file(tmp_path: Path) -> None:
    good = write_rows(tmp_path / "good.parquet", ROWS)
    bad = tmp_path / "bad.parquet"
    table = parquet.read_table(good)
    parquet.write_table(table, bad, compression="zstd", use_dictionary=False)
    stored = bytearray(bad.read_bytes())
    start = parquet.read_metadata(bad).row_group(0).column(2).data_page_offset
    stored[start + 40 : start + 80] = bytes(40)
    bad.write_bytes(stored)

    with pytest.raises(SourceError, match=r"bad\.parquet: can't be read as Parquet"):
        run(good, bad)


@pytest.mark.parametrize(("group", "shift"), [(0, -400 * DAY), (1, -400 * DAY), (1, 400 * DAY)])
def test_no_row_is_lost_to_wrong_statistics(tmp_path: Path, group: int, shift: int) -> None:
    path = tmp_path / "rows.parquet"
    columns = {"serverId": ["a", "a"], "observedAt": [NOON - 1, NOON], "players": [1, 2]}
    parquet.write_table(pa.table(columns), path, row_group_size=1)
    at = NOON - 1 + group
    forge_statistics(path, at, at + shift)

    sources = open_sources(path)

    assert run_engine(sources, WINDOW, "first") == compute_outcome(sources, WINDOW, "first")


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    identifiers = pa.array([b"\xff", b"a"]).view(pa.string())
    path = tmp_path / "rows.parquet"
    columns = {"serverId": identifiers, "observedAt": [NOON, NOON], "players": [1, 2]}
    parquet.write_table(pa.table(columns), path)

    with pytest.raises(SourceError, match=r"rows\.parquet: rows 1 to 2 have text that is not UTF"):
        run(path)


def test_columns_may_have_other_types_in_other_files_but_not_be_missing(tmp_path: Path) -> None:
    good = write_rows(tmp_path / "good.parquet", ROWS)
    other = write_rows(tmp_path / "other.parquet", ROWS, players=pa.float64())
    run(good, other)
    table = parquet.read_table(other).drop_columns("players")
    parquet.write_table(table, other)

    with pytest.raises(SourceError, match=r"other\.parquet: .*players"):
        run(good, other)


def test_too_little_memory_is_an_error_of_the_engine(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.parquet", ROWS)

    with pytest.raises(EngineError, match=r"DuckDB: .*--memory") as caught:
        run(path, memory=1 << 10)

    assert not re.search(r"\n", caught.value.reason)


def test_a_url_that_only_a_cluster_reads_is_refused() -> None:
    source = Source.from_name("s3a://key:secret@bucket/rows", None)
    message = "^s3a://bucket/rows: only a cluster reads a URL; use `python -m srvstat.fleet.spark`"

    with pytest.raises(UsageError, match=message):
        list(read_batches(source))
    with (
        pytest.raises(UsageError, match=message),
        open_engine(Job([source], None, "first"), memory=None, threads=1, progress=lambda *_: None),
    ):
        pass
