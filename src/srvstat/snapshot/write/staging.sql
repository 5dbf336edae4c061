-- The tables of a build in its temporary database, which ends with its connection and so needs no
-- journal.
PRAGMA temp.journal_mode = OFF;

-- The observations of a server among those that were moved to the disk at a time.
CREATE TEMP TABLE runs (
    run      INTEGER PRIMARY KEY, -- the server times _RUNS_PER_SERVER, plus the run
    count    INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    instant  INTEGER NOT NULL, -- subtracted from all instants
    place    INTEGER NOT NULL, -- subtracted from all places
    instants BLOB NOT NULL,
    players  BLOB NOT NULL,
    places   BLOB NOT NULL
);

-- Conflicts are found last, once the observations are sorted. Until then, the rejects are
-- here.
CREATE TEMP TABLE rejects (
    place       INTEGER NOT NULL, -- rows of several servers may have one place
    reason      TEXT NOT NULL,
    text        TEXT NOT NULL,
    is_conflict INTEGER NOT NULL,
    value       TEXT, -- the malformed value, cut
    lost        INTEGER NOT NULL -- the number of rows
);
