"""Observations as CSV and JSON: headers, quotes, objects, rows across blocks, and documents."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import AS_OF
from sources.readings import Reading, read_file, read_rows
from srvstat.contract.errors import SourceError
from srvstat.sources import columns, csv, source
from srvstat.sources.json import read_document_sample
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.source import BLOCK_BYTES, Source
from srvstat.sources.tables import list_wanted

HEADER = b"serverId,observedAt,players\n"

Read = Callable[[bytes], Reading]
ReadText = Callable[[str], Reading]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that reads bytes as a CSV file."""
    return lambda data: read_file(tmp_path / "week.csv", data)


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[[bytes], str]:
    """Return a function that returns why bytes are refused as a CSV file."""

    def run(data: bytes) -> str:
        with pytest.raises(SourceError) as caught:
            read_file(tmp_path / "week.csv", data)
        return caught.value.reason.removeprefix(str(tmp_path / "week.csv"))

    return run


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("serverId,observedAt,players\r\n", 2),
        ("\ufeffserverId,observedAt,players\n", 2),
        ('"serverId","observedAt","players"\n', 2),
        ('\ufeff"serverId",observedAt,"players"\r\n', 2),
        ("\n\r\nserverId,observedAt,players\n", 4),
        ("\ufeff\n\nserverId,observedAt,players\n", 4),
        ("\n" * (BLOCK_BYTES + 10) + "serverId,observedAt,players\n\n", BLOCK_BYTES + 13),
    ],
)
def test_the_header_is_the_first_line_that_is_not_empty(header: str, line: int, read: Read) -> None:
    assert read(header.encode() + b"a,1772366400005,7\n") == Reading(
        {line: ("a", 1772366400005, 7)}, {}
    )


@pytest.mark.parametrize(
    "header",
    [
        "a,1772366400005,7",
        "observedAt,serverId,players",
        "serverId,observedAt,players,",
        "serverId, observedAt, players",
        "serverId;observedAt;players",
        '"serverId,observedAt,players',
        '"""serverId""",observedAt,players',
        '"server\nId",observedAt,players',
        "\ufeff\ufeffserverId,observedAt,players",
        "# made by hand\nserverId,observedAt,players",
    ],
)
def test_any_other_header_is_refused(header: str, refusal: Callable[[bytes], str]) -> None:
    form = "must be the header serverId,observedAt,players"
    remedy = "; name other columns with --columns or --wide"

    reason = refusal(f"{header}\na,1772366400005,7\n".encode())

    assert reason.startswith((f", line 1: {form}, not the columns ", f", line 1: {form};"))
    assert reason.endswith(remedy)
    assert refusal(f"\n\n{header}\na,1772366400005,7\n".encode()).startswith(", line 3: ")


@pytest.mark.parametrize("data", ["", "\n\r\n", "\ufeff"])
def test_an_empty_file_is_refused(data: str, refusal: Callable[[bytes], str]) -> None:
    reason = ": empty file; the first line must be the header serverId,observedAt,players"

    assert refusal(data.encode()) == reason


COUNT_RULE = "players: must be a whole number from 0 to 2^53 - 1"
OPEN = "a quote is not closed"
IDENTIFIER = "serverId: must be 1 to 128 letters, digits and hyphens"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a", "must have 3 fields, not 1"),
        ("a,1772366400005,7,", "must have 3 fields, not 4"),
        ('"a","5"', "must have 3 fields, not 2"),
        ('"a,1772366400005,7"', "must have 3 fields, not 1"),
        ('"a" ,1772366400005,7', "malformed CSV: must have 3 fields, quoted as in RFC 4180"),
        ('a"b"c,1772366400005,7', IDENTIFIER),
        ("'a',1772366400005,7", IDENTIFIER),
        ('"a,1772366400005,7', OPEN),
        ('a,1772366400005,7"', f"{COUNT_RULE}, without separators"),
        ('"a"",1772366400005,7', OPEN),
    ],
)
def test_a_malformed_row_is_rejected_with_its_reason(row: str, reason: str, read: Read) -> None:
    data = HEADER + b"a,1772366400001,1\n" + row.encode() + b"\nb,1772366400002,2\n"

    assert read(data) == Reading(
        {2: ("a", 1772366400001, 1), 4: ("b", 1772366400002, 2)}, {3: (reason, row)}
    )
    assert read(HEADER + row.encode()) == Reading({}, {2: (reason, row)})


