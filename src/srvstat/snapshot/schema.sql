-- A snapshot of srvstat, format version 2.
--
-- One SQLite file in rollback-journal mode. Its header has the application_id 0x73727673 ("srvs")
-- and the format version as user_version. The tables are STRICT, so each column holds its declared
-- type only. Instants are integers of Unix milliseconds (UTC).
--
-- Numbers are packed into blobs: little-endian, unsigned, all of one width of 1, 2, 4 or 8 bytes,
-- the least that holds the greatest of them unless a column says otherwise. A sum is one number in
-- the fewest bytes.
--
-- A digest is the first 16 bytes of the SHA-256 of a row; docs/snapshot.md describes the hashed
-- bytes. The digest of each row that an answer reads is stored in another row. Only the row of
-- `snapshot` holds its own digest. No digest covers the numbers of servers, so equal content has an
-- equal root, however its servers are numbered.
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
    is_open           INTEGER NOT NULL, -- 1 if an update makes servers of new identifiers, as the build
                                        -- did without a servers file
    reading           TEXT    NOT NULL, -- the options that said how to read the sources, as a JSON
                                        -- object; an update uses them again
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
    game                TEXT    NOT NULL,     -- game_a or game_b; empty if its record has none
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
    other_source_ids    TEXT    NOT NULL,     -- more such identifiers, as a JSON array: the server was
                                              -- renamed or restarted
    completed           TEXT    NOT NULL,     -- the fields that the build completed, as a JSON array:
                                              -- names among cfxId, game and hostname, ascending
    observation_count   INTEGER NOT NULL,     -- the server's rows of observations
    first_observed_at   INTEGER,              -- the earliest of them; NULL without any
    last_observed_at    INTEGER,              -- the latest of them; NULL without any
    last_players        INTEGER,              -- the players of the latest of them; NULL without any
    player_sum          BLOB    NOT NULL,     -- the sum of the players of all of them
    counts              BLOB    NOT NULL,     -- as blocks.counts_before, after all blocks
    block_ends          BLOB    NOT NULL,     -- the last instant of each block, 8 bytes each
    block_peaks         BLOB    NOT NULL,     -- the most players of each block
    block_digests       BLOB    NOT NULL      -- the digest of each block
) STRICT;

-- Every observation as a plain row for other programs, decoded from blocks. SQL has no function that
-- converts a byte to a number, so the number is the position of the byte in a blob of all bytes.
-- SQLite needs json_each, which is built in since version 3.38.
--
-- It must not be the last entry: SQLite's integrity_check would then skip unused pages.
CREATE VIEW observations (server, observed_at, players) AS
WITH
    bytes (b) AS ( -- 0 to 255
        SELECT x'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff'
    ),
    places (j) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7)),
    packed AS (
        SELECT
            servers.server, blocks.first_observed_at AS start, time_unit, times, players, key AS i,
            length(times) / blocks.observation_count AS time_width,
            length(players) / blocks.observation_count AS width
        FROM servers
        JOIN blocks ON server_block BETWEEN servers.server * 1000000000 AND servers.server * 1000000000 + 999999999
        JOIN json_each('[0' || replace(hex(zeroblob(blocks.observation_count - 1)), '00', ',0') || ']')
    )
SELECT
    server,
    start + time_unit * (
        SELECT sum(instr(b, substr(times, time_width * i + j + 1, 1)) - 1 << 8 * j) FROM places, bytes WHERE j < time_width
    ),
    (SELECT sum(instr(b, substr(players, width * i + j + 1, 1)) - 1 << 8 * j) FROM places, bytes WHERE j < width)
FROM packed;

-- The observations: block k of a server has its observations 2048 k to 2048 (k + 1) - 1, in order of
-- time, and what precedes them. So no later observation changes an earlier block, and the two
-- blocks at the ends of a window give its statistics.
CREATE TABLE blocks (
    server_block      INTEGER PRIMARY KEY, -- servers.server * 1000000000 + k
    observation_count INTEGER NOT NULL,    -- 2048; less in the last block
    first_observed_at INTEGER NOT NULL,    -- the instant of the first observation
    time_unit         INTEGER NOT NULL,    -- the greatest common divisor of the times; 1 if all are 0
    times             BLOB    NOT NULL,    -- of each: the time since the first one, in time_unit ms
    players           BLOB    NOT NULL,    -- of each: the players
    players_before    INTEGER,             -- the players of the last observation before the block;
                                           -- NULL in the first block
    sum_before        BLOB    NOT NULL,    -- the sum of the players of all observations before it
    mark_sums         BLOB    NOT NULL,    -- for each mark, the sum of the players of the block before
                                           -- it, 8 bytes each; marks are after 512, 1024 and 1536
                                           -- observations, unless the block ends there
    counts_digest     BLOB    NOT NULL,    -- the digest of the next two columns
    counts_before     BLOB    NOT NULL,    -- number v, from 0: how many observations before the block
                                           -- have at most v players; up to the greatest v below 4096
                                           -- that one has. As wide as their number, 2048 k, needs
    marks             BLOB    NOT NULL     -- for each mark: the same of the observations of the block
                                           -- before it, up to the greatest v below 4096 that one of
                                           -- the block has, 2 bytes each
) STRICT;
