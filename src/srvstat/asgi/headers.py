"""The headers and errors of every answer, and what is known of a request meanwhile."""

import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol

from starlette.requests import Request
from starlette.responses import Response

from srvstat.asgi import EVERY_ORIGIN
from srvstat.asgi.auth import TooManyRequestsError
from srvstat.asgi.snapshots import Generation
from srvstat.contract import http
from srvstat.contract.errors import ApiError, GatewayUnauthorizedError
from srvstat.contract.requests import ServerReference
from srvstat.contract.responses import ErrorResponse
from srvstat.operations.redaction import HIDDEN, KeyFilter

REASON_HEADER = "X-Srvstat-Reason"

_MAX_REASON = 500
"""Characters of a reason in a header. Paths in reasons can be longer than proxies accept."""
_CUT = "..."
_NOT_PRINTABLE = re.compile(r"[^ -~]")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that the log names; any other is `other`."""
_REQUEST_ID = re.compile(http.REQUEST_ID_PATTERN)
_REQUEST_ID_NAME = http.REQUEST_ID_HEADER.lower()
_KEY_NAME = http.KEY_HEADER.lower().encode()
_CORS_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
"""The methods that a page may use; also those that no path has, so that it can read the 405."""
_REQUEST_HEADERS = (
    f"Accept, Cache-Control, Content-Type, Prefer, {http.KEY_HEADER}, {http.REQUEST_ID_HEADER}"
)
"""The headers that a page may send."""
_ANSWER_HEADERS = (
    "Allow, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate,"
    f" {http.REQUEST_ID_HEADER}, {REASON_HEADER}"
)
"""The headers that a page may read, besides those that it always may, such as Content-Type."""
_PERMISSION = {
    "access-control-allow-methods": _CORS_METHODS,
    "access-control-allow-headers": _REQUEST_HEADERS,
    "access-control-max-age": "600",  # the seconds that a browser may remember this
}
PAGE_HEADERS = MappingProxyType(
    {
        "content-security-policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
            " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
)
"""Headers of pages and their files. A page loads nothing from elsewhere, and has no inline code."""


def build_error_response(error: ApiError, headers: dict[str, str]) -> Response:
    """Return the response to a request that failed; `headers` are those of every answer."""
    extra: dict[str, str] = {}
    if isinstance(error, http.WrongMethodError):
        extra = {"allow": error.allowed}
    elif isinstance(error, GatewayUnauthorizedError):
        extra = {"www-authenticate": http.KEY_CHALLENGE}
    elif isinstance(error, TooManyRequestsError):
        extra = {"retry-after": str(error.retry_after)}
    body = ErrorResponse.from_error(error).to_json()
    return Response(body, error.http_status, headers | extra, http.JSON_TYPE)


def build_reason_header(reason: str) -> dict[str, str]:
    r"""Return the header with the reason of an error, from which keys have been removed.

    Other characters than printable ASCII become escapes such as `\u00fc`, so that the header is one
    valid line whatever the reason quotes. A long reason is cut.
    """
    shown = _NOT_PRINTABLE.sub(
        lambda found: found[0].encode("unicode_escape").decode("ascii"), reason.replace("…", "...")
    ).strip()
    if len(shown) > _MAX_REASON:
        shown = shown[: _MAX_REASON - len(_CUT)] + _CUT
    return {REASON_HEADER.lower(): shown}


@dataclass
class Progress:
    """A request, and what has been found out so far."""

    requested_at: int
    """In Unix milliseconds."""
    head: http.Head
    key_filter: KeyFilter
    entry: dict[str, Any]
    """The entry in the log; `rehearsed` if the answer is a rehearsed failure, not the API's."""
    headers: dict[str, str]
    """The headers of the answer so far."""
    plan: str | None = None
    body: bytes = b""
    """Empty until it is read completely."""
    generation: Generation | None = None
    """The one that answers; None until it is selected."""
    send_at: float = 0.0
    """The time of the event loop before which the answer is not sent."""


