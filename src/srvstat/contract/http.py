"""Validate HTTP requests of the published API (D10 to D12), without a web framework.

The checks are separate functions, so that a caller can add checks between them in the order of D11:
the key, the path and method, the head, the body.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from srvstat.contract import read_package_file, wire
from srvstat.contract.errors import GatewayUnauthorizedError, InvalidRequestError
from srvstat.contract.requests import ServerReference, check_body_size, parse_server_reference

COMPARE_PATH = "/gateway/v1/compare"
SERVERS_PATH = "/gateway/v1/servers/"
"""The path prefix of Get Server; a server's identifier follows."""
HEALTH_PATH = "/healthz"
"""The path of the health check, which the API does not define (D21)."""
READY_PATH = "/readyz"
"""The path of the readiness check, which the API does not define (D21)."""

OperationId = Literal["getServer", "compareServers"]
"""An `operationId` of the OpenAPI document."""
GET_METHODS = "GET, HEAD"
"""The methods of Get Server, formatted as an `Allow` header."""

KEY_HEADER = "X-Gateway-Key"
KEY_NAME = KEY_HEADER.lower().encode()
"""The header's name as in `Headers`."""
REQUEST_ID_HEADER = "X-Request-Id"
REQUEST_ID_PATTERN = r"[A-Za-z0-9._~-]{1,128}"
"""The pattern of request ids that responses repeat. Other ids are replaced."""
CACHE_CONTROL = "private, no-store"
"""The `Cache-Control` header of every response."""
KEY_CHALLENGE = f'ApiKey header="{KEY_HEADER.lower()}"'
"""The `WWW-Authenticate` header of a 401 response."""
JSON_TYPE = "application/json"

JUDGED_HEADERS = frozenset(
    {KEY_NAME, b"content-encoding", b"content-length", b"content-type", b"transfer-encoding"}
)
"""The headers that a response depends on. Recordings contain no others."""

MAX_HEAD_BYTES = 16_384
"""The maximum size of a request's target and headers, in bytes."""

Headers = Sequence[tuple[bytes, bytes]]
"""Header fields in the order sent: names in lower case and values, as in ASGI."""

_METHODS: Mapping[OperationId, str] = {"getServer": GET_METHODS, "compareServers": "POST"}
_ORIGIN = re.compile(rb"^https?://[^/?#]+", re.IGNORECASE)
_PERCENT_ENCODED = re.compile(rb"(?:[^%]|%[0-9A-Fa-f]{2})*", re.DOTALL)
_COMPARE = COMPARE_PATH.encode()
_SERVERS = SERVERS_PATH.encode()


class UnknownPathError(InvalidRequestError):
    """The API does not define the path."""

    http_status = 404


class WrongMethodError(InvalidRequestError):
    """The path does not support the method. `allowed` lists its methods, formatted as `Allow`."""

    http_status = 405

    def __init__(self, method: str, allowed: str) -> None:
        super().__init__(f"method: {wire.quote_value(method)} is not one of {allowed}")
        self.allowed = allowed


class Head(NamedTuple):
    """A request without its body."""

    method: str
    path: bytes
    """Percent-encoded as sent, without the query. It may begin with scheme and host."""
    query: bytes
    """Percent-encoded as sent, without the question mark."""
    headers: Headers


class Endpoint(NamedTuple):
    """The operation that a path selects."""

    operation: OperationId
    identifier: bytes = b""
    """The server's identifier in a Get Server request: percent-encoded, as sent."""


def find_key(headers: Headers) -> bytes:
    """Return the key of a request, as sent.

    Raises GatewayUnauthorizedError if it is missing, empty or repeated.
    """
    keys = find_values(headers, KEY_NAME)
    if len(keys) != 1 or not keys[0]:
        found = f"sent {len(keys)} times" if len(keys) > 1 else "missing or empty"
        raise GatewayUnauthorizedError(f"{KEY_HEADER}: {found}")
    return keys[0]


def find_values(headers: Headers, name: bytes) -> list[bytes]:
    """Return the values of a header. `name` is in lower case."""
    return [value for field, value in headers if field == name]


def find_endpoint(path: bytes) -> Endpoint | None:
    """Return the endpoint of a path as sent, or None if the path is unknown.

    Removes scheme and host, and normalizes nothing else (D12).
    """
    path = strip_origin(path)
    if path == _COMPARE:
        return Endpoint("compareServers")
    identifier = path.removeprefix(_SERVERS)
    if identifier is path or b"/" in identifier:
        return None
    return Endpoint("getServer", identifier)


