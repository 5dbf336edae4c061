"""Parse requests from bodies, command lines and HTTP heads; API errors and exit codes."""

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from srvstat.analysis.selection import UnknownNameError
from srvstat.contract.errors import (
    ApiError,
    GatewayUnauthorizedError,
    InvalidRequestError,
    ParameterError,
    RateLimitedError,
    SrvstatError,
    UsageError,
)
from srvstat.contract.http import (
    Head,
    Headers,
    WrongMethodError,
    check_compare_head,
    find_key,
    has_ambiguous_length,
    parse_get_server,
)
from srvstat.contract.requests import (
    CompareRequest,
    ServerReference,
    build_compare_request,
    build_server_reference,
    parse_compare_request,
    parse_server_reference,
)
from srvstat.operations.answers import UnknownServerError
from srvstat.snapshot.read.file import MissingGameError

A = {"identifier": "a", "by": "id"}
B = {"identifier": "b", "by": "id"}
AB = b'"servers":[{"identifier":"a","by":"id"},{"identifier":"b","by":"id"}]'
WHOLE = b"{%b}" % AB

NOT_A_RANGE = "is not one of 24h, 7d, 30d, 90d, 1y"
NOT_A_NAMESPACE = "is not one of id, cfxId"
WRONG_CHARACTER = "may only contain letters, digits and hyphens"


def body(**properties: Any) -> bytes:
    """Return a request body in ASCII."""
    return json.dumps(properties).encode("ascii")


def refer_to(*identifiers: str, **properties: Any) -> bytes:
    """Return a request body that refers to servers by id."""
    servers = [{"identifier": identifier, "by": "id"} for identifier in identifiers]
    return body(servers=servers, **properties)


def view(request: CompareRequest) -> tuple[list[tuple[str, str]], str]:
    """Return the references and the range of a request."""
    return [(server.by, server.identifier) for server in request.servers], request.range


def find_problem(check: Callable[..., object], *arguments: Any, **options: Any) -> str:
    """Return the reason why a request is invalid."""
    with pytest.raises(InvalidRequestError) as caught:
        check(*arguments, **options)
    return caught.value.reason


def find_body_problem(request_body: bytes) -> str:
    return find_problem(parse_compare_request, request_body)


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
    (b"{}", "servers: missing"),
    (body(servers="ab"), "servers: must be an array"),
    (refer_to(), "servers: 0 given; 2 to 5 required"),
    (refer_to("a"), "servers: 1 given; 2 to 5 required"),
    (refer_to(*"abcdef"), "servers: 6 given; 2 to 5 required"),
    (body(servers=[{}, A] * 3), "servers: 6 given; 2 to 5 required"),
    (body(servers=["a", "b"]), "servers[0]: must be an object"),
    (body(servers=[A, None]), "servers[1]: must be an object"),
    (body(servers=[A, {"by": "id"}]), "servers[1].identifier: missing"),
    (body(servers=[A, {"identifier": "b"}]), "servers[1].by: missing"),
    (body(servers=[A, B | {"range": "7d"}]), "servers[1].range: unknown property"),
    (body(servers=[A, B | {"identifier": 1}]), "servers[1].identifier: must be a string"),
    (refer_to("a", "id:b"), f'servers[1].identifier: "id:b" {WRONG_CHARACTER}'),
    (body(servers=[A, B | {"by": "ID"}]), f'servers[1].by: "ID" {NOT_A_NAMESPACE}'),
    (body(servers=[A, B | {"by": None}]), f"servers[1].by: null {NOT_A_NAMESPACE}"),
    (body(servers=[A, B], range=None), f"range: null {NOT_A_RANGE}"),
    (body(servers=[A, B], range="8d"), f'range: "8d" {NOT_A_RANGE}'),
    (body(servers=[A, B], range="30d\n"), f'range: "30d\\n" {NOT_A_RANGE}'),
    (body(servers=[A, B], range="\uff17d"), f'range: "\uff17d" {NOT_A_RANGE}'),
    (body(servers=[A, B], range={"7d": 1}), f'range: {{"7d": 1}} {NOT_A_RANGE}'),
    (body(servers=[A, B], range="\ud800"), "range: not Unicode text (a lone surrogate)"),
    (body(servers=[A, B | {"by": "\ud800"}]), "servers[1].by: not Unicode text (a lone surrogate)"),
    (body(servers=[A, B], at=1), "at: unknown property"),
    (b'{%b,"servers":[]}' % AB, 'body: the key "servers" is repeated'),
    (b'{"range":"\xff"}', "body: not UTF-8 at byte 11"),
    (b"[" * 10_000, "body: nested too deeply"),
]


