"""Observations as CSV: the header, the quotes, the three fields, and the numbers of the lines."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import AS_OF
from srvstat.contract.errors import SourceError
from srvstat.sources import csv_observations
from srvstat.sources.source import Source

MIB = 1 << 20
HEADER = b"serverId,observedAt,players\n"


class Reading(NamedTuple):
    """What a file holds, by line: observations, rejects as (reason, text), the latest integer."""

    kept: dict[int, tuple[str, int, int]]
    rejects: dict[int, tuple[str, str]]
    latest_integer: int | None


Read = Callable[[bytes], Reading]


def reading(path: Path, data: bytes) -> Reading:
    path.write_bytes(data)
    kept: dict[int, tuple[str, int, int]] = {}
    rejects: dict[int, tuple[str, str]] = {}
    latest = None
    for batch in csv_observations.read(Source(str(path), "csv")):
        columns = zip(batch.server_ids, batch.instants, batch.players, strict=True)
        found = dict(zip(batch.lines, columns, strict=True))
        assert not kept.keys() & found.keys()
        kept.update(found)
        rejects.update({reject.line: (reject.reason, reject.text) for reject in batch.rejects})
        latest = max(latest or 0, batch.latest_integer or 0) or None
    return Reading(kept, rejects, latest)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return what a CSV file of some bytes holds."""
    return lambda data: reading(tmp_path / "week.csv", data)


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[[bytes], str]:
    """Return why a CSV file of some bytes is refused."""

    def run(data: bytes) -> str:
        with pytest.raises(SourceError) as caught:
            reading(tmp_path / "week.csv", data)
        return caught.value.reason.removeprefix(str(tmp_path / "week.csv"))

    return run


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("serverId,observedAt,players\n", 2),
        ("serverId,observedAt,players\r\n", 2),
        ("\ufeffserverId,observedAt,players\n", 2),
        ('"serverId","observedAt","players"\n', 2),
        ('\ufeff"serverId",observedAt,"players"\r\n', 2),
        ("\n\r\nserverId,observedAt,players\n", 4),
        ("\ufeff\n\nserverId,observedAt,players\n", 4),
        ("\n" * (MIB + 10) + "serverId,observedAt,players\n\n", MIB + 13),
    ],
)
def test_the_header_is_the_first_line_that_is_not_empty(header: str, line: int, read: Read) -> None:
    assert read(header.encode() + b"a,5,7\n") == Reading({line: ("a", 5, 7)}, {}, 5)


@pytest.mark.parametrize("header", ["serverId,observedAt,players", '"serverId",observedAt,players'])
def test_a_header_alone_holds_no_observation(header: str, read: Read) -> None:
    assert read(header.encode()) == Reading({}, {}, None)


@pytest.mark.parametrize(
    "header",
    [
        "a,5,7",
        "observedAt,serverId,players",
        "serverid,observedat,players",
        "serverId,observedAt",
        "serverId,observedAt,players,region",
        "serverId,observedAt,players,",
        " serverId,observedAt,players",
        "serverId, observedAt, players",
        "serverId;observedAt;players",
        "serverId\tobservedAt\tplayers",
        "serverId observedAt players",
        '"serverId,observedAt,players"',
        '"serverId,observedAt,players',
        '"serverId" ,observedAt,players',
        '"""serverId""",observedAt,players',
        '"server\nId",observedAt,players',
        "\ufeff\ufeffserverId,observedAt,players",
        "# made by hand\nserverId,observedAt,players",
        " \nserverId,observedAt,players",
        '{"serverId":"a","observedAt":5,"players":7}',
    ],
)
def test_any_other_header_is_refused(header: str, refusal: Callable[[bytes], str]) -> None:
    reason = "the header serverId,observedAt,players is needed"

    assert refusal(f"{header}\na,5,7\n".encode()) == f", line 1: {reason}"
    assert refusal(f"\n\n{header}\na,5,7\n".encode()).startswith(", line 3: ")


@pytest.mark.parametrize("data", ["", "\n\r\n", "\ufeff"])
def test_a_file_that_says_nothing_is_refused(data: str, refusal: Callable[[bytes], str]) -> None:
    reason = ": empty; the header serverId,observedAt,players is needed"

    assert refusal(data.encode()) == reason


