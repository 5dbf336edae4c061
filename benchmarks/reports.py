"""Time a report of five servers beside the analyzer's commands whose data it shows."""

import json
import random
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from statistics import median
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from benchmarks import fleet
from benchmarks.data import FleetFiles
from benchmarks.measure import print_progress
from benchmarks.questions import SERVERS_PER_REQUEST, WrongAnswerError
from srvstat.analysis.growth import compute_growth
from srvstat.analysis.history import aggregate_history
from srvstat.analysis.integrity.check import check_integrity
from srvstat.analysis.local_time import parse_step
from srvstat.analysis.peak_hours import compute_peak_hours
from srvstat.analysis.report import QUANTILES, build_report, describe_origin
from srvstat.analysis.selection import find_references
from srvstat.analysis.statistics import compute_stats
from srvstat.analysis.steps import divide_window
from srvstat.analysis.windows import WindowQuery, choose_window
from srvstat.contract.ranges import Window
from srvstat.contract.requests import ServerReference
from srvstat.documents.analysis import Report
from srvstat.render.report.page import render_report
from srvstat.render.rows import encode_rows
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.reader import SnapshotFile, open_file

_QUERY = WindowQuery(range="1y", zone="Europe/Berlin")
_ZONE = ZoneInfo(_QUERY.zone)


class ReportCost(NamedTuple):
    """Median seconds of a report of five servers over 1y, and of the commands together."""

    report: float
    commands: float


class _Question(NamedTuple):
    """The servers and the window of a report."""

    snapshot: SnapshotFile
    servers: list[ServerRow]
    window: Window


def measure_report(files: FleetFiles, *, rounds: int) -> ReportCost:
    """Write reports of random servers, and answer the commands about the same servers.

    Both end with the encoded answers: the page, and JSON.

    Raises WrongAnswerError if a report has another figure than a command.
    """
    print_progress("timing reports")
    source = random.Random(f"report {files.size}")
    reports, commands = [], []
    with closing(open_file(files.snapshot)) as snapshot:
        window = choose_window(snapshot, _QUERY)
        for _ in range(rounds):
            numbers = source.sample(range(files.size), SERVERS_PER_REQUEST)
            names = map(fleet.build_server_id, numbers)
            references = [ServerReference(identifier=name, by="id") for name in names]
            question = _Question(snapshot, find_references(snapshot, references), window)
            report, taken = _time(_build_report, question)
            _, rendered = _time(render_report, report)
            reports.append(taken + rendered)
            answers, taken = _time(_ask_commands, question)
            commands.append(taken)
            _check_report(report, answers)
    return ReportCost(median(reports), median(commands))


def _time(ask: Callable[[Any], Any], question: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    return ask(question), time.perf_counter() - started


def _build_report(question: _Question) -> Report:
    origin = describe_origin(question.servers, _QUERY, None)
    return build_report(*question, _ZONE, origin)


def _ask_commands(question: _Question) -> list[bytes]:
    """Return the output of stats, peak-hours, growth, integrity and history."""
    snapshot, servers, window = question
    steps = divide_window(snapshot, servers, window, parse_step("1h"), _ZONE)
    return [
        compute_stats(
            *question, quantiles=QUANTILES, versus_previous=True, zone=_QUERY.zone
        ).to_json(),
        compute_peak_hours(*question, _ZONE).to_json(),
        compute_growth(*question, "week", _ZONE).to_json(),
        check_integrity(*question, _ZONE).to_json(),
        b"".join(encode_rows(aggregate_history(snapshot, servers, steps), "ndjson")),
    ]


def _check_report(report: Report, answers: Sequence[bytes]) -> None:
    """Compare the documents of a report with those of the commands.

    Raises WrongAnswerError.
    """
    *documents, history = answers
    shown = [report.stats, report.peak_hours, report.growth, report.integrity]
    for document, expected in zip(shown, documents, strict=True):
        if document.to_json() != expected:
            raise WrongAnswerError(f"report, {document.document}: not the document of its command")
    steps = [
        step
        for one in report.timeline.servers
        for step in zip(one.averages, one.observed_shares, strict=True)
    ]
    rows = map(json.loads, history.splitlines())
    if steps != [(row["players"], row["observedShare"]) for row in rows]:
        raise WrongAnswerError("report, timeline: not the means and shares of history")