def start_progress(request: Request, is_registered: Callable[[bytes], bool]) -> Progress:
    """Return what is known from the head of a request; `is_registered` knows the keys."""
    scope = request.scope
    keys = [key.decode("latin-1") for key in http.find_values(scope["headers"], _KEY_NAME)]
    key_filter = KeyFilter(keys, is_registered)
    ids = request.headers.getlist(_REQUEST_ID_NAME)
    is_harmless = len(ids) == 1 and _REQUEST_ID.fullmatch(ids[0]) and not key_filter.has_key(ids[0])
    request_id = ids[0] if is_harmless else secrets.token_hex(8)
    entry = {
        "id": request_id,
        "remote": _format_address(request.client),
        "method": request.method if request.method in _METHODS else "other",
    }
    head = http.Head(request.method, scope["raw_path"], scope["query_string"], scope["headers"])
    headers = {"cache-control": http.CACHE_CONTROL, _REQUEST_ID_NAME: request_id}
    return Progress(time.time_ns() // 1_000_000, head, key_filter, entry, headers)


def _format_address(client: tuple[str, int] | None) -> str:
    """Format a client's address: `127.0.0.1:5000`, `[::1]:5000`."""
    if client is None:
        return ""
    host, port = client
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def format_references(references: tuple[ServerReference, ...], key_filter: KeyFilter) -> list[str]:
    """Format references for the log: `cfxId:abc123`."""
    return [
        f"{each.by}:{HIDDEN if key_filter.has_key(each.identifier) else each.identifier}"
        for each in references
    ]


class SiteAnswer(NamedTuple):
    """An answer to a path outside the contract."""

    body: bytes
    media_type: str
    status: int = 200
    reason: str | None = None
    """Why the status is an error; for the log."""


class Site(Protocol):
    """Answers some paths. They need no key, and are outside the order of D11."""

    headers: ClassVar[Mapping[str, str]] = PAGE_HEADERS
    """Headers of all its answers, errors included."""
    allows_cors: ClassVar[bool] = False
    """Whether `--cors` also lets pages of other origins read the answers."""

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, belongs to the site."""

    async def answer(self, progress: Progress) -> SiteAnswer:
        """Return the answer; add to its headers and its log entry.

        Raises ApiError, SnapshotError.
        """


class Cors:
    """The origins whose pages may call the API, and the headers that tell a browser so."""

    def __init__(self, origins: tuple[str, ...]) -> None:
        self._allows_all = EVERY_ORIGIN in origins
        self._origins = frozenset(origins)

    def build_headers(self, head: http.Head) -> dict[str, str]:
        """Return the headers of an answer that let the page of the request's origin read it."""
        headers = {} if self._allows_all else {"vary": "Origin"}
        origin = self._find_allowed_origin(head)
        if origin:
            headers["access-control-allow-origin"] = origin
            headers["access-control-expose-headers"] = _ANSWER_HEADERS
        return headers

    def is_preflight(self, head: http.Head) -> bool:
        """Return whether a browser asks what a page of another origin may send."""
        return head.method == "OPTIONS" and all(
            http.find_values(head.headers, name)
            for name in (b"origin", b"access-control-request-method")
        )

    def answer_preflight(self, progress: Progress) -> Response:
        """Return the answer to a preflight; add to its entry in the log."""
        progress.entry["operation"] = "preflight"
        permission: dict[str, str] = {}
        if self._find_allowed_origin(progress.head):
            permission = _PERMISSION
        else:
            progress.entry["reason"] = "origin: not one of --cors"
        return Response(None, 204, progress.headers | permission)

    def _find_allowed_origin(self, head: http.Head) -> str | None:
        """Return the origin that a browser must find in an answer, or None if it is refused."""
        if self._allows_all:
            return EVERY_ORIGIN
        sent = [value.decode("latin-1") for value in http.find_values(head.headers, b"origin")]
        return sent[0] if len(sent) == 1 and sent[0] in self._origins else None