def test_the_header_counts_once(read: Read) -> None:
    assert read(HEADER + HEADER + b"a,5,7\n").rejects.keys() == {2}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_lines_are_skipped_and_counted(end: str, read: Read) -> None:
    lines = ["serverId,observedAt,players", "", "a,5,7", "", "", "b,6,8", ""]

    assert read(end.join(lines).encode()).kept == {3: ("a", 5, 7), 6: ("b", 6, 8)}


@pytest.mark.parametrize(
    "row",
    [
        'srv-1,1772366400000,"7"',
        '"srv-1","1772366400000","7"',
        '"srv-1",1772366400000,7\r',
        '"srv-1","2026-03-01T12:00Z","7"',
    ],
)
def test_a_field_may_be_quoted(row: str, read: Read) -> None:
    assert read(HEADER + row.encode()).kept == {2: ("srv-1", AS_OF, 7)}


NOT_IN_QUOTES = "not 3 fields with quotes as in RFC 4180"
OPEN = "a quote is opened and not closed"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a", "3 fields are needed, not 1"),
        ("a,5", "3 fields are needed, not 2"),
        ("a,5,7,", "3 fields are needed, not 4"),
        ("a;5;7", "3 fields are needed, not 1"),
        ('"a","5"', NOT_IN_QUOTES),
        ('"a,5,7"', NOT_IN_QUOTES),
        ('"a" ,5,7', NOT_IN_QUOTES),
        (' "a",5,7', NOT_IN_QUOTES),
        ('"a"b,5,7', NOT_IN_QUOTES),
        ('a"b"c,5,7', NOT_IN_QUOTES),
        ("'a',5,7", "serverId: 1 to 128 letters, digits and hyphens are needed"),
        (",5,7", "serverId: 1 to 128 letters, digits and hyphens are needed"),
        ('"",5,7', "serverId: 1 to 128 letters, digits and hyphens are needed"),
        ("a,,7", "observedAt: not Unix milliseconds and not YYYY-MM-DDTHH:MM:SSZ"),
        ("a,5,", "players: a whole number from 0 to 9007199254740991 is needed, in digits alone"),
        (",,", "serverId: 1 to 128 letters, digits and hyphens are needed"),
        ('"a,5,7', OPEN),
        ('a,5,7"', NOT_IN_QUOTES),
        ('"a"",5,7', OPEN),
    ],
)
def test_a_row_of_another_form_is_rejected_with_its_reason(
    row: str, reason: str, read: Read
) -> None:
    data = HEADER + b"a,1,1\n" + row.encode() + b"\nb,2,2\n"

    assert read(data) == Reading({2: ("a", 1, 1), 4: ("b", 2, 2)}, {3: (reason, row)}, 2)


def test_a_doubled_quote_belongs_to_its_field(read: Read) -> None:
    found = read(HEADER + b'"a""b",1,1\n"a"",5,7",1,1\nb,2,2\n')

    assert found.kept == {4: ("b", 2, 2)}
    assert found.rejects.keys() == {2, 3}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_break_inside_quotes_does_not_end_the_row(end: str, read: Read) -> None:
    record = end.join(['"a', "srv,1,2", 'b",5,7'])
    found = read(HEADER + f"a,1,1{end}{record}{end}{end}b,2,2{end}".encode())

    assert found.kept == {2: ("a", 1, 1), 7: ("b", 2, 2)}
    assert {line: text for line, (_, text) in found.rejects.items()} == {3: record}


@pytest.mark.parametrize(
    "row", ['"a,5,7', 'a,"5,7', 'a,5,"7', 'a"b,5,7', 'a,5,7"', '"a"",5,7', '"a""b,5,7', '"', '"""']
)
@pytest.mark.parametrize(
    "others",
    [
        ["b,1,1", "b,2,2"],
        ['"b",1,1', '"b",2,2'],
        ['"b","1","1"', "b,2,2"],
        ["b,1,1", ""],
    ],
)
def test_a_quote_that_is_never_closed_costs_only_its_own_line(
    row: str, others: list[str], read: Read
) -> None:
    expected = read(HEADER + "\n".join([*others, "", *others]).encode()).kept
    found = read(HEADER + "\n".join([*others, row, *others]).encode())

    assert found.kept == expected
    assert {line: text for line, (_, text) in found.rejects.items()} == {4: row}


