"""Describe what answers paths outside the contract (D21): the explore page, operational paths."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from srvstat.contract.http import Head


class Site(Protocol):
    """Answers some paths. They need no key, and are outside the order of D11."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of all its answers, errors included."""

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, belongs to the site."""

    async def answer(
        self, head: Head, entry: dict[str, Any], is_wanted: Callable[[], bool]
    ) -> tuple[bytes, str]:
        """Return the body and the media type of an answer, and add to its entry in the log.

        Raises ApiError, SnapshotError, ClientGoneError.
        """
