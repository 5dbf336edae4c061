"""What may be asked: strict, frozen models (specification, sections 2 and 8; D8, D9, D19)."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from srvstat.contract import wire
from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.models import (
    ContractModel,
    InvalidValueError,
    Members,
    find_duplicate,
    validate,
)
from srvstat.contract.ranges import DEFAULT_RANGE, Range

MAX_BODY_BYTES = 16_384
MAX_IDENTIFIER_LENGTH = 128
IDENTIFIER_PATTERN = rf"[A-Za-z0-9-]{{1,{MAX_IDENTIFIER_LENGTH}}}"
"""What an identifier is, to be matched in full."""
MIN_SERVERS, MAX_SERVERS = 2, 5

Namespace = Literal["id", "cfxId"]
NAMESPACES: tuple[Namespace, ...] = get_args(Namespace)

# pydantic's own engine reads `$` as the end of the text, so a trailing newline does not match.
Identifier = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_IDENTIFIER_LENGTH, pattern=r"^[A-Za-z0-9-]+$"),
]


class ServerReference(ContractModel):
    """One server, named in its own namespace; also the whole request of Get Server."""

    identifier: Identifier
    by: Namespace


def _as_many_as_needed(servers: object) -> object:
    """Refuse a wrong number of servers before each of thousands is judged."""
    if isinstance(servers, list | tuple) and not MIN_SERVERS <= len(servers) <= MAX_SERVERS:
        raise ValueError(f": {len(servers)} given, {MIN_SERVERS} to {MAX_SERVERS} needed")
    return servers


def _without_duplicates(servers: tuple[ServerReference, ...]) -> tuple[ServerReference, ...]:
    repeated = find_duplicate(servers)
    if repeated is not None:
        first, again = repeated
        raise ValueError(f"[{again}]: the same reference as servers[{first}]")
    return servers


class CompareRequest(ContractModel):
    """Two to five different references and the range to compare them over."""

    servers: Annotated[
        Members[ServerReference],
        Field(
            min_length=MIN_SERVERS,
            max_length=MAX_SERVERS,
            json_schema_extra={"uniqueItems": True},
        ),
        BeforeValidator(_as_many_as_needed),
        AfterValidator(_without_duplicates),
    ]
    range: Range = DEFAULT_RANGE


def check_body_size(size: int) -> None:
    """Check the size of a request's body, in bytes.

    Raises InvalidRequestError.
    """
    if size > MAX_BODY_BYTES:
        raise InvalidRequestError(f"body: more than {MAX_BODY_BYTES:,} bytes")


def parse_compare_request(body: bytes) -> CompareRequest:
    """Read the body of Compare Servers.

    Raises InvalidRequestError, whose reason names the first property at fault.
    """
    check_body_size(len(body))
    try:
        return _validated(CompareRequest, wire.decode(body))
    except wire.JsonError as error:
        raise InvalidRequestError(f"body: {error}") from None
    except RecursionError:  # deep enough to be read, and too deep to be shown
        raise InvalidRequestError("body: nested too deeply") from None


def build_compare_request(
    identifiers: Sequence[str], *, by: str | None = None, range: str | None = None
) -> CompareRequest:
    """Make the request that a command line or a Python call means.

    `by` is `id` where it is not given. An identifier may carry its own namespace
    (`cfxId:abc123`), which beats `by`. Without a range the request leaves it out, as a customer
    would.

    Raises InvalidRequestError.
    """
    namespace = _namespace(by)
    request: dict[str, Any] = {"servers": [_reference(text, namespace) for text in identifiers]}
    if range is not None:
        if not isinstance(range, str):
            raise InvalidRequestError("range: a string is needed")
        request["range"] = range
    return _validated(CompareRequest, request)


def build_server_reference(identifier: str, *, by: str | None = None) -> ServerReference:
    """Make the request of Get Server; identifiers read as in `build_compare_request`.

    Raises InvalidRequestError.
    """
    return _validated(ServerReference, _reference(identifier, _namespace(by)))


def parse_server_reference(identifier: str, by: str | None = None) -> ServerReference:
    """Read the path and query of Get Server, where an identifier is nothing but an identifier.

    Raises InvalidRequestError.
    """
    return _validated(ServerReference, {"identifier": identifier, "by": _namespace(by)})


def _namespace(by: str | None) -> str:
    if by is None:
        return NAMESPACES[0]
    if not isinstance(by, str):
        raise InvalidRequestError("by: a string is needed")
    if by not in NAMESPACES:
        raise InvalidRequestError(
            f"by: {wire.quote_value(by)} is not one of {', '.join(NAMESPACES)}"
        )
    return by


def _reference(text: object, by: str) -> dict[str, object]:
    """Split an identifier from its namespace; what is no text is left for the model to refuse."""
    for namespace in NAMESPACES:
        if isinstance(text, str) and text.startswith(f"{namespace}:"):
            return {"identifier": text[len(namespace) + 1 :], "by": namespace}
    return {"identifier": text, "by": by}


_Model = TypeVar("_Model", bound=ContractModel)

_WORDS = {
    "extra_forbidden": "not a property of the request",
    "string_pattern_mismatch": "has more than letters, digits and hyphens",
}


def _validated(model: type[_Model], value: Any) -> _Model:
    try:
        return validate(model, value, _WORDS)
    except InvalidValueError as error:
        raise InvalidRequestError(error.reason) from None
