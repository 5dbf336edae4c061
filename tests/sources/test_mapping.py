"""Read one table in many forms: long or wide, CSV or NDJSON, and propose how to read it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sources.readings import Table, read_table
from srvstat.contract.errors import SourceError
from srvstat.contract.time import format_instant
from srvstat.sources.mapping import (
    COLUMNS,
    STRICT,
    THOUSANDS,
    ColumnMapping,
    MappingOptions,
    format_columns,
    format_mapping_file,
    list_options,
    parse_columns,
    read_mapping_file,
)
from srvstat.sources.proposal import Proposal, Question, answer, propose
from srvstat.sources.source import Source, read_batches
from srvstat.sources.values import NO_COUNT, NOT_AN_INSTANT

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
    # An empty cell of a wide table is no row.
    assert found_wide.skipped == ({NO_COUNT: missing} if missing and style.empty else {})


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
        ("", WIDE, "empty file; the first line must be a header"),
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
    found = read_csv(f"time,a,b\n{time},twelve,7\nyesterday,1,2\n{time},1\n", WIDE)
    rule = "must be a whole number from 0 to 2^53 - 1"

    assert found.kept == [(2, "b", FIRST, 7)]
    assert found.rejects == [
        (2, f"players: {rule}", f"a,{time},twelve"),
        (3, f"observedAt: {NOT_AN_INSTANT}", "yesterday,1,2"),
        (4, "must have 3 fields, not 2", f"{time},1"),
    ]


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
    source=st.sampled_from([None, "csv"]),
    columns=st.builds(
        lambda names, keys: {
            key: name for key, name in zip(COLUMNS, names, strict=True) if key in keys
        },
        COLUMN_NAMES,
        st.sets(st.sampled_from(COLUMNS)),
    ),
    time_zone=st.sampled_from([None, "UTC", "Europe/Berlin"]),
    time_unit=st.sampled_from([None, "s", "ms"]),
    slug_ids=st.sampled_from([None, True]),
    game=st.sampled_from([None, "game_b"]),
)
WIDE_OPTIONS = st.builds(
    MappingOptions,
    wide=st.fixed_dictionaries({"at": ANY_NAMES}, optional={"except": ANY_NAMES}),
    id=st.none() | ANY_NAMES,
    thousands=st.sampled_from([None, *THOUSANDS]),
    time_format=st.sampled_from([None, "day-first", "%d. %B %Y"]),
    round=st.sampled_from([None, True]),
    hold=st.sampled_from([None, True]),
)


@given(options=OPTIONS | WIDE_OPTIONS)
@example(options=MappingOptions(wide={"at": 'a "b" \x00\x7f\\'}))
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
    with pytest.raises(ValueError, match=r"is not KEY=NAME|is given twice"):
        parse_columns(text)


def test_the_first_options_win() -> None:
    saved = MappingOptions(columns={"id": "a", "at": "b"}, time_zone="UTC", game="game_a")

    merged = MappingOptions(columns={"at": "c"}, game="game_b").merge(saved)

    assert merged == MappingOptions(columns={"id": "a", "at": "c"}, time_zone="UTC", game="game_b")
    assert merged.build_mapping() == ColumnMapping(id="a", at="c", time_zone="UTC")
    wide = MappingOptions(wide={"at": "date", "except": "sum+x"}).merge(saved)
    assert (wide.columns, wide.time_zone, wide.game) == ({}, "UTC", "game_a")
    assert wide.build_mapping() == ColumnMapping(
        at="date", is_wide=True, others=("sum", "x"), time_zone="UTC"
    )
    assert MappingOptions(columns={"id": "z"}).merge(wide).wide == {}


def test_options_without_a_mapping_are_strict() -> None:
    assert MappingOptions(source="csv", slug_ids=True, game="game_a").build_mapping() is STRICT
    assert not MappingOptions(columns={"id": "serverId"}).build_mapping().is_strict


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('ids = "slug"\n[columns]\nid = 5\n', "line 2: columns: id: must be the name of a column"),
        ('columns.name = "a"', 'line 1: columns: "name" is not one of id, at, players'),
        ('columns.id = "a"\ncolumns.at = "a"', "line 1: columns: two fields can't have the same"),
        ("columns = 5", "line 1: columns: must be a table with some of the keys"),
        ('wide = { id = "a" }', "line 1: wide: takes at=NAME, the column of times"),
        ('\nwide.at = "a"\ncolumns.at = "b"', "line 2: wide: can't be combined with columns"),
        ('time-zone = "Mars"', 'line 1: time-zone: no time zone "Mars"; use UTC or a name'),
        ('time-zone = "UTC:last"', 'line 1: time-zone: "last" is not one of first, second'),
        ("time-zone = 1", "line 1: time-zone: must be the name of a time zone"),
        ('time-unit = "m"', 'line 1: time-unit: "m" is not one of s, ms, us'),
        ('encoding = "x"', 'line 1: encoding: "x" is not an encoding, such as cp1252'),
        ("round = 1", "line 1: round: must be true or false"),
        ("game = []", "line 1: game: [] is not one of game_a, game_b"),
        ('ids = "slug"\nzone = "UTC"', "line 2: zone: unknown; the options are source, columns,"),
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


ZONE = ("time-zone", ())

Questions = Sequence[tuple[str, Sequence[str]]]


def propose_files(
    folder: Path, files: Mapping[str, str], options: MappingOptions | None = None
) -> Proposal:
    """Write files, and propose how to read them."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(data, encoding="utf-8")
    sources = [Source(str(folder / name), "csv") for name in files]
    return propose(sources, options or MappingOptions())


