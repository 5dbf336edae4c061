"""Serve the page of `serve --explore`: its files, and the data behind its search and its chart.

Its paths are `/` and all that begin with `/explore/`. All other paths are the contract's (D21).
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from starlette.responses import Response

from srvstat.analysis.pictures import compute_timeline
from srvstat.analysis.questions import find_previous, find_zone
from srvstat.analysis.selection import FilterOptions, MatchingServers, Question
from srvstat.analysis.series import Total
from srvstat.analysis.servers import list_servers
from srvstat.analysis.statistics import compute_stats, rank_servers
from srvstat.asgi.auth import Authenticator
from srvstat.asgi.pages import KEY_FORM, PAGE_HEADERS, read_page
from srvstat.asgi.snapshots import ServedSnapshot, Work, enforce_deadline
from srvstat.contract import http, requests, wire
from srvstat.contract.errors import InvalidRequestError, UsageError
from srvstat.contract.windows import DEFAULT_RANGE, Range, find_window
from srvstat.documents.document import Document
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

_SPARKLINE_STEPS: Mapping[str, int] = {"90d": 92}
"""The most steps of a sparkline by range, if not 59: days where 12 hours would be a zigzag."""

MOST_SUMMED = 1_000_000
"""Observations of a total: as many take about a second."""


Answer = Callable[[Snapshot, Plan | None], bytes]
"""Answers a question from a snapshot with a document.

Raises FeatureNotAvailableError for a question that the plan does not include, ServerNotFoundError,
SnapshotError.
"""


class _Span(NamedTuple):
    """The range and the time zone of a question."""

    length: Range
    zone: ZoneInfo

    @property
    def sparkline_steps(self) -> int:
        """The most steps of a sparkline."""
        return _SPARKLINE_STEPS.get(self.length, 59)

    def ask(self, snapshot: Snapshot, plan: Plan | None, *, has_change: bool) -> Question:
        """Return the question about all servers.

        Raises FeatureNotAvailableError for a plan without the raw history of the window and, for a
        change, of the window before; NotInBundleError.
        """
        window = find_window(self.length, snapshot.as_of)
        if plan:
            plan.check_timeline(self.length, snapshot.as_of)
            if has_change:
                plan.check_history(find_previous(window), snapshot.as_of)
        check_coverage(snapshot, window)
        return Question(snapshot, MatchingServers(snapshot, FilterOptions()), window, self.zone)


def _parse_span(given: Mapping[str, str]) -> _Span:
    """Parse `range` and `tz`. Raises InvalidRequestError."""
    try:
        zone = find_zone(given.get("tz", "UTC"))
    except UsageError:
        raise InvalidRequestError("query: tz: not a time zone of the IANA database") from None
    return _Span(requests.parse_range(given.get("range", DEFAULT_RANGE)), zone)


def _parse_search(given: Mapping[str, str]) -> tuple[FilterOptions, int]:
    """Parse `text` and `limit`: the servers with all words of the text, at most so many.

    Raises InvalidRequestError.
    """
    text = given.get("text", "")
    if len(text) > _MAX_TEXT:
        raise InvalidRequestError(f"query: text has more than {_MAX_TEXT} characters")
    limit = given.get("limit", str(_DEFAULT_LIMIT))
    if not _NUMBER.fullmatch(limit) or int(limit) > _MAX_LIMIT:
        raise InvalidRequestError(
            f"query: limit: {wire.quote_value(limit)} is not a number from 1 to {_MAX_LIMIT}"
        )
    return FilterOptions([text]), int(limit)


def _parse_list(query: bytes) -> Answer:
    """Parse the question which servers there are, those with the most players first.

    Every plan may know them. Raises InvalidRequestError.
    """
    wanted, limit = _parse_search(http.parse_query(query, known=("text", "limit")))
    return lambda snapshot, _: list_servers(snapshot, wanted, sort="current", limit=limit).to_json()


def _parse_ranking(query: bytes) -> Answer:
    """Parse the question which servers are the greatest, with their sparklines.

    Raises InvalidRequestError.
    """
    given = http.parse_query(query, known=("text", "limit", "range", "tz"))
    (wanted, limit), span = _parse_search(given), _parse_span(given)

    def answer(snapshot: Snapshot, plan: Plan | None) -> bytes:
        question = span.ask(snapshot, plan, has_change=True)
        question = question._replace(servers=MatchingServers(snapshot, wanted))
        top = rank_servers(question, "average", limit)
        ids = [requests.parse_server_reference(one.server_id or "") for one in top.servers]
        drawn = question._replace(servers=resolve_servers(snapshot, ids))
        return _join(top=top, timeline=compute_timeline(drawn, span.sparkline_steps))

    return answer


def _parse_network(query: bytes) -> Answer:
    """Parse the question about the total of all servers; `{}` if that would take too long.

    Raises InvalidRequestError.
    """
    span = _parse_span(http.parse_query(query, known=("range", "tz")))

    def answer(snapshot: Snapshot, plan: Plan | None) -> bytes:
        question = span.ask(snapshot, plan, has_change=True)
        row, window = snapshot.file_row, question.window
        observed = (row.last_observed_at or 0) - (row.first_observed_at or 0)
        share = min(1, (window.end - window.start) / max(observed, 1))
        if row.observation_count * share > MOST_SUMMED:
            return _join()
        question = question._replace(servers=[Total(snapshot, list(question.iter_rows()))])
        try:
            timeline = compute_timeline(question, span.sparkline_steps)
            return _join(stats=compute_stats(question), timeline=timeline)
        except UsageError:  # more players than JSON has exact numbers for
            return _join()

    return answer


def _join(**documents: Document) -> bytes:
    """Return an object with documents by name."""
    parts = [b'"%b":%b' % (name.encode(), one.to_json()) for name, one in documents.items()]
    return b"{%b}" % b",".join(parts)


def _parse_servers(query: bytes, *, with_statistics: bool) -> Answer:
    """Parse a question with one `id` for each server, `range` and `tz`.

    The answer has the statistics of the servers in the window of the range, or their timeline. It
    leaves out unknown servers if one is known.

    Raises InvalidRequestError.
    """
    pairs = list(http.split_query(query, known=("id", "range", "tz")))
    ids = [value for name, value in pairs if name == "id"]
    most = requests.MAX_SERVERS
    if not 1 <= len(ids) <= most:
        raise InvalidRequestError(f"query: {len(ids)} given as id, 1 to {most} needed")
    if len(set(ids)) < len(ids):
        raise InvalidRequestError("query: an id is repeated")
    given = {name: value for name, value in pairs if name != "id"}
    if len(given) < len(pairs) - len(ids):
        raise InvalidRequestError("query: range or tz is repeated")
    references = tuple(map(requests.parse_server_reference, ids))
    span = _parse_span(given)

    def answer(snapshot: Snapshot, plan: Plan | None) -> bytes:
        question = span.ask(snapshot, plan, has_change=with_statistics)
        known = [server for server in snapshot.find_servers(references) if server]
        question = question._replace(servers=known or resolve_servers(snapshot, references))
        if with_statistics:
            return compute_stats(question).to_json()
        return compute_timeline(question, MOST_STEPS).to_json()

    return answer


_DATA: Mapping[bytes, tuple[str, Callable[[bytes], Answer]]] = {
    b"/explore/data/servers": ("exploreServers", _parse_list),
    b"/explore/data/ranking": ("exploreRanking", _parse_ranking),
    b"/explore/data/network": ("exploreNetwork", _parse_network),
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
