"""Make rows of the current format from those of an old one.

The old formats did not record everything. Their builds always had a servers file and completed no
fields, so is_open is 0, source_id is NULL and completed is empty. A first or last time is taken for
a fallback if it is the value that a fallback has.
"""

import re
from collections.abc import Sequence
from typing import get_args

from srvstat.contract.identifiers import IDENTIFIER_PATTERN
from srvstat.contract.responses import Game
from srvstat.contract.wire import MAX_SAFE_INTEGER
from srvstat.snapshot.format.derive import DerivedColumns, find_observed_span
from srvstat.snapshot.format.digest import digest_row
from srvstat.snapshot.format.rows import FileRow, ServerRow
from srvstat.snapshot.old_formats.file import OldFile
from srvstat.snapshot.read.decoding import read_detail
from srvstat.snapshot.read.header import FILE_ROW, SnapshotHeader

_RECORD = ServerRow._fields[1:18]
"""The columns of a server's record, which all formats have: id to current_is_fallback."""

_COUNTS = ("server_count", "observation_count", "first_observed_at", "last_observed_at")


def build_server_row(old: OldFile, number: int, derived: DerivedColumns) -> ServerRow:
    """Return the row of the server with a number: its place in the order of ids, from 1.

    Raises SnapshotError for values that no build wrote.
    """
    record, as_of = old.servers[number - 1], old.row["as_of"]
    first, last = derived.first_observed_at, derived.last_observed_at
    row = ServerRow(
        server=number,
        **{name: record[name] for name in _RECORD},
        first_seen_is_fallback=int(record["first_seen_at"] == (as_of if first is None else first)),
        updated_is_fallback=int(record["updated_at"] == (as_of if last is None else last)),
        source_id=None,
        completed="[]",
        **derived._asdict(),
    )
    with old.convert_decode_errors(row.title):
        _check_record(row, is_bundle=old.is_bundle)
    return row


def _check_record(row: ServerRow, *, is_bundle: bool) -> None:
    """Check values that no digest covers in the first formats.

    Raises ValueError and TypeError for values that no build wrote.
    """
    read_detail(row)
    digest_row("servers", row)
    last_players = row.last_players or 0
    is_valid = (
        all(re.fullmatch(IDENTIFIER_PATTERN, name) for name in (row.id, row.cfx_id))
        and row.game in get_args(Game)
        and {row.offline, row.current_is_fallback} <= {0, 1}
        and min(row.players_current, row.players_max) >= 0
        and max(row.players_current, row.players_max) <= MAX_SAFE_INTEGER
        # A bundle can lack the observation that the fallback came from.
        and (is_bundle or not row.current_is_fallback or row.players_current == last_players)
    )
    if not is_valid:
        raise ValueError("not the record of a server")


def build_file_row(old: OldFile, rows: Sequence[ServerRow]) -> FileRow:
    """Return the row of the file, without its digests.

    Raises SnapshotError for values that no build wrote.
    """
    first, last = find_observed_span(rows)
    row = FileRow(
        as_of=old.row["as_of"],
        server_count=len(rows),
        observation_count=sum(row.observation_count for row in rows),
        first_observed_at=first,
        last_observed_at=last,
        sources=old.row["sources"],
        repeated=old.row["repeated"],
        conflicting=old.row["conflicting"],
        rejected=old.row["rejected"],
        is_open=0,
        parent_root=old.row.get("parent_root"),
        covered_from=old.row.get("covered_from"),
        bucket_digests=b"",
        root=b"",
        digest=b"",
    )
    SnapshotHeader(old.path, row).read_totals()
    is_equal = all(getattr(row, name) == old.row[name] for name in _COUNTS)
    if not is_equal or min(row.repeated, row.conflicting, row.rejected) < 0:
        raise old.build_damage_error(FILE_ROW)
    return row
