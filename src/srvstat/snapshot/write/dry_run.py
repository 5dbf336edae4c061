"""Find out what a build would do with its sources, without writing a snapshot."""

import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import pairwise
from statistics import median_low

from srvstat.contract.errors import OutputError
from srvstat.documents.snapshot import DroppedRows, DryRun, UnderstoodRow
from srvstat.snapshot.write.ingest import Intake, Progress
from srvstat.snapshot.write.processes import SecondProcess
from srvstat.snapshot.write.reasons import Reason, find_remedy, list_reasons
from srvstat.snapshot.write.rejects import Rejects
from srvstat.snapshot.write.roster import read_roster
from srvstat.snapshot.write.rules import RejectLimit, find_refusal
from srvstat.snapshot.write.store import count_repeats
from srvstat.sources.batch import Batch
from srvstat.sources.observations import check_sources
from srvstat.sources.server_records import GAMES, count_completed
from srvstat.sources.source import Source, check_stdin_once

_MAX_ROWS = 6
_MAX_EXAMPLES = 2

# The reason of a conflict ends with the count that is kept.
_KEPT_COUNT = re.compile(r"( has) [0-9]+$")


@dataclass(slots=True)
class _Findings:
    """What is known of the observations by server, once they are sorted."""

    kept: int = 0
    repeated: int = 0
    observed: list[str] = field(default_factory=list)
    instants: list[int] = field(default_factory=list)
    intervals: Counter[int] = field(default_factory=Counter)


def run_dry(  # noqa: PLR0913 - each is an option of the command
    *,
    servers_source: Source | None,
    observation_sources: Sequence[Source],
    uses_slugs: bool = False,
    game: str | None = None,
    as_of: int | None = None,
    max_rejected: RejectLimit | None = None,
    progress: Progress = lambda _step, _bytes, _rows: None,
) -> DryRun:
    """Return what a build would do. The parameters are those of `build`.

    A missing game is no error here.

    Raises SourceError, UsageError, and OutputError if temporary space runs out.
    """
    check_stdin_once(
        source.name for source in (servers_source, *observation_sources) if source is not None
    )
    check_sources([*([] if servers_source is None else [servers_source]), *observation_sources])
    warnings: list[str] = []
    roster = read_roster(
        servers_source, uses_slugs=uses_slugs, game=game or GAMES[0], warn=warnings.append
    )
    try:
        # A database without a name is a temporary file of SQLite.
        with closing(sqlite3.connect("")) as connection, SecondProcess() as second:
            intake = _WatchedIntake(connection, roster, observation_sources, as_of, second)
            intake.read(progress, strict=False)
            findings = _sort_observations(intake, progress)
            reasons = list_reasons(intake.rejects, intake.skipped, intake.first_skipped)
            first_reject, examples = _collect_examples(intake.rejects)
            excess = find_refusal(intake, max_rejected, first_reject)
    except sqlite3.Error as error:
        raise OutputError(f"SQLite's temporary files: {error}") from None
    completed = count_completed(map(roster.get_record, findings.observed))
    needs_game = game is None and (roster.is_open or completed.get("game"))
    first, last = min(findings.instants, default=None), max(findings.instants, default=None)
    return DryRun(
        rows=tuple(map(intake.describe_row, intake.first_rows)),
        read=intake.rows,
        kept=findings.kept,
        repeated=findings.repeated,
        conflicting=intake.rejects.conflicting,
        rejected=intake.rejects.malformed,
        servers=len(findings.observed),
        withheld=len(roster.withheld),
        completed=completed,
        first_observed_at=first,
        last_observed_at=last,
        intervals=findings.intervals.most_common(),
        dropped=_group_reasons(reasons, examples),
        warnings=(*warnings, *intake.warnings),
        needs_game=bool(needs_game),
        refusal=excess and excess.reason,
        max_rejected=excess and excess.max_rejected,
    )


class _WatchedIntake(Intake):
    """An intake that remembers the first rows."""

    first_rows: Sequence[tuple[str, int, int]] = ()

    def take_batch(self, number: int, batch: Batch) -> None:
        """Take a batch, and note its first rows unless there are earlier ones."""
        if not self.first_rows:
            rows = nsmallest(_MAX_ROWS, range(len(batch.places)), key=batch.places.__getitem__)
            self.first_rows = [
                (batch.server_ids[row], batch.instants[row], batch.players[row]) for row in rows
            ]
        super().take_batch(number, batch)

    def describe_row(self, row: tuple[str, int, int]) -> UnderstoodRow:
        """Return a row with the id of the server that keeps it, if any."""
        name, observed_at, players = row
        server_id = None
        if self.as_of is None or observed_at <= self.as_of:
            key = self.roster[name]
            ids = (each for each, of in self.roster.server_keys.items() if of == key)
            server_id = next(ids, None)
        return UnderstoodRow(name, server_id, observed_at, players)


def _sort_observations(intake: Intake, progress: Progress) -> _Findings:
    findings = _Findings()
    for server_id, key in intake.roster.server_keys.items():
        series = intake.staging.take_series(key)
        findings.repeated += count_repeats(intake, server_id, series)
        instants = series.instants
        findings.kept += len(instants)
        if instants or not intake.roster.is_open:
            findings.observed.append(server_id)
        if instants:
            findings.instants += [instants[0], instants[-1]]
        if len(instants) > 1:
            usual = median_low(later - earlier for earlier, later in pairwise(instants))
            findings.intervals[usual] += 1
        progress("storing", 0, len(instants))
    return findings


def _collect_examples(rejects: Rejects) -> tuple[str | None, dict[str, list[tuple[str, str]]]]:
    """Return the first rejected row, and the places and texts of the first ones by reason."""
    first = None
    examples: dict[str, list[tuple[str, str]]] = {}
    for reject in rejects:
        first = first or reject.describe()
        found = examples.setdefault(_KEPT_COUNT.sub(r"\1 another count", reject.reason), [])
        if len(found) < _MAX_EXAMPLES:
            found.append((reject.source.format_place(reject.line), reject.text))
    return first, examples


def _group_reasons(
    reasons: Sequence[Reason], examples: dict[str, list[tuple[str, str]]]
) -> list[DroppedRows]:
    """Return the reasons with examples, the commonest first. All conflicts have one reason."""
    rows: Counter[tuple[str, bool]] = Counter()
    firsts: dict[str, Reason] = {}
    for reason in reasons:
        text = _KEPT_COUNT.sub(r"\1 another count", reason.text)
        rows[text, reason.is_rejected] += reason.rows
        firsts.setdefault(text, reason)
    return [
        DroppedRows(
            text,
            count,
            is_rejected,
            examples.get(text) or _build_example(firsts[text].first),
            find_remedy([firsts[text]]),
        )
        for (text, is_rejected), count in rows.most_common()
    ]


def _build_example(place: str | None) -> list[tuple[str, str]]:
    return [] if place is None else [(place, "")]
