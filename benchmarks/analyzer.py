"""Time the analyzer's questions in this process: srvstat's Python API and DuckDB's SQL."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import isclose
from statistics import median
from typing import Any, NamedTuple

import duckdb

import srvstat
from benchmarks import analyzer_sql as sql
from benchmarks import fleet
from benchmarks.comparison import freeze_garbage
from benchmarks.data import FleetFiles
from benchmarks.measure import print_progress, time_calls
from benchmarks.questions import Request, WrongAnswerError, draw_requests
from srvstat.contract.windows import Range, Window, find_window

SETUPS = {
    "stats to top": "We measure a call of the Python API for five servers; `top` ranks all servers."
    " DuckDB returns the same numbers as Python tuples."
}
"""The setup of both tools, for the page."""

_MAX_CALLS = 20
_SECONDS = 0.5
_TOLERANCE = 1e-9
_MIN_OBSERVATIONS = 4
"""The number of observations from which a cell of `peak-hours` has figures."""

_Row = tuple[Any, ...]


class _Question(NamedTuple):
    """A question: how both tools answer it, and how to read srvstat's answer as DuckDB's rows."""

    ask: Callable[[srvstat.Snapshot, list[str]], Any]
    read: Callable[[Any], Iterable[_Row]]
    query: Callable[[tuple[int, ...], Window], str]
    length: Range = "1y"


def time_questions(files: FleetFiles, large: FleetFiles, *, rounds: int) -> dict[str, float]:
    """Compare the answers of both tools, and return the speed of srvstat over DuckDB's.

    `top` ranks the servers of the large fleet. Raises WrongAnswerError.
    """
    return {
        name: _time_question(name, question, large if name == "top" else files, rounds)
        for name, question in QUESTIONS.items()
    }


def _time_question(name: str, question: _Question, files: FleetFiles, rounds: int) -> float:
    print_progress(f"comparing answers to {name}, and timing both tools")
    window = find_window(question.length, files.as_of)
    with (
        srvstat.open_snapshot(files.snapshot) as snapshot,
        duckdb.connect(files.duckdb_path(), read_only=True, config={"threads": 2}) as connection,
    ):

        def ask_srvstat(request: Request) -> Any:
            return question.ask(snapshot, list(request.ids))

        def ask_duckdb(request: Request) -> list[_Row]:
            return list(connection.execute(question.query(request.keys, window)).fetchall())

        for request in draw_requests("check", files, "1y")[: 1 if name in {"top", "total"} else 3]:
            _compare(name, question.read(ask_srvstat(request)), ask_duckdb(request))
        freeze_garbage()
        tools: tuple[Callable[[Request], Any], ...] = (ask_srvstat, ask_duckdb)
        times: dict[int, list[float]] = defaultdict(list)
        for number in range(rounds):
            requests = draw_requests(f"{name} {number}", files, "1y")
            for place, ask in enumerate(tools):
                (taken,) = time_calls(ask, requests[:1])
                calls = max(1, min(_MAX_CALLS, int(_SECONDS / taken)))
                times[place] += time_calls(ask, requests[:calls])
    return median(times[1]) / median(times[0])


def time_integrity(files: FleetFiles, *, rounds: int) -> tuple[int, int, float]:
    """Return the numbers of servers and observations of a check of 90 days, and its seconds."""
    ids = [fleet.build_server_id(number) for number in range(files.size * 7 // 10)]
    print_progress(f"checking {len(ids)} servers, {rounds} rounds")
    with srvstat.open_snapshot(files.snapshot) as snapshot:
        times = time_calls(lambda _: snapshot.integrity(ids, range="90d"), range(rounds))
        servers = snapshot.stats(ids, range="90d").servers
    return len(ids), sum(each.sample_count for each in servers), median(times)


def time_morning(files: FleetFiles, *, rounds: int) -> tuple[float, float]:
    """Return the seconds of the events of 90 days of all servers, and of the page `today`."""
    print_progress(f"finding events of {files.size} servers, {rounds} rounds")
    with srvstat.open_snapshot(files.snapshot) as snapshot:
        events = time_calls(lambda _: snapshot.events(range="90d"), range(rounds))
    seconds = []
    for _ in range(rounds):  # each opens the file, as a command does
        with srvstat.open_snapshot(files.snapshot) as snapshot:
            seconds += time_calls(lambda tz: snapshot.today(tz=tz), [sql.ZONE])
    return median(events), median(seconds)


def _compare(name: str, ours: Iterable[_Row], theirs: Sequence[_Row]) -> None:
    for one, other in zip(sorted(ours), sorted(theirs), strict=True):
        for found, right in zip(one, other, strict=True):
            is_number = isinstance(found, int | float) and right is not None
            if not (isclose(found, right, rel_tol=_TOLERANCE) if is_number else found == right):
                raise WrongAnswerError(f"{name}: srvstat found {one}, DuckDB {other}")


def _find_key(server_id: str) -> int:
    return int(server_id.removeprefix("srv-"))


def _split_change(change: Any) -> tuple[float | None, float | None]:
    return (None, None) if change is None else (change.players, change.percentage)


def _read_statistics(document: Any) -> list[_Row]:
    return [
        (
            _find_key(one.server_id),
            one.sample_count,
            one.average_players,
            one.median_players,
            one.quantiles[0].players,
            one.peak_players,
            one.lowest_players,
            one.first_players,
            one.last_players,
            one.peak_first_at,
            one.peak_last_at,
            one.lowest_first_at,
            one.lowest_last_at,
            one.usual_interval_seconds,
            one.time_weighted_average,
            one.coverage,
            one.previous_coverage,
            *_split_change(one.change),
        )
        for one in document.servers
    ]


def _read_growth(document: Any) -> list[_Row]:
    return [
        (
            _find_key(server.server_id),
            step.from_,
            step.to,
            step.sample_count,
            step.average_players,
            step.observed_share,
            step.is_partial,
            step.growth.players,
            *_split_change(step.change),
            server.sample_count,
            server.average_players,
            server.coverage,
            server.previous_coverage,
            *_split_change(server.change),
            server.growth.players,
            None if server.previous_growth is None else server.previous_growth.players,
            server.players_per_week,
        )
        for server in document.servers
        for step in server.steps
        if step.sample_count
    ]


def _read_cells(document: Any) -> list[_Row]:
    return [
        (
            _find_key(server.server_id),
            (cell.weekday - 1) * 24 + cell.hour,
            cell.sample_count,
            cell.average_players,
            cell.median_players,
        )
        for server in document.servers
        for cell in server.cells
        if cell.sample_count >= _MIN_OBSERVATIONS
    ]


def _read_history(rows: list[_Row]) -> list[_Row]:
    return [(_find_key(name), *row) for name, *row in rows]


QUESTIONS = {
    "stats": _Question(
        lambda snapshot, ids: snapshot.stats(ids, range="1y", quantiles=[sql.PERCENT / 100]),
        _read_statistics,
        sql.build_stats,
    ),
    "top": _Question(
        lambda snapshot, _: snapshot.top(
            limit=sql.WINNERS, range="1y", quantiles=[sql.PERCENT / 100]
        ),
        _read_statistics,
        sql.build_top,
    ),
    "growth": _Question(
        lambda snapshot, ids: snapshot.growth(ids, range="1y"), _read_growth, sql.build_growth
    ),
    "peak-hours": _Question(
        lambda snapshot, ids: snapshot.peak_hours(ids, range="1y", tz=sql.ZONE),
        _read_cells,
        sql.build_peak_hours,
    ),
    "history": _Question(
        lambda snapshot, ids: list(
            snapshot.history(ids, range="1y", step="1h", aggregate="mean").to_rows().rows
        ),
        _read_history,
        sql.build_history,
    ),
    "total": _Question(
        lambda snapshot, _: list(snapshot.history(range="30d", step="1h", sum=True).to_rows().rows),
        lambda rows: rows,
        sql.build_total,
        "30d",
    ),
}
"""The questions by the names of their commands."""
