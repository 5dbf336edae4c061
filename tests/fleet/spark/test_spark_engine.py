"""The Spark engine reads, resolves and counts rows by the rules of a build."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from fleet.engine_runs import NOON, SERVERS, WINDOW, ask_engine, compute_outcome, open_sources
from fleet.engine_runs import write_rows as write_parquet
from srvstat.contract.errors import SourceError, SrvstatError, UsageError
from srvstat.contract.instants import LATEST
from srvstat.contract.ranges import BEFORE_ALL, Window
from srvstat.fleet.counts import Conflicts, Job
from srvstat.sources.batch import MAX_PLAYERS
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.observations import split_folder
from srvstat.sources.source import Source
from support.spark import skip_without_spark

pytestmark = [
    pytest.mark.external,
    # pytest undoes what the session does about it.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully:FutureWarning"),
]

ALL = Window(BEFORE_ALL, LATEST)
UTC = ColumnMapping(time_zone="UTC")
MILLISECONDS = pa.timestamp("ms", "UTC")


class Spark:
    """Opens engines in one session, which takes long to start."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def open(self, sources: Sequence[Source], conflicts: Conflicts = "first") -> Any:
        """Open an engine for a job."""
        from srvstat.fleet.spark.engine import SparkEngine  # noqa: PLC0415 - needs PySpark
        from srvstat.fleet.spark.rows import check_files  # noqa: PLC0415 - see above
        from srvstat.fleet.spark.watch import Steps  # noqa: PLC0415 - see above

        check_files(sources)
        return SparkEngine(self.session, Job(sources, None, conflicts), Steps(lambda *_: None))


@pytest.fixture(scope="module")
def spark() -> Iterator[Spark]:
    skip_without_spark()
    from srvstat.fleet.spark.session import open_session  # noqa: PLC0415 - needs PySpark

    # Files of more bytes than this are split, so that several tasks read one.
    settings = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # compiles for short jobs
        "spark.sql.files.maxPartitionBytes": "20000",
        "spark.sql.shuffle.partitions": "4",
    }
    with open_session("local[2]", settings) as session:
        yield Spark(session)


def draw_rows(drawn: Random, unit: int) -> list[tuple[Any, Any, Any]]:
    """Draw rows of every fate; a unit is a fraction of a millisecond."""
    rows: list[tuple[Any, Any, Any]] = [
        (drawn.choice("abc"), (NOON + drawn.randrange(-9, 9)) * unit, drawn.randrange(3))
        for _ in range(300)
    ]
    rows += [("b", NOON * unit, n) for n in (-1, MAX_PLAYERS, MAX_PLAYERS + 1, None)]
    rows += [(None, NOON * unit, 1), ("c", None, 1), ("é!", NOON * unit, 1), ("c", -1, 1)]
    drawn.shuffle(rows)
    return rows


def write_hostile_rows(folder: Path) -> list[Source]:
    """Write files of several types, with rows of every fate, and names that are patterns."""
    drawn = Random(5)  # noqa: S311 - not a secret
    nanoseconds = pa.timestamp("ns")
    kinds = [pa.int64(), pa.timestamp("ms"), pa.timestamp("us", "Europe/Paris"), nanoseconds]
    names = [
        "a*.parquet",
        "month=1 [x]?{}\\ #%41+é.parquet",
        "_hidden.parquet",
        "10:30 [a].parquet",
        "nanoseconds.parquet",
    ]
    paths = []
    for name, kind in zip(names, [*kinds, nanoseconds], strict=True):
        unit = 1 if pa.types.is_int64(kind) else {"ms": 1, "us": 1_000, "ns": 10**6}[kind.unit]
        paths.append(write_parquet(folder / name, draw_rows(drawn, unit), observedAt=kind))
    paths += write_foreign_files(folder, paths[0])
    text = "".join(f"a,{NOON + each},{each}\n" for each in range(-3, 9)) + "a,then,1\n"
    (folder / "text.csv").write_text(f"serverId,observedAt,players\n{text}")
    empty = write_parquet(folder / "empty.parquet", [])
    sources = open_sources(*paths, folder / "text.csv", empty, mapping=UTC)
    return [*sources, sources[0]]


