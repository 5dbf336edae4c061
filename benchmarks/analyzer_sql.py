"""The analyzer's questions in SQL for DuckDB, each as a statement with literals.

The first columns are those of the answers in analyzer_answers.py, in their order.
"""

from benchmarks.analyzer_answers import HOUR_MS, PERCENT, QUARTER_MS, WEEK_MS, WINNERS, ZONE
from srvstat.contract.ranges import DAY_MS, Window

_ROWS = """FROM observations
    WHERE server IN ({servers}) AND observed_at > {start} AND observed_at <= {end}"""

# The histogram gives all figures of the counts. 32 bits hold distances of up to 24 days.
_FIGURES = f"""
histogram AS (
    SELECT server, players, count(*) AS number, min(observed_at) AS first_at,
        max(observed_at) AS last_at
    {_ROWS} GROUP BY server, players
), ranked AS (
    SELECT *, sum(number) OVER (PARTITION BY server ORDER BY players) AS upto,
        sum(number) OVER (PARTITION BY server) AS total
    FROM histogram
), counts AS (
    SELECT server, any_value(total)::BIGINT AS count,
        sum(players * number) / any_value(total) AS mean,
        (min(players) FILTER (upto > (total - 1) // 2)
            + min(players) FILTER (upto > total // 2)) / 2 AS median,
        (min(players) FILTER (100 * upto >= {PERCENT} * total)
            + min(players) FILTER (100 * upto > {PERCENT} * total)) / 2 AS quantile,
        max(players) AS peak, min(players) AS lowest,
        arg_min(players, first_at) AS first, arg_max(players, last_at) AS last,
        arg_max(first_at, players) AS peak_first_at, arg_max(last_at, players) AS peak_last_at,
        arg_min(first_at, players) AS lowest_first_at, arg_min(last_at, players) AS lowest_last_at
    FROM ranked GROUP BY server
)"""

_DISTANCES = f"""
distances AS MATERIALIZED (
    SELECT server, players, ({{end}} - observed_at) AS rest,
        (lead(observed_at) OVER (PARTITION BY server ORDER BY observed_at) - observed_at)::INTEGER
            AS distance
    {_ROWS}
)"""

_WEIGHTS = """
intervals AS (
    SELECT server, median(distance) AS usual FROM distances GROUP BY server
), weights AS (
    SELECT server, any_value(usual) AS usual, sum(lasting * players) AS weighted,
        sum(lasting) AS weight
    FROM (
        SELECT server, players, usual,
            least(2 * coalesce(distance, rest), (6 * usual)::BIGINT) AS lasting
        FROM distances JOIN intervals USING (server)
    ) GROUP BY server
)"""

# Corrects the plain sums by the few distances above three usual intervals.
_CORRECTED_WEIGHTS = """
intervals AS (
    SELECT server, median(distance) AS usual,
        sum(coalesce(distance, rest) * players::BIGINT) AS weighted,
        sum(coalesce(distance, rest)) AS weight
    FROM distances GROUP BY server
), excesses AS (
    SELECT server, sum(excess * players) AS weighted, sum(excess) AS weight
    FROM (
        SELECT server, players, 2 * coalesce(distance, rest) - (6 * usual)::BIGINT AS excess
        FROM distances JOIN intervals USING (server)
        WHERE coalesce(distance, rest) > 3 * usual
    ) GROUP BY server
), weights AS (
    SELECT server, usual, 2 * intervals.weighted - coalesce(excesses.weighted, 0) AS weighted,
        2 * intervals.weight - coalesce(excesses.weight, 0) AS weight
    FROM intervals LEFT JOIN excesses USING (server)
)"""

_ALL_FIGURES = """
SELECT counts.*, usual / 1000, weighted / weight AS weighted_mean,
    weight / (2 * ({end} - {start})) AS coverage
FROM counts JOIN weights USING (server)"""

_STATS = f"WITH {_FIGURES}, {_DISTANCES}, {{weights}} {_ALL_FIGURES}"

_BEST = f"""
SELECT server {_ROWS.replace("server IN ({servers}) AND ", "")}
GROUP BY server ORDER BY avg(players) DESC, server LIMIT {WINNERS}"""

_STEPS = f"""
steps AS MATERIALIZED (
    SELECT server, (observed_at - 1) // {{length}} AS step, count(*) AS count,
        sum(players) / count(*) AS mean, arg_min(players, observed_at)::INTEGER AS first,
        arg_max(players, observed_at)::INTEGER AS last
    {_ROWS} GROUP BY server, step
)"""

_EDGES = """
    greatest(step * {length}, {start}) AS from_at, least((step + 1) * {length}, {end}) AS to_at"""

