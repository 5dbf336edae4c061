"""Build requests from the identifiers of a command line or a Python call (D9, D19)."""

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.requests import (
    ServerReference,
    build_compare_request,
    build_server_reference,
    parse_compare_request,
    parse_server_reference,
)

NOT_A_NAMESPACE = "is not one of id, cfxId"
WRONG_CHARACTER = "may only contain letters, digits and hyphens"
SURROGATE = "not Unicode text (a lone surrogate)"


def encode_body(*identifiers: str, **properties: str) -> bytes:
    """Return the body of a request that refers to servers by id."""
    servers = [{"identifier": identifier, "by": "id"} for identifier in identifiers]
    return json.dumps({"servers": servers, **properties}).encode("ascii")


def view(reference: ServerReference) -> tuple[str, str]:
    return reference.by, reference.identifier


def find_problem(build: Callable[[], object]) -> str:
    """Return the reason why a request is invalid."""
    with pytest.raises(InvalidRequestError) as caught:
        build()
    return caught.value.reason


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
        assert view(parse_server_reference(identifier)) == expected
        assert view(build_server_reference(identifier)) == expected
        other = "x" if identifier != "x" else "y"
        for request in (
            build_compare_request([other, identifier]),
            parse_compare_request(encode_body(other, identifier)),
        ):
            assert view(request.servers[1]) == expected
    else:
        problem = find_problem(lambda: parse_server_reference(identifier))
        assert problem.startswith("identifier: ")
        assert find_problem(lambda: build_server_reference(identifier)) == problem
        for build in (
            lambda: build_compare_request(["a", identifier]),
            lambda: parse_compare_request(encode_body("a", identifier)),
        ):
            assert find_problem(build) == f"servers[1].{problem}"


@pytest.mark.parametrize(
    ("identifier", "problem"),
    [
        ("", "empty"),
        ("x" * 5000, "5000 characters, at most 128 allowed"),
        ("a\n", f'"a\\n" {WRONG_CHARACTER}'),
        ("a b", f'"a b" {WRONG_CHARACTER}'),
        ("\U0001f680", f'"\U0001f680" {WRONG_CHARACTER}'),
        ("\ud800", SURROGATE),
        ("a\udcff", SURROGATE),
    ],
)
def test_the_reason_quotes_an_invalid_identifier(identifier: str, problem: str) -> None:
    assert (
        find_problem(lambda: parse_compare_request(encode_body("a", identifier)))
        == f"servers[1].identifier: {problem}"
    )
    assert (
        find_problem(lambda: build_server_reference(identifier, by="id"))
        == f"identifier: {problem}"
    )
    assert (
        find_problem(lambda: build_compare_request([identifier, "b"], by="cfxId"))
        == f"servers[0].identifier: {problem}"
    )


@pytest.mark.parametrize(
    ("text", "by", "expected"),
    [
        ("x", "id", ("id", "x")),
        ("x", "cfxId", ("cfxId", "x")),
        ("id:x", "cfxId", ("id", "x")),
        ("cfxId:x", "id", ("cfxId", "x")),
        ("cfxId:x", "cfxId", ("cfxId", "x")),
        ("id", "cfxId", ("cfxId", "id")),
        ("cfxId", "id", ("id", "cfxId")),
        ("cfxId:" + "x" * 128, "id", ("cfxId", "x" * 128)),
    ],
)
def test_a_namespace_prefix_overrides_by(text: str, by: str, expected: tuple[str, str]) -> None:
    assert view(build_server_reference(text, by=by)) == expected
    request = build_compare_request([text, "id:other"], by=by)
    assert list(map(view, request.servers)) == [expected, ("id", "other")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id:", "empty"),
        ("cfxId:", "empty"),
        ("id:id:x", f'"id:x" {WRONG_CHARACTER}'),
        ("cfxId:id:x", f'"id:x" {WRONG_CHARACTER}'),
        ("id::x", f'":x" {WRONG_CHARACTER}'),
        ("ID:x", f'"ID:x" {WRONG_CHARACTER}'),
        ("cfxid:x", f'"cfxid:x" {WRONG_CHARACTER}'),
        ("id: x", f'" x" {WRONG_CHARACTER}'),
        (":", f'":" {WRONG_CHARACTER}'),
        ("id\uff1ax", f'"id\uff1ax" {WRONG_CHARACTER}'),
        (f"cfxId:{'x' * 129}", "129 characters, at most 128 allowed"),
    ],
)
def test_one_namespace_prefix_is_removed_and_other_colons_are_invalid(
    text: str, problem: str
) -> None:
    assert (
        find_problem(lambda: build_server_reference(text, by="cfxId")) == f"identifier: {problem}"
    )
    assert (
        find_problem(lambda: build_compare_request(["a", text], by="id"))
        == f"servers[1].identifier: {problem}"
    )


def test_a_request_body_has_no_namespace_prefixes() -> None:
    problem = find_problem(lambda: parse_compare_request(encode_body("a", "id:b")))

    assert problem == f'servers[1].identifier: "id:b" {WRONG_CHARACTER}'


@pytest.mark.parametrize("by", ["ID", "cfxid", "", "id:"])
@pytest.mark.parametrize("identifiers", [["id:a", "cfxId:b"], ["a", "b"], ["id:", "id:"], []])
def test_an_unknown_namespace_is_invalid_even_if_unused(by: str, identifiers: list[str]) -> None:
    problem = f'by: "{by}" {NOT_A_NAMESPACE}'

    assert find_problem(lambda: build_compare_request(identifiers, by=by, range="8d")) == problem
    assert find_problem(lambda: build_server_reference("id:a", by=by)) == problem


def test_a_command_line_and_a_body_give_equal_requests() -> None:
    assert build_compare_request(["a", "b"]) == parse_compare_request(encode_body("a", "b"))
    assert build_compare_request(["a", "b"], range="1y") == parse_compare_request(
        encode_body("a", "b", range="1y")
    )