def write_foreign_files(folder: Path, path: Path) -> list[Path]:
    """Write the rows of a file with a compression, and one row with an encoding, not of Spark."""
    compressed, encoded = folder / "compressed.parquet", folder / "encoded.parquet"
    parquet.write_table(parquet.ParquetFile(path).read(), compressed, compression="brotli")
    row = {"serverId": ["a"], "observedAt": [NOON], "players": pa.array([7], pa.uint32())}
    encodings = {"players": "BYTE_STREAM_SPLIT"}
    parquet.write_table(pa.table(row), encoded, use_dictionary=False, column_encoding=encodings)
    return [compressed, encoded]


@pytest.mark.parametrize("conflicts", ["first", "lowest"])
def test_rows_follow_the_rules_of_our_own_readers(
    tmp_path: Path, spark: Spark, conflicts: Conflicts
) -> None:
    sources = write_hostile_rows(tmp_path)
    engine = spark.open(sources, conflicts)

    found = ask_engine(engine, WINDOW)

    assert found == compute_outcome(sources, WINDOW, conflicts)
    assert min(found.resolved[:3]) > 0
    assert engine.count(SERVERS, Window(LATEST - 1, LATEST)).figures.num_rows == 0
    engine.close()


def test_a_conflict_names_both_rows_of_files_that_several_tasks_read(
    tmp_path: Path, spark: Spark
) -> None:
    rows = [("b", NOON - at, 1) for at in range(5000)]
    first = tmp_path / "first.parquet"
    names, times, players = zip(*rows, ("a", NOON, 5), *rows, strict=True)
    columns = {"serverId": names, "observedAt": times, "players": players}
    parquet.write_table(pa.table(columns), first, row_group_size=2_000, use_dictionary=False)
    second = write_parquet(tmp_path / "second.parquet", [("a", NOON, 7), ("a", NOON, 7)])
    engine = spark.open(open_sources(first, second))

    engine.survey()
    resolved = engine.count(SERVERS, ALL).resolved

    assert resolved[:3] == (5001, 5000, 2)
    assert resolved.conflict == (
        f"{second}, row 1: server a has 7 players at 2023-11-14T22:13:20.000Z, but 5 in"
        f" {first}, row 5001"
    )
    engine.close()


def test_rows_without_an_order_may_repeat_but_not_differ(spark: Spark) -> None:
    values = f"('a', {NOON}, 4), ('a', {NOON}, 3), ('a', {NOON}, 3)"
    query = f"FROM (VALUES {values}) AS rows(serverId, observedAt, players)"
    sources = [Source(":memory:", "duckdb", query=query)]

    with pytest.raises(SourceError, match=r"query: server a has 4 players .*--conflicts lowest"):
        ask_engine(spark.open(sources), WINDOW)
    assert ask_engine(spark.open(sources, "lowest"), WINDOW).resolved[:3] == (1, 1, 1)


def test_an_identifier_that_is_not_utf8_is_found(tmp_path: Path, spark: Spark) -> None:
    first = write_parquet(tmp_path / "1.parquet", [("a", NOON, 1)])
    identifiers = pa.array([b"a", b"\xff"]).view(pa.string())
    row = {"serverId": identifiers, "observedAt": [NOON] * 2, "players": [1] * 2}
    parquet.write_table(pa.table(row), second := tmp_path / "2.parquet")

    with pytest.raises(SourceError, match=f"^{re.escape(str(second))}, row 2: not UTF-8$"):
        spark.open(open_sources(first, second)).survey()


