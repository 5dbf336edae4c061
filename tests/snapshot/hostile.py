"""Named changes that make a valid snapshot hostile."""

from collections.abc import Mapping

from snapshot.harms import (
    PAGE,
    Harm,
    by_sql,
    changed,
    forged,
    grown_by_nothing,
    header,
    in_place_of,
    interrupted,
    last_child,
    of_utf_16,
    own_child,
    without_indexes,
)

_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
_ROOT_OF = "(SELECT rootpage FROM sqlite_schema WHERE name = '{}')"
_LAST_DAY_OF_UNEVEN = "(SELECT max(server_day) FROM days WHERE server_day / 10000000 = 6)"


def _uneven(assignment: str) -> Harm:
    """Change the row of the server `uneven`."""
    return changed(f"UPDATE servers SET {assignment} WHERE id = 'uneven'")


def _forged_uneven(assignment: str) -> Harm:
    return forged(f"UPDATE servers SET {assignment} WHERE id = 'uneven'")


STRUCTURES: Mapping[str, Harm] = {
    "a view": by_sql("CREATE VIEW secret AS SELECT 1 AS secret"),
    "a view without end in the place of the days": by_sql(
        "DROP TABLE days", f"CREATE VIEW days AS {_ENDLESS} SELECT i AS server_day FROM n"
    ),
    "a view that fills memory in the place of the file's row": by_sql(
        "DROP TABLE snapshot",
        "CREATE VIEW snapshot AS SELECT length(hex(zeroblob(400000000))) AS as_of",
    ),
    "a trigger": by_sql("CREATE TRIGGER secret AFTER INSERT ON servers BEGIN SELECT 1; END"),
    "a column that is computed": by_sql(
        "ALTER TABLE servers ADD COLUMN secret INTEGER"
        " GENERATED ALWAYS AS (length(hex(zeroblob(100000000))))"
    ),
    "another table": by_sql("CREATE TABLE secret (id)"),
    "an index of an expression": by_sql("CREATE INDEX secret ON servers (length(hostname))"),
    "statistics for SQLite's planner": by_sql("ANALYZE"),
    "a virtual table": by_sql(
        "INSERT INTO sqlite_schema VALUES"
        " ('table', 'secret', 'secret', 0, 'CREATE VIRTUAL TABLE secret USING fts5(secret)')"
    ),
    "a virtual table in the place of the observations": in_place_of(
        "observations",
        "CREATE VIRTUAL TABLE observations USING fts5(server, observed_at, players)",
    ),
    "a view under the name and the text of a table": by_sql(
        "UPDATE sqlite_schema SET type = 'view', rootpage = 0 WHERE name = 'observations'"
    ),
    "a name in another case": by_sql(
        "ALTER TABLE observations RENAME TO secret", "ALTER TABLE secret RENAME TO Observations"
    ),
    "an entry of no kind": by_sql(
        "INSERT INTO sqlite_schema VALUES ('secret', 'secret', 'secret', 0, NULL)"
    ),
    "a name that is not UTF-8": by_sql(
        "INSERT INTO sqlite_schema VALUES"
        " ('table', CAST(x'736563726574ff' AS TEXT), 'secret', 2, 'CREATE TABLE secret (')"
    ),
    "a table that is there twice": by_sql(
        "INSERT INTO sqlite_schema SELECT type, name, tbl_name,"
        f" {_ROOT_OF.format('days')}, sql FROM sqlite_schema WHERE name = 'servers'"
    ),
    "20,000 tables": by_sql(
        f"INSERT INTO sqlite_schema {_ENDLESS} SELECT 'table', 't' || i, 't' || i, 2,"
        " 'CREATE TABLE t' || i || ' (secret)' FROM n LIMIT 20000"
    ),
    "a CREATE TABLE of 20 MB": by_sql(
        "UPDATE sqlite_schema SET sql = sql || ' -- ' || printf('%.*c', 20000000, 'x')"
        " WHERE name = 'servers'"
    ),
    "a table without a page": by_sql(
        "UPDATE sqlite_schema SET rootpage = 0 WHERE name = 'servers'"
    ),
    "a table beyond the end": by_sql(
        "UPDATE sqlite_schema SET rootpage = 4000000000 WHERE name = 'servers'"
    ),
    "an interrupted writer": interrupted,
    "a header that says UTF-16": header(56, (2).to_bytes(4)),
    "a header that says write-ahead log to writers": header(18, b"\x02\x01"),
    "a header that says write-ahead log to readers": header(18, b"\x01\x02"),
    "a header of a later SQLite": header(18, b"\x01\x03"),
    "a header of a later schema": header(44, (5).to_bytes(4)),
    "a header with other fractions of pages": header(21, b"\x20"),
    "a header of pages half as large": header(16, (PAGE // 2).to_bytes(2)),
}
"""Changes that every command must refuse."""

CONTENTS: Mapping[str, Harm] = {
    "a text of 100 MB": _uneven("hostname = printf('%.*c', 100000000, 'x')"),
    "a text that is not UTF-8": _uneven("hostname = CAST(x'ff736563726574' AS TEXT)"),
    "half a character": _uneven("hostname = CAST(x'eda080736563726574' AS TEXT)"),
    "a NUL in a text": _uneven("hostname = 'secret' || char(0) || 'secret'"),
    "a NUL in an identifier": _uneven("id = id || char(0) || 'secret'"),
    "a NUL in tags": _uneven("""tags = '["secret' || char(0) || '"]'"""),
    "a text that is a blob": _uneven("region = x'736563726574'"),
    "an identifier that is a blob": _uneven("cfx_id = x'736563726574'"),
    "tags of 400,000 lists": _uneven("tags = printf('%.*c', 400000, '[')"),
    "a negative count of players": _uneven("players_max = -1"),
    "more players than a double can count": _uneven("players_max = 9223372036854775807"),
    "neither offline nor online": _uneven("offline = 2"),
    "no server": changed("DELETE FROM servers"),
    "a server more": changed(
        "INSERT INTO servers SELECT 8, 'secret', 'secret', game, hostname, project_name,"
        " project_description, region, players_current, players_max, tags, flags, chat_url,"
        " icon_url, offline, first_seen_at, updated_at, current_is_fallback, 0, NULL, NULL,"
        " days, day_digests, blocks, block_digests, band_count, bands, band_digests,"
        " player_sum, cumulative, last_players"
        " FROM servers WHERE id = 'once'"
    ),
    "players that are a text": changed("UPDATE observations SET players = 'secret'"),
    "a negative observation": changed("UPDATE observations SET players = -1"),
    "an observation more": changed("INSERT INTO observations VALUES (9, 5, 5)"),
    "a day of 100 MB": changed(
        "UPDATE days SET players = zeroblob(100000000), observation_count = 100000000"
        " WHERE server_day = (SELECT max(server_day) FROM days)"
    ),
    "an index that disagrees with its table": without_indexes(
        "UPDATE servers SET id = CASE id WHEN 'uneven' THEN 'busy' ELSE 'uneven' END"
        " WHERE id IN ('uneven', 'busy')"
    ),
    "two indexes at each other's place": by_sql(
        "UPDATE sqlite_schema SET rootpage = (SELECT sum(rootpage) FROM sqlite_schema"
        " WHERE type = 'index') - rootpage WHERE type = 'index'"
    ),
    "a table at the place of another": by_sql(
        f"UPDATE sqlite_schema SET rootpage = {_ROOT_OF.format('days')} WHERE name = 'servers'"
    ),
    "two tables at each other's place": by_sql(
        f"UPDATE sqlite_schema SET rootpage = {_ROOT_OF.format('days')}"
        f" + {_ROOT_OF.format('calendars')} - rootpage WHERE name IN ('days', 'calendars')"
    ),
    "a table at the place of the schema": by_sql(
        "UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'servers'"
    ),
    "servers whose page is its own child": own_child("servers"),
    "days whose page is its own child": own_child("days"),
    "observations whose page is its own child": own_child("observations"),
    "bands whose page is its own child": own_child("bands"),
    "calendars whose page is its own child": own_child("calendars"),
    "bands of 100 MB": changed(
        "UPDATE bands SET players = zeroblob(100000000), observation_count = 100000000"
        " WHERE server_band = (SELECT max(server_band) FROM bands)"
    ),
    "a band more": changed("INSERT INTO bands VALUES (9000000, 1, x'00')"),
    "no bands": changed("DELETE FROM bands"),
    "no calendars": changed("DELETE FROM calendars"),
    "days that end where they begin": last_child("days", "days"),
    "days that end in the observations": last_child("days", "observations"),
    "days that end in the servers": last_child("days", "servers"),
    "texts in UTF-16": of_utf_16,
    "a header that reserves bytes of each page": header(20, b"\x20"),
    "a header that reserves most of each page": header(20, b"\xff"),
    "a header with free pages": header(32, (3).to_bytes(4) + (99).to_bytes(4)),
    "a header of pages that move": header(52, (5).to_bytes(4)),
    "a header without an encoding": header(56, bytes(4)),
    "200 MB of empty pages": grown_by_nothing,
}
"""Changes that a command may miss if its answer is right; `verify` must refuse them."""


FORGERIES: Mapping[str, Harm] = {
    "a text of 20 MB": _forged_uneven("hostname = printf('%.*c', 20000000, 'x')"),
    "a text of 2 MB": _forged_uneven("hostname = printf('%.*c', 2000000, 'x')"),
    "an identifier of 1 MB": _forged_uneven("cfx_id = printf('%.*c', 1000000, 'x')"),
    "an identifier that drives a terminal": forged(
        "UPDATE servers SET id = char(27) || '[2J' || 'secret' WHERE id = 'wide';"
        " UPDATE observations SET players = players + 1 WHERE server = 7"
    ),
    "tags of 400,000 lists": _forged_uneven("tags = printf('%.*c', 400000, '[')"),
    "tags of 400,000 objects": _forged_uneven(
        "tags = replace(printf('%.*c', 400000, '['), '[', '{\"a\":')"
    ),
    "a tag of 400,000 digits": _forged_uneven("tags = printf('%.*c', 400000, '9')"),
    "300,000 tags": _forged_uneven(
        "tags = '[' || replace(printf('%.*c', 299999, '0'), '0', '\"\",') || '\"\"]'"
    ),
    "2^62 bands": forged("UPDATE servers SET band_count = 4611686018427387904"),
    "900,000 bands": _forged_uneven("band_count = 900000, bands = zeroblob(900000)"),
    "a million digests of bands": _forged_uneven("band_digests = zeroblob(16000000)"),
    "a sum beyond a double": forged("UPDATE days SET prefix_sum = randomblob(200)"),
    "a sum of 2 MB": forged("UPDATE days SET prefix_sum = randomblob(2000000)"),
    "bands of 2 MB": forged("UPDATE bands SET players = zeroblob(8 * observation_count * 1000)"),
    "bands of 500,000 observations": forged(
        "UPDATE bands SET players = zeroblob(500000), observation_count = 500000"
    ),
    "bands of 2^62 observations": forged(
        "UPDATE bands SET players = x'', observation_count = 4611686018427387904"
    ),
    "a calendar of 100,000 days a block": forged(
        "UPDATE calendars SET days = zeroblob(400000), digests = zeroblob(1600000)"
    ),
    "500,000 blocks": _forged_uneven(
        "blocks = zeroblob(1000000), block_digests = zeroblob(8000000)"
    ),
    "blocks in another order than their days": forged(
        "UPDATE servers SET blocks = zeroblob(length(blocks))"
    ),
    "a day of 500,000 observations at once": forged(
        "UPDATE days SET times = zeroblob(500000), players = zeroblob(500000),"
        f" observation_count = 500000 WHERE server_day = {_LAST_DAY_OF_UNEVEN}"
    ),
    "a day of 2^62 observations": forged(
        "UPDATE days SET times = x'', players = x'', observation_count = 4611686018427387904"
        f" WHERE server_day = {_LAST_DAY_OF_UNEVEN}"
    ),
    "a day after time": forged(
        f"UPDATE days SET server_day = 69999999 WHERE server_day = {_LAST_DAY_OF_UNEVEN}"
    ),
    "a server seen after time": _forged_uneven("first_seen_at = 9223372036854775807"),
    "an as_of after time": forged("UPDATE snapshot SET as_of = 9223372036854775807"),
    "a source of 2 MB": forged(
        "UPDATE snapshot SET sources = '[\"' || printf('%.*c', 2000000, 'x') || '\"]'"
    ),
    "sources of 400,000 lists": forged("UPDATE snapshot SET sources = printf('%.*c', 400000, '[')"),
}
"""Changes with recomputed digests: answers may be wrong, but must end without harm."""
