"""Compute the statistics of every server with Spark, in an existing session.

    from pyspark.sql import SparkSession
    from srvstat.fleet.spark import compute

    spark = SparkSession.builder.getOrCreate()
    observations = spark.read.parquet("s3a://fleet/observations")
    servers = spark.read.json("s3a://fleet/servers.ndjson")
    results = compute(observations, servers, range="30d", conflicts="lowest")
    results.write.parquet("s3a://fleet/results")

Run as a program, this module reads files, and writes the same file as `srvstat fleet`.
"""

import os
import re
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any, Literal
from urllib.parse import unquote

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegralType,
    StringType,
    StructType,
    TimestampType,
)

from srvstat.contract import time
from srvstat.contract.errors import EngineError, SourceError, SrvstatError, UsageError
from srvstat.contract.requests import parse_range
from srvstat.contract.responses import GrowthFields, ServerResult
from srvstat.contract.stats import Growth, compute_growth, compute_histogram_statistics
from srvstat.contract.time import LATEST
from srvstat.contract.windows import DAYS, DEFAULT_RANGE, Range, find_window
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.files.paths import convert_write_errors
from srvstat.files.reading import is_url
from srvstat.files.writing import atomic_write, check_destination
from srvstat.fleet.job import build_schema, find_extension, write_results
from srvstat.snapshot.write import refusals
from srvstat.snapshot.write.intake import (
    AFTER_AS_OF,
    PLACES_PER_SOURCE,
    Inputs,
    Intake,
    RejectLimit,
    open_temporary,
)
from srvstat.snapshot.write.roster import REJECT_REASONS, Roster, read_roster
from srvstat.sources.source import Reject, Source
from srvstat.sources.values import COUNT_RULE, MAX_PLAYERS

_RESULTS = build_schema()
_NAMES = ("serverId", "sampleCount", *_RESULTS.names[4:-2])
_FIGURES = pa.schema([(name, _RESULTS.field(name).type) for name in _NAMES])
_TYPES = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.string(): "STRING"}

_SERVERS_AT_ONCE = 64
"""The number of servers whose histograms are Python objects at the same time."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def compute(
    observations: DataFrame,
    servers: DataFrame,
    *,
    range: Range = DEFAULT_RANGE,
    as_of: int | datetime | None = None,
    conflicts: Literal["first", "lowest"] = "first",
) -> DataFrame:
    """Return the statistics of every public server, with the values of `srvstat compare`.

    - `observations`: the columns serverId (text), observedAt (a timestamp, or an integer of Unix
      milliseconds) and players (an integer). Rows with a null or a value out of range are ignored.
    - `servers`: the column id and optionally cfxId, sourceId (text, or an array in all records),
      publishable and players.current, as `spark.read.json` reads server records. No two servers may
      share an identifier.
    - `range`: `24h`, `7d`, `30d`, `90d` or `1y`.
    - `as_of`: the end of the window, in Unix milliseconds or as an aware datetime. Default: the
      latest observation of a public server.
    - `conflicts`: how to resolve conflicting observations of the same server and time. `lowest`
      keeps the fewest players, `first` the row with the lowest value in the column `position`.
      Without this column, conflicts in the window fail the query.

    Returns a DataFrame with the columns of the Parquet file that `srvstat fleet` writes, with rows
    in any order. Spark computes it when it is used.

    Raises UsageError for an invalid argument or a missing or mistyped column.
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
    if end is None:
        rows = rows.crossJoin(sql.broadcast(rows.agg(sql.max("at").alias("end"))))
    else:
        rows = rows.withColumn("end", sql.lit(end))
    inside = rows.where(sql.col("at") - sql.col("end") >= find_window(range, as_of=0).first)
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
    """Select serverId, cfxId, the identifiers in observations, and the current players."""
    _find_type(servers, "servers", "id", StringType)

    def get(name: str, kind: str) -> Column:
        names: Any = servers.schema
        for part in name.split("."):
            if not isinstance(names, StructType) or part not in names.names:
                return sql.lit(None).cast(kind)
            names = names[part].dataType
        return sql.col(name).cast(kind)

    source_ids = sql.array(get("sourceId", "string"))
    if "sourceId" in servers.columns and isinstance(servers.schema["sourceId"].dataType, ArrayType):
        source_ids = sql.coalesce("sourceId", sql.array().cast("array<string>"))
    return servers.where(sql.coalesce(get("publishable", "boolean"), sql.lit(True))).select(
        sql.col("id").alias("serverId"),
        sql.coalesce(get("cfxId", "string"), "id").alias("cfxId"),
        sql.array_distinct(sql.array_compact(sql.concat(source_ids, sql.array("id")))).alias(
            "identifiers"
        ),
        get("players.current", "bigint").alias("current"),
    )


