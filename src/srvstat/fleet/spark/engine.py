"""Count the observations of a fleet with Spark, on one machine or on a cluster."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from srvstat.contract.ranges import BEFORE_ALL, Window
from srvstat.fleet.counts import (
    FIGURES,
    LOCATED,
    ORDER_BITS,
    SURVEY,
    Count,
    Job,
    Progress,
    Resolved,
    Servers,
    Survey,
)
from srvstat.fleet.spark.brief import call_briefly
from srvstat.fleet.spark.contest import Contest, order_rows, select_contested
from srvstat.fleet.spark.counter import (
    ROWS_PER_TASK,
    add_up,
    compute_figures,
    count_values,
    group_rows,
    number_servers,
    split_servers,
    write_groups,
)
from srvstat.fleet.spark.frames import create_frame
from srvstat.fleet.spark.reach import CONNECT
from srvstat.fleet.spark.rows import FleetRows, check_files
from srvstat.fleet.spark.session import open_session
from srvstat.fleet.spark.watch import Steps

_ON_THIS_MACHINE = "local[*]"
_NAMED = pa.schema([("identifier", pa.string())])


@contextmanager
def open_spark(job: Job, *, master: str | None, progress: Progress) -> Iterator["SparkEngine"]:
    """Open Spark on a master, such as `local[*]`, which is the default, or `spark://HOST:PORT`.

    Raises UsageError for a source that a cluster can't read, SourceError if one is not valid,
    MissingLibraryError, EngineError.
    """
    check_files(job.sources)
    steps = Steps(progress)
    master = master or _ON_THIS_MACHINE
    with open_session(master, report=steps.report) as session:
        engine = SparkEngine(session, job, steps)
        try:
            yield engine
        finally:
            # A server runs on after the session; any other driver ends, and frees all it has.
            if master.startswith(CONNECT):
                call_briefly(engine.close)


class SparkEngine:
    """An engine over Spark; see `srvstat.fleet.counts.Engine`."""

    def __init__(self, session: SparkSession, job: Job, steps: Steps) -> None:
        self._session = session
        self._steps = steps
        self._rows = FleetRows(session, job)
        self._job = job._replace(sources=self._rows.sources)
        self._rows_of: dict[str, int] = {}
        self._kept: list[DataFrame] = []

    def survey(self) -> Survey:
        """Read all rows, and return their identifiers."""
        self._steps.begin("reading")
        others = self._rows.read_others()
        self._steps.begin("survey")
        is_early = sql.lit(True) if self._job.as_of is None else sql.col("at") <= self._job.as_of
        rows = self._rows.select().groupBy("identifier")
        found = rows.agg(
            sql.count("*").alias("rows"),
            sql.count_if(~is_early).alias("late"),
            sql.max(sql.when(is_early, sql.col("at"))).alias("last_at"),
        ).toArrow()
        self._rows.judge_malformed((pc.sum(found["rows"]).as_py() or 0) - others)
        lasts = self._find_lasts(found.select(["identifier", "last_at"]))
        identifiers = found.join(lasts, "identifier").select(SURVEY.names).cast(SURVEY)
        names, counts = identifiers["identifier"].to_pylist(), identifiers["rows"].to_pylist()
        self._rows_of = dict(zip(names, counts, strict=True))
        self._rows.check_unchanged()
        remarks = self._rows.remarks
        return Survey(
            self._job.sources,
            identifiers,
            remarks.rows,
            [*remarks.rejects.values()],
            remarks.skipped,
            remarks.warnings,
        )

    def locate(self, identifiers: Sequence[str]) -> pa.Table:
        """Return the rows of some identifiers by source."""
        self._steps.begin("survey")
        named = create_frame(self._session, pa.table({"identifier": identifiers}, _NAMED))
        rows = self._rows.select(has_position=True).join(sql.broadcast(named), "identifier")
        found = self._rows.locate(rows).withColumn("source", sql.shiftright("position", ORDER_BITS))
        located = found.groupBy("source").agg(
            sql.count("*").alias("rows"),
            sql.min("position").alias("first"),
            sql.min_by("identifier", "position").alias("identifier"),
        )
        return located.toArrow().select(LOCATED.names).cast(LOCATED)

    def _find_lasts(self, latest: pa.Table) -> pa.Table:
        """Return the rows that stand at the latest instant of each identifier."""
        ends = pc.min_max(latest["last_at"]).as_py()
        first, last = (0, -1) if ends["min"] is None else (ends["min"], ends["max"])
        rows = self._rows.select(first, last, has_position=True).withColumnRenamed("at", "last_at")
        latest_frame = sql.broadcast(create_frame(self._session, latest))
        at_end = self._rows.locate(rows.join(latest_frame, ["identifier", "last_at"]))
        standing = sql.min(order_rows(self._job.conflicts)).alias("first")
        lasts = at_end.groupBy("identifier").agg(standing)
        return lasts.select(
            "identifier",
            sql.col("first.position").alias("last_position"),
            sql.col("first.players").alias("last_players"),
        ).toArrow()

    def count(self, servers: Servers, window: Window) -> Count:
        """Count the observations of servers in a window, and finish them to figures."""
        self._steps.begin("counting")
        rows = self._select_servers(servers, window)
        tasks = 1 + sum(self._rows_of.values()) // ROWS_PER_TASK
        keys = ["server", "piece"]
        counted = self._keep(count_values(group_rows(rows, tasks, keys, keys), keys))
        resolved, contest = self._resolve(counted, servers, window)
        figures = compute_figures(counted, contest).toArrow().cast(FIGURES)
        self._rows.check_unchanged()
        return Count(figures, resolved)

    def write_rows(self, servers: Servers, until: int, folder: str) -> Resolved:
        """Write the resolved observations up to an instant as Parquet files, by shard.

        One task writes each shard. All executors must have the folder at this path.
        """
        window = Window(BEFORE_ALL, until)
        shards = 1 + max(servers.shards, default=0)
        keys, rows = ["shard", "server"], self._select_servers(servers, window)
        groups = self._keep(group_rows(rows, shards, keys, ["shard"]))
        resolved, contest = self._resolve(self._keep(count_values(groups, keys)), servers, window)
        numbers = pa.array(range(len(servers.ids)), pa.int32())
        ids = pa.table([numbers, pa.array(servers.ids, pa.string())], ["server", "serverId"])
        write_groups(groups, contest, create_frame(self._session, ids), folder)
        self._rows.check_unchanged()
        return resolved

    def _select_servers(
        self, servers: Servers, window: Window, *, has_position: bool = False
    ) -> DataFrame:
        """Return the rows of servers in a window."""
        numbers = create_frame(self._session, number_servers(servers, self._rows_of))
        first, last = max(window.start + 1, 0), window.end
        return split_servers(self._rows.select(first, last, has_position=has_position), numbers)

    def _resolve(
        self, counted: DataFrame, servers: Servers, window: Window
    ) -> tuple[Resolved, Contest | None]:
        """Return how rows are resolved, and the contested ones, if there are any.

        Raises SourceError if unequal observations have no order.
        """
        kept, read, contested = add_up(counted)
        if not contested:
            return Resolved(kept, read - kept, 0), None
        rows = select_contested(self._select_servers(servers, window, has_position=True), counted)
        contest = Contest(self._keep(self._rows.locate(rows)), self._job.conflicts)
        if unordered := contest.find_unordered(servers.ids):
            raise unordered.refuse(self._job.sources)
        first, conflicting = contest.find_first(servers.ids), contest.count_different()
        description = first and first.describe(self._job.sources)
        return Resolved(kept, read - kept - conflicting, conflicting, description), contest

    def _keep(self, frame: DataFrame) -> DataFrame:
        """Keep a frame, which is read several times, on the disks of executors."""
        self._kept.append(frame)
        return frame.persist(StorageLevel.DISK_ONLY)

    def close(self) -> None:
        """Free the disks of executors."""
        for frame in self._kept:
            frame.unpersist()
        self._rows.close()
