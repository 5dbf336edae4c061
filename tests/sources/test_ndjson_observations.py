"""Observations as NDJSON: an object a line, with three keys and nothing coerced."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from conftest import AS_OF
from srvstat.sources import ndjson_observations
from srvstat.sources.source import Source

IDENTIFIER_NEEDED = "serverId: 1 to 128 letters, digits and hyphens are needed"
KEYS_NEEDED = "an object with the keys serverId, observedAt and players is needed"
NO_INSTANT = "observedAt: not Unix milliseconds and not YYYY-MM-DDTHH:MM:SSZ"
COUNT_NEEDED = "players: a whole number from 0 to 9007199254740991 is needed"


class Reading(NamedTuple):
    """What a file holds, by line: observations, rejects as (reason, text), the latest integer."""

    kept: dict[int, tuple[str, int, int]]
    rejects: dict[int, tuple[str, str]]
    latest_integer: int | None


Read = Callable[[str], Reading]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return what an NDJSON file of some text holds."""

    def run(text: str) -> Reading:
        path = tmp_path / "week.ndjson"
        path.write_bytes(text.encode())
        batches = list(ndjson_observations.read(Source(str(path), "ndjson")))
        return Reading(
            {
                line: (server_id, observed_at, players)
                for batch in batches
                for line, server_id, observed_at, players in zip(
                    batch.lines, batch.server_ids, batch.instants, batch.players, strict=True
                )
            },
            {
                reject.line: (reject.reason, reject.text)
                for batch in batches
                for reject in batch.rejects
            },
            max((batch.latest_integer or 0 for batch in batches), default=0) or None,
        )

    return run


def row(server_id: str = '"a"', observed_at: str = "5", players: str = "7") -> str:
    return f'{{"serverId":{server_id},"observedAt":{observed_at},"players":{players}}}'


@pytest.mark.parametrize(
    "line",
    [
        row(),
        '{"players":7,"observedAt":5,"serverId":"a"}',
        ' { "serverId" : "a" ,\t"observedAt" : 5 , "players" : 7 } ',
        r'{"serverId":"\u0061","observedAt":5,"players":7}',
        row(observed_at='"5"'),
        row(observed_at='"1970-01-01T00:00:00.005Z"'),
    ],
)
def test_a_line_is_an_object_with_the_three_keys(line: str, read: Read) -> None:
    assert read(line).kept == {1: ("a", 5, 7)}


@pytest.mark.parametrize("text", ["", "\n\r\n", "\ufeff"])
def test_a_file_may_hold_no_observation(text: str, read: Read) -> None:
    assert read(text) == Reading({}, {}, None)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_numbered_as_they_stand_in_the_file(end: str, read: Read) -> None:
    found = read("\ufeff" + end.join(["", row(), "", "x", row(), "", ""]))

    assert found.kept == {2: ("a", 5, 7), 5: ("a", 5, 7)}
    assert {line: text for line, (_, text) in found.rejects.items()} == {4: "x"}


@pytest.mark.parametrize("server_id", ["a", "-", "A-0-z", "a" * 128])
def test_a_server_id_is_letters_digits_and_hyphens(server_id: str, read: Read) -> None:
    assert read(row(f'"{server_id}"')).kept == {1: (server_id, 5, 7)}


@pytest.mark.parametrize("players", [0, 1, 2**53 - 1])
def test_players_are_an_integer_up_to_the_largest_exact_one(players: int, read: Read) -> None:
    assert read(row(players=str(players))).kept == {1: ("a", 5, players)}


