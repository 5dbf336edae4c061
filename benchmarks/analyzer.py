"""Time the analyzer's questions in this process, beside DuckDB and pandas on the same data."""

import gc
import random
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from statistics import median
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from benchmarks import fleet
from benchmarks.analyzer_answers import (
    PERCENT,
    WINNERS,
    ZONE,
    Cell,
    Figures,
    Growth,
    Name,
    Question,
    Step,
    Summary,
    check_answer,
    compute_answer,
)
from benchmarks.analyzer_peers import Tool, open_peers
from benchmarks.data import FleetFiles
from benchmarks.measure import print_progress, time_calls
from benchmarks.questions import SERVERS_PER_REQUEST
from benchmarks.rounds import rotate_order
from srvstat.analysis.growth import compute_growth
from srvstat.analysis.history import aggregate_history
from srvstat.analysis.local_time import parse_step
from srvstat.analysis.peak_hours import compute_peak_hours
from srvstat.analysis.selection import ServerFilter, find_references
from srvstat.analysis.statistics import compute_stats
from srvstat.analysis.steps import divide_window
from srvstat.analysis.top import rank_servers
from srvstat.contract.ranges import Range, find_window
from srvstat.contract.requests import ServerReference
from srvstat.documents.analysis import GrowthDocument, PeakHours, ServerStatistics, Stats, Top
from srvstat.documents.document import ChangePart
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.reader import SnapshotFile, open_file

SRVSTAT = "srvstat"
_ABOUT_FIVE: tuple[Name, ...] = ("stats", "growth", "peak-hours", "history")
_ABOUT_ALL: tuple[Name, ...] = ("top",)
_RANGE: Range = "1y"

SETUPS = {
    SRVSTAT: "From references to the finished document or rows, as Python objects. `history` reads"
    " all of its rows.",
    "DuckDB": "The table of the comparison above, two threads, literals; the answer as Python"
    " tuples. Two forms where neither is always faster; the requirements use the faster one."
    " `growth` and `history` subtract the few gaps of more than three usual intervals from their"
    " steps.",
    "DuckDB, minimum": "Weights every observation with the minimum of its distance and three usual"
    " intervals. Counts come from a histogram, which is faster than `median` and `quantile_disc`.",
    "DuckDB, corrected sums": "Sums all distances, and subtracts what exceeds three usual"
    " intervals.",
    "DuckDB, one statement": "Ranks all servers, then computes the figures of the first 20.",
    "DuckDB, two statements": "The same, with the keys of the 20 servers as literals.",
    "DuckDB, zone by row": "Converts the instant of each observation with `timezone`.",
    "DuckDB, zone by quarter": "Converts each quarter of an hour once, and joins: the offset of"
    " every time zone today is a multiple of it.",
    "pandas": "One data frame per server in memory, sorted by time; binary search for the window,"
    " then a slice.",
}
"""The setup of each tool, for the report."""

_CHECKED = 3
"""Number of questions per range to check a tool with."""
_CHECKED_RANGES: tuple[Range, ...] = ("90d", _RANGE)
"""The data has no whole year before the last one, but 90 days: averages have changes."""
_MAX_CALLS = 20
"""Maximum number of calls of a tool in a round."""
_SECONDS = 0.3
"""Approximate time of a tool in a round."""


class AnalyzerTimes(NamedTuple):
    """Median seconds of each tool, by question."""

    top_size: int
    """Number of servers that `top` ranks; the other questions are about five servers."""
    seconds: dict[Name, dict[str, float]]

    def speed_over_duckdb(self, name: Name) -> float:
        """Return the time of DuckDB's faster form divided by srvstat's."""
        seconds = self.seconds[name]
        peer = min(taken for tool, taken in seconds.items() if tool.startswith("DuckDB"))
        return peer / seconds[SRVSTAT]


def measure_analyzer(files: FleetFiles, largest: FleetFiles, *, rounds: int) -> AnalyzerTimes:
    """Ask every tool about servers of a fleet over 1y, and for the top of the largest fleet.

    Raises WrongAnswerError.
    """
    seconds: dict[Name, dict[str, float]] = {}
    for some, names in ((files, _ABOUT_FIVE), (largest, _ABOUT_ALL)):
        with closing(open_file(some.snapshot)) as snapshot, open_peers(some) as peers:
            tools = [*_list_tools(snapshot), *peers]
            for name in names:
                asked = [tool for tool in tools if tool.question == name]
                _check_tools(asked, some, name)
                seconds[name] = _time_tools(asked, some, name, rounds)
    return AnalyzerTimes(largest.size, seconds)


def _check_tools(tools: Sequence[Tool], files: FleetFiles, name: Name) -> None:
    """Compare the answers of all tools with the correct ones.

    Raises WrongAnswerError.
    """
    print_progress(f"comparing the answers of {len(tools)} tools to {name}")
    for asked in _CHECKED_RANGES:
        number = 1 if name == "top" else _CHECKED
        for question in _draw_questions("check", files, name, number, asked):
            correct = compute_answer(question)
            for tool in tools:
                check_answer(tool.name, question, tool.read(question, tool.ask(question)), correct)


