"""Parse the bodies of Compare Servers, and report why one is invalid (D8, D9)."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.requests import (
    CompareRequest,
    parse_compare_request,
)

A = {"identifier": "a", "by": "id"}
B = {"identifier": "b", "by": "id"}
AB = b'"servers":[{"identifier":"a","by":"id"},{"identifier":"b","by":"id"}]'
WHOLE = b"{%b}" % AB

NOT_A_RANGE = "is not one of 24h, 7d, 30d, 90d, 1y"
NOT_A_NAMESPACE = "is not one of id, cfxId"


def body(**properties: Any) -> bytes:
    """Return a request body in ASCII."""
    return json.dumps(properties).encode("ascii")


def refer_to(*identifiers: str) -> bytes:
    """Return a request body that refers to servers by id."""
    return body(servers=[{"identifier": identifier, "by": "id"} for identifier in identifiers])


def view(request: CompareRequest) -> tuple[list[tuple[str, str]], str]:
    """Return the references and the range of a request."""
    return [(server.by, server.identifier) for server in request.servers], request.range


def find_problem(request_body: bytes) -> str:
    """Return the reason why a body is invalid."""
    with pytest.raises(InvalidRequestError) as caught:
        parse_compare_request(request_body)
    return caught.value.reason


def test_properties_may_have_any_order_and_white_space() -> None:
    text = b"""\t\r
        { "range" : "7d", "servers" : [ { "by":"cfxId", "identifier":"a" },
        { "by":"id", "identifier":"b" } ] } \r\n\t"""

    assert view(parse_compare_request(text)) == ([("cfxId", "a"), ("id", "b")], "7d")


def test_escapes_are_decoded_before_validation() -> None:
    text = (
        rb'{"\u0073ervers":[{"identifier":"\u0061","by":"\u0069d"},{"identifier":"b","by":"id"}]}'
    )

    assert view(parse_compare_request(text)) == ([("id", "a"), ("id", "b")], "30d")


INVALID_BODIES = [
    (b"[]", "body: must be an object"),
    (b"null", "body: must be an object"),
    (b"{}", "servers: missing"),
    (b'{"Servers":[]}', "servers: missing"),
    (body(servers="ab"), "servers: must be an array"),
    (body(servers={"0": A, "1": B}), "servers: must be an array"),
    (refer_to(), "servers: 0 given, 2 to 5 needed"),
    (refer_to("a"), "servers: 1 given, 2 to 5 needed"),
    (refer_to(*"abcdef"), "servers: 6 given, 2 to 5 needed"),
    (body(servers=[{}, A] * 3), "servers: 6 given, 2 to 5 needed"),
    (body(servers=[7]), "servers: 1 given, 2 to 5 needed"),
    (body(servers=[], range="8d"), "servers: 0 given, 2 to 5 needed"),
    (body(servers=["a", "b"]), "servers[0]: must be an object"),
    (body(servers=[A, None]), "servers[1]: must be an object"),
    (body(servers=[A, {"by": "id"}]), "servers[1].identifier: missing"),
    (body(servers=[A, {"identifier": "b"}]), "servers[1].by: missing"),
    (body(servers=[A, {"id": "b", "by": "id"}]), "servers[1].identifier: missing"),
    (
        body(servers=[A, B | {"range": "7d"}]),
        "servers[1].range: unknown property",
    ),
    (body(servers=[A, B | {"identifier": 1}]), "servers[1].identifier: must be a string"),
    (body(servers=[A, B | {"identifier": None}]), "servers[1].identifier: must be a string"),
    (body(servers=[A, B | {"by": "ID"}]), f'servers[1].by: "ID" {NOT_A_NAMESPACE}'),
    (body(servers=[A, B | {"by": "cfxid"}]), f'servers[1].by: "cfxid" {NOT_A_NAMESPACE}'),
    (body(servers=[A, B | {"by": "id\n"}]), f'servers[1].by: "id\\n" {NOT_A_NAMESPACE}'),
    (body(servers=[A, B | {"by": None}]), f"servers[1].by: null {NOT_A_NAMESPACE}"),
    (body(servers=[A, B | {"by": ["id"]}]), f'servers[1].by: ["id"] {NOT_A_NAMESPACE}'),
    (body(servers=[A, B], range=None), f"range: null {NOT_A_RANGE}"),
    (body(servers=[A, B], range="8d"), f'range: "8d" {NOT_A_RANGE}'),
    (body(servers=[A, B], range=" 30d"), f'range: " 30d" {NOT_A_RANGE}'),
    (body(servers=[A, B], range="30d\n"), f'range: "30d\\n" {NOT_A_RANGE}'),
    (body(servers=[A, B], range="\uff17d"), f'range: "\uff17d" {NOT_A_RANGE}'),
    (body(servers=[A, B], range=True), f"range: true {NOT_A_RANGE}"),
    (body(servers=[A, B], range=["7d"]), f'range: ["7d"] {NOT_A_RANGE}'),
    (body(servers=[A, B], range={"7d": 1}), f'range: {{"7d": 1}} {NOT_A_RANGE}'),
    (body(servers=[A, B], range="\ud800"), "range: not Unicode text (a lone surrogate)"),
    (
        body(servers=[A, B | {"by": "\ud800"}]),
        "servers[1].by: not Unicode text (a lone surrogate)",
    ),
    (body(servers=[A, B], at=1), "at: unknown property"),
    (body(servers=[A, B], Range="7d"), "Range: unknown property"),
    (b'{%b,"servers":[]}' % AB, 'body: the key "servers" is repeated'),
    (b'{%b,"range":"7d","range":"7d"}' % AB, 'body: the key "range" is repeated'),
    (rb'{%b,"\u0073ervers":[]}' % AB, 'body: the key "servers" is repeated'),
    (
        b'{"servers":[{"identifier":"a","by":"id","by":"id"},{"identifier":"b","by":"id"}]}',
        'body: the key "by" is repeated',
    ),
    (b"\xef\xbb\xbf" + WHOLE, "body: starts with a byte order mark"),
    (b'{"range":"\xff"}', "body: not UTF-8 at byte 11"),
    (WHOLE.decode().encode("utf-16"), "body: not UTF-8 at byte 1"),
    (b'{%b,"range":NaN}' % AB, "body: NaN is not JSON"),
    (b'{%b,"range":-Infinity}' % AB, "body: -Infinity is not JSON"),
    (b'{%b,"range":%b}' % (AB, b"7" * 5000), "body: an integer of 5000 digits is too long"),
    (b"[" * 10_000, "body: nested too deeply"),
]


@pytest.mark.parametrize(
    ("request_body", "problem"), INVALID_BODIES, ids=[problem for _, problem in INVALID_BODIES]
)
def test_the_reason_names_the_first_invalid_property(request_body: bytes, problem: str) -> None:
    assert find_problem(request_body) == problem


def test_a_body_may_have_at_most_16384_bytes() -> None:
    full = WHOLE.ljust(16_384)

    assert len(full) == 16_384
    assert view(parse_compare_request(full)) == ([("id", "a"), ("id", "b")], "30d")
    assert find_problem(full + b" ") == "body: more than 16,384 bytes"
    assert find_problem(b"\xff" * 16_385) == "body: more than 16,384 bytes"


def test_a_deeply_nested_value_is_an_invalid_request() -> None:
    # The few depths that can be parsed but not quoted depend on the stack.
    for depth in (*range(900, 1000), *range(1, 8000, 500)):
        nested = b"[" * depth + b"]" * depth
        problem = find_problem(b'{%b,"range":%b}' % (AB, nested))
        assert problem == "body: nested too deeply" or problem.endswith(NOT_A_RANGE)


@pytest.mark.parametrize("key", ["a\nb", "\n", "servers\nerror: SERVER_NOT_FOUND"])
def test_the_reason_is_one_line_for_any_name_of_an_unknown_property(key: str) -> None:
    problem = find_problem(body(servers=[A, B], **{key: 1}))

    assert problem.endswith(": unknown property")
    assert "\n" not in problem


def test_the_reason_quotes_only_the_start_of_a_long_value() -> None:
    assert (
        find_problem(body(servers=[A, B], range="y" * 9000)) == f'range: "{"y" * 59}… {NOT_A_RANGE}'
    )


DUPLICATES = [
    (refer_to("a", "a"), 1, 0),
    (refer_to("a", "b", "a"), 2, 0),
    (refer_to("a", "b", "c", "b", "a"), 3, 1),
    (
        rb'{"servers":[{"identifier":"s","by":"id"},{"by":"\u0069d","identifier":"\u0073"}]}',
        1,
        0,
    ),
]


@pytest.mark.parametrize(("request_body", "second", "first"), DUPLICATES)
def test_equal_references_are_invalid(request_body: bytes, second: int, first: int) -> None:
    assert (
        find_problem(request_body) == f"servers[{second}]: the same reference as servers[{first}]"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("id", "a"), ("cfxId", "a")),
        (("id", "a"), ("id", "A")),
        (("id", "a"), ("id", "a-")),
        (("id", "1"), ("id", "01")),
    ],
)
def test_references_are_compared_exactly(one: tuple[str, str], other: tuple[str, str]) -> None:
    servers = [{"by": by, "identifier": identifier} for by, identifier in (one, other)]

    assert view(parse_compare_request(body(servers=servers)))[0] == [one, other]


@pytest.mark.parametrize("request_body", [refer_to("a"), refer_to("a", "a")])
def test_an_error_keeps_no_reference_to_the_validation_error(request_body: bytes) -> None:
    # It holds frames but hides them from the garbage collector.
    with pytest.raises(InvalidRequestError) as caught:
        parse_compare_request(request_body)

    error: BaseException | None = caught.value
    while error:
        assert not isinstance(error, ValidationError)
        error = error.__context__