def _select_rows(observations: DataFrame, end: int | None) -> DataFrame:
    """Select the valid rows up to a time: identifier, at, players, and position if present."""
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
    """Return the rows unchanged, but prevent Spark from skipping any by file statistics.

    Those statistics can be wrong. Spark pushes no filter down past a nondeterministic condition.
    """
    return frame.where(sql.spark_partition_id() >= 0)


def _find_type(frame: DataFrame, title: str, name: str, *kinds: type[DataType]) -> DataType:
    if name not in frame.columns:
        raise UsageError(f"{title}: the column {name} is missing")
    kind = frame.schema[name].dataType
    if not isinstance(kind, kinds):
        names = {StringType: "string", IntegralType: "bigint", TimestampType: "timestamp"}
        raise UsageError(
            f"{title}: the column {name} is of type {kind.simpleString()}; cast it to"
            f" {' or '.join(names[each] for each in kinds)}"
        )
    return kind


def _compute_figures(rows: DataFrame, conflicts: str) -> DataFrame:
    """Return the statistics of servers with a row.

    Rows are grouped by server and time first, so that a server with very many rows delays no task.
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
    columns = ("pairs.players", "pairs.kept", "first", "last")
    schema = ", ".join(f"{field.name} {_TYPES[field.type]}" for field in _FIGURES)

    # Spark sends local functions to executors by value, and other functions by name. Executors
    # would then import this file, and need all libraries of srvstat instead of only pyarrow.
    def finish_server(
        server_id: str, values: list[int], counts: list[int], first: int, last: int
    ) -> dict[str, Any]:
        growth = compute_growth(first, last) if sum(counts) > 1 else Growth(None, None)
        histogram = dict(zip(values, counts, strict=True))
        *figures, growth = compute_histogram_statistics(histogram, growth)
        return dict(zip(_FIGURES.names, (server_id, *figures, *growth), strict=True))

    def finish(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for start in range(0, batch.num_rows, _SERVERS_AT_ONCE):
                parts = batch.slice(start, _SERVERS_AT_ONCE).to_pylist()
                found = [finish_server(*part.values()) for part in parts]
                yield pa.RecordBatch.from_pylist(found, _FIGURES)

    return counts.select("serverId", *columns).mapInArrow(finish, schema)


def _choose_players(rows: DataFrame, conflicts: str) -> Column:
    """Return the aggregate that resolves conflicting players of the same server and time (D16)."""
    if conflicts == "lowest" or "position" not in rows.columns:
        return sql.min("players")
    return sql.min(sql.struct("position", "players"))["players"]


def _refuse_conflicts() -> Column:
    message = sql.format_string(
        "server %s has both %d and %d players at %d, and no column position says which is first;"
        " use conflicts='lowest'",
        *("serverId", "least", "most", "at"),
    )
    is_unequal = sql.col("least") != sql.col("most")
    return sql.when(is_unequal, sql.raise_error(message)).otherwise(sql.col("least"))


def _find_last_players(rows: DataFrame, conflicts: str) -> DataFrame:
    """Return the players of each server's last observation, for records without current players."""
    last = rows.groupBy("serverId").agg(sql.max("at").alias("at"))
    chosen = _choose_players(rows, conflicts).alias("lastPlayers")
    return rows.join(sql.broadcast(last), ["serverId", "at"]).groupBy("serverId").agg(chosen)


