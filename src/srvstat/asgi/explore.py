"""Serve the page of `serve --explore`: its files, and the data behind its search and its chart.

Its paths are `/` and all that begin with `/explore/`. All other paths are the contract's (D21).
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from starlette.responses import Response

from srvstat.analysis.pictures import compute_timeline
from srvstat.analysis.questions import find_previous
from srvstat.analysis.selection import FilterOptions, Question
from srvstat.analysis.servers import list_servers
from srvstat.analysis.statistics import compute_stats
from srvstat.asgi.auth import Authenticator
from srvstat.asgi.pages import KEY_FORM, PAGE_HEADERS, read_page
from srvstat.asgi.snapshots import ServedSnapshot, Work, enforce_deadline
from srvstat.contract import http, requests, wire
from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.windows import DEFAULT_RANGE, find_window
from srvstat.operations.access import Plan
from srvstat.operations.answers import check_coverage, resolve_servers
from srvstat.snapshot.read.snapshot import Snapshot

_PAGE_PATH = b"/"

_HOST = re.compile(
    r"(?:localhost|127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}|\[::1\])(?::\d{1,5})?",
    re.IGNORECASE | re.ASCII,
)
"""This machine as browsers write it, and a port."""

MOST_STEPS = 3_000
"""Steps of a chart: about two for each pixel of a wide screen."""

_MAX_TEXT = 200
_MAX_LIMIT = 100
_DEFAULT_LIMIT = 20
_NUMBER = re.compile("[1-9][0-9]{0,2}")


Answer = Callable[[Snapshot, Plan | None], bytes]
"""Answers a question from a snapshot with a document.

Raises FeatureNotAvailableError for a question that the plan does not include, ServerNotFoundError,
SnapshotError.
"""


def _parse_search(query: bytes) -> Answer:
    """Parse the query string of a search: `text` and `limit`.

    The answer has the servers with all words of the text; those with the most players first.

    Raises InvalidRequestError.
    """
    given = http.parse_query(query, known=("text", "limit"))
    text = given.get("text", "")
    if len(text) > _MAX_TEXT:
        raise InvalidRequestError(f"query: text has more than {_MAX_TEXT} characters")
    limit = given.get("limit", str(_DEFAULT_LIMIT))
    if not _NUMBER.fullmatch(limit) or int(limit) > _MAX_LIMIT:
        raise InvalidRequestError(
            f"query: limit: {wire.quote_value(limit)} is not a number from 1 to {_MAX_LIMIT}"
        )

    def answer(snapshot: Snapshot, _: Plan | None) -> bytes:
        # Every plan may know which servers there are.
        wanted = FilterOptions([text])
        return list_servers(snapshot, wanted, sort="current", limit=int(limit)).to_json()

    return answer


def _parse_servers(query: bytes, *, with_statistics: bool) -> Answer:
    """Parse a query string with one `id` for each server, and `range`.

    The answer has the statistics of the servers in the window of the range, or their timeline.

    Raises InvalidRequestError.
    """
    pairs = list(http.split_query(query, known=("id", "range")))
    ids = [value for name, value in pairs if name == "id"]
    most = requests.MAX_SERVERS
    if not 1 <= len(ids) <= most:
        raise InvalidRequestError(f"query: {len(ids)} given as id, 1 to {most} needed")
    if len(set(ids)) < len(ids):
        raise InvalidRequestError("query: an id is repeated")
    ranges = [value for name, value in pairs if name == "range"]
    if len(ranges) > 1:
        raise InvalidRequestError("query: range is repeated")
    servers = tuple(map(requests.parse_server_reference, ids))
    length = requests.parse_range(ranges[0] if ranges else DEFAULT_RANGE)

    def answer(snapshot: Snapshot, plan: Plan | None) -> bytes:
        window = find_window(length, snapshot.as_of)
        if plan:
            plan.check_timeline(length, snapshot.as_of)
            if with_statistics:  # they include the change since the window before
                plan.check_history(find_previous(window), snapshot.as_of)
        check_coverage(snapshot, window)
        question = Question(snapshot, resolve_servers(snapshot, servers), window)
        if with_statistics:
            return compute_stats(question).to_json()
        return compute_timeline(question, MOST_STEPS).to_json()

    return answer


_DATA: Mapping[bytes, tuple[str, Callable[[bytes], Answer]]] = {
    b"/explore/data/servers": ("exploreServers", _parse_search),
    b"/explore/data/stats": ("exploreStats", partial(_parse_servers, with_statistics=True)),
    b"/explore/data/timeline": ("exploreTimeline", partial(_parse_servers, with_statistics=False)),
}
"""What the log calls the paths, and what parses their query strings."""


class Explorer:
    """The page, and the answers to its questions. Create it before the event loop starts.

    The page computes no figures: it shows the API's responses and the analyzer's documents.
    """

    headers = PAGE_HEADERS
    allows_cors = False

    def __init__(self, snapshot: ServedSnapshot, authenticator: Authenticator) -> None:
        self._snapshot = snapshot
        self._authenticator = authenticator
        without = [KEY_FORM] if authenticator.is_open else []
        self._files = read_page("explore.html", "/", without=without)

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, belongs to the page."""
        return path == _PAGE_PATH or path.startswith(b"/explore/")

    async def answer(
        self, head: http.Head, entry: dict[str, Any], headers: dict[str, str]
    ) -> Response:
        """Return the answer; add to its headers and its log entry.

        The files need no key. The data need one, even where every key is valid: a page of another
        origin can't send the key's header without a preflight, which the service refuses.

        Raises ApiError, SnapshotError.
        """
        if self._authenticator.is_open:
            _check_host(head.headers)
        if file := self._files.get(head.path):
            entry["operation"] = "explore" if head.path == _PAGE_PATH else "exploreAsset"
            http.check_allowed(head.method, http.GET_METHODS)
            return file.respond(head, headers)
        if head.path not in _DATA:
            raise http.UnknownPathError("path: not a path of the explore page")
        entry["operation"], parse = _DATA[head.path]
        http.check_allowed(head.method, http.GET_METHODS)
        caller = await self._authenticator.authenticate(head.headers)
        entry["caller"] = caller.name
        self._authenticator.count_request(caller, headers)
        answer = parse(head.query)
        generation = await self._snapshot.get_generation()
        async with enforce_deadline():
            body = await self._snapshot.ask(
                generation, lambda snapshot: answer(snapshot, caller.plan), Work.EXPLORE
            )
        return Response(body, headers=headers, media_type=http.JSON_TYPE)


def _check_host(headers: http.Headers) -> None:
    """Check that a request names this machine as its host.

    The page of a name that its owner points to 127.0.0.1 (DNS rebinding) has another host. Any port
    will do, because a tunnel may have another one.

    Raises InvalidRequestError.
    """
    hosts = [value.decode("latin-1") for value in http.find_values(headers, b"host")]
    if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
        raise InvalidRequestError("host: not this machine; use localhost")
