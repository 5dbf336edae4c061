"""Describe what answers paths outside the contract (D21): the explore page, operational paths."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from srvstat.asgi.progress import Progress

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


class SiteAnswer(NamedTuple):
    """An answer to a path outside the contract."""

    body: bytes
    media_type: str
    status: int = 200
    reason: str | None = None
    """Why the status is an error; for the log."""


class Site(Protocol):
    """Answers some paths. They need no key, and are outside the order of D11."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of all its answers, errors included."""

    @property
    def allows_cors(self) -> bool:
        """Whether `--cors` also lets pages of other origins read the answers."""

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, belongs to the site."""

    async def answer(self, progress: Progress, is_wanted: Callable[[], bool]) -> SiteAnswer:
        """Return the answer; add to its headers and its log entry.

        Raises ApiError, SnapshotError, ClientGoneError.
        """
