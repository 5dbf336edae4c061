"""Answer health and readiness checks and serve the OpenAPI document, outside the contract (D21)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from srvstat.asgi.progress import Progress
from srvstat.asgi.readiness import Readiness
from srvstat.asgi.sites import SiteAnswer
from srvstat.asgi.snapshots import ServedSnapshot
from srvstat.contract.http import (
    GET_METHODS,
    HEALTH_PATH,
    JSON_TYPE,
    READY_PATH,
    check_allowed,
    strip_origin,
)
from srvstat.contract.instants import format_instant
from srvstat.contract.openapi import read_openapi
from srvstat.contract.responses import HealthResponse, UnavailableResponse

_UNAVAILABLE = 503

_OPERATIONS: Mapping[bytes, str] = {
    HEALTH_PATH.encode(): "getHealth",
    READY_PATH.encode(): "getReadiness",
    b"/openapi.json": "getOpenApi",
}
"""What the log calls the paths."""


class OperationalPaths:
    """Operational paths, except for that of the page. Create it before the event loop starts."""

    headers: Mapping[str, str] = MappingProxyType({})
    """Headers of all its answers, errors included."""
    allows_cors = True

    def __init__(self, snapshot: ServedSnapshot, readiness: Readiness) -> None:
        self._snapshot = snapshot
        self._readiness = readiness
        self._openapi = read_openapi()

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, is one of them."""
        return strip_origin(path) in _OPERATIONS

    async def answer(
        self,
        progress: Progress,
        is_wanted: Callable[[], bool],  # noqa: ARG002 - the signature of a site
    ) -> SiteAnswer:
        """Return the answer; add to its headers and its log entry.

        Raises WrongMethodError.
        """
        head = progress.head
        operation = progress.entry["operation"] = _OPERATIONS[strip_origin(head.path)]
        check_allowed(head.method, GET_METHODS)
        if operation == "getOpenApi":
            return SiteAnswer(self._openapi, JSON_TYPE)
        problem = None
        if operation == "getReadiness":
            problem = await self._readiness.find_problem()
        if problem:
            return SiteAnswer(UnavailableResponse().to_json(), JSON_TYPE, _UNAVAILABLE, problem)
        return SiteAnswer(await self._describe_snapshot(), JSON_TYPE)

    async def _describe_snapshot(self) -> bytes:
        generation = await self._snapshot.get_generation()
        as_of = format_instant(generation.as_of)
        return HealthResponse(asOf=as_of, root=generation.root).to_json()
