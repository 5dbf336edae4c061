"""Answer paths outside the contract (D21): health, readiness, the OpenAPI document, `/docs`."""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Protocol

from srvstat.asgi.headers import Progress
from srvstat.asgi.snapshots import ServedSnapshot, Work
from srvstat.contract import http
from srvstat.contract.errors import SnapshotError
from srvstat.contract.http import read_openapi
from srvstat.contract.responses import HealthResponse, UnavailableResponse
from srvstat.contract.time import format_instant
from srvstat.render.web import DOCS_ASSETS, find_asset
from srvstat.snapshot.read.verify import SpotCheck

READY_SECONDS = 2.0
"""Seconds from the start of a check until the service counts as not ready."""

SECONDS_BETWEEN_CHECKS = 1.0
"""A result holds this long, from the start of its check, so that many requests cost no more."""

_STOPPING = "the service is stopping"
_OPERATIONS: Mapping[bytes, str] = {
    http.HEALTH_PATH.encode(): "getHealth",
    http.READY_PATH.encode(): "getReadiness",
    b"/openapi.json": "getOpenApi",
}
"""What the log calls the paths."""
_DOCS_PATH = b"/docs"
_MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "html": "text/html"}
_NO_DOCS = (
    b"This installation of srvstat lacks the files of Swagger UI, which a wheel has.\n"
    b"In a clone, run `make api-page`, and start the service again.\n"
    b"/openapi.json has the documentation for programs.\n"
)

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


class OperationalPaths(Site):
    """Operational paths, except for that of the page. Create it before the event loop starts.

    At most one check of the snapshot runs, so a disk that does not answer blocks one worker only.
    """

    headers = MappingProxyType({})
    allows_cors = True

    def __init__(self, snapshot: ServedSnapshot) -> None:
        self._snapshot = snapshot
        self._spot_check = SpotCheck()
        self._check: asyncio.Task[str | None] | None = None
        self._started_at = 0.0
        self._is_stopping = False
        self._openapi = read_openapi()

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, is one of them."""
        return http.strip_origin(path) in _OPERATIONS

    async def answer(self, progress: Progress) -> SiteAnswer:
        """Return the answer; add to its headers and its log entry.

        Raises WrongMethodError.
        """
        head = progress.head
        operation = progress.entry["operation"] = _OPERATIONS[http.strip_origin(head.path)]
        http.check_allowed(head.method, http.GET_METHODS)
        if operation == "getOpenApi":
            return SiteAnswer(self._openapi, http.JSON_TYPE)
        if operation == "getReadiness" and (problem := await self._find_problem()):
            return SiteAnswer(UnavailableResponse().to_json(), http.JSON_TYPE, 503, problem)
        generation = await self._snapshot.get_generation()
        health = HealthResponse(asOf=format_instant(generation.as_of), root=generation.root)
        return SiteAnswer(health.to_json(), http.JSON_TYPE)

    def stop(self) -> None:
        """Report a problem from now on, because the service stops."""
        self._is_stopping = True
        if self._check:
            self._check.cancel()

    async def _find_problem(self) -> str | None:
        """Return why the service is not ready, within READY_SECONDS; None if it is."""
        if self._is_stopping:
            return _STOPPING
        now = asyncio.get_running_loop().time()
        is_outdated = now >= self._started_at + SECONDS_BETWEEN_CHECKS
        if self._check is None or (self._check.done() and is_outdated):
            self._started_at = now
            self._check = asyncio.create_task(self._read())
        check = self._check  # another request may start the next one during the wait
        await asyncio.wait({check}, timeout=max(self._started_at + READY_SECONDS - now, 0))
        if not check.done():
            return f"nothing was read from the snapshot within {READY_SECONDS:g} s"
        return _STOPPING if check.cancelled() else check.result()

    async def _read(self) -> str | None:
        """Read from the current snapshot in a worker; return the problem, if there is one."""
        generation = await self._snapshot.get_generation()
        try:
            await self._snapshot.ask(generation, self._spot_check.check_next, Work.GET_SERVER)
        except SnapshotError as error:
            return error.reason
        return None


class ApiDocs(Site):
    """The page and its files. Create it before the event loop starts, because it reads them."""

    def __init__(self) -> None:
        self._files = _read_files()

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, belongs to the page."""
        path = http.strip_origin(path)
        return path == _DOCS_PATH or path.startswith(_DOCS_PATH + b"/")

    async def answer(self, progress: Progress) -> SiteAnswer:
        """Return the answer; add to its log entry. It is a hint if Swagger UI is missing.

        Raises UnknownPathError, WrongMethodError.
        """
        head = progress.head
        path = http.strip_origin(head.path)
        progress.entry["operation"] = "getDocs" if path == _DOCS_PATH else "getDocsAsset"
        http.check_allowed(head.method, http.GET_METHODS)
        if not self._files:
            return SiteAnswer(_NO_DOCS, "text/plain", 404, "the page has not been built")
        if path not in self._files:
            raise http.UnknownPathError("path: not a file of the page")
        return self._files[path]


def _read_files() -> Mapping[bytes, SiteAnswer]:
    """Return the answers with the page and its files by their paths; none if some are missing."""
    files = {_DOCS_PATH + b"/" + name.encode(): file for name, file in DOCS_ASSETS.items()}
    files[_DOCS_PATH] = "docs.html"
    try:
        return {
            path: SiteAnswer(find_asset(name).read_bytes(), _MEDIA_TYPES[name.rpartition(".")[2]])
            for path, name in files.items()
        }
    except FileNotFoundError:
        return {}
