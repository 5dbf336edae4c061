-- A snapshot of srvstat: format version 4.
--
-- One SQLite file in rollback-journal mode. Its header bears application_id 0x73727673 ("srvs")
-- and, as user_version, the format version. The tables are STRICT, so a column holds its declared
-- type and no other. Every instant is an integer of Unix milliseconds (UTC).
--
-- A digest is the first 16 bytes of the SHA-256 of a row (docs/snapshot.md says how a row becomes
-- bytes). Each row that answers read has its digest in another one, up to the row of the file.
--
-- History: 1, the first format; 2, with days; 3, with digests; 4, with bands of values,
-- blocks of days, and how often and when each server was observed.

-- One row: what the file speaks for, and what it was built from. It holds no clock and no path, so
-- that the same sources build the same bytes.
CREATE TABLE snapshot (
    as_of             INTEGER NOT NULL, -- the instant that answers speak for
    server_count      INTEGER NOT NULL, -- rows of servers
    observation_count INTEGER NOT NULL, -- rows of observations
    first_observed_at INTEGER,          -- the earliest observation; NULL without any
    last_observed_at  INTEGER,          -- the latest observation; NULL without any
    sources           TEXT    NOT NULL, -- names of the observation files as a JSON array, in the order read
    repeated          INTEGER NOT NULL, -- equal observations of one server and instant that collapsed
    conflicting       INTEGER NOT NULL, -- unequal ones that gave way to the first one read
    rejected          INTEGER NOT NULL, -- rows that are no observation
    bucket_digests    BLOB    NOT NULL, -- the digest of each row of directory, in its order
    root              BLOB    NOT NULL, -- the whole SHA-256 of as_of, the counts, the two ends and
                                        -- bucket_digests: the same for the same content
    digest            BLOB    NOT NULL  -- of all the columns before
) STRICT;

-- Which server an identifier names: a proof of those that exist, and that no other does. An
-- identifier's hash is the first 8 bytes of the SHA-256 of its namespace (id or cfxId), a zero byte
-- and itself. Of N buckets a namespace, it belongs to the one with the number hash * N >> 64, which
-- for cfxId is counted from N on.
CREATE TABLE directory (
    bucket  INTEGER PRIMARY KEY, -- 0, 1, 2 …
    entries BLOB NOT NULL        -- 28 bytes for each identifier, ascending: its hash, servers.server
                                 -- (4 bytes, both big-endian), and the digest of that row
) STRICT;

-- One row a publishable server: the fields of the specification's Server detail. Servers that are
-- not publishable leave no trace in the file.
CREATE TABLE servers (
    server              INTEGER PRIMARY KEY,  -- 1, 2, 3 … in the order of id
    id                  TEXT    NOT NULL UNIQUE,
    cfx_id              TEXT    NOT NULL UNIQUE,
    game                TEXT    NOT NULL,     -- game_a or game_b
    hostname            TEXT    NOT NULL,
    project_name        TEXT    NOT NULL,
    project_description TEXT    NOT NULL,
    region              TEXT    NOT NULL,
    players_current     INTEGER NOT NULL,     -- the record's own count, or the last observation
    players_max         INTEGER NOT NULL,
    tags                TEXT    NOT NULL,     -- a JSON array of strings
    flags               TEXT    NOT NULL,     -- a JSON array of strings
    chat_url            TEXT    NOT NULL,
    icon_url            TEXT,
    offline             INTEGER NOT NULL,     -- 0 or 1
    first_seen_at       INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    current_is_fallback INTEGER NOT NULL,     -- 1 where players_current is the last observation
    observation_count   INTEGER NOT NULL,     -- the server's rows of observations
    first_observed_at   INTEGER,              -- the earliest of them; NULL without any
    last_observed_at    INTEGER,              -- the latest of them; NULL without any
    -- The rest is derived from the server's observations: what leads to the rows of days, calendars
    -- and bands, and proves them. Numbers are packed like those of days.
    days                BLOB    NOT NULL,     -- the last days it was observed on, since 1970-01-01,
                                              -- ascending: at most 63; calendars has earlier ones
    day_digests         BLOB    NOT NULL,     -- the digest of each of them: of its row of days
    blocks              BLOB    NOT NULL,     -- the first and the last day of each row of calendars
    block_digests       BLOB    NOT NULL,     -- the digest of each of these rows
    band_count          INTEGER NOT NULL,     -- how many bands its values are divided into
    bands               BLOB    NOT NULL,     -- the least value of each band, ascending
    band_digests        BLOB    NOT NULL,     -- the digest of each one's row of bands, zeros for a band
                                              -- of one value; empty where all have one value
    player_sum          BLOB    NOT NULL,     -- the sum of the players of all observations; this column
                                              -- and the next are what the prefixes of days become
    cumulative          BLOB    NOT NULL,     -- for each band: how many observations lie in it or in
                                              -- one before it
    last_players        INTEGER               -- the last observation; NULL without any
) STRICT;

-- The days that a server was observed on before those in its own row, so that none can be missing
-- unnoticed: a row for every 32 days.
CREATE TABLE calendars (
    server_block INTEGER PRIMARY KEY, -- servers.server * 10000 + 0, 1, 2 …
    days         BLOB NOT NULL,       -- days since 1970-01-01, ascending
    digests      BLOB NOT NULL        -- the digest of each of them: of its row of days
) STRICT;

-- The observations of a server that lie in one band of values, for bands of several values.
CREATE TABLE bands (
    server_band       INTEGER PRIMARY KEY, -- servers.server * 1000000 + the band's number, from 0
    observation_count INTEGER NOT NULL,    -- how many observations lie in it
    players           BLOB    NOT NULL     -- of each, in the order of time: players less the least value
                                           -- of the band
) STRICT;

-- The truth: every observed player count, once. Plain rows, for any tool that reads SQLite.
CREATE TABLE observations (
    server      INTEGER NOT NULL,             -- servers.server
    observed_at INTEGER NOT NULL,
    players     INTEGER NOT NULL,             -- 0 to 2^53 - 1
    PRIMARY KEY (server, observed_at)
) STRICT, WITHOUT ROWID;

-- The index that answers read, derived from observations: a row for each server and UTC day with an
-- observation. It has the day itself, packed, and a prefix: what the server's observations up to the
-- day's middle add up to, which are all of its earlier days' and the first half of this day's
-- (observation_count / 2, rounded down).
-- A blob holds unsigned little-endian integers, all of one width: 1, 2, 4 or 8 bytes, which is the
-- blob's length divided by how many there are.
CREATE TABLE days (
    server_day        INTEGER PRIMARY KEY, -- servers.server * 10000000 + days since 1970-01-01
    observation_count INTEGER NOT NULL,    -- how many the day has, at least 1
    times             BLOB    NOT NULL,    -- of each: milliseconds since the day began, ascending
    players           BLOB    NOT NULL,    -- of each: the players, in the order of times
    players_before    INTEGER,             -- the last observation before the day; NULL without one
    players_after     INTEGER,             -- the first observation after it; NULL without one
    prefix_count      INTEGER NOT NULL,    -- how many observations the prefix has
    prefix_sum        BLOB    NOT NULL,    -- the sum of their players: one unsigned little-endian
                                           -- integer, of as many bytes as it takes
    cumulative        BLOB    NOT NULL     -- for each of the server's bands: how many observations of
                                           -- the prefix lie in it or in one before it
) STRICT;
