"""Build error responses and CORS headers, and check the host."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from starlette.responses import Response

from srvstat.asgi import EVERY_ORIGIN
from srvstat.contract import errors, http
from srvstat.contract.responses import ErrorResponse

REASON_HEADER = "X-Srvstat-Reason"

_MAX_REASON = 500
"""The maximum length of a reason in a header. Reasons with paths can be longer than proxies
accept.
"""
_CUT = "..."
_NOT_PRINTABLE = re.compile(r"[^ -~]")

_HOST = re.compile(r"localhost|127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}|\[::1\]", re.ASCII)
"""Matches the hosts that browsers send for this machine, without a port."""

_ANSWER_HEADERS = (
    "Allow, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate,"
    f" {http.REQUEST_ID_HEADER}, {REASON_HEADER}"
)
"""The headers that pages may read, besides those that are always readable, such as Content-Type."""
_NAMES = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,1000}")
_PERMISSION = {
    # Includes methods that no path supports, so that a page can read the 405.
    "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    "access-control-allow-headers": (
        f"Accept, Cache-Control, Content-Type, Prefer, {http.KEY_HEADER}, {http.REQUEST_ID_HEADER}"
    ),
    "access-control-max-age": "600",  # how long a browser may cache this, in seconds
}


def check_host(headers: http.Headers, allowed: Collection[str] | None = None) -> None:
    """Check that the host of a request is this machine or an allowed name.

    This blocks DNS rebinding, in which a page's own name points to 127.0.0.1. Any port is accepted,
    because a tunnel may use a different port.

    Raises InvalidRequestError if the host is another.
    """
    hosts = [value.decode("latin-1") for value in http.find_values(headers, b"host")]
    names, others = (
        [re.sub(r":[0-9]{1,5}\Z", "", name).lower() for name in given]
        for given in (hosts, allowed or ())
    )
    if len(names) > 1 or not all(_HOST.fullmatch(name) or name in others for name in names):
        remedy = "" if allowed is None else ", or start srvstat serve with --allow-host NAME"
        raise errors.InvalidRequestError(f"host: not allowed; use localhost{remedy}")


def build_error_response(error: errors.ApiError, headers: dict[str, str]) -> Response:
    """Return the response to a failed request. An error may add to `headers`."""
    if isinstance(error, http.WrongMethodError):
        headers["allow"] = error.allowed
    elif isinstance(error, errors.GatewayUnauthorizedError):
        headers["www-authenticate"] = http.KEY_CHALLENGE
    elif isinstance(error, errors.RateLimitedError):
        headers["retry-after"] = str(error.retry_after)
    body = ErrorResponse.from_error(error).to_json()
    return Response(body, error.http_status, headers, http.JSON_TYPE)


def build_reason_header(reason: str) -> dict[str, str]:
    r"""Return the header with an error's reason, from which keys have been removed.

    Proxies and browsers log headers, so quotations are removed too: a truncated quotation could
    contain part of a key, which no filter would recognize.

    Characters other than printable ASCII become escapes such as `\u00fc`, so that the header is one
    valid line whatever the reason quotes. A long reason is shortened.
    """
    shown = _NOT_PRINTABLE.sub(
        lambda found: found[0].encode("unicode_escape").decode("ascii"), reason.replace("…", "...")
    ).strip()
    if len(shown) > _MAX_REASON:
        shown = shown[: _MAX_REASON - len(_CUT)] + _CUT
    return {REASON_HEADER.lower(): shown}


def _allow_asked(head: http.Head) -> dict[str, str]:
    """Return the header that permits the request headers for which a browser asks.

    Monitoring tools add headers such as `traceparent` to the requests of a page.
    """
    asked = http.find_values(head.headers, b"access-control-request-headers")
    if len(asked) != 1 or not _NAMES.fullmatch(asked[0]):
        return {}
    return {"access-control-allow-headers": asked[0].decode("ascii")}


class Cors:
    """The origins whose pages may call the API, and the headers that tell browsers so.

    Starlette's CORSMiddleware refuses a preflight with a 400 that has neither the API's body nor a
    request id, and bypasses the log.
    """

    def __init__(self, origins: tuple[str, ...]) -> None:
        self._allows_all = EVERY_ORIGIN in origins
        self._origins = frozenset(origins)

    def build_headers(self, head: http.Head) -> dict[str, str]:
        """Return the headers that allow the page of the request's origin to read the response."""
        headers = {} if self._allows_all else {"vary": "Origin"}
        origin = self._find_allowed_origin(head)
        if origin:
            headers["access-control-allow-origin"] = origin
            headers["access-control-expose-headers"] = _ANSWER_HEADERS
        return headers

    def is_preflight(self, head: http.Head) -> bool:
        """Return whether a browser asks what a page of another origin may send."""
        asks = {b"origin", b"access-control-request-method"} <= dict(head.headers).keys()
        return head.method == "OPTIONS" and asks

    def answer_preflight(
        self, head: http.Head, entry: dict[str, Any], headers: Mapping[str, str]
    ) -> Response:
        """Return the response to a preflight, and complete its log entry.

        A refusal is a 204 without permission, because a preflight is not an API request.
        """
        entry["operation"] = "preflight"
        if self._find_allowed_origin(head):
            return Response(None, 204, {**headers, **_PERMISSION, **_allow_asked(head)})
        entry["reason"] = "origin: not one of --cors"
        return Response(None, 204, headers)

    def _find_allowed_origin(self, head: http.Head) -> str | None:
        """Return the origin that a browser must find in a response, or None if it is refused."""
        if self._allows_all:
            return EVERY_ORIGIN
        sent = [value.decode("latin-1") for value in http.find_values(head.headers, b"origin")]
        return sent[0] if len(sent) == 1 and sent[0] in self._origins else None
