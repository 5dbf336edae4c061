"""A job for `spark-submit`: compute the statistics of every server of a fleet.

Spark reads the sources, so their names are what Spark takes: paths, patterns and URLs.
"""

import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import IntegralType, StringType, TimestampType

from srvstat.contract import time
from srvstat.contract.errors import EngineError, SourceError, SrvstatError, UsageError
from srvstat.contract.requests import parse_range
from srvstat.contract.responses import GAMES, GrowthFields, ServerResult
from srvstat.contract.time import DEFAULT_RANGE
from srvstat.files.atomic import atomic_write, check_target
from srvstat.files.paths import convert_write_errors
from srvstat.files.reading import is_url
from srvstat.fleet.request import find_extension
from srvstat.fleet.results import write_results
from srvstat.snapshot.write.intake import AFTER_AS_OF
from srvstat.snapshot.write.roster import REJECT_REASONS, Roster, read_roster
from srvstat.snapshot.write.rules import RejectLimit, SourceRows
from srvstat.sources.source import Source
from srvstat.sources.values import COUNT_RULE, MAX_PLAYERS
from srvstat.spark import compute, read_all_rows

_CORRUPT = "_corrupt"
_TEXTS = f"serverId STRING, observedAt STRING, players STRING, {_CORRUPT} STRING"
# A number in quotes is no count: with this type, Spark says that the record is corrupt.
_JSON = _TEXTS.replace("players STRING", "players BIGINT")
_INSTANT = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$"
_LOCAL = ("^file:///", "file:/")
"""Spark writes the path of a local file in both ways."""

_KINDS = {
    "serverId": StringType,
    "observedAt": (TimestampType, IntegralType, StringType),
    "players": (IntegralType, StringType),
}
# What the job itself raises is about its sources, too.
_IS_ABOUT_SOURCES = re.compile(r"\[(FAILED_READ_FILE|USER_RAISED_EXCEPTION)\b")
_PROBLEM = re.compile(r"\[[A-Z_.]+\] (.+?)\.?\s*(?:SQLSTATE|$)", re.MULTILINE)
_CAUSE = re.compile(r"^(?:Caused by)?: [\w.$]+: (.*\S)", re.MULTILINE)
_SERVERS = "id STRING, cfxId STRING, sourceId STRING, players STRUCT<current: BIGINT>"


