"""Server records: what is required, what each default is, and every bad record by its field."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import AS_OF, ndjson, server
from srvstat.contract.errors import SourceError
from srvstat.sources import servers
from srvstat.sources.servers import ServerRecord
from srvstat.sources.source import Source

Read = Callable[[bytes], list[ServerRecord]]
Refusal = Callable[[bytes], str]

GOOD = json.dumps(server("good")).encode()


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return the records of a servers file of some bytes."""

    def run(data: bytes) -> list[ServerRecord]:
        (tmp_path / "servers.ndjson").write_bytes(data)
        return servers.read(Source(str(tmp_path / "servers.ndjson"), "ndjson"))

    return run


@pytest.fixture
def refusal(tmp_path: Path, read: Read) -> Refusal:
    """Return why a servers file is refused, without the file's name, which stands first."""

    def run(data: bytes) -> str:
        with pytest.raises(SourceError) as caught:
            read(data)
        name, _, reason = caught.value.reason.partition(", ")
        assert name == str(tmp_path / "servers.ndjson")
        return reason

    return run


def record(**fields: Any) -> bytes:
    return json.dumps({**server("a"), **fields}).encode()


def written(name: str, value: str) -> bytes:
    """Return a record with a field whose value is written as it is."""
    return record(**{name: "HERE"}).replace(b'"HERE"', value.encode())


def after_a_good_one(data: bytes) -> bytes:
    """Put a record on line 3."""
    return GOOD + b"\n\r\n" + data + b"\n"


MINIMAL = ServerRecord(
    id="a",
    cfx_id="x-a",
    game="game_a",
    hostname="a",
    project_name="",
    project_description="",
    region="",
    players_current=None,
    players_max=0,
    tags=(),
    flags=(),
    chat_url="",
    icon_url=None,
    offline=False,
    first_seen_at=None,
    updated_at=None,
    publishable=True,
)
FULL = {
    "id": "srv-1",
    "game": "game_b",
    "cfxId": "abc123",
    "hostname": "Härbor 夜 😀",
    "projectName": "Harbor",
    "projectDescription": "A city\nby the sea",
    "region": "EU",
    "players": {"current": 0, "max": 2**53 - 1},
    "tags": ["one", "two", "one", ""],
    "flags": ["PREMIUM"],
    "chatUrl": "https://chat.example/harbor",
    "iconUrl": "https://icons.example/harbor.png",
    "offline": True,
    "firstSeenAt": "2026-03-01T12:00:00.000Z",
    "updatedAt": AS_OF,
    "publishable": False,
}
OPTIONAL = [name for name in FULL if name not in ("id", "cfxId", "game", "hostname")]


def test_a_record_may_say_everything(read: Read) -> None:
    assert read(json.dumps(FULL).encode()) == [
        ServerRecord(
            id="srv-1",
            cfx_id="abc123",
            game="game_b",
            hostname="Härbor 夜 😀",
            project_name="Harbor",
            project_description="A city\nby the sea",
            region="EU",
            players_current=0,
            players_max=2**53 - 1,
            tags=("one", "two", "one", ""),
            flags=("PREMIUM",),
            chat_url="https://chat.example/harbor",
            icon_url="https://icons.example/harbor.png",
            offline=True,
            first_seen_at=AS_OF,
            updated_at=AS_OF,
            publishable=False,
        )
    ]


def test_a_record_needs_four_fields_only(read: Read) -> None:
    assert read(record()) == [MINIMAL]


@pytest.mark.parametrize("name", [name for name in OPTIONAL if name != "publishable"])
def test_null_says_no_more_than_a_missing_field(name: str, read: Read) -> None:
    assert read(record(**{name: None})) == [MINIMAL]


@pytest.mark.parametrize(
    "players",
    [{}, {"current": None}, {"max": None}, {"current": None, "max": None}],
)
def test_null_inside_players_says_no_more_than_a_missing_field(
    players: dict[str, None], read: Read
) -> None:
    assert read(record(players=players)) == [MINIMAL]


def test_a_count_may_be_given_alone(read: Read) -> None:
    (current,) = read(record(players={"current": 5}))
    (most,) = read(record(players={"max": 9}))

    assert (current.players_current, current.players_max) == (5, 0)
    assert (most.players_current, most.players_max) == (None, 9)


@pytest.mark.parametrize("name", ["id", "cfxId", "game", "hostname"])
def test_a_required_field_may_not_be_missing_nor_null(name: str, refusal: Refusal) -> None:
    without = {key: value for key, value in server("a").items() if key != name}

    assert refusal(after_a_good_one(ndjson([without]))) == f"line 3: {name}: missing, and needed"
    assert refusal(after_a_good_one(record(**{name: None}))) == f"line 3: {name}: null, and needed"


