-- The statements of engine.py, by their names. It fills in what is in braces.

-- name: prepare
SET TimeZone = 'UTC';
-- The statistics in a Parquet file can be wrong, so no row is skipped because of them.
SET disabled_optimizers = 'filter_pushdown,join_filter_pushdown,statistics_propagation';
-- The progress is computed only with a bar, which is not printed.
SET enable_progress_bar = true;
SET enable_progress_bar_print = false;
CREATE TEMP TABLE staged (identifier VARCHAR, "at" BIGINT, players BIGINT, position BIGINT);
CREATE TEMP TABLE named (identifier VARCHAR);
CREATE TEMP TABLE numbers (identifier VARCHAR, number INTEGER);
CREATE TEMP TABLE servers (number INTEGER, id VARCHAR, shard INTEGER);

-- name: survey
CREATE OR REPLACE TEMP TABLE surveyed AS
SELECT
    identifier, count(*) AS rows, count(*) FILTER ("at" > {end}) AS late,
    max("at") FILTER ("at" <= {end}) AS last_at
FROM rows GROUP BY identifier

-- name: last_rows
WITH last_rows AS (
    SELECT identifier, min({order}) AS chosen
    FROM rows JOIN surveyed USING (identifier) WHERE "at" = last_at GROUP BY identifier
)
SELECT identifier, surveyed.rows, late, last_at, chosen.position, chosen.players
FROM surveyed LEFT JOIN last_rows USING (identifier) ORDER BY identifier

-- name: locate
SELECT count(*), min(position), arg_min(identifier, position)
FROM rows SEMI JOIN named USING (identifier) GROUP BY position // {places}

-- name: groups
SELECT number, "at", count(*) AS rows, min(players) AS least, max(players) AS greatest
FROM rows JOIN numbers USING (identifier)
WHERE "at" BETWEEN {first} AND {last} GROUP BY number, "at"

-- name: count
-- Rows of a server and instant are compared in the order of sources only if their players differ.
-- Sources in which nearly every row conflicts take 36 s for 10 million rows, which is accepted.
CREATE OR REPLACE TEMP TABLE counted AS
SELECT
    number, least AS players, count(*) AS instants, sum(rows)::BIGINT AS rows,
    count(*) FILTER (least = greatest) AS kept,
    min("at") FILTER (least = greatest) AS first_at,
    max("at") FILTER (least = greatest) AS last_at,
    list("at") FILTER (least <> greatest) AS contested
FROM ({groups}) GROUP BY number, least

-- name: totals
SELECT coalesce(sum(instants), 0)::BIGINT, coalesce(sum(rows), 0)::BIGINT, count(contested)
FROM counted

-- name: contested
CREATE OR REPLACE TEMP TABLE contested AS
SELECT number, "at", players, position
FROM rows JOIN numbers USING (identifier)
SEMI JOIN (SELECT number, unnest(contested) AS "at" FROM counted) USING (number, "at")
WHERE {has_conflict}

-- name: resolve
CREATE OR REPLACE TEMP TABLE chosen AS
SELECT number, "at", min({order}) AS first FROM contested GROUP BY number, "at";
-- These are not kept, because the first one is.
CREATE OR REPLACE TEMP VIEW conflicts AS
SELECT
    number, "at", position, contested.players,
    first.position AS first_position, first.players AS first_players
FROM contested JOIN chosen USING (number, "at") WHERE contested.players <> first.players

-- name: histograms
SELECT number, players, sum(kept)::BIGINT, min(first_at), max(last_at)
FROM (
    SELECT number, players, kept, first_at, last_at FROM counted WHERE kept > 0
    UNION ALL
    SELECT number, first.players, 1, "at", "at" FROM chosen
)
GROUP BY number, players ORDER BY number

-- name: write
COPY (
    SELECT shard, id AS "serverId", "at" AS "observedAt",
        coalesce(chosen.first.players, least) AS players
    FROM ({groups}) LEFT JOIN chosen USING (number, "at") JOIN servers USING (number)
    ORDER BY shard, number, "at"
) TO {folder} (FORMAT parquet, PARTITION_BY (shard))