@pytest.mark.parametrize("row", ['a"b,5,7', 'a,5"6,7', 'a,5,7"', '"a"b"c,5,7', '"a,5,7'])
def test_quotes_that_stand_where_none_may_never_pair_up_across_rows(row: str, read: Read) -> None:
    rows = [row if number in (10, 60) else f"b,{number},1" for number in range(100)]
    found = read(HEADER + "\n".join(rows).encode())

    assert len(found.kept) == 98
    assert {line: text for line, (_, text) in found.rejects.items()} == {12: row, 62: row}


ROWS = [f"srv-1,{AS_OF + number},1" for number in range(110_000)]
ROW_BYTES = len(f"{ROWS[0]}\n")
KEPT = {number: ("srv-1", AS_OF + number - 2, 1) for number in range(2, 110_002)}
FIRST_BOUNDARY = (MIB - len(HEADER)) // ROW_BYTES
SECOND_BOUNDARY = (2 * MIB - len(HEADER)) // ROW_BYTES


def test_lines_are_numbered_through_all_blocks(read: Read) -> None:
    data = HEADER + "\n".join(ROWS).encode()

    found = read(data)

    assert len(data) > 2 * MIB
    assert found.kept.items() ^ KEPT.items() == set()
    assert found.rejects == {}


@pytest.mark.parametrize(
    "at", [FIRST_BOUNDARY - 1, FIRST_BOUNDARY, FIRST_BOUNDARY + 1, SECOND_BOUNDARY, len(ROWS) - 1]
)
def test_a_quote_never_closed_costs_one_line_across_blocks_too(at: int, read: Read) -> None:
    rows = ROWS.copy()
    rows[at] = '"' + rows[at][1:]
    rows[60_000] = "nonsense"
    found = read(HEADER + "\n".join(rows).encode())

    assert found.rejects[at + 2] == (OPEN, rows[at])
    assert list(found.rejects) == sorted([at + 2, 60_002])
    assert found.kept.items() ^ KEPT.items() == {(line, KEPT[line]) for line in found.rejects}


@pytest.mark.parametrize("at", [FIRST_BOUNDARY - 1, FIRST_BOUNDARY])
def test_a_line_break_inside_quotes_may_lie_between_two_blocks(at: int, read: Read) -> None:
    rows = ROWS.copy()
    rows[at] = '"' + rows[at][1:]
    rows[at + 1] = 'rv-1"' + rows[at + 1][5:]
    found = read(HEADER + "\n".join(rows).encode())

    assert {line: text for line, (_, text) in found.rejects.items()} == {
        at + 2: f"{rows[at]}\n{rows[at + 1]}"
    }
    assert found.kept.items() ^ KEPT.items() == {(line, KEPT[line]) for line in (at + 2, at + 3)}


@pytest.mark.parametrize("identifier", ["a", "-", "--help", "A-0-z", "0", "a" * 128])
def test_a_server_id_is_letters_digits_and_hyphens(identifier: str, read: Read) -> None:
    data = HEADER + f'{identifier},5,7\n"{identifier}",5,7\n'.encode()

    assert read(data).kept == {2: (identifier, 5, 7), 3: (identifier, 5, 7)}


@pytest.mark.parametrize(
    "identifier",
    ["a" * 129, "a_b", "a.b", "a b", " a", "a ", "a:b", "é", "٣", "a\x00", "\u212a", "\u017f"],
)
def test_any_other_server_id_is_rejected(identifier: str, read: Read) -> None:
    found = read(HEADER + f'{identifier},5,7\n"{identifier}",5,7\n'.encode())

    assert found.rejects.keys() == {2, 3}


@pytest.mark.parametrize(
    "players", ["0", "1", "10", "999999999999999", "1000000000000000", "9007199254740991"]
)
def test_players_are_digits_up_to_the_largest_exact_integer(players: str, read: Read) -> None:
    data = HEADER + f'a,5,{players}\n"a",5,"{players}"\n'.encode()

    assert read(data).kept == {2: ("a", 5, int(players)), 3: ("a", 5, int(players))}