_CORRUPT = "_corrupt"
_TEXTS = f"serverId STRING, observedAt STRING, players STRING, {_CORRUPT} STRING"
# With this type, Spark reports a count in quotation marks as a corrupt record.
_JSON = _TEXTS.replace("players STRING", "players BIGINT")
_INSTANT = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$"
_LOCAL = ("^file:///", "file:/")
"""Spark writes a local path in both forms."""

_KINDS = {
    "serverId": StringType,
    "observedAt": (TimestampType, IntegralType, StringType),
    "players": (IntegralType, StringType),
}
# The job's own errors are about its sources, too.
_IS_ABOUT_SOURCES = re.compile(r"\[(FAILED_READ_FILE|USER_RAISED_EXCEPTION)\b")
_PROBLEM = re.compile(r"\[[A-Z_.]+\] (.+?)\.?\s*(?:SQLSTATE|$)", re.MULTILINE)
_CAUSE = re.compile(r"^(?:Caused by)?: [\w.$]+: (.*\S)", re.MULTILINE)
_SERVERS = "id STRING, cfxId STRING, sourceId STRING, players STRUCT<current: BIGINT>"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job in Spark's current or a new session, and return the exit code."""
    try:
        with _convert_errors():
            _run(_parse(arguments))
    except SrvstatError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


