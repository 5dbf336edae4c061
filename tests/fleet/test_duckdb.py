"""DuckDB gives the bytes of `compare` for random fleets, counts as our readers, and can fail."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from conftest import DAY, Cli
from fleet.fleet_runs import (
    NOON,
    SERVERS,
    WINDOW,
    ask_engine,
    check_same_bytes,
    compute_outcome,
    forge_statistics,
    open_job,
    open_sources,
    run_engine,
    write_fleet,
    write_rows,
)
from srvstat.contract.errors import EngineError, SourceError, UsageError
from srvstat.contract.time import LATEST
from srvstat.contract.windows import BEFORE_ALL, DAYS, Window
from srvstat.fleet.rows import Conflicts
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.source import Source, read_batches
from srvstat.sources.values import MAX_PLAYERS


@settings(
    max_examples=max(3, settings().max_examples // 30),
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # `cli` keeps no state
)
@given(seed=st.integers(min_value=0), range=st.sampled_from(list(DAYS)))
def test_duckdb_gives_the_bytes_of_compare_for_every_server(
    cli: Cli, tmp_path_factory: pytest.TempPathFactory, seed: int, range: str
) -> None:
    directory = tmp_path_factory.mktemp("fleet")
    files = write_fleet(directory, Random(seed))  # noqa: S311 - not a secret

    check_same_bytes(cli, files, directory, range)


ALL = Window(BEFORE_ALL, LATEST)
ANY_FORM = ColumnMapping(time_zone="UTC")
SECONDS = ColumnMapping(time_unit="s")

# Each is a type of times, how many of its units a second has, and the mapping that reads it.
TIMES = {
    "milliseconds": (pa.int64(), 1_000, ANY_FORM),
    "strict": (pa.int64(), 1_000, ColumnMapping(is_strict=True)),
    "seconds": (pa.int64(), 1, SECONDS),
    "unsigned": (pa.uint64(), 1_000, ANY_FORM),
    "timestamp[ms]": (pa.timestamp("ms"), 1_000, ANY_FORM),
    "timestamp[us]": (pa.timestamp("us"), 1_000_000, ANY_FORM),
    "timestamp[us, zone]": (pa.timestamp("us", "Europe/Paris"), 1_000_000, ANY_FORM),
    "timestamp[ns, zone]": (pa.timestamp("ns", "UTC"), 1_000_000_000, ANY_FORM),
}
GREATEST = (1 << 63) - 1
CASES = [
    *((kind, GREATEST) for kind in TIMES),
    # DuckDB reads no later times of these types; our own reader reads a file that has one.
    ("timestamp[ms]", GREATEST // 1_000),
    ("timestamp[ns, zone]", GREATEST - 2_000_000),
]
"""Kinds of times, each with the greatest time of a file."""


def write_edges(path: Path, kind: str, greatest: int) -> list[Path]:
    """Write a file with valid and invalid rows, and another one without statistics."""
    type_of_times, per_second, _ = TIMES[kind]
    noon = NOON // 1000 * per_second
    edges = [0, 1, per_second, 978_307_200, 978_307_200_000, LATEST // 1000, LATEST // 1000 + 1]
    edges += [LATEST, LATEST + 1, (LATEST + 1) * 1000 - 1, (LATEST + 1) * 1000]
    edges = [each for each in edges if each <= greatest] + [greatest]
    edges += [noon + shift * per_second // 1000 for shift in range(-2000, 2000, 500)]
    if kind != "unsigned":
        edges += [-1, -per_second, -greatest]
    rows: list[tuple[Any, Any, Any]] = [("a", at, 5) for at in edges]
    rows += [("b", noon + 1, n) for n in (-1, 0, MAX_PLAYERS, MAX_PLAYERS + 1, None)]
    rows += [(None, noon, 1), ("b", None, 1), ("not listed!", noon, 1), ("", noon, 1)]
    text = pa.dictionary(pa.int8(), pa.large_string()) if per_second == 1_000 else pa.string()
    write_rows(path, rows, serverId=text, observedAt=type_of_times)
    bare = path.with_suffix(".bare.parquet")
    parquet.write_table(parquet.read_table(path), bare, write_statistics=False)
    return [path, bare]


@pytest.mark.parametrize("window", [ALL, Window(NOON - 1_500, NOON + 700)], ids=["all", "some"])
def test_native_columns_follow_the_rules_of_our_own_reader(tmp_path: Path, window: Window) -> None:
    sources: list[Source] = []
    for number, (kind, greatest) in enumerate(CASES):
        paths = write_edges(tmp_path / f"{number}.parquet", kind, greatest)
        sources += open_sources(*paths, mapping=TIMES[kind][2])

    found = run_engine(sources, window, "first")

    assert found == compute_outcome(sources, window, "first")
    assert found.rejected
    assert found.skipped


def test_early_integers_are_read_as_by_our_own_reader(tmp_path: Path) -> None:
    times = [NOON // 1000, 20_141_123, 20_149_923, NOON, NOON + 1]
    rows = [("a", at, count) for count, at in enumerate(times)]
    path = write_rows(tmp_path / "mixed.parquet", rows)
    zone = ColumnMapping(time_zone="Europe/Berlin")
    for mapping, kept in ((STRICT, 2), (ANY_FORM, 3), (zone, 3), (SECONDS, 3)):
        sources = open_sources(path, mapping=mapping)

        found = run_engine(sources, ALL, "first")

        assert found == compute_outcome(sources, ALL, "first")
        assert found.resolved.kept == kept


Rows = list[tuple[str, int, int]]
DRAWN_ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-7, 7), st.integers(0, 2)), max_size=20
)


@settings(max_examples=max(5, settings().max_examples // 10), deadline=None)
@given(
    files=st.lists(st.tuples(st.booleans(), DRAWN_ROWS), min_size=1, max_size=4),
    conflicts=st.sampled_from(["first", "lowest"]),
)
@example(files=[(False, [("a", 0, 2), ("a", 0, 1), ("a", 1, 2), ("a", 1, 0)])], conflicts="first")
def test_repeats_and_conflicts_are_resolved_by_source_and_row(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[bool, Rows]], conflicts: Conflicts
) -> None:
    directory = tmp_path_factory.mktemp("rows")
    paths = []
    for number, (is_text, shifted) in enumerate(files):
        rows = [(name, NOON + shift, players) for name, shift, players in shifted]
        if is_text:
            paths.append(directory / f"{number}.csv")
            lines = [f"{name},{at},{players}\n" for name, at, players in rows]
            paths[-1].write_text("serverId,observedAt,players\n" + "".join(lines))
        else:
            paths.append(write_rows(directory / f"{number}.parquet", rows))
    sources = open_sources(*paths)

    assert run_engine(sources, WINDOW, conflicts) == compute_outcome(sources, WINDOW, conflicts)


def test_a_conflict_names_both_rows(tmp_path: Path) -> None:
    first = write_rows(tmp_path / "first.parquet", [("b", NOON, 1), ("a", NOON, 5)])
    second = write_rows(tmp_path / "second.parquet", [("a", NOON, 7)])

    with open_job(open_sources(first, second)) as engine:
        conflict = engine.count(SERVERS, WINDOW)[1].conflict

    assert conflict == (
        f"{second}, row 1: server a has 7 players at 2023-11-14T22:13:20.000Z, but 5 in"
        f" {first}, row 2"
    )


def test_rows_without_an_order_may_repeat_but_not_differ(tmp_path: Path) -> None:
    def read_query(*players: int) -> list[Source]:
        rows = ", ".join(f"('a', {NOON}, {each})" for each in players)
        query = f"FROM (VALUES {rows}) AS rows(serverId, observedAt, players)"
        return [*earlier, Source(":memory:", "duckdb", query=query)]

    earlier: list[Source] = []
    assert run_engine(read_query(3, 3), WINDOW, "first").resolved[:3] == (1, 1, 0)
    with pytest.raises(SourceError, match=r"query: server a has 4 players .*--conflicts lowest"):
        run_engine(read_query(4, 3), WINDOW, "first")
    assert run_engine(read_query(4, 3), WINDOW, "lowest").figures[0].peak == 3
    # An earlier source decides, whatever the order of the rows after it.
    earlier += open_sources(write_rows(tmp_path / "first.parquet", [("a", NOON, 9)]))
    assert run_engine(read_query(4, 3), WINDOW, "first").figures[0].peak == 9


def test_a_server_may_have_more_values_than_a_batch_has_rows(tmp_path: Path) -> None:
    path = tmp_path / "many.parquet"
    duckdb.sql(
        "SELECT chr(97 + (range % 3)::INTEGER) AS serverId, 1700000000000 + range AS observedAt,"
        " range * 7 AS players FROM range(150_000)"
    ).write_parquet(str(path))

    found = run_engine(open_sources(path), ALL, "first")

    figures = found.figures.values()
    assert [each.observations for each in figures] == [50_000] * 3
    assert [each.peak for each in figures] == [149_997 * 7, 149_998 * 7, 149_999 * 7]
    assert [each.growth.players for each in figures] == [149_997 * 7] * 3


ROWS = [("a", NOON + shift % 5, shift) for shift in range(2_000)]


def run(*paths: Path, memory: int = 512 << 20) -> None:
    with open_job(open_sources(*paths), memory=memory) as engine:
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
@pytest.mark.parametrize("is_surveyed", [False, True])
def test_a_file_that_changes_is_refused(
    tmp_path: Path, change: Callable[[Path], object], is_surveyed: bool
) -> None:
    path = write_rows(tmp_path / "rows.parquet", ROWS)

    with open_job(open_sources(path)) as engine:
        ask: Callable[[], object] = engine.survey
        if is_surveyed:
            engine.survey()
            ask = partial(engine.count, SERVERS, WINDOW)
        change(path)
        with pytest.raises(SourceError, match=r"rows\.parquet: changed while it was read"):
            ask()


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
    with pytest.raises(UsageError, match=message), open_job([source]):
        pass