def test_a_doubled_quote_is_part_of_its_field(read: Read) -> None:
    found = read(HEADER + b'"a""b",1772366400001,1\n"a"",1772366400005,7",1,1\nb,1772366400002,2\n')

    assert found.kept == {4: ("b", 1772366400002, 2)}
    assert found.rejects.keys() == {2, 3}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_break_inside_quotes_does_not_end_the_row(end: str, read: Read) -> None:
    record = end.join(['"a', "srv,1,2", 'b",1772366400005,7'])
    found = read(
        HEADER + f"a,1772366400001,1{end}{record}{end}{end}b,1772366400002,2{end}".encode()
    )

    assert found.kept == {2: ("a", 1772366400001, 1), 7: ("b", 1772366400002, 2)}
    assert found.rejected_texts == {3: record}


STRAY = [
    '"a,1772366400005,7',
    'a,1772366400005,"7',
    'a"b,1772366400005,7',
    'a,1772366400005,7"',
    '"a"b"c,1772366400005,7',
    '"a""b,1772366400005,7',
    '"',
    '"""',
]
"""Rows with a misplaced quote, or with one that is never closed."""


@pytest.mark.parametrize("row", STRAY)
@pytest.mark.parametrize(
    "others",
    [
        ['"b",1772366400001,1', '"b",1772366400002,2'],
        ['"b","1772366400001","1"', "b,1772366400002,2"],
        ["b,1772366400001,1", ""],
    ],
)
def test_a_stray_quote_rejects_only_its_own_line(row: str, others: list[str], read: Read) -> None:
    # Two lines of quotes only are one record, with the lines between in quotes.
    lines = [*others, *[row, *others] * (1 if set(row) == {'"'} else 2)]
    found = read(HEADER + "\n".join(lines).encode())

    numbered = list(enumerate(lines, 2))
    assert found.rejected_texts == {place: line for place, line in numbered if line == row}
    assert found.kept.keys() == {place for place, line in numbered if line and line != row}


ROWS = [f"srv-1,{AS_OF + number},1" for number in range(25_000)]
ROW_BYTES = len(f"{ROWS[0]}\n")
KEPT = {number: ("srv-1", AS_OF + number - 2, 1) for number in range(2, len(ROWS) + 2)}
FIRST_BOUNDARY = (BLOCK_BYTES - len(HEADER)) // ROW_BYTES
SECOND_BOUNDARY = (2 * BLOCK_BYTES - len(HEADER)) // ROW_BYTES
MALFORMED_AT = 10_000


@pytest.mark.parametrize(
    "at", [FIRST_BOUNDARY - 1, FIRST_BOUNDARY, FIRST_BOUNDARY + 1, SECOND_BOUNDARY, len(ROWS) - 1]
)
def test_an_unclosed_quote_rejects_only_its_own_line_across_blocks(at: int, read: Read) -> None:
    rows = ROWS.copy()
    rows[at] = '"' + rows[at][1:]
    rows[MALFORMED_AT] = "nonsense"
    found = read(HEADER + "\n".join(rows).encode())

    assert found.rejects[at + 2] == (OPEN, rows[at])
    assert list(found.rejects) == sorted([at + 2, MALFORMED_AT + 2])
    assert found.kept.items() ^ KEPT.items() == {(line, KEPT[line]) for line in found.rejects}


@pytest.mark.parametrize("at", [FIRST_BOUNDARY - 1, FIRST_BOUNDARY])
def test_a_quoted_line_break_may_be_at_the_end_of_a_block(at: int, read: Read) -> None:
    rows = ROWS.copy()
    rows[at] = '"' + rows[at][1:]
    rows[at + 1] = 'rv-1"' + rows[at + 1][5:]
    found = read(HEADER + "\n".join(rows).encode())

    assert found.rejected_texts == {at + 2: f"{rows[at]}\n{rows[at + 1]}"}
    assert found.kept.items() ^ KEPT.items() == {(line, KEPT[line]) for line in (at + 2, at + 3)}


