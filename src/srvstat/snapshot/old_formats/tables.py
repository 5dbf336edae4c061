"""The tables of formats 1 to 7 as SQL, without comments.

Each format adds columns or tables to those of the format before it.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any

from srvstat.snapshot.read.layout import Layout, list_entries

_SNAPSHOT = """
    as_of INTEGER NOT NULL, server_count INTEGER NOT NULL, observation_count INTEGER NOT NULL,
    first_observed_at INTEGER, last_observed_at INTEGER, sources TEXT NOT NULL,
    repeated INTEGER NOT NULL, conflicting INTEGER NOT NULL, rejected INTEGER NOT NULL"""
_BUNDLE = ", parent_root BLOB, covered_from INTEGER"
_ROOT = ", bucket_digests BLOB NOT NULL, root BLOB NOT NULL, digest BLOB NOT NULL"
_DIRECTORY = "bucket INTEGER PRIMARY KEY, entries BLOB NOT NULL"

_SERVERS = """
    server INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, cfx_id TEXT NOT NULL UNIQUE,
    game TEXT NOT NULL, hostname TEXT NOT NULL, project_name TEXT NOT NULL,
    project_description TEXT NOT NULL, region TEXT NOT NULL, players_current INTEGER NOT NULL,
    players_max INTEGER NOT NULL, tags TEXT NOT NULL, flags TEXT NOT NULL, chat_url TEXT NOT NULL,
    icon_url TEXT, offline INTEGER NOT NULL, first_seen_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL"""
_STAND_IN = ", current_is_stand_in INTEGER NOT NULL"
_FALLBACK = ", current_is_fallback INTEGER NOT NULL"
_DERIVED = """,
    observation_count INTEGER NOT NULL, first_observed_at INTEGER, last_observed_at INTEGER,
    days BLOB NOT NULL, day_digests BLOB NOT NULL, blocks BLOB NOT NULL,
    block_digests BLOB NOT NULL, band_count INTEGER NOT NULL, bands BLOB NOT NULL,
    band_digests BLOB NOT NULL, player_sum BLOB NOT NULL, cumulative BLOB NOT NULL,
    last_players INTEGER"""
_INTERVALS = """,
    usual_interval INTEGER, covered INTEGER, summary_digest BLOB NOT NULL"""

_OBSERVATIONS = """
    server INTEGER NOT NULL, observed_at INTEGER NOT NULL, players INTEGER NOT NULL,
    PRIMARY KEY (server, observed_at)"""

_DAY = """
    server_day INTEGER PRIMARY KEY, observation_count INTEGER NOT NULL, times BLOB NOT NULL,
    players BLOB NOT NULL, players_before INTEGER, players_after INTEGER,
    prefix_count INTEGER NOT NULL"""

_TABLES_1 = {
    "snapshot": _SNAPSHOT,
    "servers": _SERVERS + _STAND_IN,
    "observations": _OBSERVATIONS,
}
_TABLES_2 = _TABLES_1 | {
    "days": _DAY + ", prefix_sum INTEGER, lowest INTEGER, highest INTEGER, cumulative BLOB",
}
_TABLES_3 = _TABLES_2 | {
    "snapshot": _SNAPSHOT + _ROOT,
    "directory": _DIRECTORY,
    "servers": _SERVERS + _STAND_IN + ", calendar_digest BLOB NOT NULL",
    "calendars": "server INTEGER PRIMARY KEY, days BLOB NOT NULL, digests BLOB NOT NULL",
}
_TABLES_4 = _TABLES_3 | {
    "servers": _SERVERS + _STAND_IN + _DERIVED,
    "calendars": "server_block INTEGER PRIMARY KEY, days BLOB NOT NULL, digests BLOB NOT NULL",
    "bands": """
        server_band INTEGER PRIMARY KEY, observation_count INTEGER NOT NULL,
        players BLOB NOT NULL""",
    "days": _DAY + ", prefix_sum BLOB NOT NULL, cumulative BLOB NOT NULL",
}
_TABLES_5 = _TABLES_4 | {"servers": _SERVERS + _FALLBACK + _DERIVED}
_TABLES_6 = _TABLES_5 | {"snapshot": _SNAPSHOT + _BUNDLE + _ROOT}
_TABLES_7 = _TABLES_6 | {
    "servers": _SERVERS + _FALLBACK + _DERIVED + _INTERVALS,
    "summary_index": """
        server INTEGER PRIMARY KEY, blocks BLOB NOT NULL, digests BLOB NOT NULL,
        count_digests BLOB NOT NULL, band_count INTEGER NOT NULL, bands BLOB NOT NULL,
        band_digests BLOB NOT NULL""",
    "summaries": """
        server_block INTEGER PRIMARY KEY, day_count INTEGER NOT NULL, days BLOB NOT NULL,
        observation_counts BLOB NOT NULL, player_sums BLOB NOT NULL, first_players BLOB NOT NULL,
        last_players BLOB NOT NULL, peaks BLOB NOT NULL, lowests BLOB NOT NULL,
        first_times BLOB NOT NULL, last_times BLOB NOT NULL, first_peak_times BLOB NOT NULL,
        last_peak_times BLOB NOT NULL, first_lowest_times BLOB NOT NULL,
        last_lowest_times BLOB NOT NULL, weighted_sums BLOB NOT NULL, long_count INTEGER,
        long_ends BLOB NOT NULL, long_intervals BLOB NOT NULL, long_players BLOB NOT NULL""",
    "interval_counts": """
        server_block INTEGER PRIMARY KEY, before BLOB NOT NULL, counts BLOB NOT NULL""",
    "intervals": """
        server_band INTEGER PRIMARY KEY, interval_count INTEGER NOT NULL, lengths BLOB NOT NULL""",
}

_TABLES: Mapping[int, Mapping[str, str]] = dict(
    enumerate(
        (_TABLES_1, _TABLES_2, _TABLES_3, _TABLES_4, _TABLES_5, _TABLES_6, _TABLES_7), start=1
    )
)

_NEW_NAMES = {"current_is_stand_in": "current_is_fallback"}


@cache
def list_columns(version: int, table: str) -> list[str]:
    """Return the names of the columns of a table of a format; a renamed one has its last name."""
    names = [definition.split()[0] for definition in _TABLES[version][table].split(",")]
    return [_NEW_NAMES.get(name, name) for name in names]


@cache
def _list_old_entries(version: int) -> frozenset[Any]:
    sql = (
        f"CREATE TABLE {table} ({columns}) STRICT"
        f"{', WITHOUT ROWID' if table == 'observations' else ''};"
        for table, columns in _TABLES[version].items()
    )
    return _simplify(list_entries("".join(sql)))


def _simplify(entries: Iterable[Any]) -> frozenset[Any]:
    """Return the entries of a schema with SQL without comments and superfluous spaces."""
    return frozenset(
        (*names, sql if sql is None else _simplify_sql(sql)) for *names, sql in entries
    )


def _simplify_sql(sql: str) -> str:
    """Return SQL without comments and superfluous spaces; comments changed within a format."""
    text = " ".join(re.sub(r"--[^\n]*", "", sql).split())
    return text.replace("( ", "(").replace(" )", ")")


def _has_old_entries(version: int, entries: set[Any]) -> bool:
    return _simplify(entries) == _list_old_entries(version)


OLD_LAYOUTS: Mapping[int, Layout] = {
    version: Layout(frozenset({*tables, "sqlite_master"}), partial(_has_old_entries, version))
    for version, tables in _TABLES.items()
}
"""The layouts of the old formats by version."""


def list_tables(version: int) -> list[str]:
    """Return the names of the tables of a format."""
    return [*_TABLES[version]]
