-- A snapshot of srvstat, format version 8.
--
-- One SQLite file in rollback-journal mode. Its header has the application_id 0x73727673 ("srvs")
-- and the format version as user_version. The tables are STRICT, so each column holds its declared
-- type only. Instants are integers of Unix milliseconds (UTC).
--
-- A digest is the first 16 bytes of the SHA-256 of a row; docs/snapshot.md describes the hashed
-- bytes. The digest of each row that an answer reads is stored in another row. Only the row of
-- `snapshot` holds its own digest. No digest covers the numbers of servers, so equal content has an
-- equal root, however its servers are numbered.
--
-- History: 1, the first format; 2, with days; 3, with digests; 4, with bands of values, blocks of
-- days, and an observation count per server; 5, with current_is_stand_in renamed to
-- current_is_fallback; 6, with bundles; 7, with summaries of days and of intervals; 8, with numbers of
-- servers outside all digests, observations as a view, first_seen_is_fallback,
-- updated_is_fallback, source_id, completed and is_open, and bands from the first observations.
--
-- A bundle is a snapshot with some servers of another one, its parent, and their observations from
-- the beginning of a day on. It is the only kind with parent_root and covered_from.
--
-- A file stores the comments inside a CREATE statement, and readers compare them: changing one requires
-- a new format version.

-- One row about the file. It holds no clock time and no path, so that equal sources build equal
-- bytes.
CREATE TABLE snapshot (
    as_of             INTEGER NOT NULL, -- the instant that answers refer to by default
    server_count      INTEGER NOT NULL, -- rows of servers
    observation_count INTEGER NOT NULL, -- rows of observations
    first_observed_at INTEGER,          -- the earliest observation; NULL without any
    last_observed_at  INTEGER,          -- the latest observation; NULL without any
    sources           TEXT    NOT NULL, -- names of the observation files as a JSON array, in the order read
    repeated          INTEGER NOT NULL, -- rows equal to an earlier one of the same server and instant
    conflicting       INTEGER NOT NULL, -- rows that differ from the kept one of the same server and instant
    rejected          INTEGER NOT NULL, -- malformed rows
    is_open           INTEGER NOT NULL, -- 1 if an update may make servers of new identifiers, as the
                                        -- build did without a servers file
    parent_root       BLOB,             -- the root of a bundle's parent; NULL unless a bundle
    covered_from      INTEGER,          -- the first instant that a bundle covers, the start of a UTC
                                        -- day; NULL unless a bundle
    bucket_digests    BLOB    NOT NULL, -- the digest of each row of directory, in order
    root              BLOB    NOT NULL, -- the full SHA-256 of as_of, the counts, the first and last
                                        -- observation, bucket_digests and, in a bundle, parent_root
                                        -- and covered_from; equal for equal content
    digest            BLOB    NOT NULL  -- the digest of all columns above
) STRICT;

-- Maps each identifier to its server; an identifier not listed has none. The hash of an identifier
-- is the first 8 bytes of the SHA-256 of its namespace (id or cfxId), a zero byte and the
-- identifier. Each namespace has N buckets. An identifier belongs to the bucket with the number
-- hash * N >> 64; for cfxId, the numbers begin at N.
CREATE TABLE directory (
    bucket  INTEGER PRIMARY KEY, -- 0, 1, 2 …
    entries BLOB NOT NULL,       -- 24 bytes for each identifier, ascending: its hash, big-endian, and
                                 -- the digest of the row of its server
    servers BLOB NOT NULL        -- servers.server of each of them, 4 bytes, little-endian
) STRICT;