IDS = st.sampled_from(["a", "b", "srv-1"])
PLAIN = st.builds(
    "{},{},{}".format,
    IDS,
    st.integers(0, 10**13) | st.integers(978_307_200_000, 10**14),
    st.integers(0, 500),
)
KEPT_PLAIN = st.builds(
    "{},{},{}".format, IDS, st.integers(978_307_200_000, 10**14 - 1), st.integers(0, 500)
)
CLOCK = st.from_regex(r"[T ](0[09]|23):[05]9:[05]0(\.[0-9]{3,9})?Z,[1-9]\r?", fullmatch=True)
DATES = st.sampled_from(["1970-01-01", "2024-02-29", "9999-12-31"])
IN_UTC = st.builds("{},{}{}".format, IDS, DATES, CLOCK)
ODD = st.sampled_from(
    [
        "",
        "\r",
        "a,1772366400005,7\r",
        '"a",1772366400005,"7"',
        "a,5",
        "a,1772366400005,7,9",
        "a_b,1772366400005,7",
        "nothing of the kind",
    ]
) | st.sampled_from(
    [
        *("a,2026-03-01T12:00Z,7", "a,2026-03-01T12:00:00.1Z,7", "a,2026-03-01T12:00:60Z,7"),
        *("a,2026-02-29T12:00:00Z,7", "a,1969-12-31T23:59:59Z,7", "a,000000000000000000005,7"),
        *("a,253402300799999,7", "a,5,1000000000000000", "a,5,9007199254740992", "a,5,07"),
        *("a,٣,7", "a,202\uff16-03-01T12:00:00Z,7", "a,2026-03-01T12:00:00Z,07"),
    ]
)


