"""Validate HTTP requests without a service; tests/asgi covers the answers."""

import pytest

from srvstat.contract.errors import GatewayUnauthorizedError, InvalidRequestError
from srvstat.contract.http import (
    Head,
    Headers,
    Target,
    UnknownPathError,
    WrongMethodError,
    check_compare_head,
    check_method,
    find_key,
    find_target,
    has_ambiguous_length,
    parse_get_server,
)

JSON = (b"content-type", b"application/json")


def build_compare_head(*headers: tuple[bytes, bytes], query: bytes = b"") -> Head:
    return Head("POST", b"/gateway/v1/compare", query, [JSON, *headers])


def find_problem(head: Head) -> str:
    with pytest.raises(InvalidRequestError) as refused:
        check_compare_head(head)
    return refused.value.reason


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (b"/healthz", None),
        (b"/gateway/v1/compare", Target("compareServers")),
        (b"/gateway/v1/servers/%61", Target("getServer", b"%61")),
        (b"/gateway/v1/servers/", Target("getServer", b"")),
        (b"https://host:1/gateway/v1/compare", Target("compareServers")),
        (b"http://host", None),
        (b"/gateway/v1/servers/a/b", None),
        (b"/gateway/v1/servers", None),
        (b"", None),
    ],
)
def test_a_path_selects_an_operation(path: bytes, target: Target | None) -> None:
    assert find_target(path) == target


def test_a_method_must_be_one_of_the_operation() -> None:
    get_server = Target("getServer", b"a")

    assert check_method("HEAD", get_server) == get_server
    with pytest.raises(WrongMethodError) as refused:
        check_method("POST", get_server)
    assert refused.value.allowed == "GET, HEAD"
    with pytest.raises(UnknownPathError):
        check_method("GET", None)


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


def test_the_key_is_returned_as_sent() -> None:
    assert find_key([(b"x-gateway-key", b"a key")]) == b"a key"


def test_a_request_of_get_server_is_parsed() -> None:
    head = Head("GET", b"/gateway/v1/servers/%61", b"by=cfxId", [])

    reference = parse_get_server(head, b"%61")

    assert (reference.by, reference.identifier) == ("cfxId", "a")


@pytest.mark.parametrize(
    ("identifier", "query", "headers", "reason"),
    [
        (b"a", b"by=id&by=id", [], "query: by is repeated"),
        (b"a", b"to=id", [], 'query: unknown parameter "to"'),
        (b"a", b"by=%4", [], "query: a broken percent-escape"),
        (b"%zz", b"", [], "identifier: a broken percent-escape"),
        (b"%ff", b"", [], "identifier: not UTF-8"),
        (b"a", b"", [(b"content-length", b"1")], "body: Get Server has no body"),
        (b"a", b"", [(b"transfer-encoding", b"chunked")], "body: Get Server has no body"),
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
        ([], "content-type: 0 given, exactly one needed"),
        ([JSON, JSON], "content-type: 2 given, exactly one needed"),
        ([(b"content-type", b"text/plain")], 'content-type: "text/plain" is not application/json'),
        ([JSON, (b"content-encoding", b"gzip")], "content-encoding: not supported"),
    ],
)
def test_a_comparison_is_json_without_an_encoding(headers: Headers, reason: str) -> None:
    assert find_problem(Head("POST", b"/gateway/v1/compare", b"", headers)) == reason


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
    assert find_problem(build_compare_head((b"content-length", length))) == reason


def test_two_ways_to_delimit_a_body_are_refused() -> None:
    head = build_compare_head((b"content-length", b"2"), (b"transfer-encoding", b"chunked"))

    assert has_ambiguous_length(head.headers)
    assert find_problem(head) == "headers: both Content-Length and Transfer-Encoding"


def test_the_size_of_the_head_is_checked_first() -> None:
    head = build_compare_head((b"x", b"y" * 16_384), query=b"%")

    assert find_problem(head) == "target and headers: more than 16,384 bytes"