def list_found(proposal: Proposal) -> dict[str, Any]:
    """Return the options, with columns as the command line writes them."""
    options = list_options(proposal.options)
    return {
        name: format_columns(value) if isinstance(value, Mapping) else value
        for name, value in options.items()
    }


def list_questions(proposal: Proposal) -> Questions:
    """Return the options that are asked for, and their likely values."""
    return [(each.option, tuple(each.choices)) for each in proposal.questions]


@pytest.mark.parametrize(
    ("data", "options", "questions"),
    [
        # What is clear.
        ("serverId,observedAt,players\na,b,c\n", {}, []),
        (
            "when;map name;online;max\n2026-01-05T00:00Z;a b;1;9\n2026-01-05T00:00Z;c;2;9\n",
            {"columns": "id=map name,at=when,players=online"},
            [],
        ),
        (
            "host,ts,n\nhub,1767571200000,1.0\nhub,1767571500000,\n",
            {"columns": "id=host,at=ts,players=n"},
            [],
        ),
        # Which column.
        (
            "t,map,n\n2026-01-05T00:00Z,dust,1\n2026-01-05T00:05Z,nuke,2\n",
            {"columns": "at=t,players=n", "id": "players"},
            [("columns", ("--id players", "id=map"))],
        ),
        (
            "t,map,server,n\n20260105,a,x,3\n20260106,b,x,4\n20260107,a,x,4\n",
            {"columns": "id=server,at=t,players=n"},
            [("columns", ("id=server", "id=map")), ZONE],
        ),
        (
            "t,zone,server,n\n2026-01-05,eu,a,1\n2026-01-05,eu,b,2\n2026-01-05,us,c,2\n",
            {"columns": "id=server,at=t,players=n"},
            [("columns", ("id=server", "id=zone")), ZONE],
        ),
        (
            "t,app,n\n2026-01-05T00:00Z,7,1\n2026-01-05T00:00Z,8,2\n2026-01-06T00:00Z,7,3\n",
            {"columns": "id=app,at=t,players=n"},
            [("columns", ("id=app",))],
        ),
        (
            "t,server,peak,players\n2026-01-05T00:00Z,a,3,1\n2026-01-05T00:00Z,b,4,2\n",
            {"columns": "id=server,at=t,players=players"},
            [("columns", ("players=players", "players=peak"))],
        ),
        (
            "t,server,ping\n2026-01-05T00:00Z,a,3\n2026-01-05T00:00Z,b,4\n",
            {"columns": "id=server,at=t,players=ping"},
            [("columns", ("players=ping",))],
        ),
        (
            "from,at,server,n\n20260105,20260106,a,3\n20260106,20260107,a,4\n",
            {"columns": "id=server,at=at,players=n"},
            [("columns", ("at=at", "at=from")), ZONE],
        ),
        (
            "t,n\n2026-01-05T00:00Z,1\n2026-01-05T00:05Z,2\n",
            {"columns": "at=t,players=n", "id": "players"},
            [("id", ("players",))],
        ),
        # Wide.
        (
            "t,eu,us\n2026-01-05T00:00Z,1,2\n2026-01-05T00:05Z,,3\n",
            {"wide": "at=t"},
            [("wide", ("at=t",))],
        ),
        (
            "t,eu,us,Total,note\n2026-01-05 00:00,1,2,3,\n2026-01-05 00:05,1,3,4,wipe\n",
            {"wide": "at=t,except=Total+note"},
            [("wide", ("at=t,except=Total+note",)), ZONE],
        ),
        (
            "Datum;Uhrzeit;Lobby EU;Süd\n05.01.2026;00:00;69;37\n05.01.2026;00:15;70;\n",
            {"wide": "at=Datum+Uhrzeit", "time-format": "day-first"},
            [ZONE],
        ),
        (
            "t,eu,us\n2026-01-05,1,off\n2026-01-06,2,down\n2026-01-07,2,7\n",
            {"wide": "at=t"},
            [("wide", ("at=t",)), ZONE],
        ),
        # Times.
        (
            "t,server,n\n1767571200,a,1\n1767571200,b,1\n",
            {"columns": "id=server,at=t,players=n", "time-unit": "s"},
            [("time-unit", ("s",))],
        ),
        (
            "t,server,n\n1767571200000000,a,1\n1767571200000000,b,1\n",
            {"columns": "id=server,at=t,players=n", "time-unit": "us"},
            [("time-unit", ("us",))],
        ),
        (
            "t,server,n\n20260105,a,1\n20260105,b,1\n",
            {"columns": "id=server,at=t,players=n"},
            [ZONE],
        ),
        (
            "t,server,n\n05/01/2026,a,1\n06/01/2026,a,1\n",
            {"columns": "id=server,at=t,players=n", "time-format": "day-first"},
            [("time-format", ("day-first", "month-first")), ZONE],
        ),
        (
            "t,server,n\n12/05/2026,a,1\n12/13/2026,a,1\n",
            {"columns": "id=server,at=t,players=n", "time-format": "month-first"},
            [ZONE],
        ),
        (
            "time,server,n\n3rd of May,a,1\n4th of May,a,1\n",
            {"columns": "id=server,at=time,players=n"},
            [("time-format", ()), ZONE],
        ),
        # Counts.
        (
            't,server,n\n2026-01-05T00:00Z,a,"1,942"\n2026-01-05T00:00Z,b,7\n',
            {"columns": "id=server,at=t,players=n", "thousands": ","},
            [("thousands", (",", "."))],
        ),
        (
            't,server,n\n2026-01-05T00:00Z,a,"1,942"\n2026-01-05T00:00Z,b,"1,000,007"\n',
            {"columns": "id=server,at=t,players=n", "thousands": ","},
            [],
        ),
        (
            "t;server;n\n2026-01-05T00:00Z;a;1.942\n2026-01-05T00:00Z;b;7\n",
            {"columns": "id=server,at=t,players=n", "thousands": "."},
            [("thousands", (".", "round"))],
        ),
        (
            "t;server;n\n2026-01-05T00:00Z;a;1.942\n2026-01-05T00:00Z;b;7.5\n",
            {"columns": "id=server,at=t,players=n", "round": True},
            [("round", ("yes",))],
        ),
        (
            "t;server;n\n2026-01-05T00:00Z;a;1\u202f942\n2026-01-05T00:00Z;b;7\n",
            {"columns": "id=server,at=t,players=n", "thousands": " "},
            [],
        ),
    ],
)
def test_what_is_not_clear_is_a_question(
    data: str, options: dict[str, Any], questions: Questions, tmp_path: Path
) -> None:
    proposal = propose_files(tmp_path, {"players.csv": data})

    assert (list_found(proposal), list_questions(proposal)) == (options, questions)
    # Nothing is asked twice.
    complete = replace(proposal.options, time_zone="UTC")
    if options and ("time-format", ()) not in questions:
        assert propose_files(tmp_path, {"players.csv": data}, complete).questions == []