@given(rows=st.lists(PLAIN | ODD, min_size=1, max_size=12) | st.lists(IN_UTC | ODD, min_size=1))
def test_a_row_is_parsed_the_same_whatever_rows_surround_it(
    rows: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    alone = [read_file(path, HEADER + row.encode()) for row in rows]

    assert read_file(path, HEADER + "\n".join(rows).encode()) == Reading(
        {line: one.kept[2] for line, one in enumerate(alone, 2) if one.kept},
        {line: one.rejects[2] for line, one in enumerate(alone, 2) if one.rejects},
    )


@given(rows=st.lists(KEPT_PLAIN, min_size=1) | st.lists(IN_UTC, min_size=1))
def test_plain_rows_are_parsed_like_quoted_ones(
    rows: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    quoted = "\n".join('"' + row.replace(",", '",', 1) for row in rows)
    expected = read_file(path, HEADER + quoted.encode())

    assert read_file(path, HEADER + "\n".join([*rows, ""]).encode()) == expected


WORDS = st.lists(st.sampled_from(["abcdefgh", "01234567", "ABCDEFGH"]), min_size=1, max_size=16)


@given(ids=st.lists(WORDS.map("".join) | IDS, min_size=2, max_size=20))
def test_identifiers_with_one_hash_are_told_apart(
    ids: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    data = HEADER + "".join(f"{name},{AS_OF},{at}\n" for at, name in enumerate(ids)).encode()
    expected = {line: (name, AS_OF, line - 2) for line, name in enumerate(ids, 2)}

    assert read_file(path, data).kept == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "BLOCK_BYTES", 300)
        # The hash of an identifier is the sum of its words, in any order.
        patch.setattr(columns, "HASH_FACTORS", np.ones(16, np.uint64))
        assert read_file(path, data).kept == expected


MIDNIGHT = 1_767_571_200_000  # 2026-01-05 00:00 UTC
MINUTE = 60_000
LONG = ColumnMapping(id="srv", at="time", players="n")
ALONE = ColumnMapping(id=None, server="lobby", at="time", players="n")
SPREADSHEET = ColumnMapping(
    at="Datum+Uhrzeit", is_wide=True, others=("Summe",), time_zone="Europe/Berlin"
)
BRITISH = replace(LONG, time_zone="UTC", time_format="day-first", thousands=",")
GERMAN = (
    "Datum;Uhrzeit;Lobby EU;a, b;Summe\r\n05.01.2026;01:00;1;2;3\r\n5.1.2026;1:01;;n/a;0\r\n"
    "05.01.2026;01:02;4;;4\r\n;;;;\r\n"
)
EXCEL = (
    'sep=,\n"time","srv","n"\n"05/01/2026 00:00","a, b","1,942"\n05/01/2026 00:01,"a ""b""",3\n'
    '"05/01/2026 00:02","line\nbreak","4"\n'
)
INFLUX = (
    "#group,false,false,true\n#datatype,string,dateTime:RFC3339,long\n#default,,,\n,srv,time,n\n"
)


@pytest.mark.parametrize(
    ("text", "mapping", "form", "kept"),
    [
        (
            GERMAN,
            SPREADSHEET,
            "CSV with semicolons",
            [(2, "Lobby EU", 0, 1), (2, "a, b", 0, 2), (4, "Lobby EU", 2, 4)],
        ),
        (
            EXCEL,
            BRITISH,
            "CSV",
            [(3, "a, b", 0, 1942), (4, 'a "b"', 1, 3), (5, "line\nbreak", 2, 4)],
        ),
        (
            f"{INFLUX},a,2026-01-05T00:00:00Z,1\n\n{INFLUX},b,2026-01-05T00:01:00Z,2\n",
            LONG,
            "CSV",
            [(5, "a", 0, 1), (11, "b", 1, 2)],
        ),
        (
            "2026-01-05T00:00Z\t a \t7\n",
            replace(LONG, id="2", at="1", players="3"),
            "TSV",
            [(1, "a", 0, 7)],
        ),
        (
            "# time   n\n2026-01-05T00:00Z   7\n2026-01-05T00:01Z  12\n",
            ALONE,
            "columns between spaces",
            [(2, "lobby", 0, 7), (3, "lobby", 1, 12)],
        ),
        (
            "n | time|\n7|2026-01-05T00:00Z|\n",
            ALONE,
            "CSV with vertical bars",
            [(2, "lobby", 0, 7)],
        ),
        ("srv^time^n\na^2026-01-05T00:00Z^7^\n", LONG, "CSV with carets", [(2, "a", 0, 7)]),
        ("srv;time;n\ra;2026-01-05T00:00Z;7\r", LONG, "CSV with semicolons", [(2, "a", 0, 7)]),
        ("srv~time~n~\na~2026-01-05T00:00Z~7\n", LONG, "CSV with tildes", [(2, "a", 0, 7)]),
        (
            "srv,time,n\na,2026-01-05T00:00Z,-\nb,2026-01-05T00:01Z,7.0",
            LONG,
            "CSV",
            [(3, "b", 1, 7)],
        ),
    ],
)
def test_csv_of_any_form_is_read(
    text: str,
    mapping: ColumnMapping,
    form: str,
    kept: list[tuple[int, str, int, int]],
    tmp_path: Path,
) -> None:
    path = tmp_path / "week.csv"
    path.write_bytes(text.encode())

    table = read_rows(path, "csv", mapping)

    expected = [(line, name, MIDNIGHT + at * MINUTE, count) for line, name, at, count in kept]
    assert (table.kept, table.rejects) == (expected, [])
    sample = csv.read_sample(Source(str(path), "csv"))
    assert (sample.form, sample.is_whole) == (form, True)
    assert {*list_wanted(mapping, sample.table.names)} <= {*sample.table.names, "1", "time", "n"}
    assert {line for line, *_ in kept} - {5} <= {*sample.table.places}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("srv,time,n\n\na,2026-01-05T00:00Z,1\ntime,srv,n\n", ", line 4: a second table begins"),
        ("srv,time,n\0\n", ": contains NUL bytes"),
    ],
)
def test_csv_that_would_be_misread_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "week.csv"
    path.write_text(text)

    with pytest.raises(SourceError) as caught:
        read_rows(path, "csv", LONG)

    assert caught.value.reason.startswith(f"{path}{reason}")


