"""Read one table in many forms: long or wide, CSV or NDJSON, with any delimiter and quotes."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sources.readings import Table, read_table
from srvstat.contract.errors import SourceError
from srvstat.contract.time import format_instant
from srvstat.sources.mapping import (
    COLUMNS,
    STRICT,
    ColumnMapping,
    MappingOptions,
    format_mapping_file,
    parse_columns,
    read_mapping_file,
)
from srvstat.sources.source import Source, read_batches
from srvstat.sources.values import NO_COUNT

LONG = ColumnMapping(id="name", at="time", players="online")
WIDE = ColumnMapping(at="time", is_wide=True)

FIRST = 1_700_000_000_000


def read(path: Path, data: str, mapping: ColumnMapping) -> Table:
    path.write_text(data, encoding="utf-8", newline="")
    return read_table(Source.from_name(str(path), None, mapping))


@pytest.fixture
def read_csv(tmp_path: Path) -> Callable[[str, ColumnMapping], Table]:
    """Return a function that reads text as a CSV file."""
    return lambda data, mapping: read(tmp_path / "players.csv", data, mapping)


ReadCsv = Callable[[str, ColumnMapping], Table]

NAMES = st.text("ab_:. ü;,|\t\"'", min_size=1, max_size=4).filter(
    lambda name: name == name.strip() and name != "time"
)
COUNTS = st.none() | st.integers(0, 2**53 - 1)
TABLES = st.lists(NAMES, min_size=1, max_size=4, unique=True).flatmap(
    lambda names: st.tuples(
        st.just(names), st.lists(st.tuples(*[COUNTS for _ in names]), min_size=1, max_size=6)
    )
)


def quote(text: str, delimiter: str, *, always: bool) -> str:
    """Quote a field as in RFC 4180 where it needs quotes."""
    if always or any(character in text for character in f'{delimiter}"'):
        return '"' + text.replace('"', '""') + '"'
    return text


class Style(NamedTuple):
    """How a table is written."""

    delimiter: str
    end: str
    is_quoted: bool
    unit: Literal["s", "ms"] | None
    empty: str
    noise: str

    def format_csv(self, rows: Sequence[Sequence[str]]) -> str:
        """Return rows as CSV."""
        return "".join(
            self.delimiter.join(quote(each, self.delimiter, always=self.is_quoted) for each in row)
            + self.end
            for row in rows
        )

    def format_time(self, at: int) -> str:
        """Return an instant as text."""
        if self.unit == "s":
            return str(at // 1000)
        return f"{at}{self.noise}" if self.unit == "ms" else format_instant(at)

    def format_count(self, count: int | None) -> str:
        """Return a player count, or none, as text."""
        return self.empty if count is None else f"{count}{self.noise}"


STYLES = st.builds(
    Style,
    delimiter=st.sampled_from(",;\t|"),
    end=st.sampled_from(["\n", "\r\n"]),
    is_quoted=st.booleans(),
    unit=st.sampled_from(["s", "ms", None]),
    empty=st.sampled_from(["", "NA", "null"]),
    noise=st.sampled_from(["", ".0"]),
)


@given(table=TABLES, style=STYLES)
def test_all_forms_of_a_table_give_the_same_observations(
    table: tuple[list[str], list[tuple[int | None, ...]]],
    style: Style,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    names, lines = table
    directory = tmp_path_factory.getbasetemp()
    instants = [FIRST + 1000 * number for number in range(len(lines))]
    times = list(map(style.format_time, instants))
    cells = [
        (at, time, name, count)
        for at, time, counts in zip(instants, times, lines, strict=True)
        for name, count in zip(names, counts, strict=True)
    ]
    wide = [
        [time, *map(style.format_count, counts)] for time, counts in zip(times, lines, strict=True)
    ]
    long = [["x", style.format_count(count), time, name] for _, time, name, count in cells]
    objects = [
        json.dumps({"time": time, **dict(zip(names, counts, strict=True))})
        for time, counts in zip(times, lines, strict=True)
    ]

    found_wide, found_long, found_objects = (
        read(directory / name, text, replace(mapping, time_unit=style.unit))
        for name, text, mapping in (
            ("wide.csv", style.format_csv([["time", *names], *wide]), WIDE),
            ("long.csv", style.format_csv([["other", "online", "time", "name"], *long]), LONG),
            ("wide.ndjson", style.end.join(objects), WIDE),
        )
    )

    expected = {(name, at, count) for at, _, name, count in cells if count is not None}
    for found in (found_wide, found_long, found_objects):
        assert found.rejects == []
        assert {row[1:] for row in found.kept} == expected
        assert len(found.kept) == len(expected)
    assert all(line == 2 + (at - FIRST) // 1000 for line, _, at, _ in found_wide.kept)
    missing = len(cells) - len(expected)
    assert found_long.skipped == ({NO_COUNT: missing} if missing else {})
    assert found_wide.skipped == {}


@pytest.mark.parametrize(
    ("data", "mapping", "reason"),
    [
        (
            "name,when,online\n",
            LONG,
            'line 1: no column "time"; the columns are "name", "when", "online"',
        ),
        (
            "\nid;when;n\n",
            LONG,
            'line 2: no columns "name", "time", "online"; the columns are "id", "when", "n"',
        ),
        ("date,a,b\n", WIDE, 'line 1: no column "time"; the columns are "date", "a", "b"'),
        ("time\n", WIDE, 'line 1: no column beside "time"; a wide file has a column for each'),
        ("time,a,b,a\n", WIDE, 'line 1: has two columns "a"; rename one of them'),
        ("name,time,time,online\n", LONG, 'line 1: has two columns "time"; rename one of them'),
        ("", WIDE, "empty; must begin with a header"),
    ],
)
def test_a_header_without_the_wanted_columns_is_refused(
    data: str, mapping: ColumnMapping, reason: str, read_csv: ReadCsv
) -> None:
    with pytest.raises(SourceError) as caught:
        read_csv(data, mapping)

    assert f"players.csv: {reason}" in caught.value.reason.replace(".csv, line", ".csv: line")


def test_a_row_never_continues_in_the_next_one(read_csv: ReadCsv) -> None:
    found = read_csv("name,time,online\na,1700000000000,5,x\n1700000000000,7\n", LONG)

    assert not found.kept
    assert [(line, reason) for line, reason, _ in found.rejects] == [
        (2, "must have 3 fields, not 4"),
        (3, "must have 3 fields, not 2"),
    ]
    # Its last fields stand where those of a second row would.
    found = read_csv("name,time,online\na,1700000000000,5,x,a,1700000000001,6\n", LONG)
    assert [(line, reason) for line, reason, _ in found.rejects] == [
        (2, "must have 3 fields, not 7")
    ]


def test_a_column_without_a_name_is_no_server(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",time,a\n0,1700000000000,5\n")
    warnings: list[str] = []
    source = Source(str(path), "csv", WIDE, on_warning=warnings.append)

    (batch,) = read_batches(source)

    assert batch.names == ["a"]
    assert warnings == [f"{path}, line 1: column 1 has no name, so it is ignored"]

    path.write_text(",time\n0,1700000000000\n0,\n")
    (batch,) = read_batches(source)
    assert (batch.names, [reject.place for reject in batch.rejects]) == ([], [3])
    path.write_text(",time\n0,1700000000000\n")
    (batch,) = read_batches(source)
    assert batch.players.dtype == batch.places.dtype


def test_a_bad_cell_rejects_only_itself_and_a_bad_time_its_row(read_csv: ReadCsv) -> None:
    time = "1700000000000"
    found = read_csv(f"time,a,b\n{time},12.5,7\nyesterday,1,2\n{time},1\n", WIDE)
    rule = "must be a whole number from 0 to 9007199254740991"

    assert found.kept == [(2, "b", FIRST, 7)]
    assert found.rejects == [
        (2, f"players: {rule}", f"a,{time},12.5"),
        (3, "observedAt: not a Unix time and not YYYY-MM-DD HH:MM:SS", "yesterday,1,2"),
        (4, "must have 3 fields, not 2", f"{time},1"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[]", "must be an object"),
        ('{"name":"a","time":5}', 'has no key "online"'),
        ('{"name":null,"time":5,"online":1}', "serverId: must be a string or an integer"),
        ('{"name":"a","time":[5],"online":1}', "observedAt: must be a number or a string"),
        ('{"name":"a","time":5,"online":true}', "players: must be a number or a string"),
    ],
)
def test_an_object_without_the_wanted_keys_is_rejected(
    line: str, reason: str, tmp_path: Path
) -> None:
    good = '{"name":7,"time":"1700000000000","online":"5","other":[]}'
    found = read(tmp_path / "rows.ndjson", f"{line}\n{good}\n", LONG)

    assert found.kept == [(2, "7", FIRST, 5)]
    assert found.rejects == [(1, reason, line)]


@pytest.mark.parametrize("value", ["true", "[null]", '{"x":1e999}'])
def test_a_value_that_is_no_count_rejects_only_itself(value: str, tmp_path: Path) -> None:
    line = f'{{"time":"1700000000000","a":5,"b":{value}}}\n'
    found = read(tmp_path / "wide.ndjson", line, WIDE)

    assert found.kept == [(1, "a", FIRST, 5)]
    assert [(place, text[:16]) for place, _, text in found.rejects] == [(1, "b,1700000000000,")]


# Many of them have a form that is not plain, or are invalid.
WRITTEN_TIMES = (
    st.integers(0, 253_402_300_800).map(str)
    | st.integers(978_307_199_999, 10**15).map(str)
    | st.sampled_from(["", "1700000000000.0", "20250305", "2025-03-05", "2025-03-30 02:30:00"])
    | st.builds(
        "{}{}".format,
        st.dates(date(1969, 12, 30)) | st.sampled_from(["2025-02-29", "0000-01-01", "2025-13-01"]),
        st.from_regex(
            r"[T ]([01][0-9]|2[0-4]):[0-6][0-9]:[0-5][0-9](\.[0-9]{2,10})?Z?", fullmatch=True
        ),
    )
)
WRITTEN_COUNTS = st.integers(0, 2**53).map(str) | st.sampled_from(
    ["", "0.0", "7.0", "12.000", ".0", "07", "1.5", "-1", "NA", " 5", "1e3"]
)
WRITTEN_NAMES = st.sampled_from(["a", "a b", "é", "x" * 9, "y" * 200])
MAPPINGS = [
    ColumnMapping(id="name", at="time", players="online", time_unit=unit, time_zone=zone)
    for unit in (None, "s", "ms")
    for zone in (None, "UTC", "Europe/Berlin", "Australia/Lord_Howe")
]
ODD_ROWS = st.lists(st.sampled_from(["1700000000000", "5", "", "12.0", "x", "-1"]), max_size=4)


@given(
    mapping=st.sampled_from([*MAPPINGS, LONG, WIDE]),
    rows=st.lists(
        st.tuples(WRITTEN_NAMES, WRITTEN_TIMES, WRITTEN_COUNTS) | ODD_ROWS, min_size=1, max_size=4
    ),
)
def test_a_row_is_read_like_one_with_quotes(
    mapping: ColumnMapping, rows: list[Sequence[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    table = [("name", "time", "online"), ("a", "1700000000000", "7"), *rows]
    plain, quoted = (
        read(path, "\n".join(map(write, table)), mapping)
        for write in (";".join, lambda row: ";".join(f'"{field}"' for field in row))
    )

    assert (plain.kept, plain.skipped) == (quoted.kept, quoted.skipped)
    # A wrong number of fields has other reasons with quotes.
    assert [(place, ":" in reason and reason) for place, reason, _ in plain.rejects] == [
        (place, ":" in reason and reason) for place, reason, _ in quoted.rejects
    ]


ANY_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
COLUMN_NAMES = st.lists(ANY_NAMES, min_size=3, max_size=3, unique=True)
OPTIONS = st.builds(
    MappingOptions,
    from_=st.sampled_from([None, "csv"]),
    columns=st.builds(
        lambda names, keys: {
            key: name for key, name in zip(COLUMNS, names, strict=True) if key in keys
        },
        COLUMN_NAMES,
        st.sets(st.sampled_from(COLUMNS)),
    ),
    time_zone=st.sampled_from([None, "UTC", "Europe/Berlin"]),
    time_unit=st.sampled_from([None, "s", "ms"]),
    ids=st.sampled_from([None, "slug"]),
    game=st.sampled_from([None, "game_b"]),
)
WIDE_OPTIONS = st.builds(MappingOptions, wide=ANY_NAMES, time_zone=st.sampled_from([None, "UTC"]))


@given(options=OPTIONS | WIDE_OPTIONS)
@example(options=MappingOptions(wide='a "b" \x00\x7f\\'))
def test_a_written_file_is_read_as_it_was(
    options: MappingOptions, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "mapping.toml"
    path.write_bytes(format_mapping_file(options))

    assert read_mapping_file(str(path)) == options


@given(names=COLUMN_NAMES)
def test_columns_are_read_from_quoted_names(names: list[str]) -> None:
    quoted = ('"' + name.replace('"', '""') + '"' for name in names)
    text = ", ".join(f"{key}={name}" for key, name in zip(COLUMNS, quoted, strict=True))

    assert list(parse_columns(text).values()) == names


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("at=date", {"at": "date"}),
        ("id = Server Name , at=a=b", {"id": "Server Name", "at": "a=b"}),
        ('id="a,b",players="""n"""', {"id": "a,b", "players": '"n"'}),
    ],
)
def test_columns_are_keys_and_names(text: str, columns: dict[str, str]) -> None:
    assert parse_columns(text) == columns


@pytest.mark.parametrize("text", ["date", "id=a,", "id=a,,at=b", 'id="a"b', 'id="a', "id=a,id=b"])
def test_other_columns_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"can't be read from|is given twice"):
        parse_columns(text)


def test_the_first_options_win() -> None:
    saved = MappingOptions(columns={"id": "a", "at": "b"}, time_zone="UTC", game="game_a")

    merged = MappingOptions(columns={"at": "c"}, game="game_b").merge(saved)

    assert merged == MappingOptions(columns={"id": "a", "at": "c"}, time_zone="UTC", game="game_b")
    assert merged.build_mapping() == ColumnMapping(id="a", at="c", time_zone="UTC")
    wide = MappingOptions(wide="date").merge(saved)
    assert wide == MappingOptions(wide="date", time_zone="UTC", game="game_a")
    assert wide.build_mapping() == ColumnMapping(at="date", is_wide=True, time_zone="UTC")
    assert MappingOptions(columns={"id": "z"}).merge(wide).wide is None


def test_options_without_a_mapping_are_strict() -> None:
    assert MappingOptions(from_="csv", ids="slug", game="game_a").build_mapping() is STRICT
    assert not MappingOptions(columns={"id": "serverId"}).build_mapping().is_strict


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('ids = "slug"\n[columns]\nid = 5\n', "line 2: columns: id: must be the name of a column"),
        ('columns.name = "a"', 'line 1: columns: "name" is not one of id, at, players'),
        ('columns.id = "a"\ncolumns.at = "a"', "line 1: columns: two fields can't have the same"),
        ("columns = 5", "line 1: columns: must be a table with some of the keys"),
        ('wide = { id = "a" }', "line 1: wide: takes at=NAME only"),
        ('\nwide.at = "a"\ncolumns.at = "b"', "line 2: wide: can't be combined with columns"),
        ('time-zone = "Mars"', 'line 1: time-zone: no time zone "Mars"; use UTC or a name'),
        ("time-zone = 1", "line 1: time-zone: must be the name of a time zone"),
        ('time-unit = "us"', 'line 1: time-unit: "us" is not one of s, ms'),
        ("game = []", "line 1: game: [] is not one of game_a, game_b"),
        ('ids = "slug"\nzone = "UTC"', "line 2: zone: unknown; the options are from, columns,"),
        ("ids = slug", "line 1: not TOML at column 7: Invalid value"),
        ("\xff", "not UTF-8"),
        ("#" * 70_000, "longer than 65,536 bytes"),
    ],
)
def test_a_file_that_is_not_a_mapping_is_refused_with_its_line(
    text: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "mapping.toml"
    path.write_bytes(text.encode("latin-1"))

    with pytest.raises(SourceError) as caught:
        read_mapping_file(str(path))

    assert caught.value.reason.removeprefix(str(path))[2:].startswith(reason)
