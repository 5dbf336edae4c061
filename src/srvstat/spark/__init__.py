"""Compute the statistics of every server with Spark, in a session of your own.

    from pyspark.sql import SparkSession
    from srvstat.spark import compute

    spark = SparkSession.builder.getOrCreate()
    observations = spark.read.parquet("s3a://fleet/observations")
    servers = spark.read.json("s3a://fleet/servers.ndjson")
    results = compute(observations, servers, range="30d", conflicts="lowest")
    results.write.parquet("s3a://fleet/results")

Executors import this file: they need srvstat and pyarrow, and none of srvstat's other libraries.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, IntegralType, StringType, StructType, TimestampType

from srvstat.contract.errors import UsageError
from srvstat.contract.stats import Growth, compute_growth, compute_histogram_statistics
from srvstat.contract.time import DAY_MS, DAYS, DEFAULT_RANGE, LATEST, Range
from srvstat.contract.wire import MAX_SAFE_INTEGER

_FIGURES = pa.schema(
    [
        ("serverId", pa.string()),
        ("sampleCount", pa.int64()),
        ("averagePlayers", pa.float64()),
        ("medianPlayers", pa.float64()),
        ("peakPlayers", pa.int64()),
        ("lowestPlayers", pa.int64()),
        ("growthPlayers", pa.int64()),
        ("growthPercentage", pa.float64()),
    ]
)
_TYPES = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.string(): "STRING"}

_SERVERS_AT_ONCE = 64
"""Servers whose histograms are Python objects at a time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def compute(
    observations: DataFrame,
    servers: DataFrame,
    *,
    range: Range = DEFAULT_RANGE,
    as_of: int | datetime | None = None,
    conflicts: Literal["first", "lowest"] = "first",
) -> DataFrame:
    """Return the statistics of every publishable server, with the values of `srvstat compare`.

    Nothing is computed before the result is used. Its columns are those of a Parquet file of
    `srvstat fleet`; its rows have no order.

    `observations` has the columns serverId (text), observedAt (a timestamp, or an integer of Unix
    milliseconds) and players (an integer). Rows with a null or a value out of range are left out.
    `servers` has the column id and optionally cfxId, sourceId, publishable and players.current, as
    `spark.read.json` reads server records; no two servers may share an identifier.

    The window ends at `as_of`, in Unix milliseconds or with a time zone; by default, at the latest
    observation of a publishable server.

    `conflicts` resolves unequal observations of a server at one instant: `lowest` keeps the fewest
    players, `first` the row with the lowest value in the column `position`. Without that column,
    such observations in the window fail the query.

    Raises UsageError.
    """
    if range not in DAYS:
        raise UsageError(f"range: {range!r} is not one of {', '.join(DAYS)}")
    if conflicts not in {"first", "lowest"}:
        raise UsageError(f"conflicts: {conflicts!r} is not one of first, lowest")
    known = _select_servers(servers)
    end = None if as_of is None else _count_milliseconds(as_of)
    rows = _select_rows(observations, end)
    identifiers = known.select("serverId", sql.explode("identifiers").alias("identifier"))
    rows = rows.join(sql.broadcast(identifiers), "identifier").drop("identifier")
    rows = _add_end(rows, end)
    inside = rows.where(sql.col("at") > sql.col("end") - DAYS[range] * DAY_MS)
    result = known.join(_compute_figures(inside, conflicts), "serverId", "left")
    result = result.join(_find_last_players(rows, conflicts), "serverId", "left")
    return result.select(
        "serverId",
        "cfxId",
        sql.lit(range).alias("range"),
        sql.coalesce("current", "lastPlayers", sql.lit(0)).alias("currentPlayers"),
        *_FIGURES.names[2:],
        sql.lit(None).cast("double").alias("uptime"),
        sql.coalesce("sampleCount", sql.lit(0)).alias("sampleCount"),
    )


def _count_milliseconds(as_of: int | datetime) -> int:
    if isinstance(as_of, int):
        return as_of
    if as_of.tzinfo is None:
        raise UsageError("as_of: has no time zone")
    return (as_of - _EPOCH) // timedelta(milliseconds=1)


def _select_servers(servers: DataFrame) -> DataFrame:
    """Return serverId, cfxId, the identifiers of its observations, and its current players."""
    _find_type(servers, "servers", "id", StringType)

    def get(name: str, kind: str) -> Column:
        names: Any = servers.schema
        for part in name.split("."):
            if not isinstance(names, StructType) or part not in names.names:
                return sql.lit(None).cast(kind)
            names = names[part].dataType
        return sql.col(name).cast(kind)

    return servers.where(sql.coalesce(get("publishable", "boolean"), sql.lit(True))).select(
        sql.col("id").alias("serverId"),
        sql.coalesce(get("cfxId", "string"), "id").alias("cfxId"),
        sql.array_distinct(sql.array(sql.coalesce(get("sourceId", "string"), "id"), "id")).alias(
            "identifiers"
        ),
        get("players.current", "bigint").alias("current"),
    )


