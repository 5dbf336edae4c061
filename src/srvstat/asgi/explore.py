"""Serve the page of `serve --explore`: its files, and the data behind its search and its chart.

Its paths are `/` and all that begin with `/explore/`. All other paths are the contract's (D21).
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

from srvstat.access import Plan
from srvstat.analysis.selection import FilterOptions
from srvstat.analysis.server_list import list_servers
from srvstat.analysis.statistics import compute_stats
from srvstat.analysis.timeline import compute_timeline
from srvstat.analysis.windows import find_previous
from srvstat.asgi.answers import Progress
from srvstat.asgi.auth import Authenticator
from srvstat.asgi.sites import PAGE_HEADERS, SiteAnswer
from srvstat.asgi.snapshots import ServedSnapshot, Work, enforce_deadline
from srvstat.contract import wire
from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.http import (
    GET_METHODS,
    JSON_TYPE,
    Headers,
    UnknownPathError,
    check_allowed,
    find_values,
    parse_query,
    split_query,
)
from srvstat.contract.ranges import DEFAULT_RANGE, Range, Window, find_window
from srvstat.contract.requests import (
    MAX_SERVERS,
    ServerReference,
    parse_range,
    parse_server_reference,
)
from srvstat.operations import check_coverage, resolve_servers
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.web import read_asset

_PAGE_PATH = b"/"
_PREFIX = b"/explore/"
_MEDIA_TYPES = {"css": "text/css", "js": "text/javascript"}

_HOST = re.compile(r"(?:(localhost)|([0-9.]+)|\[([0-9a-f:.]+)\])(?::[0-9]{1,5})?", re.IGNORECASE)

MOST_STEPS = 3_000
"""Steps of a chart: about two for each pixel of a wide screen."""

_UTC = ZoneInfo("UTC")
_MAX_TEXT = 200
_MAX_LIMIT = 100
_DEFAULT_LIMIT = 20
_NUMBER = re.compile("[1-9][0-9]{0,2}")


class Question(Protocol):
    """A valid question."""

    def check_plan(self, plan: Plan, as_of: int) -> None:
        """Check that a plan includes the question, in a snapshot as of `as_of`.

        Raises FeatureNotAvailableError.
        """

    def answer(self, snapshot: Snapshot) -> bytes:
        """Return a document as JSON.

        Raises ServerNotFoundError, SnapshotError.
        """


ParseQuestion = Callable[[bytes], Question]
"""Parses a query string. Raises InvalidRequestError."""


class _Search(NamedTuple):
    """Servers with all words of a text; those with the most players first."""

    text: str
    limit: int

    def check_plan(self, plan: Plan, as_of: int) -> None:
        """Allow it: every plan may know which servers there are."""

    def answer(self, snapshot: Snapshot) -> bytes:
        """Return the document `servers`."""
        wanted = FilterOptions(text=self.text).build_filter(snapshot.as_of)
        return list_servers(snapshot, wanted, sort="current", limit=self.limit).to_json()


class _ServersQuestion(NamedTuple):
    """Servers in the window of a range."""

    servers: tuple[ServerReference, ...]
    range: Range

    def find_covered_window(self, snapshot: Snapshot) -> Window:
        """Return the window. Raises NotInBundleError."""
        window = find_window(self.range, snapshot.as_of)
        check_coverage(snapshot, window)
        return window


class _TimelineQuestion(_ServersQuestion):
    def check_plan(self, plan: Plan, as_of: int) -> None:
        """Check that the plan includes the range and its raw history."""
        plan.check_timeline(self.range, as_of)

    def answer(self, snapshot: Snapshot) -> bytes:
        """Return the document `timeline`."""
        window = self.find_covered_window(snapshot)
        servers = resolve_servers(snapshot, self.servers)
        return compute_timeline(snapshot, servers, window, MOST_STEPS, _UTC).to_json()


class _StatsQuestion(_ServersQuestion):
    def check_plan(self, plan: Plan, as_of: int) -> None:
        """Check that the plan includes the range, and the raw history of the window before."""
        plan.check_timeline(self.range, as_of)
        plan.check_history(find_previous(find_window(self.range, as_of)), as_of)

    def answer(self, snapshot: Snapshot) -> bytes:
        """Return the document `stats`, for the changes of averages."""
        window = self.find_covered_window(snapshot)
        servers = resolve_servers(snapshot, self.servers)
        return compute_stats(snapshot, servers, window).to_json()


def parse_search(query: bytes) -> Question:
    """Parse the query string of a search: `text` and `limit`.

    Raises InvalidRequestError.
    """
    given = parse_query(query, known=("text", "limit"))
    text = given.get("text", "")
    if len(text) > _MAX_TEXT:
        raise InvalidRequestError(f"query: text has more than {_MAX_TEXT} characters")
    limit = given.get("limit", str(_DEFAULT_LIMIT))
    if not _NUMBER.fullmatch(limit) or int(limit) > _MAX_LIMIT:
        raise InvalidRequestError(
            f"query: limit: {wire.quote_value(limit)} is not a number from 1 to {_MAX_LIMIT}"
        )
    return _Search(text, int(limit))


def parse_timeline_question(query: bytes) -> Question:
    """Parse the query string of a timeline: one `id` for each server, and `range`.

    Raises InvalidRequestError.
    """
    return _TimelineQuestion(*_parse_servers(query))


def parse_stats_question(query: bytes) -> Question:
    """Parse the query string of statistics, which is that of a timeline.

    Raises InvalidRequestError.
    """
    return _StatsQuestion(*_parse_servers(query))


def _parse_servers(query: bytes) -> tuple[tuple[ServerReference, ...], Range]:
    pairs = list(split_query(query, known=("id", "range")))
    ids = [value for name, value in pairs if name == "id"]
    if not 1 <= len(ids) <= MAX_SERVERS:
        raise InvalidRequestError(f"query: {len(ids)} given as id, 1 to {MAX_SERVERS} needed")
    if len(set(ids)) < len(ids):
        raise InvalidRequestError("query: an id is repeated")
    ranges = [value for name, value in pairs if name == "range"]
    if len(ranges) > 1:
        raise InvalidRequestError("query: range is repeated")
    servers = tuple(map(parse_server_reference, ids))
    return servers, parse_range(ranges[0] if ranges else DEFAULT_RANGE)


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

    async def answer(self, progress: Progress) -> SiteAnswer:
        """Return the answer; add to its headers and its log entry.

        The files need no key. The data need one, so a page of another origin can't ask for them
        without a preflight.

        Raises ApiError, SnapshotError.
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
        body = await self._answer_question(target, progress)
        return SiteAnswer(body, JSON_TYPE)

    async def _answer_question(self, target: _DataPath, progress: Progress) -> bytes:
        caller = await self._authenticator.authenticate(progress.head.headers)
        progress.entry["caller"] = caller.name
        self._authenticator.count_request(caller, progress.headers)
        question = target.parse(progress.head.query)
        generation = await self._snapshot.get_generation()
        if caller.plan:
            question.check_plan(caller.plan, generation.as_of)
        async with enforce_deadline():
            return await self._snapshot.ask(generation, question.answer, Work.EXPLORE)


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
