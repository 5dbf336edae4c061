-- A snapshot of srvstat: format version 1.
--
-- One SQLite file in rollback-journal mode. Its header bears application_id 0x73727673 ("srvs")
-- and, as user_version, the format version. The tables are STRICT, so a column holds its declared
-- type and no other. Every instant is an integer of Unix milliseconds (UTC).
--
-- History: 1, the first format.

-- One row: what the file speaks for, and what it was built from. It holds no clock and no
-- directory, so that the same sources build the same bytes.
CREATE TABLE snapshot (
    as_of             INTEGER NOT NULL, -- the instant that answers speak for
    server_count      INTEGER NOT NULL, -- rows of servers
    observation_count INTEGER NOT NULL, -- rows of observations
    first_observed_at INTEGER,          -- the earliest observation; NULL without any
    last_observed_at  INTEGER,          -- the latest observation; NULL without any
    sources           TEXT    NOT NULL, -- names of the observation files as a JSON array, in the order read
    repeated          INTEGER NOT NULL, -- equal observations of one server and instant that collapsed
    conflicting       INTEGER NOT NULL, -- unequal ones that gave way to the first one read
    rejected          INTEGER NOT NULL  -- rows that are no observation
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
    current_is_stand_in INTEGER NOT NULL      -- 1 where players_current is the last observation
) STRICT;

-- The truth: every observed player count, once. Plain rows, for any tool that reads SQLite.
CREATE TABLE observations (
    server      INTEGER NOT NULL,             -- servers.server
    observed_at INTEGER NOT NULL,
    players     INTEGER NOT NULL,             -- 0 to 2^53 - 1
    PRIMARY KEY (server, observed_at)
) STRICT, WITHOUT ROWID;