@pytest.mark.parametrize(
    "players",
    [
        "",
        "00",
        "07",
        "-1",
        "-0",
        "+1",
        " 1",
        "1 ",
        "1\t",
        "1_000",
        "12.0",
        "12.",
        "1e3",
        "0x10",
        "NaN",
        "null",
        "٣",
        "\uff11",
        "²",
        "9007199254740992",
        "10000000000000000",
        "9" * 5000,
    ],
)
def test_players_of_any_other_form_are_rejected(players: str, read: Read) -> None:
    found = read(HEADER + f'a,5,{players}\n"a",5,"{players}"\n'.encode())

    assert found.kept == {}
    assert found.rejects.keys() == {2, 3}


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("0", 0),
        ("5", 5),
        ("1772366400000", AS_OF),
        ("0001772366400000", AS_OF),
        ("253402300799999", 253_402_300_799_999),
        ("2026-03-01T12:00Z", AS_OF),
        ("2026-03-01 12:00Z", AS_OF),
        ("2026-03-01T12:00:00Z", AS_OF),
        ("2026-03-01 12:00:59Z", AS_OF + 59_000),
        ("2026-03-01T12:00:00.0Z", AS_OF),
        ("2026-03-01T12:00:00.5Z", AS_OF + 500),
        ("2026-03-01T12:00:00.05Z", AS_OF + 50),
        ("2026-03-01T12:00:00.123Z", AS_OF + 123),
        ("2026-03-01T12:00:00.1239Z", AS_OF + 123),
        ("2026-03-01T12:00:00.999999999999Z", AS_OF + 999),
        ("2026-03-01T12:00+00:00", AS_OF),
        ("2026-03-01T12:00-00:00", AS_OF),
        ("2026-03-01T14:00+02:00", AS_OF),
        ("2026-03-01 06:30:00.000-05:30", AS_OF),
        ("2026-03-02T11:59+23:59", AS_OF),
        ("2026-02-28T12:01-23:59", AS_OF),
        ("2026-03-01T00:00Z", AS_OF - 43_200_000),
        ("2026-03-01T23:59:59.999Z", AS_OF + 43_199_999),
        ("1970-01-01T00:00Z", 0),
        ("1970-01-01T02:00+02:00", 0),
        ("2024-02-29T00:00Z", 1_709_164_800_000),
        ("9999-12-31T23:59:59.9999Z", 253_402_300_799_999),
    ],
)
def test_an_instant_is_unix_milliseconds_or_a_time_with_its_zone(
    text: str, at: int, read: Read
) -> None:
    data = HEADER + f'a,{text},7\n"a","{text}","7"\n'.encode()

    assert read(data).kept == {2: ("a", at, 7), 3: ("a", at, 7)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "+1",
        " 5",
        "5 ",
        "5.0",
        "1_772_366_400_000",
        "1.7e12",
        "0x10",
        "٣",
        "\uff11",
        "253402300800000",
        "9" * 20,
        "9" * 5000,
        "now",
        "2026-03-01T12:00",
        "2026-03-01 12:00:00",
        "2026-03-01T12:00:00.000",
        "2026-03-01",
        "2026-03-01Z",
        "2026-03-01T12Z",
        "2026-03-01T1200Z",
        "20260301T120000Z",
        "2026-3-1T12:00Z",
        "26-03-01T12:00Z",
        "2026-03-01t12:00Z",
        "2026-03-01T12:00z",
        "2026-03-01T12:00 Z",
        "2026-03-01  12:00Z",
        "2026-03-01T12:00ZZ",
        "2026-03-01T12:00UTC",
        "2026-03-01T12:00 UTC",
        "2026-03-01T12:00+02",
        "2026-03-01T12:00+2:00",
        "2026-03-01T12:00+0200",
        "2026-03-01T12:00+24:00",
        "2026-03-01T12:00-24:00",
        "2026-03-01T12:00+02:60",
        "2026-03-01T12:00\u221202:00",
        "2026-03-01T12:00:00.Z",
        "2026-03-01T12:00:00,5Z",
        "2026-03-01T12:00.5Z",
        "2026-03-01T12:00:0Z",
        "2026-03-01T12:00:60Z",
        "2026-03-01T12:60Z",
        "2026-03-01T24:00Z",
        "2026-00-01T12:00Z",
        "2026-13-01T12:00Z",
        "2026-03-00T12:00Z",
        "2026-02-30T12:00Z",
        "2026-02-29T12:00Z",
        "1900-02-29T12:00Z",
        "2026-W09-7T12:00Z",
        "2026-060T12:00Z",
        "0000-01-01T12:00Z",
        "1969-12-31T23:59:59.999Z",
        "1970-01-01T00:00+00:01",
        "9999-12-31T23:59-00:01",
        "10000-01-01T00:00Z",
        "202\uff16-03-01T12:00Z",
    ],
)
def test_an_instant_of_any_other_form_is_rejected(text: str, read: Read) -> None:
    found = read(HEADER + f'a,{text},7\n"a","{text}","7"\n'.encode())

    assert found.kept == {}
    assert found.rejects.keys() == {2, 3}


