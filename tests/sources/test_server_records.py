"""Server records: fields, defaults, and the reasons for refusing a record."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import AS_OF, ndjson, server
from srvstat.contract.errors import SourceError
from srvstat.sources import servers
from srvstat.sources.servers import PartialRecord, choose_ids, make_slug
from srvstat.sources.source import Source
from srvstat.sources.values import IDENTIFIER

Read = Callable[[bytes], list[PartialRecord]]
Refusal = Callable[[bytes], str]

GOOD = json.dumps(server("good")).encode()


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that reads bytes as a servers file."""

    def run(data: bytes) -> list[PartialRecord]:
        (tmp_path / "servers.ndjson").write_bytes(data)
        return servers.read_records(Source(str(tmp_path / "servers.ndjson"), "ndjson"))

    return run


@pytest.fixture
def refusal(tmp_path: Path, read: Read) -> Refusal:
    """Return a function that returns why bytes are refused, without the name of the file."""

    def run(data: bytes) -> str:
        with pytest.raises(SourceError) as caught:
            read(data)
        name, _, reason = caught.value.reason.partition(", ")
        assert name == str(tmp_path / "servers.ndjson")
        return reason

    return run


def record(**fields: Any) -> bytes:
    return json.dumps({**server("a"), **fields}).encode()


def record_with(name: str, value: str) -> bytes:
    """Return a record with the JSON text of one field."""
    return record(**{name: "HERE"}).replace(b'"HERE"', value.encode())


def append_to_good(data: bytes) -> bytes:
    """Return a file with a good record in line 1 and other data in line 3."""
    return GOOD + b"\n\r\n" + data + b"\n"


MINIMAL = PartialRecord(id="a", cfx_id="x-a", game="game_a", hostname="a")
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
    "sourceId": "MAIN_LOBBY:30120",
    "completed": ["hostname", "cfxId"],
    "publishable": False,
}
COMPLETED = ("cfxId", "game", "hostname")
OPTIONAL = [name for name in FULL if name not in ("id", *COMPLETED)]


def test_a_record_may_have_all_fields(read: Read) -> None:
    assert read(json.dumps(FULL).encode()) == [
        PartialRecord(
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
            source_id="MAIN_LOBBY:30120",
            completed=("cfxId", "hostname"),
            publishable=False,
        )
    ]


def test_only_the_id_is_required(read: Read) -> None:
    assert read(record()) == [MINIMAL]
    assert (
        read(b'{"id": "a"}') == read(record(**dict.fromkeys(COMPLETED))) == [PartialRecord(id="a")]
    )


@pytest.mark.parametrize(
    "fields",
    [
        *({name: None} for name in OPTIONAL if name != "publishable"),
        *({"players": counts} for counts in ({}, {"current": None}, {"max": None})),
    ],
)
def test_null_equals_a_missing_field(fields: dict[str, Any], read: Read) -> None:
    assert read(record(**fields)) == [MINIMAL]


def test_the_id_is_required_and_publishable_is_never_null(refusal: Refusal) -> None:
    without = {key: value for key, value in server("a").items() if key != "id"}

    for data, what in ((ndjson([without]), "missing"), (record(id=None), "null")):
        assert refusal(append_to_good(data)) == f"line 3: id: required, but {what}"
    assert refusal(record(publishable=None)).startswith("line 1: publishable: ")


IDENTIFIER_RULE = "must be 1 to 128 letters, digits and hyphens"
STRING = "must be a string"
COUNT = "must be a whole number from 0 to 2^53 - 1"
NUL = "contains U+0000"
SURROGATE = "not Unicode text (a lone surrogate)"

IDENTIFIERS = ["id", "cfxId"]
TEXTS = ["hostname", "projectName", "projectDescription", "region", "chatUrl", "iconUrl"]
LISTS = ["tags", "flags"]
INSTANTS = ["firstSeenAt", "updatedAt"]

WRONG = [
    (
        IDENTIFIERS,
        IDENTIFIER_RULE,
        ["5", "true", "[]", "{}", '""', '"a_b"', r'"a\n"', r'"a\u0000"'],
    ),
    (
        ["game"],
        "must be game_a or game_b",
        ['"game_c"', '"GAME_A"', '"game_a "', '""', "1", "true", '["game_a"]'],
    ),
    (TEXTS, STRING, ["5", "true", "[]", '["a"]']),
    (TEXTS, NUL, [r'"a\u0000b"']),
    (TEXTS, SURROGATE, [r'"a\ud800b"', r'"a\udfffb"', r'"\ude00\ud83d"']),
    (LISTS, "must be an array of strings", ['"a"', "5", "{}"]),
    (LISTS, STRING, ["[5]", '["a",null]', '["a",["b"]]']),
    (LISTS, NUL, [r'["a\u0000"]']),
    (LISTS, SURROGATE, [r'["a","\udc00"]']),
    (["players"], "must be an object", ["5", '"5"', "[]", "true"]),
    (["offline", "publishable"], "must be true or false", ["0", "1", '"true"', '""', "[]", "{}"]),
    (INSTANTS, "must be an integer or a string", ["1.5", "1772366400000.0", "true", "[]", "-0"]),
    (
        INSTANTS,
        "not a time; use YYYY-MM-DDTHH:MM:SSZ or Unix milliseconds",
        ["-1", '""', '"2026-03-01"', '"yesterday"', r'"5\u0000"', r'"\ud800"'],
    ),
    (INSTANTS, "outside the years 1970 to 9999", ["253402300800000"]),
    (INSTANTS, "no time zone; add Z or an offset such as +02:00", ['"2026-03-01T12:00:00"']),
]


