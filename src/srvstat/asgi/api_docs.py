"""Serve the page that documents the API, and its files: `/docs` and paths below it (D21).

The page shows `/openapi.json` with Swagger UI, and can send requests to the service.
"""

from collections.abc import Callable, Mapping

from srvstat.asgi.progress import Progress
from srvstat.asgi.sites import PAGE_HEADERS, SiteAnswer
from srvstat.contract.http import GET_METHODS, UnknownPathError, check_allowed, strip_origin
from srvstat.web import DOCS_ASSETS, find_asset

_PATH = b"/docs"
_MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "html": "text/html"}
_NOT_FOUND = 404
_MISSING = (
    b"This installation of srvstat lacks the files of Swagger UI, which a wheel has.\n"
    b"In a clone, run `make api-page`, and start the service again.\n"
    b"/openapi.json has the documentation for programs.\n"
)


class ApiDocs:
    """The page and its files. Create it before the event loop starts, because it reads them."""

    headers = PAGE_HEADERS
    """Headers of all its answers, errors included."""
    allows_cors = False
    """The page is for this origin; `/openapi.json` is for all."""

    def __init__(self) -> None:
        self._files = _read_files()

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, belongs to the page."""
        path = strip_origin(path)
        return path == _PATH or path.startswith(_PATH + b"/")

    async def answer(
        self,
        progress: Progress,
        is_wanted: Callable[[], bool],  # noqa: ARG002 - the signature of a site
    ) -> SiteAnswer:
        """Return the answer; add to its log entry. It is a hint if Swagger UI is missing.

        Raises UnknownPathError, WrongMethodError.
        """
        head = progress.head
        path = strip_origin(head.path)
        progress.entry["operation"] = "getDocs" if path == _PATH else "getDocsAsset"
        check_allowed(head.method, GET_METHODS)
        if not self._files:
            return SiteAnswer(_MISSING, "text/plain", _NOT_FOUND, "the page has not been built")
        if path not in self._files:
            raise UnknownPathError("path: not a file of the page")
        return self._files[path]


def _read_files() -> Mapping[bytes, SiteAnswer]:
    """Return the answers with the page and its files by their paths; none if some are missing."""
    assets = {_PATH + b"/" + name.encode(): file for name, file in DOCS_ASSETS.items()}
    try:
        return {path: _read_file(name) for path, name in (assets | {_PATH: "docs.html"}).items()}
    except FileNotFoundError:
        return {}


def _read_file(name: str) -> SiteAnswer:
    return SiteAnswer(find_asset(name).read_bytes(), _MEDIA_TYPES[name.rpartition(".")[2]])
