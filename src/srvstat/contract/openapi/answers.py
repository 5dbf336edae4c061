"""The answers of the operations: their headers, bodies and examples."""

import json
from collections.abc import Mapping
from typing import Any

from srvstat.contract import wire
from srvstat.contract.errors import (
    ApiError,
    FeatureNotAvailableError,
    GatewayUnauthorizedError,
    InternalError,
    InvalidRequestError,
    RateLimitedError,
    ServerNotFoundError,
)
from srvstat.contract.openapi import texts
from srvstat.contract.openapi.schemas import reference
from srvstat.contract.responses import ErrorResponse

Json = dict[str, Any]

JSON = "application/json"
"""The content type of every body."""

ERRORS: tuple[type[ApiError], ...] = (
    InvalidRequestError,
    GatewayUnauthorizedError,
    FeatureNotAvailableError,
    ServerNotFoundError,
    RateLimitedError,
    InternalError,
)

_METHOD_NOT_ALLOWED = "MethodNotAllowed"

HEADERS: Json = {
    "X-Request-Id": {
        "description": "Names the request in the service's log.",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
    },
    "Cache-Control": {
        "description": "No cache may keep an answer.",
        "required": True,
        "schema": {"type": "string", "const": "private, no-store"},
    },
    "Allow": {
        "description": "The methods of this path.",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
        "example": "GET, HEAD",
    },
    "WWW-Authenticate": {
        "description": "Names the header that the key belongs in.",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
        "example": 'ApiKey header="x-gateway-key"',
    },
    "Retry-After": {
        "description": "In how many seconds to ask again.",
        "required": True,
        "schema": {"type": "integer", "format": "int64", "minimum": 1},
        "example": 30,
    },
}

_EVERY_HEADER = ("X-Request-Id", "Cache-Control")
_MORE_HEADERS: Mapping[str, str] = {
    GatewayUnauthorizedError.__name__: "WWW-Authenticate",
    RateLimitedError.__name__: "Retry-After",
    _METHOD_NOT_ALLOWED: "Allow",
}


def answer(description: str, schema: Json, examples: Json) -> Json:
    """Return the response of an operation that succeeds."""
    content = {JSON: {"schema": schema, "examples": examples}}
    return {"description": description, "headers": _headers(), "content": content}


def example(summary: str, body: str) -> Json:
    """Return an example whose value is that of a JSON text."""
    return {"summary": summary, "value": json.loads(body)}


def invalid(examples: Mapping[str, tuple[str, str]]) -> Json:
    """Return the response to invalid requests; of each example a summary and what was asked."""
    value = _body(InvalidRequestError)
    shown = {
        name: {"summary": summary, "description": asked, "value": value}
        for name, (summary, asked) in examples.items()
    }
    return _error(InvalidRequestError, examples=shown)


def refusals() -> Json:
    """Return by status, in their order, the errors that every operation answers in the same way."""
    names = {str(kind.http_status): kind.__name__ for kind in ERRORS[1:]}
    names["405"] = _METHOD_NOT_ALLOWED
    return {status: _shared(names[status]) for status in sorted(names)}


def health_refusals() -> Json:
    """Return by status the errors that the health check can answer."""
    return {"405": _shared(_METHOD_NOT_ALLOWED), "500": _shared(InternalError.__name__)}


def shared_responses() -> Json:
    """Return the responses that the operations refer to, by name."""
    responses = {kind.__name__: _error(kind) for kind in ERRORS[1:]}
    wrong_method = _error(InvalidRequestError, name=_METHOD_NOT_ALLOWED)
    wrong_method["description"] = "INVALID_REQUEST: the path has no such method"
    return {**responses, _METHOD_NOT_ALLOWED: wrong_method}


def without_bodies(responses: Json) -> Json:
    """Return the same responses as HEAD has them."""
    shared = {_shared(name)["$ref"]: response for name, response in shared_responses().items()}
    whole = {
        status: shared[response["$ref"]] if "$ref" in response else response
        for status, response in responses.items()
    }
    return {
        status: {key: part for key, part in response.items() if key != "content"}
        for status, response in whole.items()
    }


def _shared(name: str) -> Json:
    return {"$ref": f"#/components/responses/{name}"}


def _error(kind: type[ApiError], *, name: str | None = None, examples: Json | None = None) -> Json:
    shown = {"examples": examples} if examples else {"example": _body(kind)}
    return {
        "description": f"{kind.code}: {texts.CONDITIONS[kind.code]}",
        "headers": _headers(_MORE_HEADERS.get(name or kind.__name__)),
        "content": {JSON: {"schema": reference(ErrorResponse), **shown}},
    }


def _body(kind: type[ApiError]) -> Any:
    return wire.decode(ErrorResponse.of(kind).to_json())


def _headers(more: str | None = None) -> Json:
    names = (*_EVERY_HEADER, more) if more else _EVERY_HEADER
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