@pytest.mark.parametrize(
    ("observed_at", "at"),
    [
        ("0", 0),
        ("1772366400000", AS_OF),
        ("253402300799999", 253_402_300_799_999),
        ('"1772366400000"', AS_OF),
        ('"2026-03-01T12:00Z"', AS_OF),
        ('"2026-03-01 13:00:00.0009+01:00"', AS_OF),
    ],
)
def test_an_instant_is_an_integer_or_a_text(observed_at: str, at: int, read: Read) -> None:
    assert read(row(observed_at=observed_at)).kept == {1: ("a", at, 7)}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{}", KEYS_NEEDED),
        ("[]", KEYS_NEEDED),
        ("null", KEYS_NEEDED),
        ("7", KEYS_NEEDED),
        ('"serverId"', KEYS_NEEDED),
        ('["a",5,7]', KEYS_NEEDED),
        ('{"serverId":"a","observedAt":5}', KEYS_NEEDED),
        ('{"serverId":"a","players":7}', KEYS_NEEDED),
        ('{"observedAt":5,"players":7}', KEYS_NEEDED),
        ('{"serverId":"a","observedAt":5,"players":7,"max":9}', KEYS_NEEDED),
        ('{"serverid":"a","observedAt":5,"players":7}', KEYS_NEEDED),
        (
            '{"serverId":"a","observedAt":5,"players":7,"players":7}',
            'the key "players" is repeated',
        ),
        (row('"a"', "5", '{"a":1,"a":1}'), 'the key "a" is repeated'),
        (row("null"), IDENTIFIER_NEEDED),
        (row("5"), IDENTIFIER_NEEDED),
        (row('""'), IDENTIFIER_NEEDED),
        (row('"a_b"'), IDENTIFIER_NEEDED),
        (row(r'"a\n"'), IDENTIFIER_NEEDED),
        (row(r'"\ud800"'), IDENTIFIER_NEEDED),
        (row(r'"\u0000"'), IDENTIFIER_NEEDED),
        (row('"' + "a" * 129 + '"'), IDENTIFIER_NEEDED),
        (row(observed_at="null"), "observedAt: an integer or a text is needed"),
        (row(observed_at="true"), "observedAt: an integer or a text is needed"),
        (row(observed_at="5.0"), "observedAt: an integer or a text is needed"),
        (row(observed_at="1.7e12"), "observedAt: an integer or a text is needed"),
        (row(observed_at="-0"), "observedAt: an integer or a text is needed"),
        (row(observed_at="[5]"), "observedAt: an integer or a text is needed"),
        (row(observed_at="-1"), NO_INSTANT),
        (row(observed_at='"+5"'), NO_INSTANT),
        (row(observed_at='"2026-03-01"'), NO_INSTANT),
        (row(observed_at="253402300800000"), "observedAt: outside the years 1970 to 9999"),
        (
            row(observed_at='"2026-03-01T12:00"'),
            "observedAt: no time zone: end it with Z or an offset such as +02:00",
        ),
        (row(players="null"), f"{COUNT_NEEDED}, written as an integer"),
        (row(players="true"), f"{COUNT_NEEDED}, written as an integer"),
        (row(players='"7"'), f"{COUNT_NEEDED}, written as an integer"),
        (row(players="7.0"), f"{COUNT_NEEDED}, written as an integer"),
        (row(players="7e0"), f"{COUNT_NEEDED}, written as an integer"),
        (row(players="-0"), f"{COUNT_NEEDED}, written as an integer"),
        (row(players="1e999"), f"{COUNT_NEEDED}, written as an integer"),
        (row(players="-1"), f"{COUNT_NEEDED}, in digits alone"),
        (row(players=str(2**53)), f"{COUNT_NEEDED}, in digits alone"),
        (row(players="NaN"), "NaN is not JSON"),
        (row(players="-Infinity"), "-Infinity is not JSON"),
        (row(players="9" * 5000), "an integer of 5000 digits is too long"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_any_other_line_is_rejected_with_its_reason(line: str, reason: str, read: Read) -> None:
    found = read(f"{row()}\n{line}\n{row()}\n")

    assert found == Reading({1: ("a", 5, 7), 3: ("a", 5, 7)}, {2: (reason, line)}, 5)


@pytest.mark.parametrize(
    "line",
    [
        "",
        row(players="07"),
        row(players="+7"),
        row(players="7_0"),
        row(players="0x7"),
        row(players="7."),
        row(players=""),
        row()[:-1],
        row() + row(),
        row() + ",",
        f"[{row()}",
        "serverId,observedAt,players",
        row().replace('"', "'"),
        row('"a\tb"'),
        f"\ufeff{row()}",
        f"\xa0{row()}",
        f"{row()} // by hand",
    ],
)
def test_a_line_that_is_no_json_is_rejected_alone(line: str, read: Read) -> None:
    found = read(f"{row()}\n {line}\n{row()}\n")

    assert found.kept.keys() == {1, 3}
    assert found.rejects.keys() == {2}


def test_an_object_may_not_span_lines(read: Read) -> None:
    found = read(json.dumps({"serverId": "a", "observedAt": 5, "players": 7}, indent=1))

    assert found.rejects.keys() == {1, 2, 3, 4, 5}


def test_the_latest_integer_looks_at_integers_alone(read: Read) -> None:
    lines = [row(observed_at='"2026-03-01T12:00Z"'), row(observed_at="9"), row(observed_at="8")]

    assert read("\n".join(lines)).latest_integer == 9
    assert read(lines[0]).latest_integer is None