-- One row for each publishable server, with the fields of the specification's Server detail. Other
-- servers leave no trace in the file.
CREATE TABLE servers (
    server              INTEGER PRIMARY KEY,  -- the number of the server in this file, from 1
    id                  TEXT    NOT NULL UNIQUE,
    cfx_id              TEXT    NOT NULL UNIQUE,
    game                TEXT    NOT NULL,     -- game_a or game_b
    hostname            TEXT    NOT NULL,
    project_name        TEXT    NOT NULL,
    project_description TEXT    NOT NULL,
    region              TEXT    NOT NULL,
    players_current     INTEGER NOT NULL,     -- the record's, else that of the last observation, or 0
    players_max         INTEGER NOT NULL,
    tags                TEXT    NOT NULL,     -- a JSON array of strings
    flags               TEXT    NOT NULL,     -- a JSON array of strings
    chat_url            TEXT    NOT NULL,
    icon_url            TEXT,
    offline             INTEGER NOT NULL,     -- 0 or 1
    first_seen_at       INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    current_is_fallback INTEGER NOT NULL,     -- 1 if players_current is not from the record
    first_seen_is_fallback INTEGER NOT NULL,  -- 1 if first_seen_at is that of the first observation,
                                              -- or as_of without one
    updated_is_fallback INTEGER NOT NULL,     -- 1 if updated_at is that of the last observation, or
                                              -- as_of without one
    source_id           TEXT,                 -- the identifier that its source uses; NULL if the id
    completed           TEXT    NOT NULL,     -- the fields that the build completed, as a JSON array:
                                              -- names among cfxId, game and hostname, ascending
    observation_count   INTEGER NOT NULL,     -- the server's rows of observations
    first_observed_at   INTEGER,              -- the earliest of them; NULL without any
    last_observed_at    INTEGER,              -- the latest of them; NULL without any
    -- The other columns are derived from the server's observations. They list and verify the rows
    -- of days, calendars and bands. Numbers are packed as in days.
    days                BLOB    NOT NULL,     -- the last days with observations, since 1970-01-01,
                                              -- ascending, at most 63; calendars has earlier ones
    day_digests         BLOB    NOT NULL,     -- the digest of the row of days of each of them
    blocks              BLOB    NOT NULL,     -- the first and the last day of each row of calendars
    block_digests       BLOB    NOT NULL,     -- the digest of each of these rows
    band_count          INTEGER NOT NULL,     -- the number of bands of values
    bands               BLOB    NOT NULL,     -- the least value of each band, ascending
    band_digests        BLOB    NOT NULL,     -- of each row of bands: the number of its band, ascending,
                                              -- in 4 bytes, little-endian; then the digests of these rows
    player_sum          BLOB    NOT NULL,     -- the sum of the players of all observations, packed
                                              -- as days.prefix_sum
    cumulative          BLOB    NOT NULL,     -- for each band, the number of all observations in it
                                              -- or in a lower one, packed as days.cumulative
    last_players        INTEGER,              -- the players of the last observation; NULL without any
    usual_interval      INTEGER,              -- the median of all intervals, in half milliseconds;
                                              -- NULL for fewer than two observations
    covered             INTEGER,              -- the sum of all intervals, each at most three usual
                                              -- ones, in half milliseconds; NULL likewise
    summary_digest      BLOB    NOT NULL      -- the digest of the row of summary_index; empty for
                                              -- fewer than 64 observations
) STRICT;

-- Every observation as a plain row for other programs, decoded from days. SQL has no function that
-- converts a byte to a number, so the number is the position of the byte in a blob of all bytes.
-- SQLite needs json_each, which is built in since version 3.38.
--
-- It must not be the last entry: SQLite's integrity_check would then skip unused pages.
CREATE VIEW observations (
    server,      -- servers.server
    observed_at,
    players      -- 0 to 2^53 - 1
) AS
WITH
    bytes (b) AS ( -- 0 to 255
        SELECT x'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff'
    ),
    packed AS (
        SELECT
            servers.server,
            server_day % 10000000 * 86400000 AS midnight,
            times,
            players,
            length(players) / days.observation_count AS width,
            key AS i -- the number of the observation of the day, from 0
        FROM servers
        JOIN days ON server_day BETWEEN servers.server * 10000000 AND servers.server * 10000000 + 9999999
        JOIN json_each('[0' || replace(hex(zeroblob(days.observation_count - 1)), '00', ',0') || ']')
    )