KEYS_RULE = "must be an object with the keys serverId, observedAt and players"
NO_INSTANT = "observedAt: not a time; use YYYY-MM-DDTHH:MM:SSZ or Unix milliseconds"


@pytest.fixture
def read_ndjson(tmp_path: Path) -> ReadText:
    """Return a function that reads text as an NDJSON file."""
    return lambda text: read_file(tmp_path / "week.ndjson", text.encode())


def row(server_id: str = '"a"', observed_at: str = "1772366400005", players: str = "7") -> str:
    return f'{{"serverId":{server_id},"observedAt":{observed_at},"players":{players}}}'


@pytest.mark.parametrize(
    "line",
    [
        row(),
        ' { "players" : 7 ,\t"observedAt" : 1772366400005 , "serverId" : "\\u0061" } ',
        row(observed_at='"1772366400005"'),
        row(observed_at='"2026-03-01T12:00:00.005Z"'),
    ],
)
def test_a_row_is_an_object_with_three_keys(line: str, read_ndjson: ReadText) -> None:
    assert read_ndjson(line).kept == {1: ("a", 1772366400005, 7)}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{}", KEYS_RULE),
        ("[]", KEYS_RULE),
        ('{"serverId":"a","observedAt":5}', KEYS_RULE),
        ('{"serverId":"a","observedAt":1772366400005,"players":7,"max":9}', KEYS_RULE),
        ('{"serverid":"a","observedAt":1772366400005,"players":7}', KEYS_RULE),
        (row('"a"', "5", '{"a":1,"a":1}'), 'the key "a" is repeated'),
        (row("null"), IDENTIFIER),
        (row("5"), IDENTIFIER),
        (row(r'"\ud800"'), IDENTIFIER),
        (row(observed_at="null"), "observedAt: must be an integer or a string"),
        (row(observed_at="5.0"), "observedAt: must be an integer or a string"),
        (row(observed_at="1.7e12"), "observedAt: must be an integer or a string"),
        (row(observed_at="-1"), NO_INSTANT),
        (row(players="null"), f"{COUNT_RULE}, written as an integer"),
        (row(players='"7"'), f"{COUNT_RULE}, written as an integer"),
        (row(players="7.0"), f"{COUNT_RULE}, written as an integer"),
        (row(players="-0"), f"{COUNT_RULE}, written as an integer"),
        (row(players="1e999"), f"{COUNT_RULE}, written as an integer"),
        (row(players="-1"), f"{COUNT_RULE}, without separators"),
        (row(players=str(2**53)), f"{COUNT_RULE}, without separators"),
        (row(players="9" * 5000), "an integer of 5000 digits is too long"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_malformed_object_is_rejected_with_its_reason(
    line: str, reason: str, read_ndjson: ReadText
) -> None:
    found = read_ndjson(f"{row()}\n{line}\n{row()}\n")

    assert found == Reading(
        {1: ("a", 1772366400005, 7), 3: ("a", 1772366400005, 7)}, {2: (reason, line)}
    )
    assert read_ndjson(line) == Reading({}, {1: (reason, line)})


@pytest.mark.parametrize("line", ["", row()[:-1], row() + row(), f"\ufeff{row()}", f"\xa0{row()}"])
def test_a_line_that_is_not_json_is_rejected(line: str, read_ndjson: ReadText) -> None:
    found = read_ndjson(f"{row()}\n {line}\n{row()}\n")

    assert found.kept.keys() == {1, 3}
    assert found.rejects.keys() == {2}


T, T2 = "2026-03-01T12:00Z", "2026-03-01T13:00Z"
S, S2 = AS_OF // 1000, AS_OF // 1000 + 3600
ONE = {("lobby", AS_OF, 41), ("lobby", AS_OF + 3_600_000, 42)}
BOTH = {*ONE, ("pvp", AS_OF, 5)}
WIDE_BOTH = {"at": "time", "is_wide": True}
SERIES = {"at": "1", "players": "2", "id": None, "server": "lobby"}
GRAPHITE = {"id": "target", "at": "2", "players": "1", "time_unit": "s"}
STEPS = {"at": "time", "players": "values", "id": None, "server": "lobby"}
DOCUMENTS: list[tuple[object, dict[str, Any], set[tuple[str, int, int]]]] = [
    (
        [{"s": "lobby", "t": T, "n": 41}, {"s": "lobby", "t": T2, "n": 42, "max": 9}],
        {"id": "s", "at": "t", "players": "n"},
        ONE,
    ),
    ([[AS_OF, 41], [AS_OF + 3_600_000, 42]], SERIES, ONE),
    ({"start": S, "step": 3600, "values": [41, 42]}, {**STEPS, "time_unit": "s"}, ONE),
    ({"from": AS_OF, "interval": 3_600_000, "values": [41, 42, None]}, STEPS, ONE),
    ({"begin": T, "step": 3600, "values": [41, 42]}, STEPS, ONE),
    ({"start": T, "step": 3600, "values": {"lobby": [41, 42], "pvp": [5, None]}}, WIDE_BOTH, BOTH),
    (
        {"start": T, "step": 3600, "flags": [{"data": [{"x": S}]}], "tags": ["a"], "n": [41, 42]},
        {**STEPS, "players": "n"},
        ONE,
    ),
    (
        {"start": T, "step": 3600, "series": [{"name": "lobby", "counts": [41, 42]}]},
        {"id": "name", "at": "time", "players": "counts"},
        ONE,
    ),
    (
        {"lobby": [[AS_OF, 41], [AS_OF + 3_600_000, 42]], "pvp": [[AS_OF, 5]]},
        {"id": "key", "at": "1", "players": "2"},
        BOTH,
    ),
    ({"lobby": [[T, 41], [T2, 42]]}, {"id": "key", "at": "1", "players": "2"}, ONE),
    (
        {"lobby": [{"t": T, "n": 41}, {"t": T2, "n": 42}], "pvp": [{"t": T, "n": 5}]},
        {"id": "key", "at": "t", "players": "n"},
        BOTH,
    ),
    (
        {"lobby": {T: 41, T2: 42}, "pvp": {T: 5}},
        {"id": "key", "at": "time", "players": "value"},
        BOTH,
    ),
    ({T: {"lobby": 41, "pvp": 5}, T2: {"lobby": 42}}, WIDE_BOTH, BOTH),
    ({"time": [T, T2], "lobby": [41, 42], "pvp": [5, None]}, WIDE_BOTH, BOTH),
    ({"time": {"0": T, "1": T2}, "lobby": {"0": 41, "1": 42}}, WIDE_BOTH, ONE),
    ({"columns": [{"text": "time"}, "lobby"], "rows": [[T, 41], [T2, 42]]}, WIDE_BOTH, ONE),
    (
        {"ok": True, "data": {"result": {"records": [{"t": T, "n": 41}, {"t": T2, "n": 42}]}}},
        {"at": "t", "players": "n", "id": None, "server": "lobby"},
        ONE,
    ),
    (
        [
            {"target": "lobby", "datapoints": [[41, S], [42.0, S2], [None, S + 60]]},
            {"datapoints": [[5, S]], "target": "pvp"},
        ],
        GRAPHITE,
        BOTH,
    ),
    (
        {
            "results": [
                {
                    "series": [
                        {
                            "name": "players",
                            "tags": {"server": name},
                            "columns": ["time", "mean"],
                            "values": values,
                        }
                        for name, values in (("lobby", [[T, 41], [T2, 42]]), ("pvp", [[T, 5]]))
                    ]
                }
            ]
        },
        {"id": "tags.server", "at": "time", "players": "mean"},
        BOTH,
    ),
    (
        [
            [
                {
                    "entity_id": "lobby",
                    "state": "41",
                    "last_changed": T,
                    "attributes": {"unit": "p"},
                },
                {"state": "42", "last_changed": T2},
            ],
            [{"entity_id": "pvp", "state": "5", "last_changed": T}],
        ],
        {"id": "entity_id", "at": "last_changed", "players": "state"},
        BOTH,
    ),
    (
        [
            {"t": T, "servers": [{"name": "lobby", "n": 41}, {"name": "pvp", "n": 5}]},
            {"t": T2, "servers": [{"name": "lobby", "n": 42}]},
            {"t": T2, "servers": []},
        ],
        {"id": "name", "at": "t", "players": "n"},
        BOTH,
    ),
    (
        [
            {"t": T, "servers": {"lobby": {"n": 41}, "pvp": {"n": 5}}},
            {"t": T2, "servers": {"lobby": {"n": 42}}},
        ],
        {"id": "key", "at": "t", "players": "n"},
        BOTH,
    ),
    (
        [{"t": T, "online": 41, "sample": [{"name": "x", "ping": 7}]}, {"t": T2, "online": 42}],
        {"at": "t", "players": "online", "id": None, "server": "lobby"},
        ONE,
    ),
    (
        [{"t": T, "stats": {"online": {"now": 41}}}, {"t": T2, "stats.online.now": 42, "stats": 1}],
        {"at": "t", "players": "stats.online.now", "id": None, "server": "lobby"},
        ONE,
    ),
    (
        {"status": "ok", "lobby": [[T, 41], [T2, 42]], "pvp": [[T, 5]]},
        {"id": "key", "at": "1", "players": "2"},
        BOTH,
    ),
    (
        {"metric": {"room": "lobby"}, "values": [41, 42], "timestamps": [AS_OF, AS_OF + 3_600_000]},
        {"id": "metric.room", "at": "timestamps", "players": "values"},
        ONE,
    ),
]


@pytest.mark.parametrize(("document", "columns", "expected"), DOCUMENTS)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_document_of_any_form_is_read(
    document: object,
    columns: dict[str, Any],
    expected: set[tuple[str, int, int]],
    indent: int | None,
    tmp_path: Path,
) -> None:
    path = tmp_path / "data.json"
    path.write_text(json.dumps(document, indent=indent), "utf-8")
    mapping = ColumnMapping(**columns)

    found = read_rows(path, "json", mapping)

    assert ({row[1:] for row in found.kept}, found.rejects) == (expected, [])
    sample = read_document_sample(Source(str(path), "json", mapping)).table
    assert {*mapping.names} - {None} <= {*sample.names}
    path.write_text(f"var data = {json.dumps(document, indent=indent)};\n", "utf-8")
    assert read_rows(path, "json", mapping) == found
    data = json.dumps(document).encode()
    for cut in range(0, len(data), 7):
        path.write_bytes(data[:cut])
        with pytest.raises(SourceError):
            read_rows(path, "json", mapping)


NAMES = st.sampled_from(
    ["a", "b c", "é", '"', "\\", "}, {", "],[", "\u2028", "\ue000😀", "", "null"]
)
OBJECTS = st.lists(
    st.fixed_dictionaries(
        {
            "s": NAMES,
            "t": st.just(T) | st.just(AS_OF),
            "in": st.fixed_dictionaries({"n": st.integers(0, 99)}),
        },
        optional={"x": st.none() | st.lists(st.integers(), max_size=2) | NAMES},
    ),
    min_size=1,
    max_size=30,
)


@given(
    rows=OBJECTS,
    separators=st.sampled_from([(",", ":"), (", ", ": "), (",\n", " : ")]),
    is_ascii=st.booleans(),
    indent=st.sampled_from([None, 2]),
)
def test_objects_are_read_the_same_in_lines_and_in_a_document(
    rows: list[dict[str, Any]],
    separators: tuple[str, str],
    is_ascii: bool,
    indent: int | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.json"
    mapping = ColumnMapping(id="s", at="t", players="in.n")
    expected = [(at, row["s"].strip(), AS_OF, row["in"]["n"]) for at, row in enumerate(rows, 1)]
    times = 40  # so that most are in parts after the first one
    document = json.dumps(rows * times, separators=separators, ensure_ascii=is_ascii, indent=indent)
    lines = "\n".join(json.dumps(row, ensure_ascii=is_ascii) for row in rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "BLOCK_BYTES", 300)
        path.write_text(lines, "utf-8")
        assert read_rows(path, "ndjson", mapping).kept == expected
        path.write_text(document, "utf-8")
        found = read_rows(path, "json", mapping)
    assert [row[1:] for row in found.kept] == [row[1:] for row in expected] * times
    assert [row[0] for row in found.kept] == [*range(1, len(rows) * times + 1)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[{"t": 1, "t": 2}]', ': the key "t" is repeated'),
        ('[{"t": NaN}]', ": NaN is not JSON"),
        ('[{"s": 1, "t": 1, "n": 1}] {', ", after row 1: goes on after the end of the document"),
        ('[{"t": 1} {"t": 2}]', ", after row 1: not JSON: '{' after an item"),
        ("", ", line 1, column 1: cut off, or not JSON: Expecting value"),
        ("[" * 100_000, ": nested too deeply"),
        (
            '{"time": ["2026-03-01", "2026-03-02"], "n": [1]}',
            ': "time" has 2 values, but "n" has 1',
        ),
        (
            '{"start": "2026-03-01", "step": 60000, "values": [1]}',
            ': the start "2026-03-01" and the step "60000" are not numbers of one unit, nor',
        ),
        (
            f'{{"start": {S}, "step": "1h", "values": [1]}}',
            f': the start "{S}" and the step "1h" are',
        ),
        (
            '{"start": "2026-03-01T00Z", "step": 0, "values": [1]}',
            ': the start "2026-03-01T00Z" and',
        ),
    ],
)
def test_a_document_that_is_not_clear_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text(text, "utf-8")

    with pytest.raises(SourceError) as caught:
        read_rows(path, "json", ColumnMapping(id="s", at="t", players="n"))

    assert caught.value.reason.startswith(f"{path}{reason}")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("5", "must be an object or an array"),
        ('{"name":"a","name":"b","time":5,"online":1}', 'the key "name" is repeated'),
        ('{"name":"a","time":NaN,"online":1}', "NaN is not JSON"),
        ('{"name":"a","time":1,"online":1', "not JSON at column 32: Expecting ',' delimiter"),
    ],
)
def test_a_malformed_line_costs_only_itself(line: str, reason: str, tmp_path: Path) -> None:
    good = '{"name":7,"time":"1772366400000","online":"5","other":[]}'
    path = tmp_path / "rows.ndjson"
    path.write_text(f"{good}\n{line}\n{good}\n", "utf-8")

    found = read_rows(path, "ndjson", ColumnMapping(id="name", at="time", players="online"))

    assert found.kept == [(1, "7", AS_OF, 5), (3, "7", AS_OF, 5)]
    assert found.rejects == [(2, reason, line)]


@pytest.mark.parametrize("kind", ["ndjson", "json"])
def test_a_part_without_a_key_is_read_like_a_row_without_it(kind: str, tmp_path: Path) -> None:
    counts = [f'{{"s":"a","t":{AS_OF + at},"n":{at}}}' for at in range(200)]
    others = [f'{{"s":"a","t":{AS_OF + at}}}' for at in range(BLOCK_BYTES // 10)]
    path = tmp_path / "rows.json"
    between = "\n" if kind == "ndjson" else ","
    text = between.join([*counts, *others])
    path.write_text(text if kind == "ndjson" else f"[{text}]")

    found = read_rows(path, kind, ColumnMapping(id="s", at="t", players="n"))

    lost = found.skipped.total() + len(found.rejects)
    assert (len(found.kept), lost) == (len(counts), len(others))


def test_a_sample_needs_the_beginning_of_a_document_only(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    rows = [[AS_OF + at * 60_000, at] for at in range(50_000)]
    path.write_text(json.dumps({f"server {number}": rows for number in range(6)}), "utf-8")

    found = read_document_sample(Source(str(path), "json"))

    assert (found.form, found.is_whole, len(found.table.places)) == ("JSON", False, 4_998)
    assert [*found.table.names] == ["key", "1", "2"]
