"""What may be asked, and the reason that each refusal gives (D8, D9, D19)."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from pydantic import ValidationError

from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.requests import (
    CompareRequest,
    ServerReference,
    build_compare_request,
    build_server_reference,
    parse_compare_request,
)

T = TypeVar("T")

A = {"identifier": "a", "by": "id"}
B = {"identifier": "b", "by": "id"}
AB = b'"servers":[{"identifier":"a","by":"id"},{"identifier":"b","by":"id"}]'
WHOLE = b"{%b}" % AB

RANGES = ("24h", "7d", "30d", "90d", "1y")
NOT_A_RANGE = "is not one of 24h, 7d, 30d, 90d, 1y"
NOT_A_NAMESPACE = "is not one of id, cfxId"
NOT_IN_THE_ALPHABET = "may only contain letters, digits and hyphens"


def body(**properties: Any) -> bytes:
    """Return a request body; lone surrogates leave as escapes."""
    return json.dumps(properties).encode("ascii")


def naming(*identifiers: str) -> bytes:
    """Return a request body with references by id."""
    return body(servers=[{"identifier": identifier, "by": "id"} for identifier in identifiers])


def asked(request: CompareRequest) -> tuple[list[tuple[str, str]], str]:
    """Return what a request asks for: its references and its range."""
    return [(server.by, server.identifier) for server in request.servers], request.range


def reason(ask: Callable[[], object]) -> str:
    """Return the reason for which a request is refused."""
    with pytest.raises(InvalidRequestError) as refused:
        ask()
    return refused.value.reason


def reason_of(request_body: bytes) -> str:
    return reason(lambda: parse_compare_request(request_body))


def test_two_references_ask_in_their_order_over_30d() -> None:
    assert asked(parse_compare_request(body(servers=[B, A]))) == (
        [("id", "b"), ("id", "a")],
        "30d",
    )


def test_five_references_are_the_most() -> None:
    identifiers = ["e", "d", "c", "b", "a"]

    references, _ = asked(parse_compare_request(naming(*identifiers)))

    assert references == [("id", identifier) for identifier in identifiers]


@pytest.mark.parametrize("range", RANGES)
def test_every_range_of_the_specification_is_accepted(range: str) -> None:
    assert parse_compare_request(body(servers=[A, B], range=range)).range == range


def test_properties_may_come_in_any_order_and_with_json_white_space() -> None:
    text = b"""\t\r
        { "range" : "7d", "servers" : [ { "by":"cfxId", "identifier":"a" },
        { "by":"id", "identifier":"b" } ] } \r\n\t"""

    assert asked(parse_compare_request(text)) == ([("cfxId", "a"), ("id", "b")], "7d")


def test_escapes_are_read_before_anything_is_judged() -> None:
    text = (
        rb'{"\u0073ervers":[{"identifier":"\u0061","by":"\u0069d"},{"identifier":"b","by":"id"}]}'
    )

    assert asked(parse_compare_request(text)) == ([("id", "a"), ("id", "b")], "30d")


@pytest.mark.parametrize(
    "identifier", ["a", "Z", "0", "-", "--", "-a", "a-", "abcXYZ-0189", "x" * 128]
)
def test_an_identifier_is_1_to_128_letters_digits_and_hyphens(identifier: str) -> None:
    assert build_server_reference(identifier, by="id").identifier == identifier
    assert asked(parse_compare_request(naming(identifier, "other")))[0][0] == ("id", identifier)


REFUSED_IDENTIFIERS = [
    ("", "empty"),
    ("x" * 129, "129 characters, at most 128 allowed"),
    ("x" * 5000, "5000 characters, at most 128 allowed"),
    ("a\n", f'"a\\n" {NOT_IN_THE_ALPHABET}'),
    ("\na", f'"\\na" {NOT_IN_THE_ALPHABET}'),
    ("a\r", f'"a\\r" {NOT_IN_THE_ALPHABET}'),
    ("a\nb", f'"a\\nb" {NOT_IN_THE_ALPHABET}'),
    ("a\x00", f'"a\\u0000" {NOT_IN_THE_ALPHABET}'),
    ("a b", f'"a b" {NOT_IN_THE_ALPHABET}'),
    (" ", f'" " {NOT_IN_THE_ALPHABET}'),
    ("a_b", f'"a_b" {NOT_IN_THE_ALPHABET}'),
    ("a.b", f'"a.b" {NOT_IN_THE_ALPHABET}'),
    ("a/b", f'"a/b" {NOT_IN_THE_ALPHABET}'),
    ("%61", f'"%61" {NOT_IN_THE_ALPHABET}'),
    ("é", f'"é" {NOT_IN_THE_ALPHABET}'),
    ("\u0661", f'"\u0661" {NOT_IN_THE_ALPHABET}'),
    ("\uff11", f'"\uff11" {NOT_IN_THE_ALPHABET}'),
    ("\uff41", f'"\uff41" {NOT_IN_THE_ALPHABET}'),
    ("\u212a", f'"\u212a" {NOT_IN_THE_ALPHABET}'),
    ("\u017f", f'"\u017f" {NOT_IN_THE_ALPHABET}'),
    ("a\u2010b", f'"a\u2010b" {NOT_IN_THE_ALPHABET}'),
    ("a\u0301", f'"a\u0301" {NOT_IN_THE_ALPHABET}'),
    ("\U0001f680", f'"\U0001f680" {NOT_IN_THE_ALPHABET}'),
    ("\ud800", "not Unicode text (a lone surrogate)"),
    ("a\udcff", "not Unicode text (a lone surrogate)"),
]


@pytest.mark.parametrize(("identifier", "finding"), REFUSED_IDENTIFIERS)
def test_any_other_identifier_is_refused_wherever_it_stands(identifier: str, finding: str) -> None:
    assert reason_of(naming("a", identifier)) == f"servers[1].identifier: {finding}"
    assert reason(lambda: build_server_reference(identifier, by="id")) == f"identifier: {finding}"
    assert (
        reason(lambda: build_compare_request([identifier, "b"], by="cfxId", range=None))
        == f"servers[0].identifier: {finding}"
    )


REFUSED_BODIES = [
    (b"[]", "body: must be an object"),
    (b"null", "body: must be an object"),
    (b'"servers"', "body: must be an object"),
    (b"7", "body: must be an object"),
    (b"{}", "servers: missing"),
    (b'{"range":"7d"}', "servers: missing"),
    (b'{"Servers":[]}', "servers: missing"),
    (body(servers=None), "servers: must be an array"),
    (body(servers="ab"), "servers: must be an array"),
    (body(servers=2), "servers: must be an array"),
    (body(servers={"0": A, "1": B}), "servers: must be an array"),
    (naming(), "servers: 0 given, 2 to 5 needed"),
    (naming("a"), "servers: 1 given, 2 to 5 needed"),
    (naming(*"abcdef"), "servers: 6 given, 2 to 5 needed"),
    (naming(*map(str, range(300))), "servers: 300 given, 2 to 5 needed"),
    (body(servers=[{}, A] * 3), "servers: 6 given, 2 to 5 needed"),
    (body(servers=[7]), "servers: 1 given, 2 to 5 needed"),
    (body(servers=[], range="8d"), "servers: 0 given, 2 to 5 needed"),
    (body(servers=["a", "b"]), "servers[0]: must be an object"),
    (body(servers=[A, None]), "servers[1]: must be an object"),
    (body(servers=[A, [B]]), "servers[1]: must be an object"),
    (body(servers=[A, {}]), "servers[1].identifier: missing"),
    (body(servers=[A, {"by": "id"}]), "servers[1].identifier: missing"),
    (body(servers=[A, {"identifier": "b"}]), "servers[1].by: missing"),
    (body(servers=[A, {"id": "b", "by": "id"}]), "servers[1].identifier: missing"),
    (
        body(servers=[A, B | {"range": "7d"}]),
        "servers[1].range: unknown property",
    ),
    (body(servers=[A, B | {"identifier": 1}]), "servers[1].identifier: must be a string"),
    (body(servers=[A, B | {"identifier": True}]), "servers[1].identifier: must be a string"),
    (body(servers=[A, B | {"identifier": None}]), "servers[1].identifier: must be a string"),
    (body(servers=[A, B | {"identifier": ["b"]}]), "servers[1].identifier: must be a string"),
    (body(servers=[A, B | {"by": "ID"}]), f'servers[1].by: "ID" {NOT_A_NAMESPACE}'),
    (body(servers=[A, B | {"by": "cfxid"}]), f'servers[1].by: "cfxid" {NOT_A_NAMESPACE}'),
    (body(servers=[A, B | {"by": "id\n"}]), f'servers[1].by: "id\\n" {NOT_A_NAMESPACE}'),
    (body(servers=[A, B | {"by": ""}]), f'servers[1].by: "" {NOT_A_NAMESPACE}'),
    (body(servers=[A, B | {"by": None}]), f"servers[1].by: null {NOT_A_NAMESPACE}"),
    (body(servers=[A, B | {"by": 0}]), f"servers[1].by: 0 {NOT_A_NAMESPACE}"),
    (body(servers=[A, B | {"by": ["id"]}]), f'servers[1].by: ["id"] {NOT_A_NAMESPACE}'),
    (body(servers=[A, B], range=None), f"range: null {NOT_A_RANGE}"),
    (body(servers=[A, B], range=""), f'range: "" {NOT_A_RANGE}'),
    (body(servers=[A, B], range="8d"), f'range: "8d" {NOT_A_RANGE}'),
    (body(servers=[A, B], range="30D"), f'range: "30D" {NOT_A_RANGE}'),
    (body(servers=[A, B], range=" 30d"), f'range: " 30d" {NOT_A_RANGE}'),
    (body(servers=[A, B], range="30d\n"), f'range: "30d\\n" {NOT_A_RANGE}'),
    (body(servers=[A, B], range="\uff17d"), f'range: "\uff17d" {NOT_A_RANGE}'),
    (body(servers=[A, B], range=30), f"range: 30 {NOT_A_RANGE}"),
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
    ("request_body", "finding"), REFUSED_BODIES, ids=[finding for _, finding in REFUSED_BODIES]
)
def test_a_body_is_refused_for_the_first_property_at_fault(
    request_body: bytes, finding: str
) -> None:
    assert reason_of(request_body) == finding


@pytest.mark.parametrize(
    "request_body",
    [
        b"",
        b" ",
        WHOLE + WHOLE,
        WHOLE + b"x",
        WHOLE + b"\x00",
        WHOLE + b"\x0c",
        b"\xc2\xa0" + WHOLE,
        WHOLE + b"//",
        b"{%b,}" % AB,
        WHOLE.decode().encode("utf-16-le"),
    ],
)
def test_a_body_that_is_not_one_json_value_is_refused(request_body: bytes) -> None:
    assert reason_of(request_body).startswith("body: not JSON at column ")


def test_a_body_may_have_16384_bytes_and_no_more() -> None:
    full = WHOLE.ljust(16_384)

    assert len(full) == 16_384
    assert asked(parse_compare_request(full)) == ([("id", "a"), ("id", "b")], "30d")
    assert reason_of(full + b" ") == "body: more than 16,384 bytes"
    assert reason_of(b"\xff" * 16_385) == "body: more than 16,384 bytes"


def test_thousands_of_bad_references_are_refused_for_their_number_before_any_is_judged() -> None:
    """A body of the greatest size, which took 12 ms when all that is wrong was found first."""
    request_body = b'{"servers":[%b]}' % b",".join([b"{}"] * 5_450)

    assert reason_of(request_body) == "servers: 5450 given, 2 to 5 needed"


def test_the_limit_is_of_bytes_and_not_of_characters() -> None:
    assert reason_of('"{}"'.format("é" * 8192).encode()) == "body: more than 16,384 bytes"


def test_a_value_nested_however_deeply_is_an_invalid_request() -> None:
    for depth in range(1, 8000):
        nested = b"[" * depth + b"]" * depth
        given = reason_of(b'{%b,"range":%b}' % (AB, nested))
        assert given == "body: nested too deeply" or given.endswith(NOT_A_RANGE)


@pytest.mark.parametrize("key", ["a\nb", "\n", "servers\nerror: SERVER_NOT_FOUND"])
def test_the_reason_is_one_line_whatever_the_unknown_property_is_called(key: str) -> None:
    given = reason_of(body(servers=[A, B], **{key: 1}))

    assert given.endswith(": unknown property")
    assert "\n" not in given


def test_a_long_value_is_cut_in_the_reason() -> None:
    assert reason_of(body(servers=[A, B], range="y" * 9000)) == f'range: "{"y" * 59}… {NOT_A_RANGE}'


DUPLICATES = [
    (naming("a", "a"), 1, 0),
    (naming("a", "b", "a"), 2, 0),
    (naming("a", "b", "c", "b", "a"), 3, 1),
    (
        rb'{"servers":[{"identifier":"s","by":"id"},{"by":"\u0069d","identifier":"\u0073"}]}',
        1,
        0,
    ),
]


@pytest.mark.parametrize(("request_body", "second", "first"), DUPLICATES)
def test_two_equal_references_are_refused(request_body: bytes, second: int, first: int) -> None:
    assert reason_of(request_body) == f"servers[{second}]: the same reference as servers[{first}]"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("id", "a"), ("cfxId", "a")),
        (("id", "a"), ("id", "A")),
        (("id", "a"), ("id", "a-")),
        (("id", "1"), ("id", "01")),
    ],
)
def test_references_that_differ_in_anything_are_two(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    servers = [{"by": by, "identifier": identifier} for by, identifier in (one, other)]

    assert asked(parse_compare_request(body(servers=servers)))[0] == [one, other]


PREFIXES = [
    ("x", "id", ("id", "x")),
    ("x", "cfxId", ("cfxId", "x")),
    ("id:x", "id", ("id", "x")),
    ("id:x", "cfxId", ("id", "x")),
    ("cfxId:x", "id", ("cfxId", "x")),
    ("cfxId:x", "cfxId", ("cfxId", "x")),
    ("id", "cfxId", ("cfxId", "id")),
    ("cfxId", "id", ("id", "cfxId")),
    ("id:cfxId", "cfxId", ("id", "cfxId")),
    ("cfxId:-x", "id", ("cfxId", "-x")),
]


@pytest.mark.parametrize(("text", "by", "meant"), PREFIXES)
def test_an_identifiers_own_namespace_beats_the_one_for_all(
    text: str, by: str, meant: tuple[str, str]
) -> None:
    reference = build_server_reference(text, by=by)
    request = build_compare_request([text, "id:other"], by=by, range=None)

    assert (reference.by, reference.identifier) == meant
    assert asked(request)[0] == [meant, ("id", "other")]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("id:", "empty"),
        ("cfxId:", "empty"),
        ("id:id:x", f'"id:x" {NOT_IN_THE_ALPHABET}'),
        ("id:cfxId:x", f'"cfxId:x" {NOT_IN_THE_ALPHABET}'),
        ("cfxId:id:x", f'"id:x" {NOT_IN_THE_ALPHABET}'),
        ("id::x", f'":x" {NOT_IN_THE_ALPHABET}'),
        ("ID:x", f'"ID:x" {NOT_IN_THE_ALPHABET}'),
        ("cfxid:x", f'"cfxid:x" {NOT_IN_THE_ALPHABET}'),
        ("CFXID:x", f'"CFXID:x" {NOT_IN_THE_ALPHABET}'),
        (" id:x", f'" id:x" {NOT_IN_THE_ALPHABET}'),
        ("id :x", f'"id :x" {NOT_IN_THE_ALPHABET}'),
        ("id: x", f'" x" {NOT_IN_THE_ALPHABET}'),
        ("xid:x", f'"xid:x" {NOT_IN_THE_ALPHABET}'),
        ("by:x", f'"by:x" {NOT_IN_THE_ALPHABET}'),
        ("x:", f'"x:" {NOT_IN_THE_ALPHABET}'),
        (":x", f'":x" {NOT_IN_THE_ALPHABET}'),
        (":", f'":" {NOT_IN_THE_ALPHABET}'),
        ("id\uff1ax", f'"id\uff1ax" {NOT_IN_THE_ALPHABET}'),
        (f"cfxId:{'x' * 129}", "129 characters, at most 128 allowed"),
    ],
)
def test_a_namespace_is_stripped_once_and_no_other_colon_is_allowed(
    text: str, finding: str
) -> None:
    assert reason(lambda: build_server_reference(text, by="cfxId")) == f"identifier: {finding}"
    assert (
        reason(lambda: build_compare_request(["a", text], by="id", range=None))
        == f"servers[1].identifier: {finding}"
    )


def test_a_namespace_does_not_count_towards_the_length_of_its_identifier() -> None:
    assert build_server_reference("cfxId:" + "x" * 128, by="id").identifier == "x" * 128


@pytest.mark.parametrize(
    ("by", "shown"), [("ID", '"ID"'), ("cfxid", '"cfxid"'), ("", '""'), ("id:", '"id:"')]
)
@pytest.mark.parametrize("identifiers", [["id:a", "cfxId:b"], ["a", "b"], ["id:", "id:"], []])
def test_an_unknown_namespace_for_all_is_refused_even_where_nobody_needs_it(
    by: str, shown: str, identifiers: list[str]
) -> None:
    finding = f"by: {shown} {NOT_A_NAMESPACE}"

    assert reason(lambda: build_compare_request(identifiers, by=by, range="8d")) == finding
    assert reason(lambda: build_server_reference("id:a", by=by)) == finding


def test_a_request_body_knows_no_prefixes() -> None:
    assert reason_of(naming("a", "id:b")) == f'servers[1].identifier: "id:b" {NOT_IN_THE_ALPHABET}'


def test_equal_references_are_duplicates_with_and_without_their_namespace() -> None:
    assert (
        reason(lambda: build_compare_request(["a", "b", "id:a"], by="id", range=None))
        == "servers[2]: the same reference as servers[0]"
    )


@pytest.mark.parametrize(
    ("identifiers", "range", "finding"),
    [
        ([], None, "servers: 0 given, 2 to 5 needed"),
        (["a"], None, "servers: 1 given, 2 to 5 needed"),
        (list("abcdef"), None, "servers: 6 given, 2 to 5 needed"),
        (["a", "b"], "8d", f'range: "8d" {NOT_A_RANGE}'),
        (["a", "b"], "", f'range: "" {NOT_A_RANGE}'),
        (["a", "b"], "7\udcff", "range: not Unicode text (a lone surrogate)"),
    ],
)
def test_the_contract_judges_what_a_command_line_asks(
    identifiers: list[str], range: str | None, finding: str
) -> None:
    assert reason(lambda: build_compare_request(identifiers, by="id", range=range)) == finding


def test_a_command_line_means_the_same_request_as_a_body() -> None:
    assert build_compare_request(["a", "b"], by="id", range=None) == parse_compare_request(
        naming("a", "b")
    )
    assert build_compare_request(["a", "b"], by="id", range="1y") == parse_compare_request(
        body(servers=[A, B], range="1y")
    )


def test_without_a_namespace_for_all_an_identifier_is_an_id() -> None:
    assert build_server_reference("a") == build_server_reference("a", by="id")
    assert build_server_reference("cfxId:a") == build_server_reference("a", by="cfxId")
    assert build_compare_request(["a", "cfxId:b"], range=None) == build_compare_request(
        ["id:a", "cfxId:b"], by="id", range=None
    )


def test_requests_do_not_change() -> None:
    request = parse_compare_request(naming("a", "b"))

    with pytest.raises(ValidationError, match="Instance is frozen"):
        request.range = "7d"
    with pytest.raises(ValidationError, match="Instance is frozen"):
        request.servers[0].identifier = "c"
    assert type(request.servers) is tuple
    assert asked(request) == ([("id", "a"), ("id", "b")], "30d")


@pytest.mark.parametrize(
    "properties",
    [
        {"identifier": b"a", "by": "id"},
        {"identifier": 1, "by": "id"},
        {"identifier": "a", "by": b"id"},
        {"identifier": "a", "by": 0},
        {"identifier": "a", "by": None},
        {"identifier": "a"},
        {"identifier": "a", "by": "id", "more": 1},
    ],
)
def test_a_reference_made_in_python_is_judged_as_strictly(properties: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ServerReference(**properties)
    with pytest.raises(ValidationError):
        CompareRequest.model_validate({"servers": [properties, B]})
