"""Define, parse and build requests (specification, sections 2 and 8; D8, D9, D19)."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from srvstat.contract import models, wire
from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.windows import DAYS, DEFAULT_RANGE, Range
from srvstat.contract.wire import MAX_IDENTIFIER_LENGTH

MAX_BODY_BYTES = 16_384
MIN_SERVERS, MAX_SERVERS = 2, 5

Namespace = Literal["id", "cfxId"]
NAMESPACES: tuple[Namespace, ...] = get_args(Namespace)

# In pydantic's regex engine, `$` matches only at the end of the text, not before a final newline.
Identifier = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_IDENTIFIER_LENGTH, pattern=r"^[A-Za-z0-9-]+$"),
]


class ServerReference(models.ContractModel):
    """A server in an explicit namespace. It is also the complete request of Get Server."""

    identifier: Identifier
    by: Namespace


def _check_server_count(servers: object) -> object:
    # This runs before the elements are validated, because a body may contain thousands.
    if isinstance(servers, list | tuple) and not MIN_SERVERS <= len(servers) <= MAX_SERVERS:
        raise ValueError(f": {len(servers)} given; {MIN_SERVERS} to {MAX_SERVERS} required")
    return servers


def _reject_duplicate_references(
    servers: tuple[ServerReference, ...],
) -> tuple[ServerReference, ...]:
    if duplicate := models.find_duplicate(servers):
        first, second = duplicate
        raise ValueError(f"[{second}]: duplicates servers[{first}]")
    return servers


class CompareRequest(models.ContractModel):
    """The request of Compare Servers: 2 to 5 different references and a range."""

    servers: Annotated[
        models.Members[ServerReference],
        Field(
            min_length=MIN_SERVERS, max_length=MAX_SERVERS, json_schema_extra={"uniqueItems": True}
        ),
        BeforeValidator(_check_server_count),
        AfterValidator(_reject_duplicate_references),
    ]
    range: Range = DEFAULT_RANGE


def check_body_size(size: int) -> None:
    """Check the size of a request's body, in bytes.

    Raises InvalidRequestError if it is too large.
    """
    if size > MAX_BODY_BYTES:
        raise InvalidRequestError(f"body: more than {MAX_BODY_BYTES:,} bytes")


def parse_compare_request(body: bytes) -> CompareRequest:
    """Parse the body of a Compare Servers request.

    Raises InvalidRequestError, whose reason names the first invalid property.
    """
    check_body_size(len(body))
    try:
        return _validate_request(CompareRequest, wire.decode(body))
    except wire.JsonError as error:
        raise InvalidRequestError(f"body: {error}") from None
    except RecursionError:  # shallow enough to parse, too deep to quote
        raise InvalidRequestError("body: nested too deeply") from None


def build_compare_request(
    identifiers: Sequence[str], *, by: str | None = None, range: str | None = None
) -> CompareRequest:
    """Build the request for identifiers from a command line or a Python call.

    - `by`: the namespace of identifiers without a prefix. Default: `id`. A prefix such as in
      `cfxId:abc123` overrides it.
    - `range`: the range. Default: `30d`.

    Raises InvalidRequestError for the first problem.
    """
    namespace = _check_namespace(by)
    servers = [_split_namespace(text, namespace) for text in identifiers]
    request = {"servers": servers, "range": DEFAULT_RANGE if range is None else range}
    return _validate_request(CompareRequest, request)


def parse_range(text: str) -> Range:
    """Parse a range outside a request.

    Raises InvalidRequestError if it is not a range of the API.
    """
    for name in DAYS:
        if name == text:
            return name
    raise InvalidRequestError(f"range: {wire.quote_value(text)} is not one of {', '.join(DAYS)}")


def build_server_reference(identifier: str, *, by: str | None = None) -> ServerReference:
    """Build the request of Get Server. `build_compare_request` describes the identifier.

    Raises InvalidRequestError for an invalid identifier or namespace.
    """
    return _validate_request(ServerReference, _split_namespace(identifier, _check_namespace(by)))


def parse_server_reference(identifier: str, by: str | None = None) -> ServerReference:
    """Parse `identifier` and `by` of an HTTP request. The identifier has no namespace prefix.

    Raises InvalidRequestError for an invalid value.
    """
    reference = {"identifier": identifier, "by": _check_namespace(by)}
    return _validate_request(ServerReference, reference)


def _check_namespace(by: str | None) -> str:
    if by is None:
        return NAMESPACES[0]
    if by not in NAMESPACES:
        names = ", ".join(NAMESPACES)
        raise InvalidRequestError(f"by: {wire.quote_value(by)} is not one of {names}")
    return by


def _split_namespace(text: object, by: str) -> dict[str, object]:
    # Pass other types unchanged, so that the model rejects them.
    for namespace in NAMESPACES:
        if isinstance(text, str) and text.startswith(f"{namespace}:"):
            return {"identifier": text[len(namespace) + 1 :], "by": namespace}
    return {"identifier": text, "by": by}


_Model = TypeVar("_Model", bound=models.ContractModel)

_MESSAGES = {"string_pattern_mismatch": "may only contain letters, digits and hyphens"}


def _validate_request(model: type[_Model], value: Any) -> _Model:
    try:
        return models.validate(model, value, _MESSAGES)
    except models.InvalidValueError as error:
        raise InvalidRequestError(error.reason) from None
