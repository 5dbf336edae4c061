"""Serve the page of `serve --explore`: its files, and its tables, charts, pictures and data.

Its paths are `/` and all paths that begin with `/explore/`. All other paths belong to the API
(D21).
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, tostring
from zoneinfo import ZoneInfo

from starlette.responses import Response

from srvstat.analysis.pictures import compute_timeline
from srvstat.analysis.questions import find_previous, find_zone
from srvstat.analysis.selection import FilterOptions, MatchingServers, Question
from srvstat.analysis.series import Total
from srvstat.analysis.servers import list_servers
from srvstat.analysis.statistics import compute_stats, rank_servers
from srvstat.asgi.auth import Authenticator
from srvstat.asgi.log import Exchange
from srvstat.asgi.pages import KEY_FORM, PAGE_HEADERS, read_page
from srvstat.asgi.snapshots import ServedSnapshot
from srvstat.contract import http, requests, wire
from srvstat.contract.errors import InvalidRequestError, UsageError
from srvstat.contract.time import format_instant
from srvstat.contract.windows import DEFAULT_RANGE, Range, find_window
from srvstat.documents.analysis import Stats, Top
from srvstat.documents.document import Document
from srvstat.documents.rows import encode_rows
from srvstat.operations.access import Plan
from srvstat.operations.answers import check_coverage, resolve_servers
from srvstat.render.html import Labels, build, build_average, build_note, build_whole
from srvstat.render.pictures import Look, draw_sheet
from srvstat.render.report import build_servers, describe_finding, list_missing_changes
from srvstat.render.svg import encode_svg
from srvstat.render.text import format_zoned_time
from srvstat.snapshot.read.snapshot import Snapshot

_PAGE_PATH = b"/"

MOST_STEPS = 3_000
"""The maximum number of steps in a chart: about two for each pixel of a wide screen."""

_MAX_TEXT = 200
_MAX_LIMIT = 100
_DEFAULT_LIMIT = 20
_NUMBER = re.compile("[1-9][0-9]{0,2}")

_SPARKLINE_STEPS = 92
"""The maximum number of steps in a sparkline: days, for a range of 90 days."""

_RANKED = ("average", "change", "last seen")
_COMPARED = ("current", "average", "change", "median", "lowest", "peak", "observations")

MOST_SUMMED = 1_000_000
"""The maximum number of observations in a total (about 1 s)."""


Answer = Callable[[Snapshot, Plan | None], bytes]
"""Answers a query from a snapshot.

Raises FeatureNotAvailableError if the plan does not include the query, ServerNotFoundError for an
unknown server, and SnapshotError if data are damaged.
"""


class _Span(NamedTuple):
    """The range and the time zone of a query."""

    length: Range
    zone: ZoneInfo

    def ask(self, snapshot: Snapshot, plan: Plan | None) -> Question:
        """Return the query for all servers.

        Raises FeatureNotAvailableError if the plan does not include the raw history of the window
        and of the previous window, and NotInBundleError if a bundle does not cover the window.
        """
        window = find_window(self.length, snapshot.as_of)
        if plan:
            plan.check_timeline(self.length, snapshot.as_of)
            plan.check_history(find_previous(window), snapshot.as_of)
        check_coverage(snapshot, window)
        return Question(snapshot, MatchingServers(snapshot, FilterOptions()), window, self.zone)


def _parse_span(given: Mapping[str, str]) -> _Span:
    """Parse `range` and `tz`. Raises InvalidRequestError for an invalid value."""
    try:
        zone = find_zone(given.get("tz", "UTC"))
    except UsageError:
        raise InvalidRequestError("query: tz: not a time zone of the IANA database") from None
    return _Span(requests.parse_range(given.get("range", DEFAULT_RANGE)), zone)


def _parse_search(given: Mapping[str, str]) -> tuple[FilterOptions, int]:
    """Parse `text`, which filters servers by words, and `limit`, the maximum number of servers.

    Raises InvalidRequestError for an invalid value.
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
    """Parse a request for the server list, ordered by players.

    It is available in every plan. Raises InvalidRequestError if a parameter is invalid.
    """
    wanted, limit = _parse_search(http.parse_query(query, known=("text", "limit")))
    return lambda snapshot, _: list_servers(snapshot, wanted, sort="current", limit=limit).to_json()


def _parse_ranking(query: bytes) -> Answer:
    """Parse a request for the ranking, returned as a table.

    The names of servers link to their records.

    Raises InvalidRequestError if a parameter is invalid.
    """
    given = http.parse_query(query, known=("text", "limit", "range", "tz"))
    (wanted, limit), span = _parse_search(given), _parse_span(given)

    def link(server_id: str) -> str:
        return f"#{urlencode({'id': server_id, 'range': span.length, 'tz': span.zone.key})}"

    def answer(snapshot: Snapshot, plan: Plan | None) -> bytes:
        question = span.ask(snapshot, plan)
        question = question._replace(servers=MatchingServers(snapshot, wanted))
        top = rank_servers(question, "average", limit)
        ids = [requests.parse_server_reference(one.server_id or "") for one in top.servers]
        drawn = question._replace(servers=resolve_servers(snapshot, ids))
        timeline = compute_timeline(drawn, _SPARKLINE_STEPS)
        return _encode(top, build_servers(top.servers, timeline, _RANKED, link))

    return answer


