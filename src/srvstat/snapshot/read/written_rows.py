"""Check the rows that an update wrote, without reading all others."""

from collections import Counter
from collections.abc import Mapping

from srvstat.snapshot.format.bands import read_bands
from srvstat.snapshot.format.calendar import read_calendar
from srvstat.snapshot.format.digest import has_digest
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.summary_rows import read_indexes
from srvstat.snapshot.read.verified_rows import VerifiedRows

_ROWS_AT_ONCE = 500


def count_derived(rows: VerifiedRows, server: ServerRow) -> Counter[str]:
    """Return the number of derived rows of a server by table, according to its own row.

    Raises SnapshotError; ValueError for rows that no build writes.
    """
    calendar = read_calendar(server)
    counts = Counter(
        days=calendar.count_days(),
        calendars=calendar.stored_blocks,
        bands=len(read_bands(server).list_rows()),
    )
    if server.summary_digest:
        (index,) = read_indexes(rows, [server])
        blocks = index.last_block + 1
        intervals = len(index.bands.list_rows())
        counts.update(
            summary_index=1, summaries=blocks, interval_counts=blocks, intervals=intervals
        )
    return counts


def verify_rows(rows: VerifiedRows, table: str, digests: Mapping[int, bytes]) -> None:
    """Verify rows of a table by their keys.

    Raises SnapshotError.
    """
    part = f"the table {table}"
    all_keys = list(digests)
    for at in range(0, len(all_keys), _ROWS_AT_ONCE):
        keys = all_keys[at : at + _ROWS_AT_ONCE]
        found = rows.read_by_key(table, "rowid", keys, part=part)
        for key in keys:
            if key not in found or not has_digest(table, found[key], digests[key]):
                raise rows.build_damage_error(part)
