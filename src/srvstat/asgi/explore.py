"""Serve the page of `serve --explore`: its files, and the data behind its search and its chart.

Its paths are `/` and all that begin with `/explore/`. All other paths are the contract's (D21).
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple
from xml.etree import ElementTree as ET

from srvstat.asgi.auth import Authenticator
from srvstat.asgi.explore_data import (
    ParseQuestion,
    parse_search,
    parse_stats_question,
    parse_timeline_question,
)
from srvstat.asgi.progress import Progress
from srvstat.asgi.sites import PAGE_HEADERS, SiteAnswer
from srvstat.asgi.snapshots import ServedSnapshot
from srvstat.asgi.workers import Work
from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.http import (
    GET_METHODS,
    JSON_TYPE,
    Headers,
    UnknownPathError,
    check_allowed,
    find_values,
)
from srvstat.web import read_asset

_PAGE_PATH = b"/"
_PREFIX = b"/explore/"
_MEDIA_TYPES = {"css": "text/css", "js": "text/javascript"}

_HOST = re.compile(r"(?:(localhost)|([0-9.]+)|\[([0-9a-f:.]+)\])(?::[0-9]{1,5})?", re.IGNORECASE)


class _File(NamedTuple):
    operation: str
    media_type: str
    content: bytes


class _DataPath(NamedTuple):
    operation: str
    parse: ParseQuestion


_DATA_PATHS: Mapping[bytes, _DataPath] = {
    b"/explore/data/servers": _DataPath("exploreServers", parse_search),
    b"/explore/data/stats": _DataPath("exploreStats", parse_stats_question),
    b"/explore/data/timeline": _DataPath("exploreTimeline", parse_timeline_question),
}


class Explorer:
    """The page, and the answers to its questions. Create it before the event loop starts."""

    headers = PAGE_HEADERS
    """Headers of all its answers, errors included."""
    allows_cors = False
    """Pages of other origins call the API; the page's own data change with the page."""

    def __init__(self, snapshot: ServedSnapshot, authenticator: Authenticator) -> None:
        self._snapshot = snapshot
        self._authenticator = authenticator
        self._files = _read_files(needs_key=not authenticator.is_open)

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, belongs to the page."""
        return path == _PAGE_PATH or path.startswith(_PREFIX)

    async def answer(self, progress: Progress, is_wanted: Callable[[], bool]) -> SiteAnswer:
        """Return the answer; add to its headers and its log entry.

        The files need no key. The data need one, so a page of another origin can't ask for them
        without a preflight.

        Raises ApiError, SnapshotError, ClientGoneError.
        """
        head = progress.head
        if self._authenticator.is_open:
            _check_host(head.headers)
        target = self._files.get(head.path) or _DATA_PATHS.get(head.path)
        if target is None:
            raise UnknownPathError("path: not a path of the explore page")
        progress.entry["operation"] = target.operation
        check_allowed(head.method, GET_METHODS)
        if isinstance(target, _File):
            return SiteAnswer(target.content, target.media_type)
        body = await self._answer_question(target, progress, is_wanted)
        return SiteAnswer(body, JSON_TYPE)

    async def _answer_question(
        self, target: _DataPath, progress: Progress, is_wanted: Callable[[], bool]
    ) -> bytes:
        caller = await self._authenticator.authenticate(progress.head.headers)
        progress.entry["caller"] = caller.name
        self._authenticator.count_request(caller, progress.headers)
        question = target.parse(progress.head.query)
        generation = await self._snapshot.get_generation()
        if caller.plan:
            question.check_plan(caller.plan, generation.as_of)
        return await self._snapshot.ask(
            generation,
            question.answer,
            remember=lambda _: None,
            is_wanted=is_wanted,
            work=Work.EXPLORE,
        )


def _read_files(*, needs_key: bool) -> dict[bytes, _File]:
    """Return the page, and the style sheets and scripts that it names, by their paths."""
    page = ET.fromstring(read_asset("explore.html"))  # noqa: S314 - a file of ours
    if not needs_key:
        _remove_key_form(page)
    content = b"<!doctype html>\n" + ET.tostring(page, encoding="utf-8", method="html")
    files = {_PAGE_PATH: _File("explore", "text/html", content)}
    for element in page.iter():
        path = element.get("src", element.get("href", ""))
        if path.startswith("/explore/"):
            _, _, name = path.rpartition("/")
            media_type = _MEDIA_TYPES[name.rpartition(".")[2]]
            content = read_asset(name).encode("utf-8")
            files[path.encode("ascii")] = _File("exploreAsset", media_type, content)
    return files


def _remove_key_form(page: ET.Element) -> None:
    for parent in page.iter():
        for form in parent.findall("form"):
            parent.remove(form)


def _check_host(headers: Headers) -> None:
    """Check that a request names this machine as its host.

    The page of a name that its owner points to 127.0.0.1 (DNS rebinding) has another host. Any port
    will do, because a tunnel may have another one.

    Raises InvalidRequestError.
    """
    hosts = [value.decode("latin-1") for value in find_values(headers, b"host")]
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if match is None or not _is_loopback(match):
        raise InvalidRequestError("host: not this machine; use localhost")


def _is_loopback(host: re.Match[str]) -> bool:
    name, *addresses = host.groups()
    try:
        return bool(name) or any(ipaddress.ip_address(one).is_loopback for one in addresses if one)
    except ValueError:
        return False