SELECT
    server,
    midnight
        + (instr(b, substr(times, 4 * i + 1, 1)) - 1)
        + (instr(b, substr(times, 4 * i + 2, 1)) - 1) * 256
        + (instr(b, substr(times, 4 * i + 3, 1)) - 1) * 65536
        + (instr(b, substr(times, 4 * i + 4, 1)) - 1) * 16777216,
    CASE width
        WHEN 1 THEN (instr(b, substr(players, i + 1, 1)) - 1)
        WHEN 2 THEN (instr(b, substr(players, 2 * i + 1, 1)) - 1)
            + (instr(b, substr(players, 2 * i + 2, 1)) - 1) * 256
        WHEN 4 THEN (instr(b, substr(players, 4 * i + 1, 1)) - 1)
            + (instr(b, substr(players, 4 * i + 2, 1)) - 1) * 256
            + (instr(b, substr(players, 4 * i + 3, 1)) - 1) * 65536
            + (instr(b, substr(players, 4 * i + 4, 1)) - 1) * 16777216
        ELSE (instr(b, substr(players, 8 * i + 1, 1)) - 1)
            + (instr(b, substr(players, 8 * i + 2, 1)) - 1) * 256
            + (instr(b, substr(players, 8 * i + 3, 1)) - 1) * 65536
            + (instr(b, substr(players, 8 * i + 4, 1)) - 1) * 16777216
            + (instr(b, substr(players, 8 * i + 5, 1)) - 1) * 4294967296
            + (instr(b, substr(players, 8 * i + 6, 1)) - 1) * 1099511627776
            + (instr(b, substr(players, 8 * i + 7, 1)) - 1) * 281474976710656
    END
FROM bytes, packed;

-- The earlier days with observations of each server: one row for every 32 days. Their
-- digests reveal a missing day.
CREATE TABLE calendars (
    server_block INTEGER PRIMARY KEY, -- servers.server * 10000 + 0, 1, 2 …
    days         BLOB NOT NULL,       -- days since 1970-01-01, ascending
    digests      BLOB NOT NULL        -- the digest of the row of days of each of them
) STRICT;

-- The observations of a server in one band of values, unless all of them are its least value.
CREATE TABLE bands (
    server_band       INTEGER PRIMARY KEY, -- servers.server * 1000000 + the band's number, from 0
    observation_count INTEGER NOT NULL,    -- the number of observations in it
    players           BLOB    NOT NULL     -- of each, in order of time: its players minus the least
                                           -- value of the band
) STRICT;

-- An interval is the time from an observation to the next one of the server, in milliseconds. It
-- belongs to the observation at its end. A summary day is a UTC day without its start and with its
-- end, like a window: an observation at midnight belongs to the day that ends then. Its number is
-- that of the next UTC day, since 1970-01-01. Intervals are divided into bands; docs/snapshot.md
-- says how.

-- One row for each server with at least 64 observations: it lists and verifies the rows of
-- summaries, interval_counts and intervals.
CREATE TABLE summary_index (
    server          INTEGER PRIMARY KEY, -- servers.server
    blocks          BLOB    NOT NULL,    -- the first and the last day of each row of summaries
    digests         BLOB    NOT NULL,    -- the digest of each of these rows
    count_digests   BLOB    NOT NULL,    -- the digest of each row of interval_counts
    band_count      INTEGER NOT NULL,    -- the number of bands of intervals
    bands           BLOB    NOT NULL,    -- the least interval of each band, ascending
    band_digests    BLOB    NOT NULL,    -- as in servers, of the rows of intervals; a band without a
                                         -- row has 255 in each byte of its digest, unless all of its
                                         -- intervals are its least
    longest_usual   INTEGER NOT NULL     -- summaries list the intervals that are longer
) STRICT;