@pytest.mark.parametrize(
    ("request_body", "problem"), INVALID_BODIES, ids=[problem for _, problem in INVALID_BODIES]
)
def test_the_reason_names_the_first_invalid_property(request_body: bytes, problem: str) -> None:
    assert find_body_problem(request_body) == problem


def test_a_body_may_have_at_most_16384_bytes() -> None:
    full = WHOLE.ljust(16_384)

    assert len(full) == 16_384
    assert view(parse_compare_request(full)) == ([("id", "a"), ("id", "b")], "30d")
    assert find_body_problem(full + b" ") == "body: more than 16,384 bytes"
    assert find_body_problem(b"\xff" * 16_385) == "body: more than 16,384 bytes"


def test_a_deeply_nested_value_is_an_invalid_request() -> None:
    # The few depths that can be parsed but not quoted depend on the stack.
    for depth in (*range(900, 1000), *range(1, 8000, 500)):
        nested = b"[" * depth + b"]" * depth
        problem = find_body_problem(b'{%b,"range":%b}' % (AB, nested))
        assert problem == "body: nested too deeply" or problem.endswith(NOT_A_RANGE)


@pytest.mark.parametrize("key", ["a\nb", "\n", "servers\nerror: SERVER_NOT_FOUND"])
def test_the_reason_is_one_line_for_any_name_of_an_unknown_property(key: str) -> None:
    problem = find_body_problem(body(servers=[A, B], **{key: 1}))

    assert problem.endswith(": unknown property")
    assert "\n" not in problem


def test_the_reason_quotes_only_the_start_of_a_long_value() -> None:
    assert (
        find_body_problem(body(servers=[A, B], range="y" * 9000))
        == f'range: "{"y" * 59}…" {NOT_A_RANGE}'
    )


DUPLICATES = [
    (refer_to("a", "a"), 1, 0),
    (refer_to("a", "b", "c", "b", "a"), 3, 1),
    (rb'{"servers":[{"identifier":"s","by":"id"},{"by":"\u0069d","identifier":"\u0073"}]}', 1, 0),
]


@pytest.mark.parametrize(("request_body", "second", "first"), DUPLICATES)
def test_equal_references_are_invalid(request_body: bytes, second: int, first: int) -> None:
    assert find_body_problem(request_body) == f"servers[{second}]: duplicates servers[{first}]"


@pytest.mark.parametrize("request_body", [refer_to("a"), refer_to("a", "a")])
def test_an_error_keeps_no_reference_to_the_validation_error(request_body: bytes) -> None:
    # It holds frames but hides them from the garbage collector.
    with pytest.raises(InvalidRequestError) as caught:
        parse_compare_request(request_body)

    error: BaseException | None = caught.value
    while error:
        assert not isinstance(error, ValidationError)
        error = error.__context__


def view_reference(reference: ServerReference) -> tuple[str, str]:
    return reference.by, reference.identifier


@given(
    identifier=st.from_regex(r"[A-Za-z0-9-]{1,128}", fullmatch=True)
    | st.text(min_size=1).filter(lambda text: ":" not in text)
)
@example("-")
@example("--a")
@example("x" * 128)
@example("x" * 129)
@example("a\n")
@example("a\x00")
@example("%61")
@example("\u0661")
@example("\uff41")
@example("\u212a")
@example("a\u0301")
def test_identifiers_are_1_to_128_letters_digits_and_hyphens(identifier: str) -> None:
    if re.fullmatch(r"[A-Za-z0-9-]{1,128}", identifier):
        expected = ("id", identifier)
        assert view_reference(parse_server_reference(identifier)) == expected
        assert view_reference(build_server_reference(identifier)) == expected
        other = "x" if identifier != "x" else "y"
        for request in (
            build_compare_request([other, identifier]),
            parse_compare_request(refer_to(other, identifier)),
        ):
            assert view_reference(request.servers[1]) == expected
    else:
        problem = find_problem(parse_server_reference, identifier)
        assert problem.startswith("identifier: ")
        assert find_problem(build_server_reference, identifier) == problem
        assert find_problem(build_compare_request, ["a", identifier]) == f"servers[1].{problem}"
        assert find_body_problem(refer_to("a", identifier)) == f"servers[1].{problem}"


