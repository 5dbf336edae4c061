"""Requests against a second judge, written from the specification alone."""

import json
import re
from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.requests import (
    read_compare_request,
)

T = TypeVar("T")

RANGES = ("24h", "7d", "30d", "90d", "1y")

GOOD_REFERENCES = [
    '{"identifier":"a","by":"id"}',
    '{"by":"id","identifier":"b"}',
    '{"identifier":"a","by":"cfxId"}',
    '{"identifier":"A","by":"id"}',
    r'{"identifier":"\u0061","by":"id"}',
    '{"identifier":"-","by":"cfxId"}',
    '{"identifier":"%s","by":"id"}' % ("x" * 128),
    '{ "identifier" : "c",\r\n\t"by":"id" }',
]
BAD_REFERENCES = [
    "null",
    "{}",
    '"a"',
    "[]",
    '{"identifier":"a"}',
    '{"by":"id"}',
    '{"identifier":1,"by":"id"}',
    '{"identifier":"","by":"id"}',
    '{"identifier":"%s","by":"id"}' % ("x" * 129),
    r'{"identifier":"a\n","by":"id"}',
    r'{"identifier":"\ud800","by":"id"}',
    r'{"identifier":"\u212a","by":"id"}',
    '{"identifier":"a_b","by":"id"}',
    '{"identifier":"é","by":"id"}',
    '{"identifier":"a","by":"ID"}',
    '{"identifier":"a","by":null}',
    '{"identifier":"a","by":"id","by":"id"}',
    r'{"identifier":"a","by":"id","b\u0079":"id"}',
    '{"identifier":"a","by":"id","range":"7d"}',
]
GOOD_RANGES = ["", *[f',"range":"{name}"' for name in RANGES], r',"range":"\u0037d"']
BAD_MEMBERS = [
    ',"range":"7d"',
    ',"range":null',
    ',"range":"8d"',
    ',"range":"7d "',
    ',"range":7',
    ',"range":[]',
    ',"range":-0',
    ',"range":1e400',
    ',"range":NaN',
    ',"more":1',
    r',"\u0073ervers":[]',
    ",",
]
EDGES = [b" ", b"\n", b"\r\n\t", b"\x0c", b"\xc2\xa0", b"\xef\xbb\xbf", b",", b"{}", b"\x00", b"//"]
SCRAPS = [
    b"",
    b" ",
    b'"',
    b",",
    b"{",
    b"]",
    b"\\",
    b"0",
    b"-",
    b"\xff",
    b"\xc3",
    b"\n",
    b"a",
    b"\\u0062",
]


def request_body_of(servers: list[str], members: str) -> bytes:
    return f'{{"servers":[{",".join(servers)}]{members}}}'.encode()


def expected(request_body: bytes) -> tuple[list[tuple[str, str]], str] | None:
    """Judge a body by the specification alone; None means that it is refused."""
    try:
        value = json.loads(
            request_body.decode("utf-8"), object_pairs_hook=members_of, parse_constant=refuse
        )
    except ValueError:
        return None
    sound = (
        len(request_body) <= 16_384
        and isinstance(value, dict)
        and value.keys() | {"range"} == {"servers", "range"}
        and value.get("range", "30d") in RANGES
        and isinstance(value["servers"], list)
        and 2 <= len(value["servers"]) <= 5
        and all(map(is_reference, value["servers"]))
    )
    if not sound:
        return None
    references = [(server["by"], server["identifier"]) for server in value["servers"]]
    if len(set(references)) < len(references):
        return None
    return references, value.get("range", "30d")


def members_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a repeated key")
    return dict(pairs)


def refuse(constant: str) -> Any:
    raise ValueError(constant)


def is_reference(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"identifier", "by"}
        and value["by"] in ("id", "cfxId")
        and isinstance(value["identifier"], str)
        and re.fullmatch(r"[A-Za-z0-9-]{1,128}", value["identifier"]) is not None
    )


@settings(max_examples=600)
@given(data=st.data())
def test_a_body_is_read_as_the_specification_says_or_refused(data: st.DataObject) -> None:
    def one_of(choices: Sequence[T]) -> T:
        return data.draw(st.sampled_from(choices))

    servers = data.draw(
        st.lists(st.sampled_from(GOOD_REFERENCES), min_size=2, max_size=5, unique=True)
    )
    members = one_of(GOOD_RANGES)
    sound = request_body_of(servers, members)
    place = data.draw(st.integers(0, len(sound)))
    for request_body in (
        sound,
        request_body_of(servers[1:], members),
        request_body_of([*servers, one_of(GOOD_REFERENCES)], members),
        request_body_of([*servers[1:], one_of(BAD_REFERENCES)], members),
        request_body_of(servers, members + one_of(BAD_MEMBERS)),
        one_of(EDGES) + sound + one_of(EDGES),
        sound[:place] + one_of(SCRAPS) + sound[place:],
        sound[:place] + one_of(SCRAPS) + sound[place + 1 :],
        sound.ljust(data.draw(st.integers(16_383, 16_386))),
    ):
        assert verdict(request_body) == expected(request_body)


def verdict(request_body: bytes) -> tuple[list[tuple[str, str]], str] | None:
    try:
        request = read_compare_request(request_body)
    except InvalidRequestError:
        return None
    return [(server.by, server.identifier) for server in request.servers], request.range