@pytest.mark.parametrize(
    ("files", "choice"),
    [
        (["lobby.csv", "pvp.csv"], "{file}"),
        (["lobby/players.csv", "pvp/players.csv"], "{folder}"),
        (["lobby-20260105.csv", "lobby-20260106.csv"], "lobby"),
    ],
)
def test_several_files_without_identifiers_are_servers_or_parts_of_one(
    files: list[str], choice: str, tmp_path: Path
) -> None:
    days = {name: f"t,n\n2026-01-{5 + day:02}T00:00Z,1\n" for day, name in enumerate(files)}

    assert list_questions(propose_files(tmp_path, days)) == [("id", (choice,))]


def test_given_options_are_not_asked_again_but_what_else_is_unclear(tmp_path: Path) -> None:
    files = {
        "a.csv": "t,eu,note\n1767571200,1,hi\n1767571500,2,\n",
        "b.csv": "t,eu,us,Total\n1767571800,1,2,3\n",
    }

    wide = propose_files(tmp_path, files, MappingOptions(wide={"at": "t"}, time_unit="s"))
    long = propose_files(tmp_path, files, MappingOptions(id="eu", columns={"players": "eu"}))
    free = propose_files(tmp_path, files)

    assert list_questions(wide) == [("wide", ("at=t,except=note",))]
    assert list_questions(long) == [("time-unit", ("s",))]
    assert long.options.columns == {"at": "t", "players": "eu"}
    assert ("columns", ("--id {file}", "id=note")) in list_questions(free)


