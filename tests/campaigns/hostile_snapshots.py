"""Make snapshots from arbitrary bytes and ask them every question."""

import sqlite3
import struct
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from fractions import Fraction
from functools import cache
from itertools import chain, product
from pathlib import Path
from zoneinfo import ZoneInfo

from campaigns.hostile_changes import apply_changes, build_snapshot, build_sound_snapshot, build_sql
from replay.exchanges import record_comparison
from srvstat import operations
from srvstat.analysis.comparison import describe_comparison
from srvstat.analysis.growth import compute_growth
from srvstat.analysis.history import aggregate_history, read_history
from srvstat.analysis.history_tables import describe_observations, describe_steps
from srvstat.analysis.info import describe_snapshot
from srvstat.analysis.integrity.check import check_integrity
from srvstat.analysis.local_time import parse_step
from srvstat.analysis.peak_hours import compute_peak_hours
from srvstat.analysis.report import build_report, describe_origin
from srvstat.analysis.selection import ServerFilter, count_record_values, find_references
from srvstat.analysis.server_detail import describe_server
from srvstat.analysis.server_list import list_servers
from srvstat.analysis.statistics import compute_stats
from srvstat.analysis.steps import Steps, divide_window
from srvstat.analysis.suggestions import suggest_servers
from srvstat.analysis.top import rank_servers
from srvstat.analysis.windows import WindowQuery, choose_window
from srvstat.contract.errors import ServerNotFoundError, SnapshotError
from srvstat.contract.ranges import BEFORE_ALL, Range, Window
from srvstat.contract.requests import build_compare_request, build_server_reference
from srvstat.documents.history import HistoryQuery
from srvstat.render.report import render_report
from srvstat.render.rows import encode_rows
from srvstat.render.screen import Screen
from srvstat.render.tables import render_table
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.reader import SnapshotFile, open_file
from srvstat.snapshot.write.export import write_export
from srvstat.support.diff import compare_snapshots
from srvstat.support.explain import explain_comparison, explain_server
from srvstat.support.replay import ReplaySettings, replay
from support.records import AS_OF, DAY
from support.snapshots import forge

Question = Callable[[SnapshotFile], bytes | str]

_MAX_SECONDS = 1.0
_SCREEN = Screen(80)
_RANGES: tuple[Range, ...] = ("24h", "1y")
REFUSED = "refused"
NOT_FOUND = "not found"


def _build_server_question(name: str) -> Question:
    reference = build_server_reference(name)
    return lambda snapshot: operations.get_server(snapshot, reference).to_json()


def _build_comparison_question(names: Sequence[str], range: Range, at: int | None) -> Question:
    request = build_compare_request(names, range=range)
    return lambda snapshot: operations.compare(snapshot, request, at=at).to_json()


def _show_comparison_table(snapshot: SnapshotFile) -> str:
    request = build_compare_request(["a", "c"], range="7d")
    return render_table(describe_comparison(snapshot, request), _SCREEN)


def _describe_comparison(snapshot: SnapshotFile) -> str:
    request = build_compare_request(["a", "b"])
    return repr(describe_comparison(snapshot, request, at=AS_OF - DAY))


