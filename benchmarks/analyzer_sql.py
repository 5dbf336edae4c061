"""The analyzer's questions in SQL for DuckDB, each as a statement with literals."""

from math import comb

from srvstat.contract.windows import DAY_MS, Window

ZONE = "Europe/Berlin"
PERCENT = 95
"""The quantile that `stats` and `top` compute, in percent."""
WINNERS = 20
"""The number of servers that `top` shows."""

_HOUR_MS = DAY_MS // 24
_QUARTER_MS = _HOUR_MS // 4
# What srvstat counts as observed: docs/explanation/numbers.md.
_LEAST_COVERAGE = 0.8
_WHOLE_SHARE = 0.9
_MIN_DAYS = 3

_ROWS = """FROM observations
    WHERE server IN ({servers}) AND observed_at > {start} AND observed_at <= {end}"""

_EARLIER_ROWS = _ROWS.replace("{end}", "{start}").replace("> {start}", "> {before}")

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
        sum(players * number)::BIGINT AS player_sum, player_sum / count AS mean,
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

# Corrects the plain sums by the few distances above three usual intervals.
_WEIGHTS = """
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

# The coverage and the average of the window before. For a year, few of its rows were observed.
_EARLIER = f"""
earlier_distances AS MATERIALIZED (
    SELECT server, observed_at, players,
        lead(observed_at) OVER (PARTITION BY server ORDER BY observed_at) - observed_at AS distance
    {_EARLIER_ROWS}
), earlier_intervals AS (
    SELECT server, median(distance) AS usual FROM earlier_distances GROUP BY server
), earlier AS (
    SELECT server, count(*) AS count, sum(players)::BIGINT AS player_sum,
        arg_min(players, observed_at)::INTEGER AS first,
        arg_max(players, observed_at)::INTEGER AS last,
        sum(least(coalesce(distance, {{start}} - observed_at), 3 * usual)) / ({{end}} - {{start}})
            AS coverage
    FROM earlier_distances JOIN earlier_intervals USING (server) GROUP BY server
)"""

# Multiplies instead of subtracting quotients, so that each figure is rounded once.
_RISE = "{0}.player_sum * {1}.count - {1}.player_sum * {0}.count"

_CHANGE = f"""
    now.coverage, coalesce(earlier.coverage, 0) AS previous_coverage,
    least(now.coverage, previous_coverage) >= {_LEAST_COVERAGE} AS is_observed,
    if(is_observed, ({_RISE}) / (now.count * earlier.count), NULL) AS change,
    if(is_observed, 100 * ({_RISE}) / nullif(earlier.player_sum * now.count, 0), NULL)
        AS percentage""".replace("{0}", "now").replace("{1}", "earlier")

_ALL_FIGURES = f"""
now AS (
    SELECT counts.*, usual / 1000 AS usual, weighted / weight AS weighted_mean,
        weight / (2 * ({{end}} - {{start}})) AS coverage
    FROM counts JOIN weights USING (server)
)
SELECT * EXCLUDE (is_observed) FROM (
    SELECT now.* EXCLUDE (player_sum, coverage), {_CHANGE}
    FROM now LEFT JOIN earlier USING (server)
)"""

_STATS = f"WITH {_FIGURES}, {_DISTANCES}, {_WEIGHTS}, {_EARLIER}, {_ALL_FIGURES}"

_BEST = f"""
SELECT server {_ROWS.replace("server IN ({servers}) AND ", "")}
GROUP BY server ORDER BY avg(players) DESC, server LIMIT {WINNERS}"""

_STEPS = f"""
steps AS MATERIALIZED (
    SELECT server, least(observed_at, {{end}} - 1) // {{length}} AS step, count(*) AS count,
        sum(players)::BIGINT AS player_sum, arg_min(players, observed_at)::INTEGER AS first,
        arg_max(players, observed_at)::INTEGER AS last
    {_ROWS} GROUP BY server, step
)"""

# An observation before the window can last into it.
_MISSING = f"""
distances AS MATERIALIZED (
    SELECT server, observed_at,
        (lead(observed_at) OVER (PARTITION BY server ORDER BY observed_at) - observed_at)::INTEGER
            AS distance
    {_ROWS}
), intervals AS MATERIALIZED (
    SELECT server, median(distance) AS usual, min(observed_at) AS first_at,
        max(observed_at) AS last_at
    FROM distances GROUP BY server
), late_gaps AS MATERIALIZED (
    SELECT server, observed_at + 3 * usual AS from_at, observed_at + distance AS to_at
    FROM distances JOIN intervals USING (server) WHERE distance > floor(3 * usual)::INTEGER
    UNION ALL
    SELECT server, least(last_at + 3 * usual, {{end}}), {{end}} FROM intervals
), before AS (
    SELECT server, max(observed_at) AS observed_at
    FROM observations WHERE server IN ({{servers}}) AND observed_at <= {{start}} GROUP BY server
), gaps AS (
    FROM late_gaps
    UNION ALL
    SELECT server, greatest(coalesce(observed_at + 3 * usual, {{start}}), {{start}}), first_at
    FROM intervals LEFT JOIN before USING (server)
), missing AS (
    SELECT server, step,
        sum(least(to_at, (step + 1) * {{length}}) - greatest(from_at, step * {{length}})) AS missing
    FROM (
        SELECT *, unnest(range(
            floor(from_at / {{length}})::BIGINT, floor(to_at / {{length}})::BIGINT + 1
        )) AS step
        FROM gaps WHERE from_at < to_at
    ) GROUP BY server, step
)"""

_TIMES = """
    greatest(step * {length}, {start}) AS from_at, least((step + 1) * {length}, {end}) AS to_at"""

_SHARE = f"""
    (to_at - from_at - coalesce(missing, 0)) / {{length}} AS share,
    share < {_WHOLE_SHARE} AS is_partial"""

_GROWTH = f"""
WITH {_STEPS}, {_MISSING}, {_EARLIER}, days AS MATERIALIZED (
    SELECT steps.*, player_sum / count AS mean, {_TIMES}, {_SHARE}
    FROM steps LEFT JOIN missing USING (server, step)
), trends AS (
    SELECT a.server,
        {7 * DAY_MS} * median((b.mean - a.mean) / ((b.step - a.step) * {{length}})) AS per_week
    FROM days AS a JOIN days AS b
        ON a.server = b.server AND a.step < b.step AND NOT a.is_partial AND NOT b.is_partial
    GROUP BY a.server HAVING count(*) >= {comb(_MIN_DAYS, 2)}
), excesses AS (
    SELECT server, sum(to_at - from_at) AS excess FROM late_gaps GROUP BY server
), now AS (
    SELECT server, sum(count)::BIGINT AS count, sum(player_sum)::BIGINT AS player_sum,
        arg_min(first, step) AS first, arg_max(last, step) AS last,
        ({{end}} - any_value(first_at) - any_value(excess)) / ({{end}} - {{start}}) AS coverage
    FROM steps JOIN intervals USING (server) JOIN excesses USING (server) GROUP BY server
), summaries AS (
    SELECT now.server, now.count, now.player_sum / now.count, {_CHANGE},
        if(now.count > 1, now.last - now.first, NULL),
        if(earlier.count > 1, earlier.last - earlier.first, NULL), per_week
    FROM now LEFT JOIN earlier USING (server) LEFT JOIN trends USING (server)
)
SELECT days.server, days.from_at, days.to_at, days.count, days.mean, days.share, days.is_partial,
    if(days.count > 1, days.last - days.first, NULL), ({_RISE}) / (days.count * before.count),
    100 * ({_RISE}) / nullif(before.player_sum * days.count, 0),
    summaries.* EXCLUDE (server, is_observed)