_GROWTH = f"""
WITH {_STEPS}, edges AS MATERIALIZED (
    SELECT *, {_EDGES} FROM steps
), middles AS MATERIALIZED (
    SELECT server, mean, ((from_at + to_at) / 2)::DOUBLE AS middle FROM edges
), trends AS (
    SELECT a.server, {WEEK_MS} * median((b.mean - a.mean) / (b.middle - a.middle)) AS per_week
    FROM middles AS a JOIN middles AS b ON a.server = b.server AND a.middle < b.middle
    GROUP BY a.server
), whole AS (
    SELECT server, arg_min(first, step) AS first, arg_max(last, step) AS last
    FROM steps GROUP BY server
), previous AS (
    SELECT server, count(*) AS count, arg_min(players, observed_at)::INTEGER AS first,
        arg_max(players, observed_at)::INTEGER AS last
    {_ROWS.replace("{start}", "{before}").replace("{end}", "{start}")} GROUP BY server
)
SELECT edges.server, from_at, to_at, edges.count, mean, edges.last - edges.first,
    whole.last - whole.first, if(previous.count > 1, previous.last - previous.first, NULL), per_week
FROM edges JOIN whole USING (server) LEFT JOIN trends USING (server)
    LEFT JOIN previous USING (server)
ORDER BY edges.server, step"""

_HISTORY = f"""
WITH {_STEPS.replace("MATERIALIZED ", "")}
SELECT wanted.server, {_EDGES.replace("step", "wanted.step")}, coalesce(count, 0), mean
FROM (
    SELECT server, step
    FROM unnest([{{servers}}]) AS keys(server)
    CROSS JOIN range({{start}} // {{length}}, ({{end}} - 1) // {{length}} + 1) AS spans(step)
) AS wanted LEFT JOIN steps ON wanted.server = steps.server AND wanted.step = steps.step
ORDER BY wanted.server, wanted.step"""

# In a zone, every whole hour of the week has its number, from Monday on.
_CELL = "((isodow(local) - 1) * 24 + hour(local))::UTINYINT AS cell"

_CELLS_BY_ROW = f"""
SELECT server, cell, count(*), sum(players) / count(*), median(players)
FROM (
    SELECT server, players, {_CELL}
    FROM (
        SELECT server, players, timezone('{ZONE}', make_timestamptz(observed_at * 1000)) AS local
        {_ROWS}
    )
) GROUP BY server, cell ORDER BY server, cell"""

_CELLS_BY_QUARTER = f"""
WITH quarters AS MATERIALIZED (
    SELECT quarter, {_CELL}
    FROM (
        SELECT quarter, timezone('{ZONE}', make_timestamptz(quarter * {QUARTER_MS} * 1000)) AS local
        FROM range({{start}} // {QUARTER_MS}, {{end}} // {QUARTER_MS} + 1) AS starts(quarter)
    )
)
SELECT server, cell, count(*), sum(players) / count(*), median(players)
FROM observations JOIN quarters ON observed_at // {QUARTER_MS} = quarter
WHERE server IN ({{servers}}) AND observed_at > {{start}} AND observed_at <= {{end}}
GROUP BY server, cell ORDER BY server, cell"""


def build_stats(keys: tuple[int, ...], window: Window, *, is_corrected: bool) -> str:
    """Return SQL for the figures of servers, with one of two forms of the weights."""
    weights = _CORRECTED_WEIGHTS if is_corrected else _WEIGHTS
    return _format(_STATS.replace("{weights}", weights), _join(keys), window)


def build_ranking(window: Window) -> str:
    """Return SQL for the keys of the servers with the greatest averages."""
    return _format(_BEST, "", window)


def build_top(_keys: tuple[int, ...], window: Window) -> str:
    """Return SQL for the figures of the servers with the greatest averages, in one statement."""
    best = f"WITH best AS MATERIALIZED ({_BEST}), {_STATS.removeprefix('WITH ')}"
    query = best.replace("{weights}", _CORRECTED_WEIGHTS) + " ORDER BY mean DESC, server"
    return _format(query, "SELECT server FROM best", window)


def build_growth(keys: tuple[int, ...], window: Window) -> str:
    """Return SQL for the days with observations, each with the changes and trend of its server."""
    return _format(_GROWTH, _join(keys), window, DAY_MS)


def build_history(keys: tuple[int, ...], window: Window) -> str:
    """Return SQL for all hours of a window."""
    return _format(_HISTORY, _join(keys), window, HOUR_MS)


def build_peak_hours(keys: tuple[int, ...], window: Window, *, by_quarter: bool) -> str:
    """Return SQL for the hours of the week, which converts each observation or each quarter."""
    return _format(_CELLS_BY_QUARTER if by_quarter else _CELLS_BY_ROW, _join(keys), window)


def _join(keys: tuple[int, ...]) -> str:
    return ", ".join(map(str, keys))


def _format(query: str, servers: str, window: Window, length: int = 0) -> str:
    start, end = window
    return query.format(
        servers=servers, start=start, end=end, before=2 * start - end, length=length
    )
