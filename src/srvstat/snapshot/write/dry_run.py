"""Simulate a build of some sources, and draft server records."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from srvstat.contract.errors import SourceError
from srvstat.documents.snapshot import DroppedRows, DryRun, UnderstoodRow
from srvstat.snapshot.write import refusals
from srvstat.snapshot.write.intake import Inputs, Intake, Reason, Rejects, open_temporary
from srvstat.snapshot.write.roster import read_roster
from srvstat.sources.servers import ServerRecord, count_completed
from srvstat.sources.source import Batch, check_sources, check_stdin_once

_MAX_ROWS = 6
_MAX_EXAMPLES = 2

# Matches the end of a conflict's reason: the count that is kept.
_KEPT_COUNT = re.compile(r"( has) [0-9]+$")


def run_dry(inputs: Inputs) -> DryRun:
    """Simulate a build, and return its result.

    Raises SourceError if a source is unreadable, UsageError for an invalid input, and OutputError
    if temporary space runs out.
    """
    check_stdin_once(source.name for source in inputs.sources)
    check_sources(inputs.sources)
    roster = read_roster(inputs.servers, uses_slugs=inputs.uses_slugs, game=inputs.game)
    with open_temporary() as connection:
        intake = _WatchedIntake(connection, roster, inputs)
        intake.read()
        kept, ends, intervals = _sort_observations(intake)
        reasons = refusals.list_reasons(intake)
        examples = _collect_examples(intake.rejects)
        excess = refusals.find_refusal(intake)
    completed = count_completed(map(roster.get_record, roster.server_keys))
    return DryRun(
        rows=tuple(map(intake.describe_row, intake.first_rows)),
        read=intake.rows,
        kept=kept,
        repeated=intake.repeated,
        conflicting=intake.rejects.conflicting,
        rejected=intake.rejects.malformed,
        servers=len(roster.server_keys),
        withheld=len(roster.withheld),
        completed=completed,
        first_observed_at=min(ends, default=None),
        last_observed_at=max(ends, default=None),
        intervals=intervals.most_common(),
        dropped=_group_reasons(reasons, examples),
        warnings=intake.warnings,
        unit=intake.inputs.unit,
        refusal=excess and excess.reason,
        max_rejected=excess and excess.max_rejected,
    )


class _WatchedIntake(Intake):
    """An intake that remembers the first rows."""

    first_rows: Sequence[tuple[str, int, int]] = ()

    def take_batch(self, number: int, batch: Batch) -> None:
        """Take a batch, and remember its first rows if it is the first batch."""
        if not self.first_rows:
            columns = (batch.codes, batch.instants, batch.players)
            rows = zip(*(each[:_MAX_ROWS].tolist() for each in columns), strict=True)
            self.first_rows = [(batch.names[code], *row) for code, *row in rows]
        super().take_batch(number, batch)

    def describe_row(self, row: tuple[str, int, int]) -> UnderstoodRow:
        """Return an observation with its server's id, or None as the id if it would not be kept."""
        name, observed_at, players = row
        server_id = None
        as_of = self.inputs.as_of
        if as_of is None or observed_at <= as_of:
            key = self.roster[name]
            ids = (each for each, of in self.roster.server_keys.items() if of == key)
            server_id = next(ids, None)
        return UnderstoodRow(name, server_id, observed_at, players)


def _sort_observations(intake: Intake) -> tuple[int, list[int], Counter[int]]:
    """Return the number of observations, the servers' first and last times, and their intervals.

    The intervals are the polling intervals, with the number of servers that use each.
    """
    kept, ends, intervals = 0, list[int](), Counter[int]()
    intake.name_servers()
    for server_id in intake.roster.server_keys:
        instants = intake.take_series(server_id).observations.instants
        kept += len(instants)
        if len(instants):
            ends += instants[[0, -1]].tolist()
        if len(instants) > 1:
            middle = (len(instants) - 2) // 2
            intervals[int(np.partition(np.diff(instants), middle)[middle])] += 1
        intake.inputs.progress("storing", 0, len(instants))
    return kept, ends, intervals


def _collect_examples(rejects: Rejects) -> dict[str, list[tuple[str, str]]]:
    """Return the places and texts of the first rejected rows by reason."""
    examples: dict[str, list[tuple[str, str]]] = {}
    for reject in rejects:
        found = examples.setdefault(_KEPT_COUNT.sub(r"\1 another count", reject.reason), [])
        if len(found) < _MAX_EXAMPLES:
            found.append((reject.source.format_place(reject.line), reject.text))
    return examples


def _group_reasons(
    reasons: Sequence[Reason], examples: dict[str, list[tuple[str, str]]]
) -> list[DroppedRows]:
    """Return the reasons with examples, the most frequent first. All conflicts share one reason."""
    rows: Counter[tuple[str, bool]] = Counter()
    firsts: dict[str, Reason] = {}
    for reason in reasons:
        text = _KEPT_COUNT.sub(r"\1 another count", reason.text)
        rows[text, reason.is_rejected] += reason.rows
        firsts.setdefault(text, reason)
        if reason.first:
            examples.setdefault(text, [(reason.first, "")])
    return [
        DroppedRows(
            text, count, is_rejected, examples.get(text, []), refusals.find_remedy([firsts[text]])
        )
        for (text, is_rejected), count in rows.most_common()
    ]


class ProposedRecords(NamedTuple):
    """The number of servers in some observations, their records by id, and the rejected rows.

    `reason`: the most frequent reason to reject a row, or empty if there is none.
    """

    servers: int
    records: Iterator[ServerRecord]
    rejected: int
    reason: str


def draft_records(inputs: Inputs, warn: Callable[[str], None]) -> ProposedRecords:
    """Return a record for each identifier in some observations, as a build without records does.

    Calls `warn` with one line about each source that may be cut off.

    Raises SourceError if a source can't be read or no row is usable.
    """
    check_sources(inputs.observations)
    roster = read_roster(None, uses_slugs=inputs.uses_slugs, game=inputs.game)
    with open_temporary() as connection:
        intake = Intake(connection, roster, inputs)
        intake.read()
        intake.name_servers()
        for warning in intake.warnings:
            warn(warning)
        if not roster.server_keys:
            reasons = refusals.describe_reasons(refusals.list_reasons(intake))
            raise SourceError(f"no server was found: {reasons}")
        commonest = intake.rejects.list_reasons()[:1]
    records = map(roster.get_record, sorted(roster.server_keys))
    reason = refusals.describe_reasons(commonest, rejected="") if commonest else ""
    return ProposedRecords(len(roster.server_keys), records, intake.rejects.malformed, reason)
