"""Named changes that make a valid snapshot hostile."""

from collections.abc import Mapping

from snapshot.harms import (
    Harm,
    append_empty_pages,
    change_rows,
    convert_to_utf_16,
    forge_rows,
    interrupt_writer,
    link_to_itself,
    overwrite_header,
    replace_table,
    run_sql,
    run_without_indexes,
)
from srvstat.contract.time import DAY_MS
from support.snapshots import PAGE_SIZE

_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
_ROOT_OF = "(SELECT rootpage FROM sqlite_schema WHERE name = '{}')"
_OF_UNEVEN = "WHERE server_block / 1000000000 = 6"


def _change_uneven(assignment: str) -> Harm:
    """Change the row of the server `uneven`."""
    return change_rows(f"UPDATE servers SET {assignment} WHERE id = 'uneven'")


def _forge_uneven(assignment: str) -> Harm:
    return forge_rows(f"UPDATE servers SET {assignment} WHERE id = 'uneven'")


def _forge_bundle(parent_root: str, covered_from: int) -> Harm:
    return forge_rows(
        f"UPDATE snapshot SET parent_root = {parent_root}, covered_from = {covered_from}"
    )


STRUCTURES: Mapping[str, Harm] = {
    "an endless view instead of the blocks": run_sql(
        "DROP TABLE blocks", f"CREATE VIEW blocks AS {_ENDLESS} SELECT i AS server_block FROM n"
    ),
    "a generated column": run_sql(
        "ALTER TABLE servers ADD COLUMN secret INTEGER"
        " GENERATED ALWAYS AS (length(hex(zeroblob(100000000))))"
    ),
    "a virtual table instead of the directory": replace_table(
        "directory", "CREATE VIRTUAL TABLE directory USING fts5(bucket, entries, servers)"
    ),
    "a name that is not UTF-8": run_sql(
        "INSERT INTO sqlite_schema VALUES"
        " ('table', CAST(x'736563726574ff' AS TEXT), 'secret', 2, 'CREATE TABLE secret (')"
    ),
    "a CREATE TABLE of 20 MB": run_sql(
        "UPDATE sqlite_schema SET sql = sql || ' -- ' || printf('%.*c', 20000000, 'x')"
        " WHERE name = 'servers'"
    ),
    "a table beyond the end of the file": run_sql(
        "UPDATE sqlite_schema SET rootpage = 4000000000 WHERE name = 'servers'"
    ),
    "an interrupted writer": interrupt_writer,
    "a header with write-ahead logging for readers": overwrite_header(18, b"\x01\x02"),
    "a header of a later schema": overwrite_header(44, (5).to_bytes(4)),
    "a header with half the page size": overwrite_header(16, (PAGE_SIZE // 2).to_bytes(2)),
}
"""Changes that every command must refuse."""

CONTENTS: Mapping[str, Harm] = {
    "a text of 100 MB": _change_uneven("hostname = printf('%.*c', 100000000, 'x')"),
    "a text that is not UTF-8": _change_uneven("hostname = CAST(x'ff736563726574' AS TEXT)"),
    "a NUL in a text": _change_uneven("hostname = 'secret' || char(0) || 'secret'"),
    "an identifier that is a blob": _change_uneven("cfx_id = x'736563726574'"),
    "a bundle": change_rows("UPDATE snapshot SET parent_root = zeroblob(32), covered_from = 0"),
    "no server": change_rows("DELETE FROM servers"),
    "an additional server": change_rows(
        "INSERT INTO servers SELECT 8, 'secret', 'secret', game, hostname, project_name,"
        " project_description, region, players_current, players_max, tags, flags, chat_url,"
        " icon_url, offline, first_seen_at, updated_at, current_is_fallback,"
        " first_seen_is_fallback, updated_is_fallback, source_id, completed, 0, NULL, NULL,"
        " NULL, player_sum, counts, block_ends, block_peaks, block_digests"
        " FROM servers WHERE id = 'once'"
    ),
    "players that are a negative number": change_rows("UPDATE blocks SET players = -1"),
    "a block of 100 MB": change_rows(
        "UPDATE blocks SET players = zeroblob(100000000), observation_count = 100000000"
        f" {_OF_UNEVEN}"
    ),
    "counts of 100 MB": change_rows(f"UPDATE blocks SET marks = zeroblob(100000000) {_OF_UNEVEN}"),
    "an index that disagrees with its table": run_without_indexes(
        "UPDATE servers SET id = CASE id WHEN 'uneven' THEN 'busy' ELSE 'uneven' END"
        " WHERE id IN ('uneven', 'busy')"
    ),
    "two swapped indexes": run_sql(
        "UPDATE sqlite_schema SET rootpage = (SELECT sum(rootpage) FROM sqlite_schema"
        " WHERE type = 'index') - rootpage WHERE type = 'index'"
    ),
    "two swapped tables": run_sql(
        f"UPDATE sqlite_schema SET rootpage = {_ROOT_OF.format('blocks')}"
        f" + {_ROOT_OF.format('directory')} - rootpage WHERE name IN ('blocks', 'directory')"
    ),
    "a table with the page of the schema": run_sql(
        "UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'servers'"
    ),
    "servers whose page is its own child": link_to_itself("servers"),
    "blocks whose page is its own child": link_to_itself("blocks"),
    "no blocks": change_rows("DELETE FROM blocks"),
    "texts in UTF-16": convert_to_utf_16,
    "a header that reserves most of each page": overwrite_header(20, b"\xff"),
    "a header with free pages": overwrite_header(32, (3).to_bytes(4) + (99).to_bytes(4)),
    "200 MB of empty pages": append_empty_pages,
}
"""Changes that a command may miss if its answer is right; `verify` must refuse them."""


FORGERIES: Mapping[str, Harm] = {
    "a text of 2 MB": _forge_uneven("hostname = printf('%.*c', 2000000, 'x')"),
    "an identifier with terminal control characters": forge_rows(
        "UPDATE servers SET id = char(27) || '[2J' || 'secret' WHERE id = 'wide';"
        " UPDATE blocks SET players = zeroblob(length(players))"
        " WHERE server_block / 1000000000 = 7"
    ),
    "tags of 400,000 lists": _forge_uneven("tags = printf('%.*c', 400000, '[')"),
    "300,000 tags": _forge_uneven(
        "tags = '[' || replace(printf('%.*c', 299999, '0'), '0', '\"\",') || '\"\"]'"
    ),
    "500,000 digests of blocks": _forge_uneven(
        "block_digests = zeroblob(8000000), block_ends = zeroblob(4000000)"
    ),
    "500,000 blocks": _forge_uneven(
        "block_digests = zeroblob(8000000), block_ends = zeroblob(4000000),"
        " observation_count = 500000 * 2048"
    ),
    "a sum of 2 MB": forge_rows("UPDATE blocks SET sum_before = randomblob(2000000)"),
    "counts and marks of 2 MB": forge_rows(
        "UPDATE blocks SET counts_before = randomblob(2000000), marks = randomblob(2000000)"
    ),
    "observations of a server that ascend by 2^62 counts": forge_rows(
        "UPDATE servers SET counts = zeroblob(16384), observation_count = 4611686018427387904"
    ),
    "a block of 500,000 observations at one instant": forge_rows(
        "UPDATE blocks SET times = zeroblob(500000), players = zeroblob(500000),"
        f" observation_count = 500000 {_OF_UNEVEN}"
    ),
    "a block of 2^62 observations": forge_rows(
        "UPDATE blocks SET times = x'', players = x'', observation_count = 4611686018427387904"
        f" {_OF_UNEVEN}"
    ),
    "a block in the years after 9999": forge_rows(
        f"UPDATE blocks SET time_unit = 4611686018427387904, first_observed_at = -1 {_OF_UNEVEN}"
    ),
    "ends of blocks in the years after 9999": _forge_uneven("block_ends = x'ffffffffffffff7f'"),
    "an as_of after the year 9999": forge_rows("UPDATE snapshot SET as_of = 9223372036854775807"),
    "a parent root without a coverage": forge_rows(
        "UPDATE snapshot SET parent_root = zeroblob(32)"
    ),
    "a coverage before the year 1": _forge_bundle("zeroblob(32)", -(2**62) // DAY_MS * DAY_MS),
    "sources of 400,000 lists": forge_rows(
        "UPDATE snapshot SET sources = printf('%.*c', 400000, '[')"
    ),
}
"""Changes with recomputed digests: answers may be wrong, but must end without harm."""