def _time_tools(
    tools: Sequence[Tool], files: FleetFiles, name: Name, rounds: int
) -> dict[str, float]:
    """Return the median seconds of each tool; rounds alternate between the tools."""
    print_progress(f"timing {len(tools)} tools on {name}")
    # Keeps the garbage collector from scanning existing objects in the middle of a call.
    gc.collect()
    gc.freeze()
    (warm,) = _draw_questions("warm", files, name, 1)
    calls = {}
    for tool in tools:
        (taken,) = time_calls(tool.ask, [warm])
        calls[tool.name] = max(1, min(_MAX_CALLS, int(_SECONDS / taken)))
    times: dict[str, list[float]] = defaultdict(list)
    for number, turn in enumerate(rotate_order(tools, rounds)):
        for tool in turn:
            questions = _draw_questions(f"round {number}", files, name, calls[tool.name])
            times[tool.name] += time_calls(tool.ask, questions)
    gc.unfreeze()
    return {tool.name: median(times[tool.name]) for tool in tools}


def _draw_questions(
    seed: str, files: FleetFiles, name: Name, number: int, asked: Range = _RANGE
) -> list[Question]:
    """Draw questions about random servers, or always the same about the top of all servers."""
    window, every = find_window(asked, files.as_of), range(1, files.size + 1)
    source = random.Random(f"{seed} {name} {files.size}")
    if name == "top":
        return [Question(name, tuple(every), window)] * number
    return [
        Question(name, tuple(source.sample(every, SERVERS_PER_REQUEST)), window)
        for _ in range(number)
    ]


def _list_tools(snapshot: SnapshotFile) -> list[Tool]:
    quantiles = [Fraction(PERCENT, 100)]

    def find_servers(question: Question) -> list[ServerRow]:
        names = [fleet.build_server_id(key - 1) for key in question.keys]
        references = [ServerReference(identifier=name, by="id") for name in names]
        return find_references(snapshot, references)

    def ask_stats(question: Question) -> Stats:
        servers = find_servers(question)
        return compute_stats(snapshot, servers, question.window, quantiles=quantiles)

    def ask_top(question: Question) -> Top:
        return rank_servers(
            snapshot, ServerFilter(), question.window, "average", WINNERS, quantiles=quantiles
        )

    def ask_history(question: Question) -> list[tuple[Any, ...]]:
        servers, step, zone = find_servers(question), parse_step("1h"), ZoneInfo("UTC")
        steps = divide_window(snapshot, servers, question.window, step, zone)
        return list(aggregate_history(snapshot, servers, steps).to_rows().rows)

    def ask_growth(question: Question) -> GrowthDocument:
        servers = find_servers(question)
        return compute_growth(snapshot, servers, question.window, "day", ZoneInfo("UTC"))

    def ask_peak_hours(question: Question) -> PeakHours:
        servers = find_servers(question)
        return compute_peak_hours(snapshot, servers, question.window, ZoneInfo(ZONE))

    return [
        Tool(SRVSTAT, "growth", ask_growth, _read_growth),
        Tool(SRVSTAT, "peak-hours", ask_peak_hours, _read_peak_hours),
        Tool(SRVSTAT, "history", ask_history, _read_history),
        Tool(SRVSTAT, "stats", ask_stats, _read_statistics),
        Tool(SRVSTAT, "top", ask_top, _read_statistics),
    ]


def _read_statistics(_question: Question, document: Stats | Top) -> list[Figures]:
    return [_convert_figures(one) for one in document.servers]


def _read_growth(_question: Question, document: GrowthDocument) -> Growth:
    steps, summaries = [], []
    for server in document.servers:
        key, previous = _find_key(server.server_id), server.previous_growth
        steps += [
            Step(
                *(key, one.from_, one.to, one.sample_count, one.average_players),
                *(one.observed_share, one.is_partial, one.growth.players),
                *_split_change(one.change),
            )
            for one in server.steps
            if one.sample_count
        ]
        summaries.append(
            Summary(
                key,
                server.sample_count,
                server.average_players,
                server.coverage,
                server.previous_coverage,
                *_split_change(server.change),
                server.growth.players,
                None if previous is None else previous.players,
                server.players_per_week,
            )
        )
    return Growth(steps, summaries)


def _split_change(change: ChangePart | None) -> tuple[float | None, float | None]:
    return (None, None) if change is None else (change.players, change.percentage)


def _read_peak_hours(_question: Question, document: PeakHours) -> list[Cell]:
    return [
        Cell(
            _find_key(server.server_id),
            (cell.weekday - 1) * 24 + cell.hour,
            cell.sample_count,
            cell.average_players,
            cell.median_players,
        )
        for server in document.servers
        for cell in server.cells
    ]


def _read_history(_question: Question, rows: list[tuple[Any, ...]]) -> list[Step]:
    return [Step(_find_key(name), *row) for name, *row in rows]


def _find_key(server_id: str) -> int:
    return int(server_id.removeprefix("srv-"))


def _convert_figures(one: ServerStatistics) -> Figures:
    (quantile,) = one.quantiles
    return Figures(
        _find_key(one.server_id),
        one.sample_count,
        one.average_players,
        one.median_players,
        quantile.players,
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
