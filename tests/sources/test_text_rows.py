"""Observations as CSV and NDJSON: headers, quotes, objects, and rows across blocks."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import AS_OF
from sources.readings import Reading, read_file
from srvstat.contract.errors import SourceError
from srvstat.sources import csv, source
from srvstat.sources.source import BLOCK_BYTES, Source, TextBlock

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
    reason = ": empty; must begin with the header serverId,observedAt,players"

    assert refusal(data.encode()) == reason


NOT_IN_QUOTES = "must be 3 fields, quoted as in RFC 4180"
OPEN = "a quote is not closed"
IDENTIFIER = "serverId: must be 1 to 128 letters, digits and hyphens"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a", "must have 3 fields, not 1"),
        ("a,1772366400005,7,", "must have 3 fields, not 4"),
        ('"a","5"', NOT_IN_QUOTES),
        ('"a,1772366400005,7"', NOT_IN_QUOTES),
        ('"a" ,1772366400005,7', NOT_IN_QUOTES),
        ('a"b"c,1772366400005,7', NOT_IN_QUOTES),
        ("'a',1772366400005,7", IDENTIFIER),
        ('"a,1772366400005,7', OPEN),
        ('a,1772366400005,7"', NOT_IN_QUOTES),
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


ROWS = [f"srv-1,{AS_OF + number},1" for number in range(16_000)]
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
def test_plain_rows_are_parsed_like_quoted_ones_and_keep_only_the_text_they_need(
    rows: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    quoted = "\n".join('"' + row.replace(",", '",', 1) for row in rows)
    expected = read_file(path, HEADER + quoted.encode())

    assert read_file(path, HEADER + "\n".join([*rows, ""]).encode()) == expected
    blocks: list[TextBlock] = []
    list(csv.read(Source(str(path), "csv", keep_text=blocks.append)))
    assert len(blocks) == ("Z" in rows[0])


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
        patch.setattr(csv, "HASH_FACTORS", np.ones(16, np.uint64))
        assert read_file(path, data).kept == expected


KEYS_RULE = "must be an object with the keys serverId, observedAt and players"
NO_INSTANT = "observedAt: not Unix milliseconds and not YYYY-MM-DDTHH:MM:SSZ"
COUNT_RULE = "players: must be a whole number from 0 to 9007199254740991"


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
        (row(players="-1"), f"{COUNT_RULE}, in digits only"),
        (row(players=str(2**53)), f"{COUNT_RULE}, in digits only"),
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


@pytest.mark.parametrize("line", ["", row()[:-1], row() + row(), f"\ufeff{row()}", f"\xa0{row()}"])
def test_a_line_that_is_not_json_is_rejected(line: str, read_ndjson: ReadText) -> None:
    found = read_ndjson(f"{row()}\n {line}\n{row()}\n")

    assert found.kept.keys() == {1, 3}
    assert found.rejects.keys() == {2}
