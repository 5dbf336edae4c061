"""Build the responses of the operations, with their headers, bodies and examples."""

import json
from collections.abc import Mapping
from typing import Any

from openapi import texts
from openapi.schemas import refer_to_model
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
from srvstat.contract.http import (
    CACHE_CONTROL,
    GET_METHODS,
    JSON_TYPE,
    KEY_CHALLENGE,
    REQUEST_ID_HEADER,
    WrongMethodError,
)
from srvstat.contract.responses import ErrorResponse

Json = dict[str, Any]

ERRORS: tuple[type[ApiError], ...] = (
    InvalidRequestError,
    GatewayUnauthorizedError,
    FeatureNotAvailableError,
    ServerNotFoundError,
    RateLimitedError,
    InternalError,
)

_METHOD_NOT_ALLOWED = "MethodNotAllowed"
_WRONG_METHOD_STATUS = str(WrongMethodError.http_status)

HEADERS: Json = {
    REQUEST_ID_HEADER: {
        "description": "The ID of the request in the service's log.",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
    },
    "Cache-Control": {
        "description": "Caches must not store the response.",
        "required": True,
        "schema": {"type": "string", "const": CACHE_CONTROL},
    },
    "Allow": {
        "description": "The methods that the path supports.",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
        "example": GET_METHODS,
    },
    "WWW-Authenticate": {
        "description": "The authentication scheme and the name of the key's header.",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
        "example": KEY_CHALLENGE,
    },
    "Retry-After": {
        "description": "The number of seconds to wait before the next request.",
        "required": True,
        "schema": {"type": "integer", "format": "int64", "minimum": 1},
        "example": 30,
    },
    "RateLimit-Policy": {
        "description": (
            "The limit of the key's plan: its name, the number of requests `q`, and the seconds `w`"
            " that each request counts. Absent without a limit."
        ),
        "schema": {"type": "string", "minLength": 1},
        "example": '"starter";q=60;w=60',
    },
    "RateLimit": {
        "description": (
            "What remains of the limit: `r` more requests are accepted at once, and one more after"
            " `t` seconds. Absent without a limit."
        ),
        "schema": {"type": "string", "minLength": 1},
        "example": '"starter";r=59;t=42',
    },
}

_COMMON_HEADERS = (REQUEST_ID_HEADER, "Cache-Control")
_LIMIT_HEADERS = ("RateLimit-Policy", "RateLimit")
_EXTRA_HEADERS: Mapping[str, tuple[str, ...]] = {
    GatewayUnauthorizedError.__name__: ("WWW-Authenticate",),
    RateLimitedError.__name__: ("Retry-After", *_LIMIT_HEADERS),
    _METHOD_NOT_ALLOWED: ("Allow", *_LIMIT_HEADERS),
}
"""The headers of errors; others have those of the limit."""


def build_response(
    description: str, schema: Json, examples: Json, *, is_counted: bool = True
) -> Json:
    """Return the response of a successful request; `is_counted` if a plan can limit requests."""
    content = {JSON_TYPE: {"schema": schema, "examples": examples}}
    headers = _refer_to_headers(*(_LIMIT_HEADERS if is_counted else ()))
    return {"description": description, "headers": headers, "content": content}


def build_example(summary: str, body: str) -> Json:
    """Return an example whose value is the parsed JSON body."""
    return {"summary": summary, "value": json.loads(body)}


def build_invalid_request_response(examples: Mapping[str, tuple[str, str]]) -> Json:
    """Return the response to invalid requests.

    `examples` maps the name of each example to its summary and its description.
    """
    body = _get_error_body(InvalidRequestError)
    shown = {
        name: {"summary": summary, "description": description, "value": body}
        for name, (summary, description) in examples.items()
    }
    return _build_error_response(InvalidRequestError, examples=shown)


def refer_to_errors() -> Json:
    """Return references to the errors that all operations of the contract share, by status."""
    names = {str(kind.http_status): kind.__name__ for kind in ERRORS[1:]}
    names[_WRONG_METHOD_STATUS] = _METHOD_NOT_ALLOWED
    return {status: _refer_to_response(names[status]) for status in sorted(names)}


def refer_to_check_errors() -> Json:
    """Return references to the errors of the health and readiness checks, by status."""
    return {
        _WRONG_METHOD_STATUS: _refer_to_response(_METHOD_NOT_ALLOWED),
        str(InternalError.http_status): _refer_to_response(InternalError.__name__),
    }


def build_shared_responses() -> Json:
    """Return the responses that operations refer to, by name."""
    responses = {kind.__name__: _build_error_response(kind) for kind in ERRORS[1:]}
    wrong_method = _build_error_response(InvalidRequestError, name=_METHOD_NOT_ALLOWED)
    wrong_method["description"] = "INVALID_REQUEST: the path does not support the method"
    return {**responses, _METHOD_NOT_ALLOWED: wrong_method}


def remove_bodies(responses: Json) -> Json:
    """Return the responses to HEAD: those to GET, without bodies."""
    shared = {
        _refer_to_response(name)["$ref"]: response
        for name, response in build_shared_responses().items()
    }
    resolved = {
        status: shared[response["$ref"]] if "$ref" in response else response
        for status, response in responses.items()
    }
    return {
        status: {key: part for key, part in response.items() if key != "content"}
        for status, response in resolved.items()
    }


def _refer_to_response(name: str) -> Json:
    return {"$ref": f"#/components/responses/{name}"}


def _build_error_response(
    kind: type[ApiError], *, name: str | None = None, examples: Json | None = None
) -> Json:
    shown = {"examples": examples} if examples else {"example": _get_error_body(kind)}
    return {
        "description": f"{kind.code}: {texts.CONDITIONS[kind.code]}",
        "headers": _refer_to_headers(*_EXTRA_HEADERS.get(name or kind.__name__, _LIMIT_HEADERS)),
        "content": {JSON_TYPE: {"schema": refer_to_model(ErrorResponse), **shown}},
    }


def _get_error_body(kind: type[ApiError]) -> Any:
    return wire.decode(ErrorResponse.from_error(kind).to_json())


def _refer_to_headers(*extra: str) -> Json:
    names = (*_COMMON_HEADERS, *extra)
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
