"""Store the observations of servers: those of sources, after those of an earlier snapshot."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from srvstat.contract.time import LATEST, Window
from srvstat.snapshot.blocks import Kept, Observations, derive, join, keep_blocks
from srvstat.snapshot.read.observations import read_observations
from srvstat.snapshot.read.snapshot import SnapshotFile
from srvstat.snapshot.rows import Block, ServerRow, read_block_ends
from srvstat.snapshot.write.intake import Intake, Progress, Series
from srvstat.snapshot.write.server_rows import build_server_row, copy_derived

_ROWS_PER_REPORT = 10_000
"""Reporting the progress of each small server would take longer than storing it."""


class Stored(NamedTuple):
    """The rows of servers, and the counts of rows read.

    `first_blocks` has the number of the first block that was stored, by the id of its server.
    """

    servers: Sequence[ServerRow]
    first_blocks: Mapping[str, int]
    kept: int
    repeated: int


def store(
    put: Callable[[Block], object],
    intake: Intake,
    progress: Progress,
    old: SnapshotFile | None = None,
    before: Mapping[str, ServerRow] = MappingProxyType({}),
) -> Stored:
    """Call `put` with each block that the staged observations change, server by server.

    The observations of an old snapshot count as read before them: `before` has its servers by their
    ids. A server without a record needs an observation.

    Raises SnapshotError.
    """
    servers: list[ServerRow] = []
    first_blocks: dict[str, int] = {}
    kept = reported = repeated = 0
    for server_id, number in intake.roster.server_keys.items():
        known = before.get(server_id)
        series, added, kept_blocks = _take_series(intake, server_id, old, known)
        repeated += series.repeated
        if not (added or intake.roster.has_record(server_id)):
            continue
        row = build_server_row(intake.roster.get_record(server_id), number)
        if added:
            observations = Observations(series.instants, series.players)
            first_blocks[server_id] = len(kept_blocks.ends) if kept_blocks else 0
            row = derive(row, observations, put, kept_blocks)
        elif known:
            row = copy_derived(known, row)
        servers.append(row)
        kept += added
        if kept - reported >= _ROWS_PER_REPORT:
            progress("storing", 0, kept - reported)
            reported = kept
    return Stored(servers, first_blocks, kept, repeated)


def _take_series(
    intake: Intake, server_id: str, old: SnapshotFile | None, known: ServerRow | None
) -> tuple[Series, int, Kept | None]:
    """Return the observations of a server from the first block that changes on.

    Also returns the number of those that are new, and what to keep of the blocks before.
    """
    stored, kept = 0, None

    def read_stored(first: int) -> Observations:
        nonlocal stored, kept
        if old is None or known is None or not known.observation_count:
            return join([])
        with old.convert_decode_errors(f"the observations of {known.title}"):
            ends = read_block_ends(known)
            number = min(bisect_left(ends, first), len(ends) - 1)
            kept = keep_blocks(known, next(old.iter_blocks(known, number, has_counts=True)))
        window = Window((-1, *kept.ends)[-1], LATEST)
        found = read_observations(old, known, window)
        stored = len(found.instants)
        return found

    series = intake.take_series(server_id, read_stored)
    return series, len(series.instants) - stored, kept
