"""Compute the results of a fleet with a plain DuckDB query: what `srvstat fleet` is compared with.

`python -m benchmarks.fleet_query DIRECTORY RANGE OUTPUT` reads the files of
`benchmarks.daily_files`, resolves repeated observations, applies the same rules to rows, and
computes the same figures with DuckDB's own functions. Of the forms that we tried, this is the
fastest that groups by the columns as they are: `arg_min` over one integer for the position of a
row took less than half the time of `arg_min` over a pair, `DISTINCT ON` and `row_number()`.
"""

import argparse
import os
import tempfile

import duckdb

from benchmarks.daily_files import FOLDER, SERVERS_FILE
from srvstat.contract.instants import LATEST
from srvstat.contract.ranges import DAY_MS, DAYS, Range
from srvstat.sources.batch import MAX_PLAYERS

_QUERY = """
CREATE TEMP TABLE servers AS
SELECT id, cfxId
FROM read_json('{servers}', format = 'newline_delimited',
    columns = {{id: 'VARCHAR', cfxId: 'VARCHAR', publishable: 'BOOLEAN'}})
WHERE publishable IS NOT FALSE;

CREATE TEMP VIEW valid AS
SELECT serverId, observedAt, players, file_index << 40 | file_row_number AS position
FROM read_parquet('{observations}', file_row_number = true)
WHERE serverId IN (SELECT id FROM servers)
    AND observedAt BETWEEN 0 AND {latest} AND players BETWEEN 0 AND {most};

SET VARIABLE as_of = (SELECT max(observedAt) FROM valid);

COPY (
    WITH resolved AS (
        SELECT serverId, observedAt, arg_min(players, position) AS players FROM valid
        WHERE observedAt > getvariable('as_of') - {length} AND observedAt <= getvariable('as_of')
        GROUP BY serverId, observedAt
    ), figures AS (
        SELECT serverId, count(*) AS observations, avg(players) AS mean, median(players) AS median,
            max(players) AS peak, min(players) AS lowest,
            arg_min(players, observedAt) AS first, arg_max(players, observedAt) AS last
        FROM resolved GROUP BY serverId
    )
    SELECT id AS serverId, cfxId, '{range}' AS range, coalesce(last, 0) AS currentPlayers,
        mean AS averagePlayers, median AS medianPlayers, peak AS peakPlayers,
        lowest AS lowestPlayers,
        CASE WHEN observations > 1 THEN last - first END AS growthPlayers,
        CASE WHEN observations > 1 AND first > 0 THEN 100 * (last - first) / first END
            AS growthPercentage,
        coalesce(observations, 0) AS sampleCount
    FROM servers LEFT JOIN figures ON serverId = id ORDER BY id
) TO '{output}' (FORMAT parquet);
"""


def build_query(directory: str, range: Range, output: str) -> str:
    """Return statements that write the results of a fleet as a Parquet file."""
    return _QUERY.format(
        servers=os.path.join(directory, SERVERS_FILE),
        observations=os.path.join(directory, FOLDER, "*.parquet"),
        latest=LATEST,
        most=MAX_PLAYERS,
        length=DAYS[range] * DAY_MS,
        range=range,
        output=output,
    )


def main() -> None:
    """Run the query with the memory and threads of the arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet_query")
    parser.add_argument("directory")
    parser.add_argument("range", choices=tuple(DAYS))
    parser.add_argument("output", help="a Parquet file")
    parser.add_argument("--memory", default="4GiB")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    limits = {"memory_limit": arguments.memory, "threads": arguments.threads}
    with (
        tempfile.TemporaryDirectory() as folder,
        duckdb.connect(config={**limits, "temp_directory": folder}) as connection,
    ):
        connection.execute(build_query(arguments.directory, arguments.range, arguments.output))


if __name__ == "__main__":
    main()
