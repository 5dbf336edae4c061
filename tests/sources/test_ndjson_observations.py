"""Observations as NDJSON: one object a line, with three keys, and no value is coerced."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sources.readings import Reading, read_file

IDENTIFIER_RULE = "serverId: must be 1 to 128 letters, digits and hyphens"
KEYS_RULE = "must be an object with the keys serverId, observedAt and players"
NO_INSTANT = "observedAt: not Unix milliseconds and not YYYY-MM-DDTHH:MM:SSZ"
COUNT_RULE = "players: must be a whole number from 0 to 9007199254740991"


Read = Callable[[str], Reading]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that reads text as an NDJSON file."""
    return lambda text: read_file(tmp_path / "week.ndjson", text.encode())


def row(server_id: str = '"a"', observed_at: str = "1772366400005", players: str = "7") -> str:
    return f'{{"serverId":{server_id},"observedAt":{observed_at},"players":{players}}}'


@pytest.mark.parametrize(
    "line",
    [
        row(),
        '{"players":7,"observedAt":1772366400005,"serverId":"a"}',
        ' { "serverId" : "a" ,\t"observedAt" : 1772366400005 , "players" : 7 } ',
        r'{"serverId":"\u0061","observedAt":1772366400005,"players":7}',
        row(observed_at='"1772366400005"'),
        row(observed_at='"2026-03-01T12:00:00.005Z"'),
    ],
)
def test_a_row_is_an_object_with_three_keys(line: str, read: Read) -> None:
    assert read(line).kept == {1: ("a", 1772366400005, 7)}


@pytest.mark.parametrize("text", ["", "\n\r\n", "\ufeff"])
def test_a_file_may_be_empty(text: str, read: Read) -> None:
    assert read(text) == Reading({}, {})


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_numbered_with_the_empty_ones(end: str, read: Read) -> None:
    found = read("\ufeff" + end.join(["", row(), "", "x", row(), "", ""]))

    assert found.kept == {2: ("a", 1772366400005, 7), 5: ("a", 1772366400005, 7)}
    assert found.rejected_texts == {4: "x"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{}", KEYS_RULE),
        ("[]", KEYS_RULE),
        ('{"serverId":"a","observedAt":5}', KEYS_RULE),
        ('{"serverId":"a","observedAt":1772366400005,"players":7,"max":9}', KEYS_RULE),
        ('{"serverid":"a","observedAt":1772366400005,"players":7}', KEYS_RULE),
        (
            '{"serverId":"a","observedAt":1772366400005,"players":7,"players":7}',
            'the key "players" is repeated',
        ),
        (row('"a"', "5", '{"a":1,"a":1}'), 'the key "a" is repeated'),
        (row("null"), IDENTIFIER_RULE),
        (row("5"), IDENTIFIER_RULE),
        (row(r'"a\n"'), IDENTIFIER_RULE),
        (row(r'"\ud800"'), IDENTIFIER_RULE),
        (row(r'"\u0000"'), IDENTIFIER_RULE),
        (row('"' + "a" * 129 + '"'), IDENTIFIER_RULE),
        (row(observed_at="null"), "observedAt: must be an integer or a string"),
        (row(observed_at="5.0"), "observedAt: must be an integer or a string"),
        (row(observed_at="1.7e12"), "observedAt: must be an integer or a string"),
        (row(observed_at="-1"), NO_INSTANT),
        (row(observed_at='"+5"'), NO_INSTANT),
        (row(observed_at='"2026-03-01"'), NO_INSTANT),
        (row(observed_at="253402300800000"), "observedAt: outside the years 1970 to 9999"),
        (
            row(observed_at='"2026-03-01T12:00"'),
            "observedAt: no time zone: end it with Z or an offset such as +02:00",
        ),
        (row(players="null"), f"{COUNT_RULE}, written as an integer"),
        (row(players='"7"'), f"{COUNT_RULE}, written as an integer"),
        (row(players="7.0"), f"{COUNT_RULE}, written as an integer"),
        (row(players="-0"), f"{COUNT_RULE}, written as an integer"),
        (row(players="1e999"), f"{COUNT_RULE}, written as an integer"),
        (row(players="-1"), f"{COUNT_RULE}, in digits only"),
        (row(players=str(2**53)), f"{COUNT_RULE}, in digits only"),
        (row(players="NaN"), "NaN is not JSON"),
        (row(players="-Infinity"), "-Infinity is not JSON"),
        (row(players="9" * 5000), "an integer of 5000 digits is too long"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_malformed_row_is_rejected_with_its_reason(line: str, reason: str, read: Read) -> None:
    found = read(f"{row()}\n{line}\n{row()}\n")

    assert found == Reading(
        {1: ("a", 1772366400005, 7), 3: ("a", 1772366400005, 7)}, {2: (reason, line)}
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        row(players="07"),
        row(players="+7"),
        row(players=""),
        row()[:-1],
        row() + row(),
        row() + ",",
        "serverId,observedAt,players",
        row('"a\tb"'),
        f"\ufeff{row()}",
        f"\xa0{row()}",
        f"{row()} // by hand",
    ],
)
def test_a_line_that_is_not_json_is_rejected(line: str, read: Read) -> None:
    found = read(f"{row()}\n {line}\n{row()}\n")

    assert found.kept.keys() == {1, 3}
    assert found.rejects.keys() == {2}
