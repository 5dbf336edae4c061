"""Observations in Parquet files: types of columns, malformed values, folders, and bad files."""

import json
import os
import re
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from datetime import time as clock
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from conftest import AS_OF, Cli, few_examples
from sources.readings import Table, read_table
from srvstat.contract.errors import SourceError
from srvstat.contract.time import LATEST, YEAR_2001
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.parquet import convert_batches
from srvstat.sources.source import Source, expand_name, read_batches
from srvstat.sources.values import COUNT_RULE, FRACTION, MAX_PLAYERS, NO_COUNT

NAMES = ["serverId", "observedAt", "players"]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp()) * 1000
UTC_MAPPING = ColumnMapping(time_zone="UTC")
WRITES_ALL = pytest.mark.skipif(
    int(pa.__version__.split(".")[0]) < 22,
    reason="this PyArrow writes no short decimals to Parquet",
)

Read = Callable[..., Table]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that writes a column of each kind with pyarrow and reads the file."""

    def run(ids: Any, times: Any, players: Any, mapping: ColumnMapping = UTC_MAPPING) -> Table:
        path = tmp_path / "week.parquet"
        parquet.write_table(pa.table([ids, times, players], NAMES), path)
        return read_table(Source(str(path), "parquet", mapping))

    return run


@pytest.mark.parametrize(
    "times",
    [
        pa.array([NOON], pa.timestamp("s", "UTC")),
        pa.array([NOON], pa.timestamp("ms", "Asia/Tokyo")),
        pa.array([NOON_MS * 1000 + 999], pa.timestamp("us", "UTC")),
        pa.array([NOON_MS * 10**6 + 999_999], pa.timestamp("ns", "UTC")),
        pa.array([NOON.replace(tzinfo=None)], pa.timestamp("us")),
        pa.array([NOON_MS], pa.int64()),
        pa.array([NOON_MS], pa.uint64()),
        pa.array([float(NOON_MS)]),
        pa.array([Decimal(NOON_MS)]),
        pa.array(["2026-03-01T12:00:00Z"]),
        pa.array(["2026-03-01 12:00"], pa.large_string()),
        pa.array(["2026-03-01 21:00+09:00"]).dictionary_encode(),
    ],
    ids=lambda times: str(times.type),
)
def test_times_have_many_types(times: Any, read: Read) -> None:
    assert read(pa.array(["a"]), times, pa.array([5])).kept == [(1, "a", NOON_MS, 5)]


def test_times_have_the_zone_and_the_unit_of_the_mapping(read: Read) -> None:
    midnight = int(datetime(2026, 3, 29, tzinfo=UTC).timestamp())
    local = pa.array([midnight + hour * 3600 for hour in (1, 2, 3)], pa.timestamp("s"))
    ids, players = pa.array(["a"] * 3), pa.array([1, 2, 3])
    berlin = read(ids, local, players, ColumnMapping(time_zone="Europe/Berlin"))
    days = read(
        ids, pa.array([date(2026, 1, 1)] * 3), players, ColumnMapping(time_zone="Asia/Tokyo")
    )
    seconds = pa.array([1_700_000_000.5, 1_700_000_001.0009, -1.0])
    unix = read(ids, seconds, players, ColumnMapping(time_unit="s"))

    tokyo = datetime(2026, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo"))
    assert [at for _, _, at, _ in berlin.kept] == [1000 * midnight, 1000 * (midnight + 3600)]
    assert [(place, "does not exist" in reason) for place, reason, _ in berlin.rejects] == [
        (2, True)
    ]
    assert {at for _, _, at, _ in days.kept} == {int(tokyo.timestamp()) * 1000}
    assert [at for _, _, at, _ in unix.kept] == [1_700_000_000_500, 1_700_000_001_000]


@pytest.mark.parametrize(
    "players",
    [
        *(
            pa.array([0, 7, None], kind)
            for kind in (pa.int8(), pa.uint8(), pa.int32(), pa.uint64())
        ),
        pa.array([0.0, 7.0, None]),
        pa.array([0.0, 7.0, float("nan")]),
        pa.array([-0.0, 7.0, None], pa.float32()),
        pa.array([Decimal("0.000"), Decimal("7.000"), None]),
        pytest.param(
            pa.array([Decimal("0.0"), Decimal("7.0"), None], pa.decimal32(5, 1)), marks=WRITES_ALL
        ),
        pytest.param(pa.array([0, 7, None], pa.decimal64(10, 0)), marks=WRITES_ALL),
        pa.array(["0", "7.0", ""]),
        pa.array([0, 7, None], pa.int16()).dictionary_encode(),
    ],
    ids=lambda players: str(players.type),
)
def test_counts_have_many_types_and_no_count_is_no_observation(players: Any, read: Read) -> None:
    table = read(pa.array(["a"] * 3), pa.array([NOON] * 3), players)

    assert [count for *_, count in table.kept] == [0, 7]
    assert (table.rejects, table.skipped) == ([], {NO_COUNT: 1})


@pytest.mark.parametrize(
    "players",
    [
        pa.array([-1, MAX_PLAYERS + 1, 3], pa.int64()),
        pa.array([2**64 - 1, MAX_PLAYERS + 1, 3], pa.uint64()),
        pa.array([1.5, float("inf"), 3]),
        pa.array([Decimal("-1.00"), Decimal("0.01"), Decimal(3)]),
        pa.array(["twelve", "-1", "3"]),
    ],
    ids=lambda players: str(players.type),
)
def test_a_malformed_count_rejects_its_row(players: Any, read: Read) -> None:
    table = read(pa.array(["a", "b", "c"]), pa.array([NOON] * 3), players)

    assert table.kept == [(3, "c", NOON_MS, 3)]
    written = [str(players[row].as_py()).replace("inf", "Infinity") for row in (0, 1)]
    reasons = [FRACTION if each in {"1.5", "0.01"} else COUNT_RULE for each in written]
    assert table.rejects == [
        (1, f"players: {reasons[0]}", f"a,2026-03-01 12:00:00Z,{written[0]}"),
        (2, f"players: {reasons[1]}", f"b,2026-03-01 12:00:00Z,{written[1]}"),
    ]


LONG = {"id": "s", "at": "t", "players": "n"}
DAY = date(2026, 3, 1)


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        ({"t": [AS_OF * 1000], "n": [5]}, {"time_unit": "us"}, 5),
        ({"t": [20260301120000], "n": [5]}, {"time_zone": "UTC"}, 5),
        ({"t": [202603011200], "n": [5]}, {"time_zone": "UTC"}, 5),
        (
            {"t": ["1/3/2026 12:00"], "n": ["1.942"]},
            {"time_format": "day-first", "time_zone": "UTC", "thousands": "."},
            1942,
        ),
        ({"t": [AS_OF], "n": [1.5]}, {"rounds": True, "thousands": "."}, 2),
        ({"d": [DAY], "c": ["12:00"], "n": [5]}, {"at": "d+c", "time_zone": "UTC"}, 5),
        ({"d": [DAY], "c": [clock(12)], "n": [5]}, {"at": "d+c", "time_zone": "UTC"}, 5),
        ({"t": [AS_OF], "n": ["n/a"]}, {}, None),
    ],
)
def test_times_and_counts_have_the_forms_that_are_declared(
    columns: dict[str, list[Any]], options: dict[str, Any], expected: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"s": ["x"], "sum": ["?"], **columns}), path)
    layouts: list[dict[str, Any]] = [LONG, LONG | {"id": None, "server": "x"}]
    layouts.append({"at": "t", "is_wide": True, "others": ("s", "sum")})
    for layout in layouts:
        found = read_table(Source(str(path), "parquet", ColumnMapping(**layout | options)))
        name = "n" if "is_wide" in layout else "x"
        assert list(found.rows.values()) == ([] if expected is None else [(name, AS_OF, expected)])
        assert found.rejects == []


def test_a_row_without_a_time_is_rejected_before_its_count_is_read(read: Read) -> None:
    times = pa.array([None, datetime(1969, 12, 31, tzinfo=UTC), NOON])
    table = read(pa.array(["a", "a", "a"]), times, pa.array([-1, None, None]))

    assert table.rejects == [
        (1, "observedAt: missing", "a,,-1"),
        (2, "observedAt: outside the years 1970 to 9999", "a,1969-12-31 00:00:00Z,"),
    ]
    assert table.skipped == {NO_COUNT: 1}


@pytest.mark.parametrize(
    "times",
    [
        pa.array([LATEST + 1], pa.timestamp("ms", "UTC")),
        pa.array([-(2**63) + 1], pa.timestamp("us")),
        pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
        pa.array([-1], pa.timestamp("ms", "Mars/Base")),
        pa.array([[5]]),
    ],
    ids=lambda times: str(times.type),
)
def test_a_time_that_no_calendar_has_is_rejected(times: Any, read: Read) -> None:
    table = read(pa.array(["a"]), times, pa.array([1]))

    assert (table.kept, len(table.rejects)) == ([], 1)


@given(data=st.data())
@settings(max_examples=few_examples())
def test_rows_of_a_server_stay_in_order_and_no_row_is_lost(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    row = st.tuples(
        st.sampled_from(["a", "b", "play.example.net:1", ""]) | st.none(),
        st.integers(-5, LATEST + 5) | st.integers(YEAR_2001 - 5, YEAR_2001 + 5) | st.none(),
        st.integers(-5, MAX_PLAYERS + 5) | st.none(),
    )
    rows = data.draw(st.lists(row, max_size=40))
    ids, times, players = zip(*rows, strict=True) if rows else ((), (), ())
    coded = pa.array(ids, pa.string())
    if data.draw(st.booleans()):
        coded = coded.dictionary_encode()
    table = pa.table([coded, pa.array(times, pa.int64()), pa.array(players, pa.int64())], NAMES)
    path = tmp_path_factory.mktemp("law") / "rows.parquet"
    parquet.write_table(table, path, row_group_size=data.draw(st.integers(1, 50)))

    found = read_table(Source(str(path), "parquet"))

    kept, empty = [], []
    for place, (name, at, count) in enumerate(rows, 1):
        if at is not None and YEAR_2001 <= at <= LATEST:
            if count is None:
                empty.append(place)
            elif 0 <= count <= MAX_PLAYERS:
                kept.append((place, name or "", at, count))
    good = {*empty, *(place for place, *_ in kept)}
    assert found.kept == kept
    assert found.skipped[NO_COUNT] == len(empty)
    assert [place for place, *_ in found.rejects] == [
        place for place in range(1, len(rows) + 1) if place not in good
    ]


def test_other_libraries_write_files_that_read_the_same(tmp_path: Path) -> None:
    ids, times, players = ["b", "a", "b"], [NOON] * 3, [1, None, 3]
    columns = {"serverId": ids, "observedAt": times, "players": players}
    frame = pl.DataFrame(columns).with_columns(pl.col("serverId").cast(pl.Categorical))
    frame.write_parquet(tmp_path / "polars.parquet")
    with duckdb.connect() as connection:
        connection.from_arrow(pa.table(columns)).write_parquet(f"{tmp_path}/duckdb.parquet")

    for name in ("polars", "duckdb"):
        found = read_table(Source.from_name(str(tmp_path / f"{name}.parquet"), None))
        assert found.kept == [(1, "b", NOON_MS, 1), (3, "b", NOON_MS, 3)], name
        assert found.skipped == {NO_COUNT: 1}


def test_a_wide_file_has_a_column_for_each_server(tmp_path: Path) -> None:
    wide = {
        "date": ["2026-03-01 12:00", "later", "2026-03-01 12:00:01"],
        "play.example.net": [1, 2, None],
        "": [0, 1, 2],
        "B": [1.5, None, 4.0],
        "__index_level_0__": [0, 1, 2],  # as pandas writes it
    }
    parquet.write_table(pa.table(wide), tmp_path / "wide.parquet")
    mapping = ColumnMapping(at="date", is_wide=True, time_zone="UTC")
    warnings: list[str] = []
    source = Source(str(tmp_path / "wide.parquet"), "parquet", mapping, on_warning=warnings.append)
    table = read_table(source)

    assert warnings == [f"{source.title}: column 3 has no name, so it is ignored"]
    assert table.kept == [(1, "play.example.net", NOON_MS, 1), (3, "B", NOON_MS + 1000, 4)]
    assert [(place, text) for place, _, text in table.rejects] == [
        (1, "B,2026-03-01 12:00,1.5"),
        (2, "later,2,"),
    ]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"id": ["a"], "at": [5]}, 'no column "players"; the columns are "id", "at"; name'),
        ({"id": ["a"], "at": [5], "players": [b"\xff"]}, "Invalid UTF8 payload"),
    ],
)
def test_columns_that_can_not_be_read_are_named(
    columns: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "week.parquet")
    source = Source(str(tmp_path / "week.parquet"), "parquet", ColumnMapping(id="id", at="at"))

    with pytest.raises(SourceError, match=re.escape(reason)):
        read_table(source)


def test_a_file_that_is_not_whole_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "week.parquet"
    parquet.write_table(pa.table([["a"] * 99, [5] * 99, range(99)], NAMES), path)
    data = path.read_bytes()
    for damaged in (b"", data[: len(data) // 2], data[:20] + b"\xff" * 40 + data[60:], b"a,5,7\n"):
        path.write_bytes(damaged)
        with pytest.raises(SourceError, match=r"week\.parquet: can't be read as Parquet"):
            read_table(Source(str(path), "parquet"))


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_a_fifo_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SourceError, match="regular file"):
        read_table(Source(str(tmp_path / "fifo"), kind))


def test_a_dictionary_that_repeats_a_name_does_not_change_the_order_of_rows() -> None:
    ids = pa.DictionaryArray.from_arrays([1, 0, 2, 1, 0], ["a", "a", None])
    batch = pa.record_batch([ids, [NOON_MS] * 5, range(5)], NAMES)
    source = Source("x.parquet", "parquet")
    (found,) = convert_batches(source, [batch])

    assert (found.names, found.places.tolist()) == (["a", ""], [1, 2, 3, 4, 5])


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "week.parquet"
    parquet.write_table(pa.table([["a"], [5], [7]], NAMES), path)
    batches = read_batches(Source(str(path), "parquet"))
    next(batches)
    with path.open("ab") as file:
        file.write(b"more")

    with pytest.raises(SourceError, match="changed while it was read"):
        list(batches)


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

    def build(name: str) -> Source:
        return Source.from_name(name, None, mapping or ColumnMapping())

    return expand_name(str(tmp_path / "history"), build, lambda _: None)


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
    assert kept == {("play.example.net:1", 5), ("Lobby 1/2", 6), ("", 7)}


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


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    with pytest.raises(SourceError, match=r"history: no data files found"):
        split(tmp_path)


@pytest.mark.parametrize(
    ("library", "module", "arguments"),
    [
        ("pyarrow", "parquet", ["x.parquet"]),
        ("duckdb", "duckdb", ["x.duckdb"]),
        ("psycopg", "postgresql", ["postgresql://host/db"]),
        ("python_calamine", "sheets", [__file__, "--source=xlsx"]),
    ],
)
def test_a_missing_library_is_named_with_its_command(
    library: str, module: str, arguments: list[str], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"srvstat.sources.{module}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    ran = cli("snapshot", "build", "s.db", *arguments)

    assert ran.exit_code == 2
    extra = "files" if module == "sheets" else "bulk"
    assert f"needs the library {library}; run pip install 'srvstat[{extra}]'" in ran.stderr


def test_zstd_needs_a_library(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "polls").write_bytes(b"\x28\xb5\x2f\xfd")  # the beginning of a frame
    monkeypatch.setitem(sys.modules, "zstandard", None)
    ran = cli("snapshot", "build", "s.db", f"{tmp_path}/polls")

    assert ran.exit_code == 2
    assert "needs the library zstandard; run pip install 'srvstat[files]'" in ran.stderr