def _explain_comparison(snapshot: SnapshotFile) -> bytes:
    request = build_compare_request(["b", "c"], range="90d")
    return explain_comparison(snapshot, request, AS_OF - DAY // 3).to_json()


def _explain_server(snapshot: SnapshotFile) -> str:
    return render_table(explain_server(snapshot, build_server_reference("a"), None), _SCREEN)


def _describe_server(snapshot: SnapshotFile) -> str:
    return repr(describe_server(snapshot, build_server_reference("c")))


def _describe_snapshot(snapshot: SnapshotFile) -> bytes:
    return describe_snapshot(snapshot).to_json()


def _list_servers(snapshot: SnapshotFile) -> str:
    wanted = ServerFilter(text="x", seen_since=1)
    return render_table(list_servers(snapshot, wanted, sort="last-seen"), _SCREEN)


def _count_record_values(snapshot: SnapshotFile) -> str:
    return repr(count_record_values(snapshot))


def _show_stats(snapshot: SnapshotFile) -> str:
    servers = find_references(snapshot, map(build_server_reference, "bc"))
    window = Window(AS_OF - 60 * DAY, AS_OF - DAY // 3)
    quantiles = [Fraction(19, 20)]
    return render_table(
        compute_stats(
            snapshot, servers, window, quantiles=quantiles, above=7, versus_previous=True
        ),
        _SCREEN,
    )


def _rank_by_peak(snapshot: SnapshotFile) -> bytes:
    window = Window(BEFORE_ALL, AS_OF)
    return rank_servers(snapshot, ServerFilter(text="a"), window, "peak", limit=2).to_json()


def _write_rows(snapshot: SnapshotFile) -> bytes:
    listed = list_servers(snapshot, ServerFilter())
    return b"".join(
        piece for name in ("csv", "markdown", "parquet") for piece in encode_rows(listed, name)
    )


def _show_growth(snapshot: SnapshotFile) -> str:
    servers = find_references(snapshot, map(build_server_reference, "bc"))
    window = Window(AS_OF - 90 * DAY, AS_OF)
    return render_table(
        compute_growth(snapshot, servers, window, "week", ZoneInfo("Asia/Tokyo")), _SCREEN
    )


def _show_growth_of_all(snapshot: SnapshotFile) -> str:
    servers = find_references(snapshot, [build_server_reference("a")])
    window = Window(BEFORE_ALL, AS_OF)
    return render_table(compute_growth(snapshot, servers, window, "day", ZoneInfo("UTC")), _SCREEN)


def _show_peak_hours(snapshot: SnapshotFile) -> str:
    servers = find_references(snapshot, map(build_server_reference, "ac"))
    window = Window(BEFORE_ALL, AS_OF)
    return render_table(
        compute_peak_hours(snapshot, servers, window, ZoneInfo("Europe/Berlin")), _SCREEN
    )


def _show_history(snapshot: SnapshotFile) -> str:
    servers = find_references(snapshot, map(build_server_reference, "ac"))
    query = HistoryQuery(Window(BEFORE_ALL, AS_OF), "Asia/Tokyo", "median")
    steps = divide_window(snapshot, servers, query.window, parse_step("day"), ZoneInfo(query.zone))
    parts = chain(
        describe_observations(snapshot, servers, query),
        describe_steps(snapshot, servers, steps, query),
    )
    return "".join(render_table(part, _SCREEN) for part in parts)


def _write_history(snapshot: SnapshotFile) -> bytes:
    servers = find_references(snapshot, map(build_server_reference, "bc"))
    window = Window(AS_OF - 2 * DAY, AS_OF)
    steps = Steps(range(AS_OF - 3 * DAY, AS_OF + 1, DAY), Window(AS_OF - 3 * DAY, AS_OF))
    sums = aggregate_history(snapshot, servers, steps, is_sum=True)
    documents = (read_history(snapshot, servers, window), sums)
    return b"".join(chain.from_iterable(encode_rows(one, "csv") for one in documents))


def _export(snapshot: SnapshotFile) -> bytes:
    def encode(servers: Iterable[ServerRow], window: Window) -> Iterable[bytes]:
        return encode_rows(read_history(snapshot, servers, window), "ndjson")

    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory, "new")
        write_export(
            str(folder), snapshot, snapshot.iter_servers, encode, format="ndjson", by_month=True
        )
        return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def _check_integrity(snapshot: SnapshotFile) -> str:
    servers = find_references(snapshot, [build_server_reference("c")])
    window = Window(AS_OF - 2 * DAY, AS_OF)
    return render_table(check_integrity(snapshot, servers, window, ZoneInfo("UTC")), _SCREEN)


def _write_report(snapshot: SnapshotFile) -> bytes:
    servers = find_references(snapshot, [build_server_reference("b")])
    query = WindowQuery(range="all")
    origin = describe_origin(servers, query, None)
    window = choose_window(snapshot, query)
    return render_report(build_report(snapshot, servers, window, ZoneInfo("UTC"), origin))


def _compare_with_another(snapshot: SnapshotFile) -> bytes:
    with closing(open_file(_write_other_snapshot())) as other:
        return compare_snapshots(other, snapshot).to_json()


def _replay(snapshot: SnapshotFile) -> bytes:
    """Record an older answer, and find when it was true."""
    request = build_compare_request(["a", "c"], range="24h")
    answer = operations.compare(snapshot, request, at=AS_OF - DAY // 3).to_json()
    exchange = record_comparison(["a", "c"], "24h", answer, requested_at=AS_OF)
    return b"".join(replay(snapshot, [exchange], ReplaySettings("search")).iter_json())


def _ask_unknown(snapshot: SnapshotFile) -> str:
    reference = build_server_reference("x-a")
    try:
        return str(operations.get_server(snapshot, reference))
    except ServerNotFoundError:
        # Suggestions are not verified, so any are allowed.
        suggest_servers(snapshot, reference.identifier, reference.by)
        raise


_QUESTIONS: list[Question] = [
    *map(_build_server_question, ("a", "cfxId:x-c")),
    *(
        _build_comparison_question(["a", "cfxId:x-b", "c"], name, at)
        for name, at in product(_RANGES, (None, AS_OF - DAY // 3, AS_OF - 5 * DAY))
    ),
    _show_comparison_table,
    _describe_comparison,
    _describe_server,
    _explain_comparison,
    _explain_server,
    _describe_snapshot,
    _list_servers,
    _count_record_values,
    _show_stats,
    _rank_by_peak,
    _write_rows,
    _show_growth,
    _show_growth_of_all,
    _show_peak_hours,
    _show_history,
    _write_history,
    _export,
    _check_integrity,
    _write_report,
    _compare_with_another,
    _replay,
    _ask_unknown,
]


class BrokenPromiseError(AssertionError):
    """An input for which srvstat breaks a promise."""


def ask_all(path: str) -> list[bytes | str]:
    """Ask a file every question; each answer or error must come within a second."""
    started = time.process_time()
    found: list[bytes | str] = []
    try:
        with closing(open_file(path)) as snapshot:
            for question in _QUESTIONS:
                found.append(_answer_question(snapshot, question))
                now = time.process_time()
                if now - started > _MAX_SECONDS:
                    raise BrokenPromiseError(f"question {len(found)} took {now - started:.1f} s")
                started = now
    except SnapshotError:
        return [REFUSED] * len(_QUESTIONS)
    return found


def _answer_question(snapshot: SnapshotFile, question: Question) -> bytes | str:
    try:
        return question(snapshot)
    except SnapshotError:
        return REFUSED
    except ServerNotFoundError:
        return NOT_FOUND


def ask_any_file(data: bytes) -> None:
    """Ask a file with arbitrary content."""
    ask_all(_write_file(data))


def ask_damaged_file(changes: bytes) -> None:
    """Ask a snapshot with changed bytes: each answer must be correct or an error."""
    found = ask_all(_write_file(apply_changes(build_sound_snapshot(), changes)))
    for number, (answer, right) in enumerate(zip(found, read_correct_answers(), strict=True), 1):
        if answer not in {right, REFUSED}:
            raise BrokenPromiseError(f"question {number}: got {answer!r}, expected {right!r}")


def ask_forged_file(changes: bytes) -> None:
    """Ask a snapshot with changed values and recomputed digests: any answer is allowed."""
    path = _write_file(build_sound_snapshot())
    try:
        forge(path, "".join(build_sql(changes)))
    except (sqlite3.Error, ValueError, TypeError, OverflowError, struct.error):
        return  # SQLite or the digests do not allow these changes
    ask_all(path)


def _write_file(file: bytes) -> str:
    path = Path(_create_directory().name, "snapshot.db")
    path.write_bytes(file)
    return str(path)


@cache
def _create_directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@cache
def read_correct_answers() -> list[bytes | str]:
    """Return the answers of the undamaged snapshot."""
    return ask_all(_write_file(build_sound_snapshot()))


@cache
def _write_other_snapshot() -> str:
    """Write a snapshot in which the last observation of each server differs."""
    path = Path(_create_directory().name, "other.db")
    path.write_bytes(build_snapshot(last=1))
    return str(path)
