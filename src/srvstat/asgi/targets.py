"""What a request target asks for. Its raw bytes decide: nothing is tidied up (D12)."""

import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from srvstat.contract import wire
from srvstat.contract.errors import InvalidRequestError

HEALTH = b"/healthz"
COMPARE = b"/gateway/v1/compare"
SERVERS = b"/gateway/v1/servers/"

_ORIGIN = re.compile(rb"https?://[^/?#]+", re.IGNORECASE)
_ESCAPED = re.compile(rb"(?:[^%]|%[0-9A-Fa-f]{2})*", re.DOTALL)


class UnknownPathError(InvalidRequestError):
    """A path that is not in the contract."""

    http_status = 404


class WrongMethodError(InvalidRequestError):
    """A method that a known path does not have; `allowed` is those that it has."""

    http_status = 405

    def __init__(self, method: str, allowed: str) -> None:
        super().__init__(f"method: {wire.quote_value(method)} is not one of {allowed}")
        self.allowed = allowed


class GetServer(NamedTuple):
    """The target of Get Server, with its identifier as it was sent."""

    identifier: bytes


class CompareServers(NamedTuple):
    """The target of Compare Servers."""


def path_of(raw_path: bytes) -> bytes:
    """Return the path of a target, which may be a whole address (RFC 9112, section 3.2.2)."""
    origin = _ORIGIN.match(raw_path)
    return raw_path[origin.end() :] or b"/" if origin else raw_path


def operation_at(path: bytes, method: str) -> GetServer | CompareServers:
    """Return the operation that a path and a method name.

    Raises UnknownPathError, WrongMethodError.
    """
    if path == COMPARE:
        allow(method, "POST")
        return CompareServers()
    identifier = path.removeprefix(SERVERS)
    if identifier is path or b"/" in identifier:
        raise UnknownPathError("path: not one of the contract")
    allow(method, "GET, HEAD")
    return GetServer(identifier)


def allow(method: str, allowed: str) -> None:
    """Refuse any other method than the allowed ones, such as `GET, HEAD`.

    Raises WrongMethodError.
    """
    if method not in allowed.split(", "):
        raise WrongMethodError(method, allowed)


def parameters(query: bytes, known: tuple[str, ...] = ()) -> dict[str, str]:
    """Read a query string, whose parameters must be known ones, each given once (D10).

    Raises InvalidRequestError.
    """
    found: dict[str, str] = {}
    for piece in filter(None, query.split(b"&")):
        name, _, value = (decoded(part, "query") for part in piece.partition(b"="))
        if name not in known:
            raise InvalidRequestError(f"query: unknown parameter {wire.quote_value(name)}")
        if name in found:
            raise InvalidRequestError(f"query: {name} is repeated")
        found[name] = value
    return found


def decoded(text: bytes, place: str) -> str:
    """Decode the percent-escapes of a part of a target, once.

    Raises InvalidRequestError.
    """
    if not _ESCAPED.fullmatch(text):
        raise InvalidRequestError(f"{place}: a broken percent-escape")
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequestError(f"{place}: not UTF-8") from None
