"""The figures that srvstat is held to: what must be reached, and what is aimed for."""

from collections.abc import Callable, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

from benchmarks import commands, engines, service
from benchmarks.results import FULL, Results
from benchmarks.service import Rates

_Measured = TypeVar("_Measured")


class Figure(NamedTuple, Generic[_Measured]):
    """One figure: how it is measured and what it is held to."""

    what: str
    limit: Literal["≥", "≤"]
    must: float | None
    """None where it is only reported."""
    aim: float
    form: str
    """How a value is written."""
    measure: Callable[[_Measured], float | None]
    absent: str = f"needs SIZE={FULL}"
    """Why nothing may be measured."""

    def holds(self, value: float, limit: float) -> bool:
        """Say whether a value is as good as a limit."""
        return value >= limit if self.limit == "≥" else value <= limit


FIGURES: Sequence[Figure[Results]] = (
    Figure("in process, request to bytes, 24h: times as fast as DuckDB", "≥", 5, 12, "{:,.1f}×",
           lambda results: results.over_duckdb(engines.SRVSTAT, "24h")),
    Figure("the same, 30d", "≥", 6, 15, "{:,.1f}×",
           lambda results: results.over_duckdb(engines.SRVSTAT, "30d")),
    Figure("the same, 1y", "≥", 20, 60, "{:,.1f}×",
           lambda results: results.over_duckdb(engines.SRVSTAT, "1y")),
    Figure("statistics alone, 24h: times as fast as DuckDB", "≥", 8, 16, "{:,.1f}×",
           lambda results: results.over_duckdb(engines.STATISTICS, "24h")),
    Figure("the same, 30d", "≥", 9, 20, "{:,.1f}×",
           lambda results: results.over_duckdb(engines.STATISTICS, "30d")),
    Figure("the same, 1y", "≥", 30, 80, "{:,.1f}×",
           lambda results: results.over_duckdb(engines.STATISTICS, "1y")),
    Figure("in process, request to bytes: 1y over 24h", "≤", 1.3, 1.0, "{:.2f}×",
           Results.more_days),
    Figure("the same: 1,000 servers over 20, for the worst range", "≤", 1.6, 1.2, "{:.2f}×",
           Results.more_servers),
    Figure("whole process, 1y: its time over that of two imports", "≤", 1.3, 1.1, "{:.2f}×",
           lambda results: 1 / results.over_command(commands.START_UP)),
    Figure("whole process, 1y: times as fast as sqlite-utils query", "≥", 2.5, 3, "{:.1f}×",
           lambda results: results.over_command(commands.SQLITE_UTILS)),
    Figure("the same, with SQL tuned to SQLite", "≥", None, 3, "{:.1f}×",
           lambda results: results.over_command(commands.SQLITE_UTILS_TUNED)),
    Figure("whole process, 1y: times as fast as DuckDB's CLI", "≥", None, 1, "{:.2f}×",
           lambda results: results.over_command(*commands.DUCKDB)),
    Figure("batch on one core: its rate over that of the same requests in process", "≥", 0.8, 0.95,
           "{:.2f}×", lambda results: results.batch.over_in_process),
    Figure("the same: answers a second", "≥", None, 5_000, "{:,.0f}",
           lambda results: results.batch.answers_a_second),
    Figure("digests of five servers not asked before: added time over the rest of the answer",
           "≤", 0.4, 0.2, "{:.2f}×", lambda results: results.digests.over_rest),
    Figure("the same, 1y alone", "≤", None, 0.2, "{:.2f}×",
           lambda results: results.digests.over_rest_of_year),
    Figure("the same: added time, all ranges", "≤", None, 0.1, "{:.3f} ms",
           lambda results: results.digests.added * 1_000),
    Figure("five servers with 600,000 observations of 0 to 100,000 players: 1y over 24h", "≤", 4, 2,
           "{:.1f}×", lambda results: results.wide.year / results.wide.day),
    Figure("the same, 1y", "≤", None, 300, "{:.1f} ms",
           lambda results: results.wide.year * 1_000),
    Figure("snapshot verify: its rate over reading and hashing the same rows", "≥", 0.5, 0.8,
           "{:.2f}×", lambda results: results.verified.over_hashing),
    Figure("the same: observations a second", "≥", None, 1_000_000, "{:,.0f}",
           lambda results: results.verified.observations_a_second),
    Figure("build of 2.1 million rows: times as fast as sqlite-utils insert", "≥", 6, 12,
           "{:,.1f}×", Results.over_insert),
    Figure("build of 21 million shuffled rows: peak memory", "≤", 250, 150, "{:,.0f} MiB",
           Results.build_memory),
    Figure("snapshot: bytes an observation", "≤", 34, 24, "{:.1f}",
           Results.bytes_an_observation),
    Figure("the same, one server with counts to 216,762, exact", "≤", 60, 40, "{:.1f}",
           lambda results: results.hypixel, "skipped: no data"),
)  # fmt: skip
"""In the order of the report."""


def _over(one: str, other: str) -> Callable[[Rates], float | None]:
    """Measure how many times the requests a second of another are answered."""
    return lambda rates: rates[one] / rates[other] if other in rates else None


SERVICE_FIGURES: Sequence[Figure[Rates]] = (
    Figure("serve, five servers over 1y not asked before: requests a second over a bare hello's",
           "≥", 0.06, 0.12, "{:.3f}×", _over(service.NEW, service.HELLO)),
    Figure("the same asked again", "≥", 0.3, 0.5, "{:.3f}×", _over(service.AGAIN, service.HELLO)),
    Figure("the same over a hello on httptools and uvloop", "≥", None, 0.3, "{:.3f}×",
           _over(service.AGAIN, service.FAST_HELLO), "these are not installed"),
    Figure("serve, 30d: times the requests a second of Datasette", "≥", 15, 45, "{:.1f}×",
           _over(service.MONTH, service.DATASETTE)),
    Figure("the same, of servers not asked before", "≥", None, 15, "{:.1f}×",
           _over(service.NEW_MONTH, service.DATASETTE)),
)  # fmt: skip
"""Those of the service, which can be measured alone; in the order of the report, after the rest."""


class Finding(NamedTuple):
    """What a run says of a figure, as text."""

    what: str
    measured: str
    must: str
    aim: str
    verdict: str
    is_missed: bool


def find(figure: Figure[_Measured], measured: _Measured) -> Finding:
    """Hold what a run has measured against a figure."""
    value = figure.measure(measured)
    must, aim = (
        "-" if limit is None else f"{figure.limit} {figure.form.format(limit)}"
        for limit in (figure.must, figure.aim)
    )
    if value is None:
        return Finding(figure.what, "-", must, aim, figure.absent, is_missed=False)
    is_missed = figure.must is not None and not figure.holds(value, figure.must)
    if is_missed:
        verdict = "MISSED"
    elif figure.holds(value, figure.aim):
        verdict = "aim reached"
    else:
        verdict = "reported" if figure.must is None else "held"
    return Finding(figure.what, figure.form.format(value), must, aim, verdict, is_missed=is_missed)
