"""The tables of a snapshot: the format's version, its limits, and its rows."""

import os
import re
from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple, get_args

from srvstat.contract.identifiers import IDENTIFIER_PATTERN
from srvstat.contract.requests import Namespace
from srvstat.contract.responses import Game

APPLICATION_ID = 0x73727673
FORMAT_VERSION = 8

MAX_ROW_BYTES = 1 << 24
"""Longest row in bytes that a reader accepts. No build writes a longer one."""


def read_schema() -> str:
    """Return the SQL text that creates the tables of a snapshot."""
    # Importing importlib.resources would take longer than the rest of this module.
    with open(os.path.join(os.path.dirname(__file__), "schema.sql"), encoding="utf-8") as file:
        return file.read()


class ForgedRowError(ValueError):
    """A row has values that no build writes, although its digest matches: the file was forged.

    Every function that decodes rows may raise it, or one of Python's own errors for such values.
    `convert_decode_errors` reports all of them as damage.
    """


Value = int | str | bytes | None
"""What a column can hold."""

DAYS_PER_SERVER = 10_000_000
"""More than the days until 9999."""

DAYS_PER_BLOCK = 64
BLOCKS_PER_SERVER = 10_000
BANDS_PER_SERVER = 1_000_000
"""More than any server has."""

ROWS_PER_SERVER: Mapping[str, int] = {
    **dict.fromkeys(("servers", "summary_index"), 1),
    **dict.fromkeys(("calendars", "summaries", "interval_counts"), BLOCKS_PER_SERVER),
    **dict.fromkeys(("bands", "intervals"), BANDS_PER_SERVER),
    "days": DAYS_PER_SERVER,
}
"""The first column of these tables is the number of a server times this, plus the number of the
row: a day, block or band."""


class FileRow(NamedTuple):
    """The row of `snapshot`."""

    as_of: int
    server_count: int
    observation_count: int
    first_observed_at: int | None
    last_observed_at: int | None
    sources: str
    repeated: int
    conflicting: int
    rejected: int
    is_open: int
    parent_root: bytes | None
    covered_from: int | None
    bucket_digests: bytes
    root: bytes
    digest: bytes


class ServerRow(NamedTuple):
    """A row of `servers`; `server` is its number in this file."""

    server: int
    id: str
    cfx_id: str
    game: Game
    hostname: str
    project_name: str
    project_description: str
    region: str
    players_current: int
    players_max: int
    tags: str
    flags: str
    chat_url: str
    icon_url: str | None
    offline: int
    first_seen_at: int
    updated_at: int
    current_is_fallback: int
    first_seen_is_fallback: int
    updated_is_fallback: int
    source_id: str | None
    completed: str
    observation_count: int
    first_observed_at: int | None
    last_observed_at: int | None
    days: bytes
    day_digests: bytes
    blocks: bytes
    block_digests: bytes
    band_count: int
    bands: bytes
    band_digests: bytes
    player_sum: bytes
    cumulative: bytes
    last_players: int | None
    usual_interval: int | None
    covered: int | None
    summary_digest: bytes

    @property
    def length(self) -> int:
        """The approximate length of its texts and blobs, in characters and bytes."""
        texts = len(self.hostname) + len(self.project_name) + len(self.project_description)
        lists = len(self.tags) + len(self.flags) + len(self.completed)
        lists += len(self.chat_url) + len(self.icon_url or "") + len(self.source_id or "")
        days = len(self.days) + len(self.day_digests) + len(self.blocks) + len(self.block_digests)
        return (
            texts + lists + days + len(self.bands) + len(self.band_digests) + len(self.cumulative)
        )

    @property
    def title(self) -> str:
        """How messages name the server; an identifier that no build accepts is not shown."""
        return format_server(self.id)

    def get_identifier(self, by: Namespace) -> str:
        """Return the server's identifier in a namespace."""
        return self.id if by == "id" else self.cfx_id


def format_server(server_id: str) -> str:
    """Return how messages name a server; an identifier that no build accepts is not shown."""
    return f"server {server_id}" if re.fullmatch(IDENTIFIER_PATTERN, server_id) else "a server"


class Bucket(NamedTuple):
    """A row of `directory`; `bucket` is its key."""

    bucket: int
    entries: bytes
    servers: bytes


class Day(NamedTuple):
    """A row of `days`; `server_day` is its key."""

    server_day: int
    observation_count: int
    times: bytes
    players: bytes
    players_before: int | None
    players_after: int | None
    prefix_count: int
    prefix_sum: bytes
    cumulative: bytes


class SummaryIndex(NamedTuple):
    """A row of `summary_index`; `server` is its key."""

    server: int
    blocks: bytes
    digests: bytes
    count_digests: bytes
    band_count: int
    bands: bytes
    band_digests: bytes
    longest_usual: int


class Summaries(NamedTuple):
    """A row of `summaries`; `server_block` is its key."""

    server_block: int
    day_count: int
    days: bytes
    observation_counts: bytes
    player_sums: bytes
    first_players: bytes
    last_players: bytes
    peaks: bytes
    lowests: bytes
    first_times: bytes
    last_times: bytes
    first_peak_times: bytes
    last_peak_times: bytes
    first_lowest_times: bytes
    last_lowest_times: bytes
    weighted_sums: bytes
    long_count: int | None
    long_ends: bytes
    long_intervals: bytes
    long_players: bytes


class IntervalCounts(NamedTuple):
    """A row of `interval_counts`; `server_block` is its key."""

    server_block: int
    before: bytes
    counts: bytes


def _list_kinds(row_type: type[tuple[Any, ...]]) -> frozenset[tuple[type, ...]]:
    """Return all combinations of types that the annotations of a row allow."""
    return frozenset(product(*map(_list_types, row_type.__annotations__.values())))


def _list_types(annotation: Any) -> tuple[type, ...]:
    return (str,) if annotation is Game else get_args(annotation) or (annotation,)


# Computed once: comparing a row with its annotations would take three times as long.
KINDS: Mapping[str, frozenset[tuple[type, ...]]] = {
    # Without the digest, which covers the other columns.
    "snapshot": frozenset(kinds[:-1] for kinds in _list_kinds(FileRow)),
    "directory": _list_kinds(Bucket),
    "servers": _list_kinds(ServerRow),
    "calendars": frozenset({(int, bytes, bytes)}),
    "bands": frozenset({(int, int, bytes)}),
    "days": _list_kinds(Day),
    "summary_index": _list_kinds(SummaryIndex),
    "summaries": _list_kinds(Summaries),
    "interval_counts": _list_kinds(IntervalCounts),
    "intervals": frozenset({(int, int, bytes)}),
}
"""The types that the columns of each table may have: a forged file may hold any."""
