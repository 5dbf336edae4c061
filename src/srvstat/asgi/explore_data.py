"""Answer the questions of the page of `serve --explore` with documents of the analyzer."""

import re
from collections.abc import Callable
from typing import NamedTuple, Protocol
from zoneinfo import ZoneInfo

from srvstat.access import Plan
from srvstat.analysis.selection import FilterOptions
from srvstat.analysis.server_list import list_servers
from srvstat.analysis.statistics import compute_stats
from srvstat.analysis.timeline import compute_timeline
from srvstat.analysis.windows import find_previous
from srvstat.contract import wire
from srvstat.contract.errors import InvalidRequestError
from srvstat.contract.http import parse_query, split_query
from srvstat.contract.ranges import DEFAULT_RANGE, Range, Window, find_window
from srvstat.contract.requests import (
    MAX_SERVERS,
    ServerReference,
    parse_range,
    parse_server_reference,
)
from srvstat.operations import check_coverage, resolve_servers
from srvstat.snapshot.read.snapshot import Snapshot

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
