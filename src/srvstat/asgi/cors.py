"""Let pages of other origins call the API in a browser (CORS).

Starlette's middleware would answer a refused preflight with an error that the contract does not
have, and bypass the log.
"""

from starlette.responses import Response

from srvstat.asgi.answers import REASON_HEADER
from srvstat.asgi.progress import Progress
from srvstat.asgi.settings import EVERY_ORIGIN
from srvstat.contract.http import KEY_HEADER, REQUEST_ID_HEADER, Head, find_values

_NO_CONTENT = 204

_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
"""The methods that a page may use; also those that no path has, so that it can read the 405."""
_REQUEST_HEADERS = (
    "Accept",
    "Cache-Control",
    "Content-Type",
    "Prefer",
    KEY_HEADER,
    REQUEST_ID_HEADER,
)
"""The headers that a page may send."""
_ANSWER_HEADERS = (
    "Allow",
    "Preference-Applied",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
    "WWW-Authenticate",
    REQUEST_ID_HEADER,
    REASON_HEADER,
)
"""The headers that a page may read, besides those that it always may, such as Content-Type."""
_PERMISSION = {
    "access-control-allow-methods": _METHODS,
    "access-control-allow-headers": ", ".join(_REQUEST_HEADERS),
    "access-control-max-age": "600",  # the seconds that a browser may remember this
}


class Cors:
    """The origins whose pages may call the API, and the headers that tell a browser so."""

    def __init__(self, origins: tuple[str, ...]) -> None:
        self._allows_all = EVERY_ORIGIN in origins
        self._origins = frozenset(origins)

    def build_headers(self, head: Head) -> dict[str, str]:
        """Return the headers of an answer that let the page of the request's origin read it."""
        headers = {} if self._allows_all else {"vary": "Origin"}
        origin = self._find_allowed_origin(head)
        if origin:
            headers["access-control-allow-origin"] = origin
            headers["access-control-expose-headers"] = ", ".join(_ANSWER_HEADERS)
        return headers

    def is_preflight(self, head: Head) -> bool:
        """Return whether a browser asks what a page of another origin may send."""
        return head.method == "OPTIONS" and all(
            find_values(head.headers, name)
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
        return Response(None, _NO_CONTENT, progress.headers | permission)

    def _find_allowed_origin(self, head: Head) -> str | None:
        """Return the origin that a browser must find in an answer, or None if it is refused."""
        if self._allows_all:
            return EVERY_ORIGIN
        sent = [value.decode("latin-1") for value in find_values(head.headers, b"origin")]
        return sent[0] if len(sent) == 1 and sent[0] in self._origins else None
