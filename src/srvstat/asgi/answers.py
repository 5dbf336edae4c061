"""Build the responses of the service and their headers."""

import re
import secrets

from starlette.responses import Response

from srvstat.asgi.limits import TooManyRequestsError
from srvstat.contract.errors import ApiError, GatewayUnauthorizedError
from srvstat.contract.http import (
    CACHE_CONTROL,
    JSON_TYPE,
    KEY_CHALLENGE,
    REQUEST_ID_HEADER,
    WrongMethodError,
)
from srvstat.contract.responses import ErrorResponse

REASON_HEADER = "X-Srvstat-Reason"

_MAX_REASON = 500
"""Characters of a reason in a header. Paths in reasons can be longer than proxies accept."""
_CUT = "..."
_NOT_PRINTABLE = re.compile(r"[^ -~]")


def build_error_response(error: ApiError, headers: dict[str, str]) -> Response:
    """Return the response to a request that failed; `headers` are those of every answer."""
    extra: dict[str, str] = {}
    if isinstance(error, WrongMethodError):
        extra = {"allow": error.allowed}
    elif isinstance(error, GatewayUnauthorizedError):
        extra = {"www-authenticate": KEY_CHALLENGE}
    elif isinstance(error, TooManyRequestsError):
        extra = {"retry-after": str(error.retry_after)}
    body = ErrorResponse.from_error(error).to_json()
    return Response(body, error.http_status, headers | extra, JSON_TYPE)


def build_headers(request_id: str) -> dict[str, str]:
    """Return the headers of every answer."""
    return {"cache-control": CACHE_CONTROL, REQUEST_ID_HEADER.lower(): request_id}


def build_reason_header(reason: str) -> dict[str, str]:
    r"""Return the header with the reason of an error, from which keys have been removed.

    Other characters than printable ASCII become escapes such as `\u00fc`, so that the header is one
    valid line whatever the reason quotes. A long reason is cut.
    """
    shown = _NOT_PRINTABLE.sub(_escape_character, reason.replace("…", "...")).strip()
    if len(shown) > _MAX_REASON:
        shown = shown[: _MAX_REASON - len(_CUT)] + _CUT
    return {REASON_HEADER.lower(): shown}


def _escape_character(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def create_request_id() -> str:
    """Return a new random request id."""
    return secrets.token_hex(8)
