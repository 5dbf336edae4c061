"""Ask a file every question that the small snapshots can answer."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from fractions import Fraction
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from campaigns.small_snapshots import HIDDEN, HOUR, MIDNIGHT
from srvstat import operations
from srvstat.analysis.comparison import describe_comparison
from srvstat.analysis.distribution import compute_distribution
from srvstat.analysis.growth import compute_growth
from srvstat.analysis.history import aggregate_history, read_history
from srvstat.analysis.info import describe_snapshot
from srvstat.analysis.integrity.check import check_integrity
from srvstat.analysis.peak_hours import compute_peak_hours
from srvstat.analysis.selection import ServerFilter, find_references
from srvstat.analysis.server_list import list_servers
from srvstat.analysis.statistics import compute_stats
from srvstat.analysis.steps import Steps
from srvstat.analysis.timeline import compute_timeline
from srvstat.analysis.top import rank_servers
from srvstat.analysis.windows import WindowQuery, choose_window
from srvstat.contract.errors import ServerNotFoundError, SnapshotError
from srvstat.contract.ranges import Range
from srvstat.contract.requests import (
    CompareRequest,
    ServerReference,
    build_compare_request,
    build_server_reference,
)
from srvstat.snapshot.read.reader import SnapshotFile, open_file
from srvstat.support.explain import explain_comparison, explain_server
from support.records import DAY

Answers = Mapping[str, Any]
"""Question to answer; NOT_FOUND and NOT_IN_BUNDLE are answers, REFUSED is an error."""

OPEN = "open"
REFUSED = "refused"
NOT_FOUND = "SERVER_NOT_FOUND"
NOT_IN_BUNDLE = "not in the bundle"

# More than a million cases ask all questions: every row is read by some question, and few rows by
# two. A table reads every day of its window.
_TABLE = build_compare_request(["busy", "cfxId:x-wide", "uneven", "cfxId:x-away"], range="90d")
_COMPARISONS: tuple[tuple[list[str], Range, int | None], ...] = (
    (["cfxId:x-busy", "cfxId:busy", "daily"], "1y", None),
    (["cfxId:x-daily", "away"], "30d", MIDNIGHT - 32 * DAY),
    (["busy", "cfxId:x-silent"], "7d", MIDNIGHT - 8 * DAY + 2 * HOUR - 1),
)
_SHORT = WindowQuery(range="36h")
_KNOWN = ("cfxId:x-silent", "id:uneven", "id:once")
_UNKNOWN = ("id:unknown", "cfxId:unknown", f"id:{HIDDEN}", f"cfxId:x-{HIDDEN}", "id:x-busy")


def ask_everything(path: str) -> Answers:
    """Open a file and ask it every question; the only answer is REFUSED if it can't be opened.

    Exceptions other than ServerNotFoundError and SnapshotError propagate.
    """
    try:
        snapshot = open_file(path)
    except SnapshotError:
        return {OPEN: REFUSED}
    with closing(snapshot):
        answers = {name: _ask(question, snapshot) for name, question in _QUESTIONS.items()}
    return {OPEN: None} | answers


def find_wrong_answers(found: Answers, truth: Answers) -> list[str]:
    """Return the questions with an answer that is neither REFUSED nor true."""
    return [name for name in found if found[name] != REFUSED and found[name] != truth[name]]


_Question = Callable[[SnapshotFile], Any]


def _ask(question: _Question, snapshot: SnapshotFile) -> Any:
    try:
        return question(snapshot)
    except ServerNotFoundError:
        return NOT_FOUND
    except operations.NotInBundleError:
        return NOT_IN_BUNDLE
    except SnapshotError:
        return REFUSED


def _list_questions() -> Iterator[tuple[str, _Question]]:
    yield "info", _describe_snapshot
    yield "three servers by coverage", _list_servers
    for identifier in (*_KNOWN, *_UNKNOWN):
        yield f"get {identifier}", partial(_get, build_server_reference(identifier))
    yield "table of four over 90d", partial(describe_comparison, request=_TABLE)
    yield "explanation of once", partial(_explain_server, build_server_reference("once"))
    yield "explanation of two over 7d", _explain_comparison
    yield "statistics of two over 40d", _compute_stats
    yield "top by growth over 36h", _rank_servers
    yield "growth of two over 36h", _compute_growth
    yield "peak hours of one over 36h", _compute_peak_hours
    yield "history of two", _read_history
    yield "integrity of one over 36h", _check_integrity
    yield "timeline of two over 36h", _compute_timeline
    yield "distribution of one over 36h", _compute_distribution
    for identifiers, length, at in _COMPARISONS:
        request = build_compare_request(identifiers, range=length)
        name = f"compare {' '.join(identifiers)} over {length} at {at}"
        yield name, partial(_compare, request, at)


def _describe_snapshot(snapshot: SnapshotFile) -> bytes:
    return describe_snapshot(snapshot).to_json()


def _list_servers(snapshot: SnapshotFile) -> bytes:
    wanted = ServerFilter(text="e", game="game_a", is_offline=False, seen_since=MIDNIGHT - DAY)
    return list_servers(snapshot, wanted, sort="coverage", limit=3).to_json()


def _get(request: ServerReference, snapshot: SnapshotFile) -> bytes:
    return operations.get_server(snapshot, request).to_json()


def _explain_server(request: ServerReference, snapshot: SnapshotFile) -> bytes:
    return explain_server(snapshot, request, MIDNIGHT).to_json()


def _explain_comparison(snapshot: SnapshotFile) -> bytes:
    request = build_compare_request(["uneven", "cfxId:x-away"], range="7d")
    return explain_comparison(snapshot, request, None).to_json()


def _compute_stats(snapshot: SnapshotFile) -> bytes:
    # Both have summaries.
    references = map(build_server_reference, ("busy", "cfxId:x-daily"))
    return compute_stats(
        snapshot,
        find_references(snapshot, references),
        choose_window(snapshot, WindowQuery(range="40d")),
        quantiles=[Fraction(19, 20)],
        above=9,
        versus_previous=True,
    ).to_json()


def _rank_servers(snapshot: SnapshotFile) -> bytes:
    window = choose_window(snapshot, _SHORT)
    return rank_servers(snapshot, ServerFilter(), window, "growth", limit=1).to_json()


def _compute_growth(snapshot: SnapshotFile) -> bytes:
    servers = find_references(snapshot, map(build_server_reference, ("busy", "cfxId:x-wide")))
    window = choose_window(snapshot, _SHORT)
    return compute_growth(snapshot, servers, window, "day", ZoneInfo("Asia/Tokyo")).to_json()


def _compute_peak_hours(snapshot: SnapshotFile) -> bytes:
    servers = find_references(snapshot, [build_server_reference("uneven")])
    window = choose_window(snapshot, _SHORT)
    return compute_peak_hours(snapshot, servers, window, ZoneInfo("Asia/Tokyo")).to_json()


def _read_history(snapshot: SnapshotFile) -> list[Any]:
    servers = find_references(snapshot, map(build_server_reference, ("daily", "uneven")))
    window = choose_window(snapshot, _SHORT)
    steps = Steps([window.start, MIDNIGHT, window.end], window)
    sums = aggregate_history(snapshot, servers, steps, is_sum=True)
    return [*read_history(snapshot, servers, window), *sums]


def _check_integrity(snapshot: SnapshotFile) -> bytes:
    servers = find_references(snapshot, [build_server_reference("busy")])
    window = choose_window(snapshot, _SHORT)
    return b"".join(check_integrity(snapshot, servers, window, ZoneInfo("UTC")).iter_json())


def _compute_timeline(snapshot: SnapshotFile) -> bytes:
    servers = find_references(snapshot, map(build_server_reference, ("daily", "uneven")))
    window = choose_window(snapshot, _SHORT)
    return compute_timeline(snapshot, servers, window, 9, ZoneInfo("UTC")).to_json()


def _compute_distribution(snapshot: SnapshotFile) -> bytes:
    servers = find_references(snapshot, [build_server_reference("busy")])
    return compute_distribution(snapshot, servers, choose_window(snapshot, _SHORT)).to_json()


def _compare(request: CompareRequest, at: int | None, snapshot: SnapshotFile) -> bytes:
    return operations.compare(snapshot, request, at=at).to_json()


_QUESTIONS = dict(_list_questions())