def _select_rows(observations: DataFrame, end: int | None) -> DataFrame:
    """Return the valid rows up to an instant: identifier, at, players, and a position if any."""
    _find_type(observations, "observations", "serverId", StringType)
    _find_type(observations, "observations", "players", IntegralType)
    kind = _find_type(observations, "observations", "observedAt", TimestampType, IntegralType)
    at = sql.col("observedAt").cast("bigint")
    if isinstance(kind, TimestampType):
        at = sql.unix_millis("observedAt")
    is_inside = at.between(0, LATEST if end is None else end)
    is_valid = is_inside & sql.col("players").between(0, MAX_SAFE_INTEGER)
    return (
        read_all_rows(observations)
        .where(is_valid)
        .select(
            sql.col("serverId").alias("identifier"),
            at.alias("at"),
            sql.col("players").cast("bigint").alias("players"),
            *(["position"] if "position" in observations.columns else []),
        )
    )


def read_all_rows(frame: DataFrame) -> DataFrame:
    """Return the same rows, none of which a later filter can skip by the statistics of a file.

    They can be wrong. Spark pushes no filter down past a condition that is not deterministic.
    """
    return frame.where(sql.spark_partition_id() >= 0)


def _find_type(frame: DataFrame, title: str, name: str, *kinds: type[DataType]) -> DataType:
    if name not in frame.columns:
        raise UsageError(f"{title}: the column {name} is missing")
    kind = frame.schema[name].dataType
    if not isinstance(kind, kinds):
        raise UsageError(
            f"{title}: the column {name} is of type {kind.simpleString()}; cast it to"
            f" {' or '.join(_NAMES[each] for each in kinds)}"
        )
    return kind


_NAMES = {StringType: "string", IntegralType: "bigint", TimestampType: "timestamp"}


def _add_end(rows: DataFrame, end: int | None) -> DataFrame:
    if end is not None:
        return rows.withColumn("end", sql.lit(end))
    return rows.crossJoin(sql.broadcast(rows.agg(sql.max("at").alias("end"))))


def _compute_figures(rows: DataFrame, conflicts: str) -> DataFrame:
    """Return the figures of servers with a row.

    Rows are grouped by server and instant, so that a server with very many rows delays no task.
    """
    groups = rows.groupBy("serverId", "at").agg(
        _choose_players(rows, conflicts).alias("players"),
        sql.min("players").alias("least"),
        sql.max("players").alias("most"),
    )
    if conflicts == "first" and "position" not in rows.columns:
        groups = groups.withColumn("players", _refuse_conflicts())
    values = groups.groupBy("serverId", "players").agg(
        sql.count("*").alias("kept"),
        sql.min("at").alias("first_at"),
        sql.max("at").alias("last_at"),
    )
    counts = values.groupBy("serverId").agg(
        sql.collect_list(sql.struct("players", "kept")).alias("pairs"),
        sql.min_by("players", "first_at").alias("first"),
        sql.max_by("players", "last_at").alias("last"),
    )
    schema = ", ".join(f"{field.name} {_TYPES[field.type]}" for field in _FIGURES)
    columns = ("pairs.players", "pairs.kept", "first", "last")
    return counts.select("serverId", *columns).mapInArrow(_finish, schema)


def _choose_players(rows: DataFrame, conflicts: str) -> Column:
    """Return the aggregate that resolves the players of a server at one instant (D16)."""
    if conflicts == "lowest" or "position" not in rows.columns:
        return sql.min("players")
    return sql.min(sql.struct("position", "players"))["players"]


def _refuse_conflicts() -> Column:
    message = sql.concat(
        sql.lit("server "),
        "serverId",
        sql.lit(" has both "),
        sql.col("least").cast("string"),
        sql.lit(" and "),
        sql.col("most").cast("string"),
        sql.lit(" players at "),
        sql.col("at").cast("string"),
        sql.lit(", and no column position says which is first; use conflicts='lowest'"),
    )
    is_unequal = sql.col("least") != sql.col("most")
    return sql.when(is_unequal, sql.raise_error(message)).otherwise(sql.col("least"))


def _find_last_players(rows: DataFrame, conflicts: str) -> DataFrame:
    """Return the players of each server's last observation, which a record can lack."""
    last = rows.groupBy("serverId").agg(sql.max("at").alias("at"))
    standing = _choose_players(rows, conflicts).alias("lastPlayers")
    return rows.join(sql.broadcast(last), ["serverId", "at"]).groupBy("serverId").agg(standing)


def _finish(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Compute figures from histograms in Python, as every other part of srvstat does."""
    for batch in batches:
        for start in range(0, batch.num_rows, _SERVERS_AT_ONCE):
            parts = batch.slice(start, _SERVERS_AT_ONCE).to_pylist()
            figures = [_finish_server(*part.values()) for part in parts]
            yield pa.RecordBatch.from_pylist(figures, _FIGURES)


def _finish_server(
    server_id: str, values: list[int], counts: list[int], first: int, last: int
) -> dict[str, Any]:
    growth = compute_growth(first, last) if sum(counts) > 1 else Growth(None, None)
    histogram = dict(zip(values, counts, strict=True))
    *figures, growth = compute_histogram_statistics(histogram, growth)
    return dict(zip(_FIGURES.names, (server_id, *figures, *growth), strict=True))