-- One row for every 64 summary days with observations of a server. Each blob has a number for each
-- day. Times are milliseconds since the start of the day. A blob of sums can also have 16 bytes for
-- each number.
CREATE TABLE summaries (
    server_block       INTEGER PRIMARY KEY, -- servers.server * 10000 + 0, 1, 2 …
    day_count          INTEGER NOT NULL,    -- the number of days
    days               BLOB    NOT NULL,    -- the numbers of the days, ascending
    observation_counts BLOB    NOT NULL,    -- the number of observations
    player_sums        BLOB    NOT NULL,    -- the sum of their players
    first_players      BLOB    NOT NULL,    -- the players of the first observation
    last_players       BLOB    NOT NULL,    -- the players of the last observation
    peaks              BLOB    NOT NULL,    -- the most players
    lowests            BLOB    NOT NULL,    -- the fewest players
    first_times        BLOB    NOT NULL,    -- the time of the first observation
    last_times         BLOB    NOT NULL,    -- the time of the last observation
    first_peak_times   BLOB    NOT NULL,    -- the times of the first and of the last observation with
    last_peak_times    BLOB    NOT NULL,    -- the most players
    first_lowest_times BLOB    NOT NULL,    -- the times of the first and of the last observation with
    last_lowest_times  BLOB    NOT NULL,    -- the fewest players
    weighted_sums      BLOB    NOT NULL,    -- the sum of each interval times the players at its start
    long_count         INTEGER,             -- the number of the block's intervals that are longer than
                                            -- summary_index.longest_usual; NULL if they are more than
                                            -- 4096, which are not listed
    long_ends          BLOB    NOT NULL,    -- of each of them: its end, in milliseconds since the start
                                            -- of the first day
    long_intervals     BLOB    NOT NULL,    -- its length
    long_players       BLOB    NOT NULL     -- the players at its start
) STRICT;

-- The number of intervals in each band, one row for each row of summaries.
CREATE TABLE interval_counts (
    server_block INTEGER PRIMARY KEY, -- as in summaries
    before       BLOB    NOT NULL,    -- for each band, the number of intervals in it or in a lower one
                                      -- that belong to earlier days than those of the block
    counts       BLOB    NOT NULL     -- for each band, and for each day of the block: the number of
                                      -- intervals in the band or in a lower one that belong to the
                                      -- days of the block up to this day
) STRICT;

-- The intervals of a server in one band, for bands around the median, unless all of them are its
-- least interval.
CREATE TABLE intervals (
    server_band    INTEGER PRIMARY KEY, -- servers.server * 1000000 + the band's number, from 0
    interval_count INTEGER NOT NULL,    -- the number of intervals in it
    lengths        BLOB    NOT NULL     -- of each, in order of time: its length minus the least of the
                                        -- band
) STRICT;

-- The observations, and the index that answers read: one row for each server and UTC day with
-- observations. It has the observations of the day, packed, and a prefix: the count, sum and
-- histogram of the server's observations of all earlier days and of the first half of this day
-- (observation_count / 2, rounded down). All derived data follows from the observations.
-- Blobs hold unsigned little-endian integers of one width: 1, 2, 4 or 8 bytes. The width is the
-- length of the blob divided by the number of integers.
CREATE TABLE days (
    server_day        INTEGER PRIMARY KEY, -- servers.server * 10000000 + days since 1970-01-01
    observation_count INTEGER NOT NULL,    -- the number of observations of the day, at least 1
    times             BLOB    NOT NULL,    -- of each: milliseconds since the start of the day, ascending
    players           BLOB    NOT NULL,    -- of each: the players, in the order of times
    players_before    INTEGER,             -- the player count of the last observation before this
                                           -- day; NULL without any
    players_after     INTEGER,             -- the player count of the first observation after this
                                           -- day; NULL without any
    prefix_count      INTEGER NOT NULL,    -- the number of observations of the prefix
    prefix_sum        BLOB    NOT NULL,    -- the sum of their players: one unsigned little-endian
                                           -- integer in the fewest bytes
    cumulative        BLOB    NOT NULL     -- for each of the server's bands, the number of observations of
                                           -- the prefix in it or in a lower one
) STRICT;