@pytest.mark.parametrize(
    ("text", "by", "expected"),
    [
        ("x", "id", ("id", "x")),
        ("x", "cfxId", ("cfxId", "x")),
        ("id:x", "cfxId", ("id", "x")),
        ("cfxId:x", "id", ("cfxId", "x")),
        ("id", "cfxId", ("cfxId", "id")),
        ("cfxId:" + "x" * 128, "id", ("cfxId", "x" * 128)),
    ],
)
def test_a_namespace_prefix_overrides_by(text: str, by: str, expected: tuple[str, str]) -> None:
    assert view_reference(build_server_reference(text, by=by)) == expected
    request = build_compare_request([text, "id:other"], by=by)
    assert list(map(view_reference, request.servers)) == [expected, ("id", "other")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id:", "empty"),
        ("id:id:x", f'"id:x" {WRONG_CHARACTER}'),
        ("id::x", f'":x" {WRONG_CHARACTER}'),
        ("ID:x", f'"ID:x" {WRONG_CHARACTER}'),
        ("id: x", f'" x" {WRONG_CHARACTER}'),
        ("id\uff1ax", f'"id\uff1ax" {WRONG_CHARACTER}'),
        (f"cfxId:{'x' * 129}", "129 characters, at most 128 allowed"),
    ],
)
def test_one_namespace_prefix_is_removed_and_other_colons_are_invalid(
    text: str, problem: str
) -> None:
    assert find_problem(build_server_reference, text, by="cfxId") == f"identifier: {problem}"
    assert (
        find_problem(build_compare_request, ["a", text], by="id")
        == f"servers[1].identifier: {problem}"
    )


@pytest.mark.parametrize("by", ["ID", "cfxid", "", "id:"])
@pytest.mark.parametrize("identifiers", [["id:a", "cfxId:b"], ["a", "b"], ["id:", "id:"], []])
def test_an_unknown_namespace_is_invalid_even_if_unused(by: str, identifiers: list[str]) -> None:
    problem = f'by: "{by}" {NOT_A_NAMESPACE}'

    assert find_problem(build_compare_request, identifiers, by=by, range="8d") == problem
    assert find_problem(build_server_reference, "id:a", by=by) == problem


JSON = (b"content-type", b"application/json")


def build_compare_head(*headers: tuple[bytes, bytes], query: bytes = b"") -> Head:
    return Head("POST", b"/gateway/v1/compare", query, [JSON, *headers])


def find_head_problem(head: Head) -> str:
    return find_problem(check_compare_head, head)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([], "missing or empty"),
        ([(b"x-gateway-key", b"")], "missing or empty"),
        ([(b"x-gateway-key", b"a"), (b"x-gateway-key", b"a")], "sent 2 times"),
    ],
)
def test_a_request_has_exactly_one_key(headers: Headers, reason: str) -> None:
    with pytest.raises(GatewayUnauthorizedError) as refused:
        find_key(headers)
    assert refused.value.reason == f"X-Gateway-Key: {reason}"
    assert find_key([(b"x-gateway-key", b"a key")]) == b"a key"


