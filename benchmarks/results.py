"""All that one run has measured, and the ratios that follow from it."""

from dataclasses import dataclass

from benchmarks import builds, commands, engines
from benchmarks.batch import Batch
from benchmarks.builds import Build, Order
from benchmarks.questions import RANGES
from benchmarks.rounds import Latencies, Timed
from benchmarks.service import Rates
from benchmarks.trust import Cost, Verified
from benchmarks.wide import Wide
from srvstat.contract.ranges import Range

SMALL, FULL, LARGE = 20, 200, 1_000
"""The fleets by their numbers of servers. The figures are stated for the full one."""

SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class Results:
    """What was measured. A ratio is None where this run has not measured what it needs."""

    size: int
    """How many servers the fleet of the engines and commands has."""
    observations: int
    """How many observations it has."""
    file_bytes: dict[str, int]
    """How large its files are: the snapshot's and what peers read instead."""
    latencies: dict[tuple[str, int], Latencies]
    """By name and size of the fleet."""
    processes: dict[str, dict[Range, Timed]]
    loads: list[Build]
    batch: Batch
    digests: Cost
    verified: Verified
    hypixel: float | None
    """Bytes an observation."""
    service: Rates
    wide: Wide

    def over_duckdb(self, engine: str, range: Range) -> float:
        """Return how many times as fast an engine is as the faster form of DuckDB."""
        peer = min(self.latencies[name, self.size][range] for name in engines.DUCKDB)
        return peer / self.latencies[engine, self.size][range]

    def more_days(self) -> float:
        """Return how many times as long srvstat takes for 1y as for 24h."""
        ours = self.latencies[engines.SRVSTAT, self.size]
        return ours["1y"] / ours["24h"]

    def more_servers(self) -> float | None:
        """Return how many times as long srvstat takes on the large fleet, for the worst range."""
        large = self.latencies.get((engines.SRVSTAT, LARGE))
        small = self.latencies.get((engines.SRVSTAT, SMALL))
        return max(large[range] / small[range] for range in RANGES) if large and small else None

    def over_command(self, *names: str) -> float:
        """Return how many times as fast srvstat is over 1y as the fastest of some commands."""
        peer = min(self.processes[name]["1y"].seconds for name in names)
        return peer / self.processes[commands.SRVSTAT]["1y"].seconds

    def over_insert(self) -> float:
        """Return how many times the rows a second of sqlite-utils a build reads."""
        rates = {build.name: build.rate for build in self._builds(SMALL, "recorded")}
        return rates[builds.SRVSTAT] / rates[builds.SQLITE_UTILS]

    def build_memory(self) -> float | None:
        """Return the peak memory of building the full fleet from shuffled rows, in MiB."""
        return next((build.peak_mib for build in self._builds(FULL, "shuffled")), None)

    def bytes_an_observation(self) -> float:
        """Return what an observation takes of the whole file."""
        return self.file_bytes[SNAPSHOT] / self.observations

    def _builds(self, servers: int, order: Order) -> list[Build]:
        return [one for one in self.loads if (one.servers, one.order) == (servers, order)]
