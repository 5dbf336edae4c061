"""Serve pages for browsers: their files, and `/docs`, which shows the API and sends requests."""

import gzip
import re
from collections.abc import Collection
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from types import MappingProxyType
from urllib.parse import urljoin
from xml.etree import ElementTree as ET

from starlette.responses import Response

from srvstat.asgi.auth import Authenticator
from srvstat.asgi.log import Exchange
from srvstat.asgi.snapshots import ServedSnapshot
from srvstat.contract import http, wire
from srvstat.render.web import read_asset
from srvstat.snapshot.read.snapshot import Snapshot

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
"""The headers of pages and their files. Pages load nothing from other hosts, and have no inline
code.
"""

_MEDIA_TYPES = {"css": "text/css", "js": "text/javascript"}
_GZIP = re.compile(rb"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))")

KEY_FORM = "key-form"
"""The id of the key form, which pages omit if every key is valid."""


@dataclass(frozen=True)
class PageFile:
    """A page or one of its files, with a compressed copy."""

    content: bytes
    compressed: bytes
    media_type: str

    def respond(self, head: http.Head, headers: dict[str, str]) -> Response:
        """Return the file, compressed if the client accepts that."""
        accepted = b",".join(http.find_values(head.headers, b"accept-encoding"))
        headers = {**headers, "vary": "accept-encoding"}
        if _GZIP.search(accepted):
            headers["content-encoding"] = "gzip"
            return Response(self.compressed, headers=headers, media_type=self.media_type)
        return Response(self.content, headers=headers, media_type=self.media_type)


def read_page(name: str, path: str, *, without: Collection[str]) -> dict[bytes, PageFile]:
    """Return a page and the style sheets and scripts that it refers to, by path.

    `without`: the ids of elements to remove.
    """
    page = ET.fromstring(read_asset(name))  # noqa: S314 - a file of ours
    for parent in list(page.iter()):
        for element in [one for one in parent if one.get("id") in without]:
            parent.remove(element)
    content = b"<!doctype html>\n" + ET.tostring(page, encoding="utf-8", method="html")
    files = {path.encode(): _build_file(content, "text/html")}
    for element in page.iter():
        link = element.get("src", element.get("href", ""))
        kind = _MEDIA_TYPES.get(link.rpartition(".")[2])
        if kind:
            asset = read_asset(link.rpartition("/")[2]).encode("utf-8")
            files[urljoin(path, link).encode()] = _build_file(asset, kind)
    return files


def _build_file(content: bytes, media_type: str) -> PageFile:
    return PageFile(content, gzip.compress(content, mtime=0), media_type)


_ROOT_PATH = b"/"
_DOCS_PATH = "/docs"
_SERVERS_PATH = b"/docs/servers"
_MOST_IDS = 5
_MOST_READ = 200
"""The number of servers from which examples are chosen. Reading all servers of a large snapshot
takes seconds.
"""


def _list_ids(snapshot: Snapshot) -> bytes:
    """Return example identifiers: servers with many players. Raises SnapshotError if damaged."""
    with snapshot.convert_decode_errors("the servers"):
        servers = islice(snapshot.iter_servers(), _MOST_READ)
        chosen = nlargest(_MOST_IDS, servers, key=lambda one: one.players_current)
        return wire.encode({"ids": [one.id for one in chosen]})


class ApiDocs:
    """The page that shows `/openapi.json`, its files, and a redirect from `/` to the page.

    Its forms are filled with identifiers from the snapshot, so that each example gets a response.
    These identifiers need a key, as all data about servers do.

    Create it before the event loop starts, because it reads the files.
    """

    def __init__(
        self, snapshot: ServedSnapshot, authenticator: Authenticator, *, has_explore: bool
    ) -> None:
        self._snapshot = snapshot
        self._authenticator = authenticator
        without = {
            *([KEY_FORM] if authenticator.is_open else []),
            *([] if has_explore else ["explore"]),
        }
        self._files = read_page("docs.html", _DOCS_PATH, without=without)

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, belongs to the page."""
        path = http.strip_origin(path)
        return path in {_ROOT_PATH, _DOCS_PATH.encode()} or path.startswith(b"/docs/")

    async def answer(self, exchange: Exchange) -> Response:
        """Return the response, and complete its headers and its log entry.

        Raises ApiError for a refused request, and SnapshotError if data are damaged.
        """
        head, entry, headers = exchange.head, exchange.entry, exchange.headers
        headers |= PAGE_HEADERS
        path = http.strip_origin(head.path)
        named = {_ROOT_PATH: "redirectToDocs", _DOCS_PATH.encode(): "getDocs"}
        entry["operation"] = named.get(path, "getDocsAsset")
        http.check_allowed(head.method, http.GET_METHODS)
        if path == _ROOT_PATH:
            # A relative URL, because a proxy may serve the API under a path.
            return Response(None, 307, {**headers, "location": "docs"})
        if file := self._files.get(path):
            return file.respond(head, headers)
        if path != _SERVERS_PATH:
            raise http.UnknownPathError("path: not a file of the page")
        await self._authenticator.admit(exchange)
        body = await self._snapshot.explore(_list_ids)
        return Response(body, headers=headers, media_type=http.JSON_TYPE)