def test_publishable_may_not_be_null(refusal: Refusal) -> None:
    assert refusal(record(publishable=None)).startswith("line 1: publishable: ")


IDENTIFIER = "1 to 128 letters, digits and hyphens are needed"
TEXT = "a text is needed"
TEXTS = "a list of texts is needed"
COUNT = "a whole number from 0 to 9007199254740991 is needed"
CLAIM = "true or false is needed"
INSTANT = "an integer or a text is needed"
NO_INSTANT = "not Unix milliseconds and not YYYY-MM-DDTHH:MM:SSZ"
NUL = "holds the character U+0000"
HALF = "holds half a character (a lone surrogate)"
ALL_TEXTS = ["hostname", "projectName", "projectDescription", "region", "chatUrl", "iconUrl"]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        *(
            (name, value, IDENTIFIER)
            for name in ("id", "cfxId")
            for value in ("5", "true", "[]", "{}", '""', '"a_b"', '"a b"', '"é"', r'"a\n"')
        ),
        ("id", '"' + "a" * 129 + '"', IDENTIFIER),
        ("cfxId", r'"\u212a"', IDENTIFIER),
        ("cfxId", r'"a\u0000"', IDENTIFIER),
        *(
            ("game", value, "game_a or game_b is needed")
            for value in ('"game_c"', '"GAME_A"', '"game_a "', '""', "1", "true", '["game_a"]')
        ),
        *((name, value, TEXT) for name in ALL_TEXTS for value in ("5", "true", "[]", '["a"]')),
        *((name, r'"a\u0000b"', NUL) for name in ALL_TEXTS),
        *((name, rf'"a{half}b"', HALF) for name in ALL_TEXTS for half in (r"\ud800", r"\udfff")),
        ("hostname", r'"\ude00\ud83d"', HALF),
        *((name, value, TEXTS) for name in ("tags", "flags") for value in ('"a"', "5", "{}")),
        *((name, value, TEXT) for name in ("tags", "flags") for value in ("[5]", '["a",null]')),
        *((name, '["a",["b"]]', TEXT) for name in ("tags", "flags")),
        *((name, r'["a\u0000"]', NUL) for name in ("tags", "flags")),
        *((name, r'["a","\udc00"]', HALF) for name in ("tags", "flags")),
        *(("players", value, "an object is needed") for value in ("5", '"5"', "[]", "true")),
        *(
            (name, value, CLAIM)
            for name in ("offline", "publishable")
            for value in ("0", "1", '"true"', '""', "[]", "{}")
        ),
        *(
            (name, value, INSTANT)
            for name in ("firstSeenAt", "updatedAt")
            for value in ("1.5", "1772366400000.0", "true", "[]", "-0")
        ),
        *(
            (name, value, NO_INSTANT)
            for name in ("firstSeenAt", "updatedAt")
            for value in ("-1", '""', '"2026-03-01"', '"yesterday"', r'"5\u0000"', r'"\ud800"')
        ),
        ("firstSeenAt", "253402300800000", "outside the years 1970 to 9999"),
        (
            "updatedAt",
            '"2026-03-01T12:00:00"',
            "no time zone: end it with Z or an offset such as +02:00",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_line_and_field(
    name: str, value: str, reason: str, refusal: Refusal
) -> None:
    assert refusal(after_a_good_one(written(name, value))) == f"line 3: {name}: {reason}"


@pytest.mark.parametrize("name", ["current", "max"])
@pytest.mark.parametrize(
    "value", ["-1", "-0", "9007199254740992", "5.0", "5e0", '"5"', "true", "[]", "{}"]
)
def test_a_wrong_count_is_refused_with_its_line_and_field(
    name: str, value: str, refusal: Refusal
) -> None:
    data = written("players", f'{{"{name}":{value}}}')

    assert refusal(after_a_good_one(data)) == f"line 3: players.{name}: {COUNT}"


@pytest.mark.parametrize("name", ["Id", "hostName", "cfx_id", "peak", "", "current"])
def test_an_unknown_field_is_refused(name: str, refusal: Refusal) -> None:
    reason = f'"{name}" is not a field of the record'

    assert refusal(after_a_good_one(record(**{name: None}))) == f"line 3: {reason}"


@pytest.mark.parametrize("name", ["Current", "peak", "", "id"])
def test_an_unknown_field_inside_players_is_refused(name: str, refusal: Refusal) -> None:
    reason = f'"{name}" is not a field of players'

    assert refusal(after_a_good_one(record(players={name: None}))) == f"line 3: {reason}"


@pytest.mark.parametrize("name", [*FULL])
def test_a_repeated_field_is_refused(name: str, refusal: Refusal) -> None:
    value = json.dumps(FULL[name])
    data = json.dumps(FULL).encode()[:-1] + f', "{name}": {value}}}'.encode()

    assert refusal(after_a_good_one(data)) == f'line 3: the key "{name}" is repeated'


def test_a_repeated_field_inside_players_is_refused(refusal: Refusal) -> None:
    data = written("players", '{"max":5,"current":1,"max":5}')

    assert refusal(after_a_good_one(data)) == 'line 3: the key "max" is repeated'


@pytest.mark.parametrize(
    "data",
    [b"null", b"[]", b"5", b'"a"', b"true", b"[" + record() + b"]"],
)
def test_a_record_is_an_object(data: bytes, refusal: Refusal) -> None:
    assert refusal(after_a_good_one(data)) == "line 3: the record: an object is needed"


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b" ",
        record()[:-1],
        record() + b",",
        record() + record(),
        record().replace(b'"', b"'"),
        record() + b" // by hand",
        b"\xef\xbb\xbf" + record(),
        b"[" * 100_000,
        written("hostname", '"a\tb"'),
        written("hostname", '"a\x00b"'),
        written("hostname", r'"\x41"'),
        written("players", '{"max":NaN}'),
        written("players", '{"max":Infinity}'),
        written("players", '{"max":007}'),
        written("players", '{"max":' + "9" * 5000 + "}"),
    ],
)
def test_a_line_that_is_no_json_is_refused_with_its_number(data: bytes, refusal: Refusal) -> None:
    assert refusal(after_a_good_one(data)).startswith("line 3: ")