class _Survey(NamedTuple):
    """What became of the rows: `rejected` by source and reason, and the last instant of servers."""

    read: Counter[int]
    rejected: Counter[tuple[int, str]]
    skipped: Counter[str]
    last_of: dict[int, int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job in the current session of Spark, or in a new one, and return its exit code."""
    try:
        with _convert_errors():
            _run(_parse(arguments))
    except SrvstatError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


def _parse(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(
        prog="python -m srvstat.spark", description="Compute the statistics of every server."
    )
    parser.add_argument(
        "sources", nargs="+", metavar="SOURCE", help="a folder or file of Parquet, CSV or NDJSON"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE",
        help="a file that ends in .ndjson, .jsonl or .parquet, or the URL of a new Parquet folder",
    )  # fmt: skip
    parser.add_argument("--servers", metavar="FILE", help="server records as NDJSON")
    parser.add_argument("--range", default=DEFAULT_RANGE)
    parser.add_argument("--as-of", metavar="TIME", help="the end of the window")
    parser.add_argument("--conflicts", choices=["first", "lowest"], default="first")
    parser.add_argument("--max-rejected", metavar="N|P%")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")
    return parser.parse_args(arguments)


def _run(options: Namespace) -> None:
    chosen = parse_range(options.range)
    as_of = _parse_option("--as-of", time.parse_instant, options.as_of)
    limit = _parse_option("--max-rejected", RejectLimit.parse, options.max_rejected)
    _check_output(options.output, overwrite=options.overwrite)
    records = None if options.servers is None else Source(options.servers, "ndjson")
    # The results have no game, so any game completes a record.
    roster = read_roster(records, uses_slugs=False, game=GAMES[0], warn=_warn)
    session = SparkSession.builder.appName("srvstat").getOrCreate()
    rows = _read_all(session, options.sources)
    survey = _survey(rows, roster, as_of)
    _check(survey, options.sources, roster, limit)
    as_of = max(survey.last_of.values()) if as_of is None else as_of
    servers = _list_servers(roster, survey)
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
    """Report an error of Spark in one line. It is about a source, about any of them, or neither.

    Raises SourceError, EngineError.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        # A task's error is the cause of several others.
        parts = [*_PROBLEM.findall(text)[:1], *_CAUSE.findall(text)[-1:]]
        problem = ": ".join(parts) or text.strip().partition("\n")[0]
        kind = SourceError if source or _IS_ABOUT_SOURCES.search(text) else EngineError
        raise kind(f"{source or 'Spark'}: {problem}") from None


def _check_output(path: str, *, overwrite: bool) -> None:
    if not is_url(path):  # Spark checks those
        find_extension(path)
        check_target(path, overwrite=overwrite)


def _warn(line: str) -> None:
    sys.stderr.write(f"warning: {line}\n")


def _read_all(session: SparkSession, names: Sequence[str]) -> DataFrame:
    parts = []
    for number, name in enumerate(names):
        with _convert_errors(name):
            parts.append(_read(session, number, name))
    return reduce(DataFrame.unionByName, parts)


def _read(session: SparkSession, number: int, name: str) -> DataFrame:
    """Return the rows of a source, with the reason why a row is malformed and its order (D16).

    Raises SourceError.
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
    """Return serverId, observedAt in Unix milliseconds, players, and why the row is malformed.

    Raises SourceError.
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
        _reject(at.between(0, time.LATEST), f"observedAt: {time.NOT_MILLISECONDS}"),
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


def _survey(rows: DataFrame, roster: Roster, as_of: int | None) -> _Survey:
    """Count all rows, and find the servers of their identifiers."""
    at = sql.col("observedAt")
    is_late = sql.lit(False) if as_of is None else at > as_of
    identifier = sql.when(sql.isnull("reason"), sql.coalesce("serverId", sql.lit("")))
    keys = (sql.col("position.source").alias("source"), "reason", identifier.alias("identifier"))
    found = rows.groupBy(*keys).agg(
        sql.count("*").alias("rows"),
        sql.count_if(is_late).alias("late"),
        sql.max(sql.when(~is_late, at)).alias("last"),
    )
    survey = _Survey(Counter(), Counter(), Counter(), {})
    # Sorted, so that an error about two identifiers is always the same.
    for row in found.toArrow().sort_by("identifier").to_pylist():
        source, reason, name, count, late, last = row.values()
        survey.read[source] += count
        key = 0 if reason else roster[name]
        if reason := reason or REJECT_REASONS.get(key):
            survey.rejected[source, reason] += count
        elif key in roster.skip_reasons:
            survey.skipped[roster.skip_reasons[key]] += count
        else:
            survey.skipped[AFTER_AS_OF] += late
            if last is not None:
                survey.last_of[key] = max(last, survey.last_of.get(key, last))
    return survey


def _check(
    survey: _Survey, names: Sequence[str], roster: Roster, limit: RejectLimit | None
) -> None:
    """Warn of rows that are not kept.

    Raises SourceError if no row is kept, or if too many are malformed.
    """
    rejected, rejected_of = Counter[str](), Counter[int]()
    for (number, reason), rows in survey.rejected.items():
        rejected[f"rejected, {reason}"] += rows
        rejected_of[number] += rows
    reasons = (rejected + survey.skipped).most_common()
    lost = "; ".join(f"{rows:,} {reason}" for reason, rows in reasons)
    if not survey.last_of:
        raise SourceError(
            f"no observation was kept: {'; '.join([lost, *roster.describe_unknown()])}"
        )
    sources = [
        SourceRows(name, survey.read[number], rejected_of[number])
        for number, name in enumerate(names)
    ]
    if limit is not None:
        sources = [SourceRows("all sources", survey.read.total(), rejected.total())]
    for source in sources:
        is_exceeded = (
            limit.is_exceeded(source.rejected, source.read) if limit else source.lost_too_many
        )
        if is_exceeded:
            raise SourceError(
                f"{source.title}: {source.rejected:,} of {source.read:,} rows were rejected;"
                f" --max-rejected sets another limit; not kept: {lost}"
            )
    if reasons:
        count, read = sum(dict(reasons).values()), survey.read.total()
        _warn(f"{count:,} of {read:,} rows not kept: {lost}")
    for line in roster.describe_unknown():
        _warn(line)


def _list_servers(roster: Roster, survey: _Survey) -> list[tuple[Any, ...]]:
    """Return the publishable servers; one that no record names needs an observation."""
    ids = [
        server_id
        for server_id, key in roster.server_keys.items()
        if roster.has_record(server_id) or key in survey.last_of
    ]
    return [
        (record.id, record.cfx_id, record.source_id, (record.players_current,))
        for record in map(roster.get_record, ids)
    ]


def _write(results: DataFrame, output: str, *, overwrite: bool) -> None:
    """Write a file on the driver's machine, or a folder at a URL.

    Raises OutputError.
    """
    if is_url(output):
        results.write.mode("overwrite" if overwrite else "error").parquet(output)
        return
    table = results.toArrow().sort_by("serverId")
    with atomic_write(output, overwrite=overwrite) as draft, convert_write_errors(output):
        write_results(draft, map(_build_result, table.to_pylist()), find_extension(output))


def _build_result(row: dict[str, Any]) -> ServerResult:
    growth = GrowthFields(players=row.pop("growthPlayers"), percentage=row.pop("growthPercentage"))
    return ServerResult(**row, growth=growth)


if __name__ == "__main__":
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit sets it
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sys.exit(main())
