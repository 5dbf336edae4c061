"""What a recording holds: requests, and the responses that a client received."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from srvstat.contract.http import JUDGED_HEADERS, MAX_HEAD_BYTES, Head, Headers, find_target

STATUSES = range(100, 600)
NOT_A_STATUS = "must be from 100 to 599"

_ORIGIN = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)
_SCHEME = re.compile(rb"[a-z][a-z0-9+.-]*:(?![^/?#]*@)", re.IGNORECASE)
_SLASH_IN_PASSWORD = re.compile(rb"https?://[^/?#@]*:[^/?#@]*/[^?#]*@", re.IGNORECASE)
_HOST = re.compile(rb"(?:[^/?#]*@)?([A-Za-z0-9._-]+(?::[0-9]*)?|\[[0-9A-Fa-f:.]+\](?::[0-9]*)?)")
_FILLER = b"x"
"""The name of the header that stands for dropped ones: only their size is judged."""


@dataclass(frozen=True, slots=True)
class RecordedResponse:
    """A response. `body` is None if it was not recorded."""

    status: int
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and, if it was recorded, its response. Instants are Unix milliseconds.

    `head` and `body` are as sent, so the head may hold a key: never print or store it. `host` is
    that of the URL, with its port, or "" if only a path was recorded.
    `is_from_service` means that srvstat's service recorded the exchange; then `plan` is that of the
    caller, or None without one, and the head has no key.
    """

    place: str
    head: Head = field(repr=False)
    body: bytes = field(repr=False)
    host: str = ""
    requested_at: int | None = None
    response: RecordedResponse | None = None
    is_from_service: bool = False
    plan: str | None = None
    as_of: int | None = None

    @property
    def is_foreign(self) -> bool:
        """Whether the request is not one to the API."""
        return is_foreign_path(self.head.path)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part of a recording that can't be read."""

    place: str
    reason: str


class UnreadableError(ValueError):
    """A part can't be read. The message gives the reason, without contents of the request."""


def keep_judged(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the judged headers, and one that is as large as all others.

    Names become lower case. Pseudo-headers of HTTP/2 (`:path`) are ignored.
    """
    kept: list[tuple[bytes, bytes]] = []
    kept_bytes = dropped_bytes = 0
    for given, padded in headers:
        name, value = given.lower(), padded.strip(b" \t")
        size = 0 if name.startswith(b":") else len(name) + len(value)
        if name in JUDGED_HEADERS and kept_bytes + size <= MAX_HEAD_BYTES:
            kept.append((name, value))
            kept_bytes += size
        else:
            dropped_bytes += size
    if not dropped_bytes:
        return kept
    # Any size above the limit is judged alike.
    size = min(dropped_bytes, MAX_HEAD_BYTES + 1)
    return [*kept, (_FILLER, b"." * (size - len(_FILLER)))]


def is_foreign_path(path: bytes) -> bool:
    """Return whether a path, as sent, is not one of the API."""
    return find_target(path) is None


def build_exchange(place: str, method: str, url: bytes, headers: Headers) -> Exchange:
    """Build the exchange of a request for a URL, or for a path with its query.

    The path has neither host nor fragment. If a URL is not of HTTP, the path is the scheme.
    """
    origin = _ORIGIN.match(url)
    if not origin and (scheme := _SCHEME.match(url)):
        return Exchange(place, Head(method, scheme[0], b"", ()), b"")
    target = url[origin.end() :].partition(b"#")[0] if origin else url
    path, _, query = target.partition(b"?")
    # A part that may be a password is no host, whether it is a valid one or not.
    named = b"" if not origin or _SLASH_IN_PASSWORD.match(url) else origin[0]
    host = _HOST.fullmatch(named.partition(b"//")[2])
    head = Head(method, path or b"/", query, headers)
    return Exchange(place, head, b"", host[1].decode() if host else "")
