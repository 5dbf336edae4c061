"""Group observations in Spark, and count them by value."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from srvstat.fleet.counts import FIGURES, Servers
from srvstat.fleet.spark.contest import Contest
from srvstat.fleet.spark.frames import format_schema
from srvstat.fleet.spark.tasks import finish

ROWS_PER_TASK = 1_000_000
"""Rows that a task groups. Those of a server with more are divided among several tasks."""

_NUMBERS = pa.schema(
    [
        ("identifier", pa.string()),
        ("shard", pa.int32()),
        ("server", pa.int32()),
        ("pieces", pa.int32()),
    ]
)


def number_servers(servers: Servers, rows: Mapping[str, int]) -> pa.Table:
    """Return the server of each identifier, the server's shard, and its number of pieces.

    `rows` is the number of rows of each identifier.
    """
    of_servers: Counter[int] = Counter()
    for identifier, number in servers.numbers.items():
        of_servers[number] += rows.get(identifier, 0)
    numbers = list(servers.numbers.values())
    columns = [
        list(servers.numbers),
        [servers.shards[number] if servers.shards else 0 for number in numbers],
        numbers,
        [1 + of_servers[number] // ROWS_PER_TASK for number in numbers],
    ]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, _NUMBERS.types, strict=True)]
    return pa.table(arrays, schema=_NUMBERS)


def split_servers(rows: DataFrame, numbers: DataFrame) -> DataFrame:
    """Return the rows of servers, with shard, server and piece in place of the identifier.

    All rows of a server at one instant are in one piece.
    """
    piece = sql.pmod(sql.xxhash64("at"), sql.col("pieces")).cast("int")
    joined = rows.join(sql.broadcast(numbers), "identifier")
    return joined.withColumn("piece", piece).drop("identifier", "pieces")


def group_rows(
    rows: DataFrame, tasks: int, keys: Sequence[str], partitions: Sequence[str]
) -> DataFrame:
    """Return one row for each server and instant; `keys` have the server.

    `least` and `greatest` are the players, which differ if observations conflict. All rows with
    equal `partitions`, some of the keys, get to one task. This is the only shuffle of all rows.
    """
    shuffled = rows.select(*keys, "at", "players").repartition(tasks, *partitions)
    return shuffled.groupBy(*keys, "at").agg(
        sql.count("*").alias("rows"),
        sql.min("players").alias("least"),
        sql.max("players").alias("greatest"),
    )


def count_values(groups: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Count the observations of each server by value; `contested` is an instant with a conflict.

    It needs no shuffle after `group_rows`.
    """
    contested = sql.when(sql.col("least") != sql.col("greatest"), sql.col("at"))
    return groups.groupBy(
        *keys, sql.col("least").alias("players"), contested.alias("contested")
    ).agg(
        sql.count("*").alias("kept"),
        sql.sum("rows").alias("rows"),
        sql.min("at").alias("first_at"),
        sql.max("at").alias("last_at"),
    )


def add_up(counted: DataFrame) -> tuple[int, int, int]:
    """Return the numbers of instants, of rows, and of values at contested instants."""
    names = ("kept", "rows", "contested")
    sums = (sql.sum("kept"), sql.sum("rows"), sql.count("contested"))
    totals = counted.agg(*(each.alias(name) for each, name in zip(sums, names, strict=True)))
    row = totals.toArrow().to_pylist()[0]
    return row["kept"] or 0, row["rows"] or 0, row["contested"]


def compute_figures(counted: DataFrame, contest: Contest | None) -> DataFrame:
    """Return the figures of each server, computed by executors.

    The shuffles here are of histograms.
    """
    names = ("server", "players", "kept", "first_at", "last_at")
    values = counted.where(sql.isnull("contested")).select(*names)
    if contest is not None:
        one, at = sql.lit(1).cast("long"), sql.col("at")
        standing = contest.standing.select("server", sql.col("first.players"), one, at, at)
        values = values.unionAll(standing.toDF(*names))
    values = values.groupBy("server", "players").agg(
        sql.sum("kept").alias("kept"),
        sql.min("first_at").alias("first_at"),
        sql.max("last_at").alias("last_at"),
    )
    counts = values.groupBy("server").agg(
        sql.collect_list(sql.struct("players", "kept")).alias("pairs"),
        sql.min_by("players", "first_at").alias("first"),
        sql.max_by("players", "last_at").alias("last"),
    )
    columns = counts.select(
        "server",
        sql.col("pairs.players").alias("values"),
        sql.col("pairs.kept").alias("counts"),
        "first",
        "last",
    )
    return columns.mapInArrow(finish, format_schema(FIGURES))


def write_groups(groups: DataFrame, contest: Contest | None, ids: DataFrame, folder: str) -> None:
    """Write the observations that stand as Parquet files, by shard; `ids` are those of servers."""
    players = sql.col("least")
    if contest is not None:
        groups = groups.join(contest.standing, ["server", "at"], "left")
        players = sql.coalesce(sql.col("first.players"), players)
    rows = groups.join(sql.broadcast(ids), "server").select(
        "shard", "serverId", sql.col("at").alias("observedAt"), players.alias("players")
    )
    in_order = rows.sortWithinPartitions("shard", "serverId", "observedAt")
    # Without a scheme, it would be a folder of the cluster's default file system.
    in_order.write.partitionBy("shard").parquet(f"file:{os.path.abspath(folder)}")