def strip_origin(path: bytes) -> bytes:
    """Return a path without its optional scheme and host (RFC 9112, section 3.2.2)."""
    return _ORIGIN.sub(b"", path)


def check_method(method: str, endpoint: Endpoint | None) -> Endpoint:
    """Return the endpoint if it supports the method.

    Raises UnknownPathError if `endpoint` is None, and WrongMethodError.
    """
    if endpoint is None:
        raise UnknownPathError("path: not in the API")
    check_allowed(method, _METHODS[endpoint.operation])
    return endpoint


def check_allowed(method: str, allowed: str) -> None:
    """Check that a method is in a list formatted as `Allow`.

    Raises WrongMethodError if it is not.
    """
    if method not in allowed.split(", "):
        raise WrongMethodError(method, allowed)


def parse_get_server(head: Head, identifier: bytes) -> ServerReference:
    """Validate a Get Server request and return its reference. `identifier` is the end of the path.

    Raises InvalidRequestError for the first problem.
    """
    _check_size_and_framing(head)
    query = parse_query(head.query, known=("by",))
    reference = parse_server_reference(_decode(identifier, "identifier"), query.get("by"))
    length = _find_content_length(head.headers)
    if length.strip(b"0") or find_values(head.headers, b"transfer-encoding"):
        raise InvalidRequestError("body: not allowed for Get Server")
    return reference


def check_compare_head(head: Head) -> None:
    """Validate the head of a Compare Servers request; `parse_compare_request` validates the body.

    Raises InvalidRequestError for the first problem, such as a `Content-Length` above the limit.
    """
    _check_size_and_framing(head)
    parse_query(head.query)
    types = [value.decode("latin-1") for value in find_values(head.headers, b"content-type")]
    if len(types) != 1:
        raise InvalidRequestError("content-type: must be given exactly once")
    if types[0].partition(";")[0].strip().lower() != JSON_TYPE:
        raise InvalidRequestError(f"content-type: {wire.quote_value(types[0])} is not {JSON_TYPE}")
    if find_values(head.headers, b"content-encoding"):
        raise InvalidRequestError("content-encoding: not supported")
    length = _find_content_length(head.headers).lstrip(b"0")
    if length and not length.isdigit():
        raise InvalidRequestError("content-length: not a number")
    check_body_size(int(length[:20] or b"0"))  # Python refuses to convert thousands of digits


def parse_query(query: bytes, known: Collection[str] = ()) -> dict[str, str]:
    """Parse a query string into names and values.

    Raises InvalidRequestError if a parameter is unknown or repeated (D10), or the query is
    malformed.
    """
    found: dict[str, str] = {}
    for name, value in split_query(query, known):
        if name in found:
            raise InvalidRequestError(f"query: {name} is repeated")
        found[name] = value
    return found


def split_query(query: bytes, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the decoded names and values of a query string, in the order sent.

    Raises InvalidRequestError for an unknown name or a malformed query.
    """
    for piece in filter(None, query.split(b"&")):
        name, _, value = (_decode(part, "query") for part in piece.partition(b"="))
        if name not in known:
            raise InvalidRequestError(f"query: unknown parameter {wire.quote_value(name)}")
        yield name, value


def has_ambiguous_length(headers: Headers) -> bool:
    """Return whether both `Content-Length` and `Transfer-Encoding` delimit the body.

    A proxy may have used the header that the service ignores (RFC 9112, section 6.1).
    """
    return {b"content-length", b"transfer-encoding"} <= dict(headers).keys()


def _check_size_and_framing(head: Head) -> None:
    size = len(head.path) + len(head.query)
    size += sum(len(name) + len(value) for name, value in head.headers)
    if size > MAX_HEAD_BYTES:
        raise InvalidRequestError(f"target and headers: more than {MAX_HEAD_BYTES:,} bytes")
    if has_ambiguous_length(head.headers):
        raise InvalidRequestError("headers: both Content-Length and Transfer-Encoding")


def _find_content_length(headers: Headers) -> bytes:
    return next(iter(find_values(headers, b"content-length")), b"0")


def _decode(text: bytes, place: str) -> str:
    """Decode the percent-escapes of part of a target, once."""
    if not _PERCENT_ENCODED.fullmatch(text):
        raise InvalidRequestError(f"{place}: a broken percent-escape")
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequestError(f"{place}: not UTF-8") from None


def read_openapi() -> bytes:
    """Return the OpenAPI document: indented JSON in UTF-8 with a final newline.

    It is a hand-written file, so that it has the same bytes everywhere. A test compares it with the
    models.
    """
    return read_package_file("contract/openapi.json")
