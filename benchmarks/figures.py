"""The figures of the report, each with a requirement and a goal."""

from collections.abc import Callable, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

from benchmarks import browser, builds, commands, engines, fleet_runs, service
from benchmarks.fleet_runs import FleetCost
from benchmarks.results import FULL, Results
from benchmarks.service import Rates

_Measured = TypeVar("_Measured")


class Figure(NamedTuple, Generic[_Measured]):
    """A figure: how to measure it, its requirement and its goal."""

    name: str
    limit: Literal["≥", "≤"]
    required: float | None
    """None if it is only reported."""
    goal: float
    form: str
    """Format string of a value."""
    measure: Callable[[_Measured], float | None]
    absent: str = f"needs SIZE={FULL}"
    """The reason if there is no measurement."""

    def is_within(self, value: float, limit: float) -> bool:
        """Return whether a value meets a limit."""
        return value >= limit if self.limit == "≥" else value <= limit


FIGURES: Sequence[Figure[Results]] = (
    Figure("in process, request to bytes, 24h: times as fast as DuckDB", "≥", 5, 12, "{:,.1f}×",
           lambda results: results.speed_over_duckdb(engines.SRVSTAT, "24h")),
    Figure("in process, request to bytes, 30d: times as fast as DuckDB", "≥", 6, 15, "{:,.1f}×",
           lambda results: results.speed_over_duckdb(engines.SRVSTAT, "30d")),
    Figure("in process, request to bytes, 1y: times as fast as DuckDB", "≥", 20, 60, "{:,.1f}×",
           lambda results: results.speed_over_duckdb(engines.SRVSTAT, "1y")),
    Figure("in process, statistics only, 24h: times as fast as DuckDB", "≥", 8, 16, "{:,.1f}×",
           lambda results: results.speed_over_duckdb(engines.STATISTICS, "24h")),
    Figure("in process, statistics only, 30d: times as fast as DuckDB", "≥", 9, 20, "{:,.1f}×",
           lambda results: results.speed_over_duckdb(engines.STATISTICS, "30d")),
    Figure("in process, statistics only, 1y: times as fast as DuckDB", "≥", 30, 80, "{:,.1f}×",
           lambda results: results.speed_over_duckdb(engines.STATISTICS, "1y")),
    Figure("in process, request to bytes: time for 1y / time for 24h", "≤", 1.3, 1.0, "{:.2f}×",
           Results.year_over_day),
    Figure("in process, request to bytes: time with 1,000 servers / with 20, worst range",
           "≤", 1.6, 1.2, "{:.2f}×", Results.large_over_small),
    Figure("whole process, 1y: time / time of two imports", "≤", 1.3, 1.1, "{:.2f}×",
           lambda results: 1 / results.speed_over_command(commands.START_UP)),
    Figure("whole process, 1y: times as fast as sqlite-utils query", "≥", 2.5, 3, "{:.1f}×",
           lambda results: results.speed_over_command(commands.SQLITE_UTILS)),
    Figure("whole process, 1y: times as fast as sqlite-utils query, tuned SQL",
           "≥", None, 3, "{:.1f}×",
           lambda results: results.speed_over_command(commands.SQLITE_UTILS_TUNED)),
    Figure("whole process, 1y: times as fast as DuckDB's CLI", "≥", None, 1, "{:.2f}×",
           lambda results: results.speed_over_command(*commands.DUCKDB)),
    Figure("batch on one core: rate / rate of the same requests in process", "≥", 0.8, 0.95,
           "{:.2f}×", lambda results: results.batch.ratio_to_in_process),
    Figure("batch on one core: answers per second", "≥", None, 5_000, "{:,.0f}",
           lambda results: results.batch.answers_per_second),
    Figure("digests of five servers, not cached: added time / rest of the answer",
           "≤", 0.4, 0.2, "{:.2f}×", lambda results: results.digests.over_rest),
    Figure("digests of five servers, not cached, 1y: added time / rest of the answer",
           "≤", None, 0.2, "{:.2f}×",
           lambda results: results.digests.over_rest_of_year),
    Figure("digests of five servers, not cached: added time", "≤", None, 0.1, "{:.3f} ms",
           lambda results: results.digests.added * 1_000),
    Figure("five servers with 600,000 observations of 0 to 100,000 players: time for 1y / for 24h",
           "≤", 4, 2, "{:.1f}×", lambda results: results.wide.year / results.wide.day),
    Figure("five servers with 600,000 observations of 0 to 100,000 players: time for 1y",
           "≤", None, 300, "{:.1f} ms",
           lambda results: results.wide.year * 1_000),
    Figure("snapshot verify: rate / rate of reading and hashing rows", "≥", 0.5, 0.8,
           "{:.2f}×", lambda results: results.verified.over_hashing),
    Figure("snapshot verify: observations per second", "≥", None, 1_000_000, "{:,.0f}",
           lambda results: results.verified.observations_per_second),
    Figure("search of two days, five servers, 30d: time for an instant / time of a comparison",
           "≤", 1, 0.1, "{:.2f}×", lambda results: results.searches.month),
    Figure("search of two days, five servers, 1y: time for an instant / time of a comparison",
           "≤", 1, 0.2, "{:.2f}×", lambda results: results.searches.year),
    Figure("snapshot diff, one more day and a few altered ones: time / time of snapshot verify",
           "≤", 0.1, 0.05, "{:.3f}×",
           lambda results: results.diff.diff / results.diff.verify),
    Figure("top of 1,000 servers by average, 1y: times as fast as DuckDB", "≥", 15, 30, "{:,.1f}×",
           Results.speed_of_top),
    Figure("stats of five servers, 1y: times as fast as DuckDB", "≥", 10, 20, "{:,.1f}×",
           lambda results: results.analyzer.speed_over_duckdb("stats")),
    Figure("growth of five servers by day, 1y: times as fast as DuckDB", "≥", 3, 6, "{:,.1f}×",
           lambda results: results.analyzer.speed_over_duckdb("growth")),
    Figure("peak-hours of five servers, 1y: time / time of DuckDB", "≤", 5, 2, "{:,.2f}×",
           lambda results: 1 / results.analyzer.speed_over_duckdb("peak-hours")),
    Figure("history of five servers by hour, 1y: time / time of DuckDB", "≤", 5, 2, "{:,.2f}×",
           lambda results: 1 / results.analyzer.speed_over_duckdb("history")),
    Figure("report of five servers, 1y: size", "≤", 1.5, 1.0, "{:.2f} MB",
           lambda results: results.page.megabytes),
    Figure("report of five servers, 1y, opened and zoomed in Chromium: longest task",
           "≤", 200, 100, "{:.0f} ms",
           lambda results: results.page.longest_task, browser.ABSENT),
    Figure("report of five servers, 1y: time / time of the commands whose data it shows",
           "≤", 3, 2, "{:,.2f}×",
           lambda results: results.reports.report / results.reports.commands),
    Figure("report of five servers, 1y: seconds", "≤", None, 2, "{:,.2f}",
           lambda results: results.reports.report),
    Figure("build of 2.1 million rows: times as fast as sqlite-utils insert", "≥", 25, 30,
           "{:,.1f}×", lambda results: results.speed_over_insert(builds.SRVSTAT)),
    Figure("build of 2.1 million rows from Parquet: times as fast as sqlite-utils insert",
           "≥", 40, 50, "{:,.1f}×",
           lambda results: results.speed_over_insert(builds.SRVSTAT_PARQUET)),
    Figure("update of 105 million rows with a day: time / time of a build", "≤", 0.05, 0.02,
           "{:.3f}×", Results.update_over_build),
    Figure("update of 105 million rows with a day: peak memory", "≤", 300, 150, "{:,.0f} MiB",
           Results.peak_update_memory),
    Figure("build of 21 million shuffled rows: peak memory", "≤", 250, 150, "{:,.0f} MiB",
           Results.peak_build_memory),
    Figure("snapshot: bytes per observation", "≤", 34, 24, "{:.1f}",
           Results.bytes_per_observation),
    Figure("snapshot of one server with counts to 216,762: bytes per observation",
           "≤", 60, 40, "{:.1f}",
           lambda results: results.hypixel, "skipped: no data"),
)  # fmt: skip
"""All figures but those of the service, in the order of the report."""