@pytest.mark.parametrize(("names", "reason", "values"), WRONG)
def test_an_invalid_value_is_refused_with_its_line_and_field(
    names: list[str], reason: str, values: list[str], refusal: Refusal
) -> None:
    for name in names:
        for value in values:
            assert refusal(append_to_good(record_with(name, value))) == f"line 3: {name}: {reason}"


@pytest.mark.parametrize("name", ["current", "max"])
@pytest.mark.parametrize(
    "value", ["-1", "-0", "9007199254740992", "5.0", "5e0", '"5"', "true", "[]", "{}"]
)
def test_an_invalid_count_is_refused_with_its_line_and_field(
    name: str, value: str, refusal: Refusal
) -> None:
    data = record_with("players", f'{{"{name}":{value}}}')

    assert refusal(append_to_good(data)) == f"line 3: players.{name}: {COUNT}"


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        *(("the record", name) for name in ("Id", "hostName", "cfx_id", "peak", "", "current")),
        *(("players", name) for name in ("Current", "peak", "", "id")),
    ],
)
def test_an_unknown_field_is_refused(owner: str, name: str, refusal: Refusal) -> None:
    fields = {name: None} if owner == "the record" else {owner: {name: None}}
    reason = f'"{name}" is not a field of {owner}'

    problem, _, known = refusal(append_to_good(record(**fields))).partition("; use one of ")
    assert problem == f"line 3: {reason}"
    assert known.startswith("id, game, cfxId, " if owner == "the record" else "current, max")


@pytest.mark.parametrize("name", [*FULL])
def test_a_repeated_field_is_refused(name: str, refusal: Refusal) -> None:
    value = json.dumps(FULL[name])
    data = json.dumps(FULL).encode()[:-1] + f', "{name}": {value}}}'.encode()

    assert refusal(append_to_good(data)) == f'line 3: the key "{name}" is repeated'


@pytest.mark.parametrize(
    "data",
    [
        *(b" ", b"[" * 100_000, record()[:-1], record() + record(), b"\xef\xbb\xbf" + record()),
        record_with("hostname", '"a\x00b"'),
    ],
)
def test_a_line_that_is_not_json_is_refused_with_its_number(data: bytes, refusal: Refusal) -> None:
    assert refusal(append_to_good(data)).startswith("line 3: ")


def test_identical_records_count_once(read: Read) -> None:
    again = json.dumps(dict(reversed(FULL.items()))).encode()
    first = json.dumps(FULL).encode()

    assert len(read(b"\n".join([first, GOOD, again, first]))) == 2


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"cfxId": "other"}, "id"),
        ({"hostname": "other"}, "id"),
        ({"publishable": True}, "id"),
        ({"id": "other", "publishable": True}, "cfxId"),
    ],
)
def test_an_identifier_is_unique_among_all_records(
    fields: dict[str, Any], name: str, refusal: Refusal
) -> None:
    records = [record(publishable=False), GOOD, record(**fields)]

    assert refusal(b"\n".join(records)) == f"line 3: {name}: the same as in line 1"


def test_an_id_may_equal_the_cfx_id_of_another_server(read: Read) -> None:
    records = [server("a", cfxId="b"), server("b", cfxId="a"), server("c", cfxId="c")]

    assert [found.id for found in read(ndjson(records))] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("identifier", "slug"),
    [
        ("MAIN_LOBBY", "main-lobby"),
        ("play.example.net:30120", "play-example-net-30120"),
        ("  EU #1 [Hardcore] ", "eu-1-hardcore"),
        ("★ Best — Server ★", "best-server"),
        ("main-lobby", "main-lobby"),
        ("a" * 200, "a" * 128),
        ("Zürich", "zurich"),
        ("異環", "yihuan"),
        ("__--__", ""),
    ],
)
def test_runs_of_other_characters_become_one_hyphen(identifier: str, slug: str) -> None:
    assert make_slug(identifier) == slug


@given(st.text())
def test_a_slug_is_empty_or_an_identifier_and_its_own_slug(identifier: str) -> None:
    slug = make_slug(identifier)

    assert not slug or IDENTIFIER.fullmatch(slug)
    assert make_slug(slug) == slug
    if identifier.isascii():
        plain = re.sub("[^a-z0-9]", "", identifier.lower())
        assert slug.replace("-", "") == plain


@given(
    st.sets(st.sampled_from(["a b", "A-B", "a_b", "a-b", "!", "?", "é", "a-b-c8687a"])),
    st.randoms(),
)
def test_ids_are_distinct_and_the_same_in_any_order(names: set[str], random: Random) -> None:
    shuffled = random.sample(sorted(names), len(names))
    for converts_all in (False, True):
        ids = choose_ids(sorted(names), {"e"}, converts_all=converts_all)

        assert ids == choose_ids(shuffled, {"e"}, converts_all=converts_all)
        assert len({*ids.values(), "e"}) == len(names) + 1