def test_a_record_may_not_span_lines(refusal: Refusal) -> None:
    assert refusal(json.dumps(server("a"), indent=1).encode()).startswith("line 1: ")


def test_a_character_beyond_the_first_plane_may_be_escaped(read: Read) -> None:
    (found,) = read(written("hostname", r'"\ud83d\ude00"'))

    assert found.hostname == "😀"


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_records_are_lines_in_utf8(end: bytes, read: Read) -> None:
    data = b"\xef\xbb\xbf" + end.join([b"", GOOD, b"", record(hostname="é"), b""])

    assert [found.id for found in read(data)] == ["good", "a"]


def test_a_file_may_hold_no_record(read: Read) -> None:
    assert read(b"") == []


def test_an_identical_record_collapses(read: Read) -> None:
    again = json.dumps(dict(reversed(FULL.items()))).encode()
    first = json.dumps(FULL).encode()

    assert len(read(b"\n".join([first, GOOD, again, first]))) == 2


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"cfxId": "other"}, "id: line 1 has the same one"),
        ({"hostname": "other"}, "id: line 1 has the same one"),
        ({"id": "other"}, "cfxId: line 1 has the same one"),
    ],
)
def test_an_identifier_may_stand_once_whatever_publishable_says(
    first: bool, second: bool, fields: dict[str, str], reason: str, refusal: Refusal
) -> None:
    records = [record(publishable=first), GOOD, record(publishable=second, **fields)]

    assert refusal(b"\n".join(records)) == f"line 3: {reason}"


def test_records_that_differ_in_publishable_alone_are_not_identical(refusal: Refusal) -> None:
    records = [record(publishable=True), record(publishable=False)]

    assert refusal(b"\n".join(records)) == "line 2: id: line 1 has the same one"


def test_identifiers_that_differ_in_case_are_two(read: Read) -> None:
    records = [server("a", cfxId="x"), server("A", cfxId="X")]

    assert [found.id for found in read(ndjson(records))] == ["a", "A"]


def test_an_id_may_equal_another_servers_cfx_id(read: Read) -> None:
    records = [server("a", cfxId="b"), server("b", cfxId="a"), server("c", cfxId="c")]

    assert [found.id for found in read(ndjson(records))] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ("1772366400000", AS_OF),
        ('"1772366400000"', AS_OF),
        ('"2026-03-01 12:00Z"', AS_OF),
        ('"2026-03-01T14:00:00.0019+02:00"', AS_OF + 1),
        ("0", 0),
    ],
)
@pytest.mark.parametrize("name", ["firstSeenAt", "updatedAt"])
def test_a_time_takes_the_forms_that_an_observation_takes(
    name: str, value: str, at: int, read: Read
) -> None:
    (found,) = read(written(name, value))

    assert {"firstSeenAt": found.first_seen_at, "updatedAt": found.updated_at}[name] == at
