"""Describe the tables that a file of a format must have."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache
from typing import Any, NamedTuple

from srvstat.snapshot.format.schema import FORMAT_VERSION, read_schema

SCHEMA_ENTRIES = "SELECT type, name, tbl_name, sql FROM sqlite_schema"


class Layout(NamedTuple):
    """The tables that statements may read, and a check of all entries of a file's schema."""

    tables: frozenset[str]
    has_entries: Callable[[set[Any]], bool]


def list_entries(sql: str) -> set[Any]:
    """Return the entries of the schema of a file that some SQL creates."""
    with closing(sqlite3.connect(":memory:")) as ours:
        ours.executescript(sql)
        return set(ours.execute(SCHEMA_ENTRIES))


@cache
def _list_current_entries() -> set[Any]:
    return list_entries(read_schema())


def _has_current_entries(entries: set[Any]) -> bool:
    return entries == _list_current_entries()


CURRENT_LAYOUT: Mapping[int, Layout] = {
    FORMAT_VERSION: Layout(
        frozenset(
            {
                "snapshot",
                "directory",
                "servers",
                "calendars",
                "bands",
                "days",
                "summary_index",
                "summaries",
                "interval_counts",
                "intervals",
                "sqlite_master",
            }
        ),
        _has_current_entries,
    )
}
"""The layout of the current format by its version."""
