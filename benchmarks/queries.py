"""The comparison in SQL: one statement for five servers, one row per server.

The columns are server, count, mean, median, peak, lowest, first and last. Servers and instants are
numbers or names of parameters.
"""

from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from benchmarks.questions import Request

Query = Callable[[Sequence[object], object, object], str]
"""Returns the SQL to compare servers from a start to an end."""

PARAMETERS = ("s1", "s2", "s3", "s4", "s5", "start", "end")
"""Names of the parameters: five servers and the window."""

NAMED = ([f":{name}" for name in PARAMETERS[:5]], ":start", ":end")
"""The parameters in the syntax of SQLite."""

_ROWS = (
    "FROM observations WHERE server = {server} AND observed_at > {start} AND observed_at <= {end}"
)

_ENDS = f"""
    (SELECT players {_ROWS} ORDER BY observed_at LIMIT 1) AS first,
    (SELECT players {_ROWS} ORDER BY observed_at DESC LIMIT 1) AS last"""

# One SELECT per server, joined by UNION ALL, lets SQLite read the primary key in order. It is twice
# as fast as one SELECT with `server IN (…)`, which sorts.
_HISTOGRAM = f"""
SELECT {{server}} AS server,
    max(total) AS count,
    1.0 * sum(players * number) / max(total) AS mean,
    (min(players) FILTER (WHERE upto > (total - 1) / 2)
        + min(players) FILTER (WHERE upto > total / 2)) / 2.0 AS median,
    max(players) AS peak,
    min(players) AS lowest,{_ENDS}
FROM (
    SELECT players, number,
        sum(number) OVER (ORDER BY players) AS upto, sum(number) OVER () AS total
    FROM (SELECT players, count(*) AS number {_ROWS} GROUP BY players)
)"""

_IN_ROWS = (
    "FROM observations WHERE server {server} AND observed_at > {start} AND observed_at <= {end}"
)
_OF_SERVER = _IN_ROWS.replace("{server}", "= ranked.server")

_ONE_SELECT = f"""
WITH histogram AS (
    SELECT server, players, count(*) AS number {_IN_ROWS.replace("{server}", "IN ({servers})")}
    GROUP BY server, players
), ranked AS (
    SELECT *, sum(number) OVER (PARTITION BY server ORDER BY players) AS upto,
        sum(number) OVER (PARTITION BY server) AS total
    FROM histogram
)
SELECT server,
    max(total) AS count,
    1.0 * sum(players * number) / max(total) AS mean,
    (min(players) FILTER (WHERE upto > (total - 1) / 2)
        + min(players) FILTER (WHERE upto > total / 2)) / 2.0 AS median,
    max(players) AS peak,
    min(players) AS lowest,
    (SELECT players {_OF_SERVER} ORDER BY observed_at LIMIT 1) AS first,
    (SELECT players {_OF_SERVER} ORDER BY observed_at DESC LIMIT 1) AS last
FROM ranked GROUP BY server"""

_DUCKDB_ROWS = """FROM observations
WHERE server IN ({servers}) AND observed_at > {start} AND observed_at <= {end}"""

_DUCKDB_MEDIAN = f"""
SELECT server, count(*) AS count, avg(players) AS mean, median(players) AS median,
    max(players) AS peak, min(players) AS lowest,
    arg_min(players, observed_at) AS first, arg_max(players, observed_at) AS last
{_DUCKDB_ROWS} GROUP BY server"""

_DUCKDB_HISTOGRAM = f"""
WITH histogram AS (
    SELECT server, players, count(*) AS number,
        min(observed_at) AS first_at, max(observed_at) AS last_at
    {_DUCKDB_ROWS} GROUP BY server, players
), ranked AS (
    SELECT *, sum(number) OVER (PARTITION BY server ORDER BY players) AS upto,
        sum(number) OVER (PARTITION BY server) AS total
    FROM histogram
)
SELECT server, any_value(total)::BIGINT AS count,
    sum(players * number) / any_value(total) AS mean,
    (min(players) FILTER (upto > (total - 1) // 2)
        + min(players) FILTER (upto > total // 2)) / 2 AS median,
    max(players) AS peak, min(players) AS lowest,
    arg_min(players, first_at) AS first, arg_max(players, last_at) AS last
FROM ranked GROUP BY server"""


def build_sqlite_histogram(servers: Sequence[object], start: object, end: object) -> str:
    """Return SQL for SQLite that computes one histogram per server."""
    return _join_union(_HISTOGRAM, servers, start, end)


def build_sqlite_one_select(servers: Sequence[object], start: object, end: object) -> str:
    """Return SQL for SQLite that computes one histogram of all servers, the simplest form."""
    return _ONE_SELECT.format(servers=_join_list(servers), start=start, end=end)


def build_duckdb_median(servers: Sequence[object], start: object, end: object) -> str:
    """Return SQL for DuckDB with its exact `median`."""
    return _DUCKDB_MEDIAN.format(servers=_join_list(servers), start=start, end=end)


def build_duckdb_histogram(servers: Sequence[object], start: object, end: object) -> str:
    """Return SQL for DuckDB that computes one histogram per server."""
    return _DUCKDB_HISTOGRAM.format(servers=_join_list(servers), start=start, end=end)


def build_parameters(request: Request) -> dict[str, int]:
    """Return the values of the parameters for a request."""
    return dict(zip(PARAMETERS, (*request.keys, *request.window), strict=True))


def build_datasette_path(request: Request) -> str:
    """Return the path of a request to the canned query of DATASETTE."""
    return f"/sqlite/compare.json?_shape=array&{urlencode(build_parameters(request))}"


def _join_union(query: str, servers: Sequence[object], start: object, end: object) -> str:
    return "\nUNION ALL".join(
        query.format(server=server, start=start, end=end) for server in servers
    )


def _join_list(servers: Sequence[object]) -> str:
    return ", ".join(map(str, servers))


DATASETTE = {
    "databases": {"sqlite": {"queries": {"compare": {"sql": build_sqlite_histogram(*NAMED)}}}}
}
"""Metadata of Datasette with the comparison as a canned query."""

DATASETTE_SETTINGS = {"num_sql_threads": 0, "sql_time_limit_ms": 60_000, "cache_size_kb": 65_536}
"""Sequential requests are faster without SQL threads."""