def _parse_network(query: bytes) -> Answer:
    """Parse a request for the network total, returned as a sentence.

    The response is empty if computing it would take too long.

    Raises InvalidRequestError if a parameter is invalid.
    """
    span = _parse_span(http.parse_query(query, known=("range", "tz")))

    def answer(snapshot: Snapshot, plan: Plan | None) -> bytes:
        question = span.ask(snapshot, plan)
        row, window = snapshot.file_row, question.window
        observed = (row.last_observed_at or 0) - (row.first_observed_at or 0)
        share = min(1, (window.end - window.start) / max(observed, 1))
        if row.observation_count * share > MOST_SUMMED:
            return b""
        try:
            question = question._replace(servers=[Total(snapshot, list(question.iter_rows()))])
            [total] = compute_stats(question).servers
        except UsageError:  # the total exceeds JSON's exact integers
            return b""
        return _write(
            build_note(
                f"{total.hostname} together: ",
                *(build_whole(total.current_players), " players now, "),
                *(build_average(total.average_players), " on average, "),
                *(build_whole(total.peak_players), " at the peak."),
            )
        )

    return answer


def _encode(document: Stats | Top, *elements: Element, **documents: Document) -> bytes:
    """Encode a response object as JSON.

    Its members are `html` (the elements), `asOf` and `root` of the document, and each of
    `documents` by name.
    """
    origin = {"asOf": format_instant(document.as_of), "root": document.root}
    head = wire.encode({**origin, "html": _write(*elements).decode()})
    more = b"".join(b',"%b":%b' % (name.encode(), one.to_json()) for name, one in documents.items())
    return b"%b%b}" % (head[:-1], more)


def _write(*elements: Element) -> bytes:
    return b"".join(tostring(one, encoding="utf-8", method="html") for one in elements)


def _parse_servers(query: bytes, answer: Callable[[Question], bytes]) -> Answer:
    """Parse a query with an `id` for each server, `range` and `tz`.

    Unknown servers are ignored if at least one server is known.

    Raises InvalidRequestError if a parameter is invalid.
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

    def ask(snapshot: Snapshot, plan: Plan | None) -> bytes:
        question = span.ask(snapshot, plan)
        known = [server for server in snapshot.find_servers(references) if server]
        known = known or resolve_servers(snapshot, references)
        return answer(question._replace(servers=known))

    return ask


def _answer_overview(question: Question) -> bytes:
    """Return the finding, a row for each server, and the timeline of the chart."""
    stats, timeline = compute_stats(question), compute_timeline(question, MOST_STEPS)
    labels = Labels.choose(stats.servers, stats.time_zone)
    return _encode(
        stats,
        build("h2", *describe_finding(stats, labels), id="title"),
        build_servers(stats.servers, timeline, _COMPARED),
        build("div", id="chart"),
        *list_missing_changes(stats, labels),
        timeline=timeline,
    )


def _answer_csv(question: Question) -> bytes:
    """Return the steps of the chart as CSV rows."""
    return b"".join(encode_rows(compute_timeline(question, MOST_STEPS), "csv"))


def _answer_picture(question: Question) -> bytes:
    """Return the chart as an SVG file, as `srvstat plot` draws it."""
    timeline = compute_timeline(question, MOST_STEPS)
    end = format_zoned_time(timeline.as_of, question.zone, "minutes")
    look = Look(source=f"Source: snapshot {timeline.root[:12]}, which ends {end} · srvstat")
    return encode_svg(draw_sheet(timeline, question.zone, look))


_DATA: Mapping[bytes, tuple[str, Callable[[bytes], Answer], str]] = {
    b"/explore/data/servers": ("exploreServers", _parse_list, http.JSON_TYPE),
    b"/explore/data/ranking": ("exploreRanking", _parse_ranking, http.JSON_TYPE),
    b"/explore/data/network": ("exploreNetwork", _parse_network, "text/html"),
    **{
        path: (name, partial(_parse_servers, answer=answer), media_type)
        for path, name, answer, media_type in (
            (b"/explore/data/overview", "exploreOverview", _answer_overview, http.JSON_TYPE),
            (b"/explore/data/csv", "exploreCsv", _answer_csv, "text/csv"),
            (b"/explore/data/picture", "explorePicture", _answer_picture, "image/svg+xml"),
        )
    },
}
"""The name of each path in the log, its query parser, and the media type of its responses."""


class Explorer:
    """The explore page and its data. Create it before the event loop starts.

    The page itself computes no statistics: it shows the API's responses, and the tables of reports.
    """

    def __init__(self, snapshot: ServedSnapshot, authenticator: Authenticator) -> None:
        self._snapshot = snapshot
        self._authenticator = authenticator
        without = [KEY_FORM] if authenticator.is_open else []
        self._files = read_page("explore.html", "/", without=without)

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, belongs to the page."""
        return path == _PAGE_PATH or path.startswith(b"/explore/")

    async def answer(self, exchange: Exchange) -> Response:
        """Return the response, and complete its headers and its log entry.

        The files need no key. The data need a key, even if every key is valid: a page of another
        origin can't send the key's header without a preflight, which the service refuses.

        Raises ApiError for a refused request, and SnapshotError if data are damaged.
        """
        head, entry, headers = exchange.head, exchange.entry, exchange.headers
        headers |= PAGE_HEADERS
        if file := self._files.get(head.path):
            entry["operation"] = "explore" if head.path == _PAGE_PATH else "exploreAsset"
            http.check_allowed(head.method, http.GET_METHODS)
            return file.respond(head, headers)
        if head.path not in _DATA:
            raise http.UnknownPathError("path: not a path of the explore page")
        entry["operation"], parse, media_type = _DATA[head.path]
        http.check_allowed(head.method, http.GET_METHODS)
        caller = await self._authenticator.admit(exchange)
        answer = parse(head.query)
        body = await self._snapshot.explore(lambda snapshot: answer(snapshot, caller.plan))
        return Response(body, headers=headers, media_type=media_type)