def _divide_rates(one: str, other: str) -> Callable[[Rates], float | None]:
    """Return a function that divides one rate by another; it returns None without the other."""
    return lambda rates: rates[one] / rates[other] if other in rates else None


SERVICE_FIGURES: Sequence[Figure[Rates]] = (
    Figure("serve, 1y, five servers, not cached: rate / rate of the minimal application",
           "≥", 0.06, 0.12, "{:.3f}×", _divide_rates(service.UNCACHED, service.HELLO)),
    Figure("serve, 1y, five servers, cached: rate / rate of the minimal application",
           "≥", 0.3, 0.5, "{:.3f}×", _divide_rates(service.CACHED, service.HELLO)),
    Figure("serve, 1y, five servers, cached: rate / that of Starlette on httptools and uvloop",
           "≥", None, 0.3, "{:.3f}×",
           _divide_rates(service.CACHED, service.FAST_HELLO), "not installed"),
    Figure("serve, 30d: times the rate of Datasette", "≥", 15, 45, "{:.1f}×",
           _divide_rates(service.CACHED_MONTH, service.DATASETTE)),
    Figure("serve, 30d, not cached: times the rate of Datasette", "≥", None, 15, "{:.1f}×",
           _divide_rates(service.UNCACHED_MONTH, service.DATASETTE)),
)  # fmt: skip
"""The figures of the service, which follow in the report and can be measured alone."""