def test_the_latest_integer_looks_at_integers_alone(read: Read) -> None:
    rows = [b"a,2026-03-01T12:00Z,1", b"a,900,1", b"b,1000,1", b"a,2000,x", b'"a","950",1']

    assert read(HEADER + b"\n".join(rows)).latest_integer == 1000
    assert read(HEADER + b"a,2026-03-01T12:00Z,1").latest_integer is None


IDS = st.sampled_from(["a", "b", "srv-1"])
PLAIN = st.builds("{},{},{}".format, IDS, st.integers(0, 10**13), st.integers(0, 500))
CLOCK = st.from_regex(r"[T ](0[09]|23):[05]9:[05]0(\.[0-9]{3,9})?Z,[1-9]\r?", fullmatch=True)
DATES = st.sampled_from(["1970-01-01", "2024-02-29", "9999-12-31"])
IN_UTC = st.builds("{},{}{}".format, IDS, DATES, CLOCK)
ODD = st.sampled_from(
    ["", "\r", "a,5,7\r", '"a",5,"7"', "a,5", "a,5,7,9", "a_b,5,7", "nothing of the kind"]
) | st.sampled_from(
    [
        *("a,2026-03-01T12:00Z,7", "a,2026-03-01T12:00:00.1Z,7", "a,2026-03-01T12:00:60Z,7"),
        *("a,2026-02-29T12:00:00Z,7", "a,1969-12-31T23:59:59Z,7", "a,000000000000000000005,7"),
        *("a,253402300799999,7", "a,5,1000000000000000", "a,5,9007199254740992", "a,5,07"),
        *("a,٣,7", "a,202\uff16-03-01T12:00:00Z,7", "a,2026-03-01T12:00:00Z,07"),
    ]
)


@settings(max_examples=100)
@given(rows=st.lists(PLAIN | ODD, min_size=1, max_size=12) | st.lists(IN_UTC | ODD, min_size=1))
def test_a_row_is_read_in_company_as_it_is_read_alone(
    rows: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    alone = [reading(path, HEADER + row.encode()) for row in rows]
    latest = [one.latest_integer for one in alone if one.latest_integer is not None]

    assert reading(path, HEADER + "\n".join(rows).encode()) == Reading(
        {line: one.kept[2] for line, one in enumerate(alone, 2) if one.kept},
        {line: one.rejects[2] for line, one in enumerate(alone, 2) if one.rejects},
        max(latest, default=None),
    )


@given(rows=st.lists(PLAIN, min_size=1) | st.lists(IN_UTC, min_size=1))
def test_a_block_of_one_form_is_read_as_its_quoted_rows_are(
    rows: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    quote_value = "\n".join('"' + row.replace(",", '",', 1) for row in rows)
    judged = reading(path, HEADER + quote_value.encode())

    assert reading(path, HEADER + "\n".join([*rows, ""]).encode()) == judged
    (batch,) = csv_observations.read(Source(str(path), "csv"))
    assert (batch.text, batch.first_line) == ("\n".join(rows) if "Z" in rows[0] else None, 2)