def test_a_server_with_very_many_rows_is_divided_among_tasks(
    tmp_path: Path, spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions as sql  # noqa: PLC0415 - PySpark is an extra

    from srvstat.fleet.spark import counter, engine  # noqa: PLC0415 - see above

    for module in (counter, engine):
        monkeypatch.setattr(module, "ROWS_PER_TASK", 2_000)
    rows = [("a", NOON - at, at % 7) for at in range(20_000)]
    rows += [(name, NOON - at, at) for name in "bc" for at in range(20)]
    sources = open_sources(write_parquet(tmp_path / "rows.parquet", rows))
    opened = spark.open(sources)

    assert ask_engine(opened, ALL) == compute_outcome(sources, ALL, "first")

    keys = ["server", "piece"]
    rows_of_servers = opened._select_servers(SERVERS, ALL)  # noqa: SLF001 - what a task gets is no result
    groups = counter.count_values(counter.group_rows(rows_of_servers, 11, keys, keys), keys)
    shares = groups.groupBy(sql.spark_partition_id()).agg(sql.sum("rows")).toArrow()[1]
    assert sum(shares.to_pylist()) == 20_040
    assert max(shares.to_pylist()) <= 3 * 20_040 / 11  # two or three pieces may meet in one task
    opened.close()


def test_counting_has_one_shuffle_of_all_rows(
    tmp_path: Path, spark: Spark, capfd: pytest.CaptureFixture[str]
) -> None:
    from srvstat.fleet.spark import counter  # noqa: PLC0415 - PySpark is an extra

    engine = spark.open(open_sources(write_parquet(tmp_path / "rows.parquet", [("a", NOON, 1)])))
    keys = ["server", "piece"]
    rows = engine._select_servers(SERVERS, ALL)  # noqa: SLF001 - the plan is no result
    counter.count_values(counter.group_rows(rows, 11, keys, keys), keys).explain()

    assert capfd.readouterr().out.count("Exchange hashpartitioning") == 1


def test_inputs_that_a_cluster_cannot_read_are_refused(tmp_path: Path, spark: Spark) -> None:
    with pytest.raises(UsageError, match="standard input: Spark can't read it; name a file"):
        spark.open([Source("-", "csv")])

    path = write_parquet(tmp_path / "rows.parquet", [("a", NOON, 1)])
    engine = spark.open(open_sources(path))
    engine.survey()
    write_parquet(path, [("a", NOON, 2)])
    with pytest.raises(SourceError, match="changed while it was read"):
        engine.count(SERVERS, WINDOW)


def name_url(path: Path, mapping: ColumnMapping = UTC) -> Source:
    """Return the source at the URL of a file or folder."""
    return Source.from_name(f"file://{path}", None, mapping)


def test_files_at_a_url_are_read_as_those_of_a_folder(tmp_path: Path, spark: Spark) -> None:
    drawn = Random(7)  # noqa: S311 - not a secret
    kinds = [pa.int64(), pa.timestamp("ms"), pa.timestamp("us", "Europe/Paris")]
    for number, kind in enumerate(kinds):
        unit = 1000 if kind == kinds[2] else 1
        for name in ("month=2/é [x]?{}\\ #%41+.parquet", "month=1/b.parquet", "_c=1/c.parquet"):
            path = tmp_path / str(number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_parquet(path, draw_rows(drawn, unit), observedAt=kind)
    # Spark converts both units, of which only the footers know.
    write_parquet(tmp_path / "2/milliseconds.parquet", [("a", NOON, 5)], observedAt=MILLISECONDS)
    (tmp_path / "0/notes.txt").write_text("no rows")
    folders = [tmp_path / str(number) for number in range(len(kinds))]
    sources = [
        file for source in open_sources(*folders, mapping=UTC) for file in split_folder(source)
    ]
    engine = spark.open([name_url(folder) for folder in folders])

    assert ask_engine(engine, WINDOW) == compute_outcome(sources, WINDOW, "first")
    conflict = engine.count(SERVERS, ALL).resolved.conflict
    assert re.fullmatch(r"file://.+, row \d+: server a has .+ players at .+ in file://.+", conflict)
    engine.close()


REFUSED: dict[str, tuple[dict[str, pa.DataType], str]] = {
    "float": ({"players": pa.float64()}, "column players is of type double; from a URL,"),
    "unsigned": ({"players": pa.uint64()}, r"column players is of type decimal\(20,0\)"),
    "number": ({"serverId": pa.int64()}, "column serverId is of type bigint"),
    "date": ({"observedAt": pa.date64()}, "column observedAt is of type date"),
    "nanoseconds": ({"observedAt": pa.timestamp("ns", "UTC")}, r"of type INT64 \(TIMESTAMP\(NANOS"),
    "other": ({"players": pa.int32()}, "such as players: BIGINT and players: INT; convert"),
    "time": ({"observedAt": MILLISECONDS}, "such as observedAt: BIGINT and observedAt: TIMESTAMP"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_columns_at_a_url_of_other_types_are_refused(
    tmp_path: Path, spark: Spark, name: str
) -> None:
    types, reason = REFUSED[name]
    identifier = 1 if "serverId" in types else "a"
    write_parquet(tmp_path / "b.parquet", [(identifier, 86_400_000, 1)], **types)
    if name in {"other", "time"}:
        write_parquet(tmp_path / "a.parquet", [("a", 1, 1)])

    with pytest.raises(SourceError, match=f"^file://{tmp_path}: .*{reason}"):
        spark.open([name_url(tmp_path)])


def explain(spark: Spark, *sources: Source) -> str:
    """Return why a job is refused, as a session explains it."""
    from srvstat.fleet.spark.failures import explain_failure  # noqa: PLC0415 - needs PySpark

    try:
        ask_engine(spark.open(sources), WINDOW)
    except SrvstatError as error:
        return error.reason
    except Exception as error:  # noqa: BLE001 - PySpark and Py4J have no common class of errors
        return explain_failure(error, str).reason
    raise AssertionError(sources)


def test_a_url_that_can_not_be_read_is_explained(tmp_path: Path, spark: Spark) -> None:
    missing = name_url(tmp_path / "missing")
    assert explain(spark, missing) == f"{tmp_path}/missing: no such file or folder"
    assert explain(spark, name_url(tmp_path)).startswith(
        f"file://{tmp_path}: has no .parquet files"
    )
    (tmp_path / "text.parquet").write_text("serverId,observedAt,players")
    assert "text.parquet: not a whole Parquet file" in explain(spark, name_url(tmp_path))
    (tmp_path / "text.parquet").unlink()

    path = write_parquet(tmp_path / "a.parquet", [("a", NOON, 1)])
    assert (
        explain(spark, *[name_url(path)] * 2) == f"file://{path}: is a source already; name it once"
    )
    parquet.write_table(pa.table({"serverId": ["a"], "observedAt": [NOON]}), tmp_path / "b.parquet")
    lacking = f"file://{tmp_path}/b.parquet: column players is missing or empty"
    assert explain(spark, name_url(tmp_path)) == lacking

    for secret in ("key:secret", "key:se/cret"):
        reason = explain(spark, Source.from_name(f"s3a://{secret}@bucket/rows", None))
        assert "the URL has a password" in reason
        assert "cret" not in reason
    reason = explain(spark, Source.from_name("s3a://bucket/rows", None))
    assert re.search(r"S3AFileSystem not found; .* spark\.jars\.packages", reason)


def test_a_file_at_a_url_that_changes_is_refused(tmp_path: Path, spark: Spark) -> None:
    path = write_parquet(tmp_path / "rows.parquet", [("a", NOON, 1)])
    engine = spark.open([name_url(path)])
    engine.survey()
    write_parquet(path, [("a", NOON, 2)])

    with pytest.raises(SourceError, match=f"file://{path}: changed while it was read"):
        engine.count(SERVERS, WINDOW)


def test_early_integers_are_read_as_by_our_own_reader(tmp_path: Path, spark: Spark) -> None:
    rows = [("a", at, 1) for at in (NOON // 1000, 20_141_123, 20_149_923, NOON)]
    path = write_parquet(tmp_path / "rows.parquet", rows)
    for mapping, kept in ((STRICT, 1), (ColumnMapping(time_zone="Europe/Berlin"), 2)):
        sources = open_sources(path, mapping=mapping)
        engine = spark.open(sources)

        assert ask_engine(engine, ALL) == compute_outcome(sources, ALL, "first")
        assert engine.count(SERVERS, ALL).resolved.kept == kept
        engine.close()


def test_early_integers_at_a_url_are_rejected_and_dates_refused(
    tmp_path: Path, spark: Spark
) -> None:
    rows = [("a", NOON // 1000, 1), ("a", 20_141_123, 1), ("a", NOON, 1)]
    path = write_parquet(tmp_path / "rows.parquet", rows)

    rejects = spark.open([name_url(path, STRICT)]).survey().rejects
    assert sum(one.rows for one in rejects) == len(rows) - 1
    with pytest.raises(Exception, match="has times such as 20141123, which Spark can't read from"):
        spark.open([name_url(path)]).survey()