def test_each_file_tells_the_order_of_day_and_month(tmp_path: Path) -> None:
    files = {
        f"{day}.csv": f"t,server,n\n{day:02}/01/2026,a,1\n{day:02}/01/2026,b,1\n" for day in (5, 13)
    }

    assert list_questions(propose_files(tmp_path, files)) == [ZONE]


def test_a_proposal_describes_the_file_and_every_obstacle(tmp_path: Path) -> None:
    rows = ["05.01.2026;00:00;69;37;n/a", "05.01.2026;00:15;wipe;;12", "?;00:30;1;2;3"]
    proposal = propose_files(
        tmp_path, {"export.csv": "\n".join(["Datum;Uhrzeit;Lobby EU;Süd;大厅", *rows, ""])}
    )

    rule = "players: must be a whole number from 0 to 2^53 - 1"
    assert [line.removeprefix(f"{tmp_path}/") for line in proposal.lines] == [
        "export.csv: CSV with semicolons, 3 rows, 5 columns",
        "  Datum               05.01.2026 → time, day first",
        "  Uhrzeit             00:00      → time, day first",
        "  Lobby EU, Süd, 大厅 69, 37, 12 → one server each (3 columns)",
        f'  3 counts rejected, such as "? 00:30" in line 4: observedAt: {NOT_AN_INSTANT}',
        f'  1 count rejected, such as "wipe" in line 3: {rule}',
        "  keeps 3 of 7 counts of 3 servers (3 rows)",
    ]


def test_a_file_that_may_have_changes_only_is_not_held_unseen(tmp_path: Path) -> None:
    rows = [
        f"2026-01-05T00:{minute:02}Z,{minute if minute % 3 == 0 else ''},,"
        f"{7 if minute == 14 else ''}"
        for minute in range(20)
    ]
    proposal = propose_files(tmp_path, {"p.csv": "\n".join(["t,a,b,c", *rows, ""])})

    assert "  most cells are empty: if the file has changes only, add --hold" in proposal.lines
    assert proposal.options.hold is None