FROM days JOIN summaries USING (server)
    LEFT JOIN days AS before ON before.server = days.server AND before.step = days.step - 1
        AND NOT before.is_partial AND NOT days.is_partial
ORDER BY days.server, days.step""".replace("{0}", "days").replace("{1}", "before")

_HISTORY = f"""
WITH {_STEPS.replace("MATERIALIZED ", "")}, {_MISSING}
SELECT server, {_TIMES}, coalesce(count, 0), player_sum / count, {_SHARE}
FROM (
    SELECT server, step
    FROM unnest([{{servers}}]) AS keys(server)
    CROSS JOIN range(({{start}} + 1) // {{length}}, ({{end}} - 1) // {{length}} + 1) AS spans(step)
) LEFT JOIN steps USING (server, step) LEFT JOIN missing USING (server, step)
ORDER BY server, step"""

# A running sum of what each observation changes, and of what expires. The rows of the day before
# the window have the counts that last into it.
_TOTAL = f"""
WITH counted AS (
    SELECT server, observed_at, players::INTEGER AS players
    FROM observations WHERE observed_at > {{start}} AND observed_at <= {{end}}
    UNION ALL
    SELECT server, max(observed_at), arg_max(players, observed_at)::INTEGER
    FROM observations WHERE observed_at > {{start}} - {DAY_MS} AND observed_at <= {{start}}
    GROUP BY server
), ordered AS MATERIALIZED (
    SELECT *, lag(players) OVER each AS previous, lead(observed_at) OVER each AS next_at,
        (observed_at - lag(observed_at) OVER each)::INTEGER AS distance
    FROM counted WINDOW each AS (PARTITION BY server ORDER BY observed_at)
), intervals AS MATERIALIZED (
    SELECT server, min(observed_at) AS first_at, max(observed_at) AS last_at,
        3 * median(distance) FILTER (observed_at - distance > {{start}}) AS longest
    FROM ordered GROUP BY server
), lasting AS MATERIALIZED (
    SELECT ordered.*, longest, coalesce(next_at - observed_at > longest, true) AS expires
    FROM ordered JOIN intervals USING (server)
), changes AS (
    SELECT observed_at AS moment, players - if(distance <= longest, previous, 0) AS change,
        if(distance <= longest, 0, 1) AS joined, true AS is_observed
    FROM lasting
    UNION ALL
    SELECT observed_at + floor(longest)::BIGINT + 1, -players, -1, false FROM lasting WHERE expires
), sums AS (
    SELECT moment, sum(change) AS change, sum(joined) AS joined, bool_or(is_observed) AS is_observed
    FROM changes GROUP BY moment
), totals AS (
    SELECT moment, is_observed, sum(change) OVER (ORDER BY moment) AS total,
        sum(joined) OVER (ORDER BY moment) AS present
    FROM sums
), hours AS (
    SELECT least(moment, {{end}} - 1) // {{length}} AS step, count(*) AS count,
        max(present)::BIGINT AS present, sum(total)::BIGINT / count AS mean
    FROM totals WHERE is_observed AND moment > {{start}} GROUP BY step
), gaps AS (
    SELECT server, greatest(observed_at + longest, {{start}}) AS from_at, next_at AS to_at
    FROM lasting WHERE expires AND next_at IS NOT NULL
    UNION ALL
    SELECT server, last_at + longest, {{end}} FROM intervals WHERE {{end}} - last_at <= {DAY_MS}
    UNION ALL
    SELECT server, {{start}}, first_at FROM intervals
), missing AS (
    SELECT server, step,
        sum(least(to_at, (step + 1) * {{length}}) - greatest(from_at, step * {{length}})) AS missing
    FROM (
        SELECT *, unnest(range(
            floor(from_at / {{length}})::BIGINT, floor(to_at / {{length}})::BIGINT + 1
        )) AS step
        FROM gaps WHERE from_at < to_at
    ) GROUP BY server, step
), least_observed AS (
    SELECT step, max(missing) AS missing FROM missing GROUP BY step
)
SELECT {_TIMES}, count, present, mean, {_SHARE}
FROM hours LEFT JOIN least_observed USING (step) ORDER BY step"""

# In a zone, every whole hour of the week has its number, from Monday on.
_CELL = "((isodow(local) - 1) * 24 + hour(local))::UTINYINT AS cell"

# Converts each quarter of an hour once: every time zone's offset is a multiple of it.
_CELLS = f"""
WITH quarters AS MATERIALIZED (
    SELECT quarter, {_CELL}
    FROM (
        SELECT quarter,
            timezone('{ZONE}', make_timestamptz(quarter * {_QUARTER_MS} * 1000)) AS local
        FROM range({{start}} // {_QUARTER_MS}, {{end}} // {_QUARTER_MS} + 1) AS starts(quarter)
    )
)
SELECT server, cell, count(*), sum(players) / count(*), median(players)
FROM observations JOIN quarters ON observed_at // {_QUARTER_MS} = quarter
WHERE server IN ({{servers}}) AND observed_at > {{start}} AND observed_at <= {{end}}
GROUP BY server, cell ORDER BY server, cell"""


def build_stats(keys: tuple[int, ...], window: Window) -> str:
    """Return SQL for the figures of servers."""
    return _format(_STATS, _join(keys), window)


def build_top(_keys: tuple[int, ...], window: Window) -> str:
    """Return SQL for the figures of the servers with the greatest averages."""
    best = f"WITH best AS MATERIALIZED ({_BEST}), {_STATS.removeprefix('WITH ')}"
    return _format(f"{best} ORDER BY mean DESC, server", "SELECT server FROM best", window)


def build_growth(keys: tuple[int, ...], window: Window) -> str:
    """Return SQL for the days with observations, each with the figures of its server."""
    return _format(_GROWTH, _join(keys), window, DAY_MS)


def build_history(keys: tuple[int, ...], window: Window) -> str:
    """Return SQL for all hours of a window."""
    return _format(_HISTORY, _join(keys), window, _HOUR_MS)


def build_total(_keys: tuple[int, ...], window: Window) -> str:
    """Return SQL for the total of all servers in all hours of a window."""
    return _format(_TOTAL, "", window, _HOUR_MS)


def build_peak_hours(keys: tuple[int, ...], window: Window) -> str:
    """Return SQL for the hours of the week."""
    return _format(_CELLS, _join(keys), window)


def _join(keys: tuple[int, ...]) -> str:
    return ", ".join(map(str, keys))


def _format(query: str, servers: str, window: Window, length: int = 0) -> str:
    start, end = window
    return query.format(
        servers=servers, start=start, end=end, before=2 * start - end, length=length
    )