def _parse(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(
        prog="python -m srvstat.fleet.spark", description="Compute the statistics of every server."
    )
    parser.add_argument(
        "sources", nargs="+", metavar="SOURCE", help="a folder or file of Parquet, CSV or NDJSON"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE",
        help="a file that ends in .ndjson, .jsonl or .parquet, or the URL of a new Parquet folder",
    )  # fmt: skip
    parser.add_argument("--servers", metavar="FILE", help="server metadata as NDJSON")
    parser.add_argument("--range", default=DEFAULT_RANGE)
    parser.add_argument("--at", metavar="TIME", help="the end of the window")
    parser.add_argument("--as-of", dest="at", help=SUPPRESS)
    parser.add_argument("--conflicts", choices=["first", "lowest"], default="first")
    parser.add_argument("--max-rejected", metavar="N|P%")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")
    return parser.parse_args(arguments)


def _run(options: Namespace) -> None:
    chosen = parse_range(options.range)
    as_of = _parse_option("--at", time.parse_instant, options.at)
    limit = _parse_option("--max-rejected", RejectLimit.parse, options.max_rejected)
    if not is_url(options.output):  # Spark checks URLs itself
        find_extension(options.output)
        check_destination(options.output, overwrite=options.overwrite)
    records = None if options.servers is None else Source(options.servers, "ndjson")
    # The results do not contain the game, so any game can complete a record.
    roster = read_roster(records, uses_slugs=False, game=None)
    _warn(*roster.warnings)
    session = SparkSession.builder.appName("srvstat").getOrCreate()
    rows = _read_all(session, options.sources)
    sources = [Source(name, "parquet") for name in options.sources]
    with open_temporary() as connection:
        inputs = Inputs(None, sources, as_of=as_of, max_rejected=limit)
        intake = Intake(connection, roster, inputs)
        last_of = _survey(rows, intake)
        as_of = refusals.check_rows(intake, max(last_of.values(), default=None))
        _warn_of_lost_rows(intake)
    servers = _list_servers(roster, last_of)
    results = compute(
        rows.where(sql.isnull("reason")),
        session.createDataFrame(servers, _SERVERS),
        range=chosen,
        as_of=as_of,
        conflicts=options.conflicts,
    )
    _write(results, options.output, overwrite=options.overwrite)
    at = time.format_instant(as_of)
    sys.stderr.write(f"wrote {options.output}: {len(servers):,} servers as of {at}\n")


def _parse_option(name: str, parse: Callable[[str], Any], text: str | None) -> Any:
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


@contextmanager
def _convert_errors(source: str | None = None) -> Iterator[None]:
    """Report a Spark error in one line.

    Raises SourceError for an error about sources, and EngineError for any other error.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        # The error of a task causes several other errors.
        parts = [*_PROBLEM.findall(text)[:1], *_CAUSE.findall(text)[-1:]]
        problem = ": ".join(parts) or text.strip().partition("\n")[0]
        kind = SourceError if source or _IS_ABOUT_SOURCES.search(text) else EngineError
        raise kind(f"{source or 'Spark'}: {problem}") from None


def _warn(*lines: str) -> None:
    sys.stderr.writelines(f"warning: {line}\n" for line in lines)


def _read_all(session: SparkSession, names: Sequence[str]) -> DataFrame:
    parts = []
    for number, name in enumerate(names):
        with _convert_errors(name):
            parts.append(_read(session, number, name))
    return reduce(DataFrame.unionByName, parts)


def _read(session: SparkSession, number: int, name: str) -> DataFrame:
    """Return the rows of a source with their positions (D16), and the reason if a row is malformed.

    Raises SourceError if a column is missing or mistyped.
    """
    reader = session.read.option("columnNameOfCorruptRecord", _CORRUPT)
    stem = name.lower().removesuffix(".gz")
    if stem.endswith(".csv"):
        reader = reader.schema(_TEXTS).options(header=True, enforceSchema=False, escape='"')
        frame = reader.csv(name)
    elif stem.endswith((".ndjson", ".jsonl")):
        frame = reader.schema(_JSON).options(allowSingleQuotes=False).json(name)
    else:
        files = session.read.options(recursiveFileLookup=True, pathGlobFilter="*.parquet")
        frame = files.parquet(name)
    metadata = frame.metadataColumn("_metadata")
    rows = frame.select(
        *_judge(frame, name),
        sql.regexp_replace(metadata.file_path, *_LOCAL).alias("path"),
        metadata.file_block_start.alias("block"),
        sql.monotonically_increasing_id().alias("place"),
    )
    paths = sorted((re.sub(*_LOCAL, path) for path in frame.inputFiles()), key=unquote)
    numbers = session.createDataFrame([*enumerate(paths)], "file INT, path STRING")
    rows = rows.join(sql.broadcast(numbers), "path", "left")
    unlisted = sql.raise_error(sql.concat(sql.lit("a file that was not listed: "), "path"))
    file = sql.coalesce("file", unlisted).alias("file")
    position = sql.struct(sql.lit(number).alias("source"), file, "block", "place")
    rows = rows.withColumn("position", position).drop("path", "file", "block", "place")
    return read_all_rows(rows)


def _judge(frame: DataFrame, name: str) -> list[Column]:
    """Return serverId, observedAt in Unix milliseconds, players, and the reason if malformed.

    Raises SourceError if a column is missing or mistyped.
    """
    kinds = {field.name: field.dataType for field in frame.schema}
    for column, allowed in _KINDS.items():
        if not isinstance(kinds.get(column), allowed):
            found = "missing" if column not in kinds else f"of type {kinds[column].simpleString()}"
            raise SourceError(f"{name}: the column {column} is {found}")
    stored = sql.col("observedAt")
    if isinstance(kinds["observedAt"], TimestampType):
        at = sql.unix_millis(stored)
    elif isinstance(kinds["observedAt"], StringType):
        with_seconds = sql.regexp_replace(stored, r"^(.{16})(Z|[+-].{5})$", "$1:00$2")
        written = sql.when(stored.rlike(_INSTANT), with_seconds.try_cast("timestamp"))
        number = sql.when(stored.rlike(r"^\d{1,18}$"), stored.try_cast("bigint"))
        at = sql.coalesce(sql.when(number >= time.YEAR_2001, number), sql.unix_millis(written))
    else:
        at = sql.when(stored >= time.YEAR_2001, stored.cast("bigint"))
    players = sql.col("players")
    if isinstance(kinds["players"], StringType):
        players = sql.when(players.rlike(r"^(0|[1-9]\d{0,15})$"), players)
    players = players.try_cast("bigint")
    is_malformed = sql.isnotnull(_CORRUPT) if _CORRUPT in kinds else sql.lit(False)
    reasons = (
        sql.when(is_malformed, sql.lit("not a row of serverId, observedAt and players")),
        _reject(at.between(0, LATEST), f"observedAt: {time.NOT_MILLISECONDS}"),
        _reject(players.between(0, MAX_PLAYERS), f"players: {COUNT_RULE}"),
    )
    return [
        sql.col("serverId"),
        at.alias("observedAt"),
        players.alias("players"),
        sql.coalesce(*reasons).alias("reason"),
    ]


def _reject(is_valid: Column, reason: str) -> Column:
    return sql.when(~sql.coalesce(is_valid, sql.lit(False)), sql.lit(reason))


def _survey(rows: DataFrame, intake: Intake) -> dict[int, int]:
    """Count all rows, and return each server's last time by the server's key."""
    roster, as_of = intake.roster, intake.inputs.as_of
    at = sql.col("observedAt")
    is_late = sql.lit(False) if as_of is None else at > as_of
    identifier = sql.when(sql.isnull("reason"), sql.coalesce("serverId", sql.lit("")))
    keys = (sql.col("position.source").alias("source"), "reason", identifier.alias("identifier"))
    found = rows.groupBy(*keys).agg(
        sql.count("*").alias("rows"),
        sql.count_if(is_late).alias("late"),
        sql.max(sql.when(~is_late, at)).alias("last"),
    )
    last_of: dict[int, int] = {}
    # Sorted, so that an error about two identifiers is always the same.
    for row in found.toArrow().sort_by("identifier").to_pylist():
        source, reason, name, count, late, last = row.values()
        intake.rows_of[source] += count
        key = 0 if reason else roster[name]
        if reason := reason or REJECT_REASONS.get(key):
            reject = Reject(0, reason, name or "", name, rows=count)
            intake.rejects.add(source * PLACES_PER_SOURCE, reject)
        elif key in roster.skip_reasons:
            intake.skipped[roster.skip_reasons[key]] += count
        else:
            intake.skipped[AFTER_AS_OF] += late
            if last is not None:
                last_of[key] = max(last, last_of.get(key, last))
    return last_of


def _warn_of_lost_rows(intake: Intake) -> None:
    if reasons := refusals.list_reasons(intake):
        count, read = sum(reason.rows for reason in reasons), intake.rows_of.total()
        _warn(f"{count:,} of {read:,} rows not kept: {refusals.describe_reasons(reasons)}")
    _warn(*intake.roster.describe_unknown())


def _list_servers(roster: Roster, observed: Container[int]) -> list[tuple[Any, ...]]:
    """Return the public servers. A server without a record needs an observation."""
    roster.name_servers(observed)
    records = map(roster.get_record, roster.server_keys)
    return [
        (record.id, record.cfx_id, record.source_id, (record.players_current,))
        for record in records
    ]


def _write(results: DataFrame, output: str, *, overwrite: bool) -> None:
    """Write a file on the driver's machine, or a folder at a URL.

    Raises OutputError if a file can't be written.
    """
    if is_url(output):
        results.write.mode("overwrite" if overwrite else "error").parquet(output)
        return
    table = results.toArrow().sort_by("serverId")
    with atomic_write(output, overwrite=overwrite) as draft, convert_write_errors(output):
        write_results(draft, map(_build_result, table.to_pylist()), find_extension(output))


def _build_result(row: dict[str, Any]) -> ServerResult:
    growth = GrowthFields(players=row.pop("growthPlayers"), percentage=row.pop("growthPercentage"))
    return ServerResult.model_validate({**row, "growth": growth}, by_alias=True, by_name=False)


if __name__ == "__main__":
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit sets it
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sys.exit(main())