@pytest.mark.parametrize(
    ("data", "options", "reason"),
    [
        (
            "t,server,map\n2026-01-05T00:00Z,a,b\n",
            {},
            "no column with counts found; name it with --columns ",
        ),
        ("server,n\na,1\n", {}, "no column with times found; name it with --columns "),
        (
            "t,server,n\n2026-01-05T00:00Z,a,1\n",
            {"input_table": "t"},
            "CSV has a single table; leave out --input-table",
        ),
        ("t,server,n\n", {}, 'no data rows after the header "t", "server", "n"'),
        ("t,server,n\n2026-01-05T00:00Z,a,\n", {}, "no column with counts found; name it with "),
        (
            "t,server,n\n2026-01-05T00:00Z,a,1\n",
            {"columns": {"players": "m"}},
            'no column "m"; did you mean players=n? (columns: "t", "server", "n")',
        ),
        (
            "t,a,b\n1767571200000,1,2\n",
            {"wide": {"at": "t", "except": "sum"}},
            'no column "sum" (columns: "t"',
        ),
        (
            "t,server,n\nx 5,a,1\n",
            {"columns": {"at": "t"}, "time_format": "%d.%m."},
            '--time-format %d.%m. does not fit "x 5" in "t"',
        ),
    ],
)
def test_a_file_without_counts_or_given_columns_is_refused(
    data: str, options: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(SourceError) as caught:
        propose_files(tmp_path, {"players.csv": data}, MappingOptions(**options))

    assert caught.value.reason.removeprefix(f"{tmp_path}/players.csv: ").startswith(reason)


@pytest.mark.parametrize(
    ("option", "value", "found"),
    [
        ("columns", "players=b", {"columns": "at=t,players=b"}),
        ("wide", "at=t,except=a+b", {"wide": "at=t,except=a+b"}),
        ("columns", "--id pvp", {"columns": "at=t", "id": "pvp"}),
        ("thousands", ".", {"columns": "at=t", "thousands": "."}),
        ("thousands", "round", {"columns": "at=t", "round": True}),
        ("round", "yes", {"columns": "at=t", "round": True}),
        ("round", "no", "averages can't be kept as they are; answer yes to round them"),
        ("time-zone", "Mars", 'no time zone "Mars"'),
        ("columns", "b", "is not KEY=NAME"),
    ],
)
def test_an_answer_completes_the_options(
    option: str, value: str, found: dict[str, Any] | str
) -> None:
    question = Question(option, "")
    given = MappingOptions(columns={"at": "t"})
    if isinstance(found, str):
        with pytest.raises(ValueError, match=re.escape(found)):
            answer(given, question, value)
        return

    options = answer(given, question, value)

    assert list_found(Proposal([], options, [])) == found


DAYS = st.lists(st.dates(date(2026, 1, 1), date(2026, 6, 1)), min_size=1, max_size=5, unique=True)


@given(
    days=DAYS,
    names=st.lists(st.sampled_from(["Süd", "eu_1", "異環", "a b"]), min_size=1, unique=True),
    counts=st.lists(st.integers(0, 3_000_000), min_size=20, max_size=20),
    form=st.sampled_from(["{0:%d/%m/%Y}", "{0:%m/%d/%Y}", "{0:%d.%m.%Y}", "{0:%Y-%m-%d}"]),
    separator=st.sampled_from(["", ",", "."]),
    is_wide=st.booleans(),
)
def test_a_proposal_reads_what_was_written_or_asks(  # noqa: PLR0913, PLR0917 - drawn
    days: list[date],
    names: list[str],
    counts: list[int],
    form: str,
    separator: str,
    is_wide: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "written.csv"
    cells = dict(zip(((day, name) for day in days for name in names), counts, strict=False))
    written = {cell: f"{count:,}".replace(",", separator) for cell, count in cells.items()}
    if is_wide:
        rows = [["when", *names]]
        rows += [[form.format(day), *(written[day, name] for name in names)] for day in days]
    else:
        rows = [["when", "server", "n"]]
        rows += [[form.format(day), name, text] for (day, name), text in written.items()]
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")

    proposal = propose([Source(str(path), "csv")], MappingOptions())

    asked = {each.option for each in proposal.questions}
    assert "time-zone" in asked
    truth = {"%d/": "day-first", "%m/": "month-first"}.get(form[3:6])
    if truth and all(day.day <= 12 for day in days):
        assert "time-format" in asked
    elif truth:
        assert proposal.options.time_format == truth
    options = replace(
        proposal.options,
        time_zone="UTC",
        time_format=truth or proposal.options.time_format,
        thousands=separator or None,
    )
    if "thousands" not in asked:
        assert proposal.options.thousands in {None, separator}
        assert not proposal.options.round
    if is_wide != bool(proposal.options.wide):
        assert asked & {"id", "columns", "wide"}
        return
    found = read_table(Source(str(path), "csv", options.build_mapping()))
    kept = {(name, format_instant(at)[:10], count) for _, name, at, count in found.kept}
    assert kept == {(name, str(day), count) for (day, name), count in cells.items()}