def _if_full(measure: Callable[[FleetCost], float]) -> Callable[[FleetCost], float | None]:
    """Return a function that measures only a fleet of the full size."""
    return lambda cost: measure(cost) if cost.is_full else None


FLEET_FIGURES: Sequence[Figure[FleetCost]] = (
    Figure("fleet of 105 million rows: time / time of a plain DuckDB query", "≤", 1.3, 1.0,
           "{:.2f}×", _if_full(lambda cost: cost.srvstat.seconds / cost.duckdb.seconds)),
    Figure("fleet of 105 million rows, 4 GiB for DuckDB: peak memory", "≤", None, 4_500,
           "{:,.0f} MiB", _if_full(lambda cost: cost.srvstat.peak_mib)),
    Figure(f"fleet of 105 million rows, {fleet_runs.LOW_MEMORY}: time / time with 4 GiB",
           "≤", None, 2, "{:.2f}×",
           _if_full(lambda cost: cost.low.seconds / cost.srvstat.seconds)),
)  # fmt: skip
"""The figures of `srvstat fleet`, likewise."""


class Finding(NamedTuple):
    """The result of a run for one figure, as text."""

    name: str
    measured: str
    required: str
    goal: str
    verdict: str
    is_missed: bool


def evaluate(figure: Figure[_Measured], measured: _Measured) -> Finding:
    """Compare the measurement of a run with the requirement and the goal of a figure."""
    value = figure.measure(measured)
    required, goal = (
        "-" if limit is None else f"{figure.limit} {figure.form.format(limit)}"
        for limit in (figure.required, figure.goal)
    )
    if value is None:
        return Finding(figure.name, "-", required, goal, figure.absent, is_missed=False)
    is_missed = figure.required is not None and not figure.is_within(value, figure.required)
    if is_missed:
        verdict = "MISSED"
    elif figure.is_within(value, figure.goal):
        verdict = "goal reached"
    else:
        verdict = "reported" if figure.required is None else "held"
    return Finding(
        figure.name, figure.form.format(value), required, goal, verdict, is_missed=is_missed
    )
