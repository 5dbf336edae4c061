"""Draft server records for the identifiers in observations."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

from srvstat.contract.arrays import Numbers
from srvstat.contract.errors import SourceError
from srvstat.snapshot.write.rejects import Rejects
from srvstat.snapshot.write.roster import REJECT_REASONS, Roster, create_open_roster
from srvstat.snapshot.write.rules import describe_reasons, list_reasons
from srvstat.sources.servers import ServerRecord
from srvstat.sources.source import Batch, Source, check_sources, read_batches


class Draft(NamedTuple):
    """The number of servers in some observations, their records by id, and the rejected rows.

    `reason` describes the commonest reason to reject a row; it is empty if there is none.
    """

    servers: int
    records: Iterator[ServerRecord]
    rejected: int
    reason: str


def draft_records(
    sources: Sequence[Source], *, uses_slugs: bool, game: str | None, warn: Callable[[str], None]
) -> Draft:
    """Return a record for each identifier in some observations, as a build without records makes.

    `warn` is called with one line about each source that may be cut off.

    Raises UsageError without a game, and SourceError if a source can't be read or no row is usable.
    """
    check_sources(sources)
    roster = create_open_roster(uses_slugs=uses_slugs, game=game)
    with closing(sqlite3.connect("")) as connection:
        rejects = Rejects(connection, sources)
        skipped: Counter[str] = Counter()
        for number, source in enumerate(sources):
            watched = replace(source, on_warning=warn, accepts_any_id=roster.accepts_any_id)
            for batch in read_batches(watched):
                rejects.add_batch(number, batch)
                skipped.update(batch.skipped)
                _look_up(roster, rejects, batch, rejects.locate(number, batch.places))
        if not roster.server_keys:
            reasons = list_reasons(rejects, skipped, {})
            raise SourceError(f"no server was found: {describe_reasons(reasons)}")
        commonest = list_reasons(rejects, {}, {})[:1]
    records = map(roster.get_record, sorted(roster.server_keys))
    reason = describe_reasons(commonest, rejected="") if commonest else ""
    return Draft(len(roster.server_keys), records, rejects.malformed, reason)


def _look_up(roster: Roster, rejects: Rejects, batch: Batch, places: Numbers) -> None:
    """Add the servers of a batch to a roster, and rows with malformed identifiers to rejects."""
    reasons = [REJECT_REASONS.get(roster[name]) for name in batch.names]
    if any(reasons):
        for code, place in zip(batch.codes.tolist(), places.tolist(), strict=True):
            if reason := reasons[code]:
                name = batch.names[code]
                rejects.add_malformed(place, reason, name, name)