@pytest.mark.parametrize(
    ("identifier", "query", "headers", "reason"),
    [
        (b"a", b"by=id&by=id", [], "query: by is repeated"),
        (b"a", b"to=id", [], 'query: unknown parameter "to"'),
        (b"a", b"by=%4", [], "query: a broken percent-escape"),
        (b"%zz", b"", [], "identifier: a broken percent-escape"),
        (b"%ff", b"", [], "identifier: not UTF-8"),
        (b"a", b"", [(b"content-length", b"1")], "body: not allowed for Get Server"),
        (b"a", b"", [(b"transfer-encoding", b"chunked")], "body: not allowed for Get Server"),
    ],
)
def test_an_invalid_request_of_get_server_is_refused(
    identifier: bytes, query: bytes, headers: Headers, reason: str
) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        parse_get_server(Head("GET", b"/gateway/v1/servers/a", query, headers), identifier)
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([], "content-type: must be given exactly once"),
        ([JSON, JSON], "content-type: must be given exactly once"),
        ([(b"content-type", b"text/plain")], 'content-type: "text/plain" is not application/json'),
        ([JSON, (b"content-encoding", b"gzip")], "content-encoding: not supported"),
    ],
)
def test_a_comparison_is_json_without_an_encoding(headers: Headers, reason: str) -> None:
    assert find_head_problem(Head("POST", b"/gateway/v1/compare", b"", headers)) == reason


@pytest.mark.parametrize("length", [b"0", b"16384", b"0" * 5_000 + b"1"])
def test_a_content_length_up_to_the_limit_is_accepted(length: bytes) -> None:
    check_compare_head(build_compare_head((b"content-length", length)))


@pytest.mark.parametrize(
    ("length", "reason"),
    [
        (b"16385", "body: more than 16,384 bytes"),
        (b"9" * 5_000, "body: more than 16,384 bytes"),
        (b"-1", "content-length: not a number"),
        (b"\xb2", "content-length: not a number"),
    ],
)
def test_any_other_content_length_is_refused(length: bytes, reason: str) -> None:
    assert find_head_problem(build_compare_head((b"content-length", length))) == reason


def test_two_ways_to_delimit_a_body_are_refused() -> None:
    head = build_compare_head((b"content-length", b"2"), (b"transfer-encoding", b"chunked"))

    assert has_ambiguous_length(head.headers)
    assert find_head_problem(head) == "headers: both Content-Length and Transfer-Encoding"


def test_the_size_of_the_head_is_checked_first() -> None:
    head = build_compare_head((b"x", b"y" * 16_384), query=b"%")

    assert find_head_problem(head) == "target and headers: more than 16,384 bytes"


def find_subclasses(error: type[SrvstatError]) -> set[type[SrvstatError]]:
    """Return the subclasses that are defined in errors.py; others only add a status or a header."""
    found = {kind for kind in error.__subclasses__() if kind.__module__ == SrvstatError.__module__}
    return found.union(*map(find_subclasses, found))


@pytest.mark.parametrize("kind", ApiError.__subclasses__())
def test_the_exit_code_is_the_first_and_last_digit_of_the_status(kind: type[ApiError]) -> None:
    status = str(kind.http_status)

    assert str(kind.exit_code) == status[0] + status[-1]


@pytest.mark.parametrize("value", ["{", "{tz}", "x"])
def test_an_error_of_a_parameter_survives_pickling(value: str) -> None:
    error = ParameterError("{tz}: no time zone {value}", value=value)

    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes

    assert (type(copy), copy.reason) == (ParameterError, f"tz: no time zone {value}")
    assert copy.describe("--{}".format) == f"--tz: no time zone {value}"


def test_a_folder_of_shards_gets_the_game_of_its_servers_from_fleet(tmp_path: Path) -> None:
    reason = MissingGameError(str(tmp_path), "x").reason

    assert "; run srvstat fleet --snapshots again with --game game_a or --game game_b" in reason


def test_every_error_survives_pickling() -> None:
    unknown = UnknownServerError(ServerReference(identifier="x", by="id"), "servers[0]: ")
    kinds = find_subclasses(SrvstatError) - {ApiError}
    plain = [kind for kind in kinds if "__init__" not in vars(kind)]
    errors = [
        unknown,
        UnknownNameError("A b"),
        MissingGameError("a.db", "x"),
        WrongMethodError("PUT", "GET, HEAD"),
        RateLimitedError("too many", 7),
        *(kind("why") for kind in plain),
    ]

    for error in errors:
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_no_two_kinds_of_errors_share_an_exit_code() -> None:
    kinds = find_subclasses(SrvstatError) - {ApiError} - find_subclasses(UsageError)

    assert sorted(kind.exit_code for kind in kinds) == [2, 3, 4, 5, 6, 7, 40, 41, 43, 44, 49, 50]
