"""The measurements of one run and their ratios."""

from dataclasses import dataclass

from benchmarks import builds, commands, engines
from benchmarks.analyzer import AnalyzerTimes
from benchmarks.batch import Batch
from benchmarks.browser import PageCost
from benchmarks.builds import Build, Order
from benchmarks.diffs import DiffCost
from benchmarks.digests import DigestCost, VerifyRate
from benchmarks.fleet_runs import FleetCost
from benchmarks.questions import RANGES
from benchmarks.reports import ReportCost
from benchmarks.rounds import Latencies, Medians
from benchmarks.searches import SearchCost
from benchmarks.service import Rates
from benchmarks.updates import Update
from benchmarks.wide import Wide
from srvstat.contract.ranges import Range

SMALL, FULL, LARGE = 20, 200, 1_000
"""Sizes of the fleets, in servers. The figures are those of the full one."""

SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements. A ratio is None if this run did not measure its parts."""

    size: int
    """Number of servers in the fleet of the engines and commands."""
    observations: int
    """Number of observations in that fleet."""
    file_bytes: dict[str, int]
    """Sizes of the snapshot and of the files that peers read instead."""
    latencies: dict[tuple[str, int], Latencies]
    """By engine and size of the fleet."""
    processes: dict[str, dict[Range, Medians]]
    loads: list[Build]
    batch: Batch
    digests: DigestCost
    verified: VerifyRate
    searches: SearchCost
    hypixel: float | None
    """Bytes per observation."""
    service: Rates
    wide: Wide
    diff: DiffCost
    analyzer: AnalyzerTimes
    page: PageCost
    reports: ReportCost
    update: Update
    fleet: FleetCost

    def speed_over_duckdb(self, engine: str, range: Range) -> float:
        """Return the time of DuckDB's faster form divided by that of an engine."""
        peer = min(self.latencies[name, self.size][range] for name in engines.DUCKDB)
        return peer / self.latencies[engine, self.size][range]

    def speed_of_top(self) -> float | None:
        """Return the time of DuckDB's faster form for the top of the large fleet by srvstat's."""
        is_large = self.analyzer.top_size == LARGE
        return self.analyzer.speed_over_duckdb("top") if is_large else None

    def year_over_day(self) -> float:
        """Return srvstat's time for 1y divided by that for 24h."""
        ours = self.latencies[engines.SRVSTAT, self.size]
        return ours["1y"] / ours["24h"]

    def large_over_small(self) -> float | None:
        """Return srvstat's time on the large fleet divided by that on the small, worst range."""
        large = self.latencies.get((engines.SRVSTAT, LARGE))
        small = self.latencies.get((engines.SRVSTAT, SMALL))
        return max(large[range] / small[range] for range in RANGES) if large and small else None

    def speed_over_command(self, *names: str) -> float:
        """Return the time of the fastest named command for 1y divided by srvstat's."""
        peer = min(self.processes[name]["1y"].seconds for name in names)
        return peer / self.processes[commands.SRVSTAT]["1y"].seconds

    def speed_over_insert(self, build: str) -> float:
        """Return the rows per second of a build divided by those of sqlite-utils."""
        rates = {build.name: build.rate for build in self._select_builds(SMALL, "recorded")}
        return rates[build] / rates[builds.SQLITE_UTILS]

    def update_over_build(self) -> float | None:
        """Return the time to add a day to the large fleet divided by that to build all of it."""
        built = next((build.seconds for build in self._select_builds(LARGE, "piped")), None)
        return self.update.seconds / built if built else None

    def peak_update_memory(self) -> float | None:
        """Return the peak memory in MiB of adding a day to the large fleet."""
        return self.update.peak_mib if self.update.servers == LARGE else None

    def peak_build_memory(self) -> float | None:
        """Return the peak memory in MiB of a build of the full fleet from shuffled rows."""
        return next((build.peak_mib for build in self._select_builds(FULL, "shuffled")), None)

    def bytes_per_observation(self) -> float:
        """Return the size of the snapshot divided by its number of observations."""
        return self.file_bytes[SNAPSHOT] / self.observations

    def _select_builds(self, servers: int, order: Order) -> list[Build]:
        return [one for one in self.loads if (one.servers, one.order) == (servers, order)]
