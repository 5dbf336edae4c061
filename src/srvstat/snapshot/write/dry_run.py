"""Find out what a build would do with its sources, and which options and records it needs."""

import os
import re
import shlex
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from srvstat.contract.errors import OutputError, SourceError
from srvstat.contract.responses import GAMES
from srvstat.contract.time import NOT_MILLISECONDS
from srvstat.documents.snapshot import DroppedRows, DryRun, UnderstoodRow
from srvstat.files.reading import is_url
from srvstat.snapshot.write import refusals
from srvstat.snapshot.write.intake import Inputs, Intake, Reason, Rejects
from srvstat.snapshot.write.roster import read_roster
from srvstat.sources.json import OTHER_KEYS
from srvstat.sources.mapping import COLUMNS, STRICT, MappingOptions, Proposal, propose_label
from srvstat.sources.registry import KINDS, TEXT_KINDS
from srvstat.sources.servers import ServerRecord, count_completed
from srvstat.sources.source import Batch, Source, check_sources, check_stdin_once, propose_columns
from srvstat.sources.trackers import LabelError
from srvstat.sources.values import COUNT_RULE, LOOKS_LIKE_THOUSANDS, NOT_AN_INSTANT

_MAX_ROWS = 6
_MAX_EXAMPLES = 2

# The reason of a conflict ends with the count that is kept.
_KEPT_COUNT = re.compile(r"( has) [0-9]+$")


@dataclass(slots=True)
class _Findings:
    """What is known of the observations by server, once they are sorted."""

    kept: int = 0
    observed: list[str] = field(default_factory=list)
    instants: list[int] = field(default_factory=list)
    intervals: Counter[int] = field(default_factory=Counter)


def run_dry(inputs: Inputs) -> DryRun:
    """Return what a build would do. A missing game is no error here.

    Raises SourceError, UsageError, and OutputError if temporary space runs out.
    """
    check_stdin_once(source.name for source in inputs.sources)
    check_sources(inputs.sources)
    roster = read_roster(inputs.servers, uses_slugs=inputs.uses_slugs, game=inputs.game or GAMES[0])
    try:
        # A database without a name is a temporary file of SQLite.
        with closing(sqlite3.connect("")) as connection:
            intake = _WatchedIntake(connection, roster, inputs)
            intake.read()
            findings = _sort_observations(intake)
            reasons = refusals.list_reasons(intake)
            examples = _collect_examples(intake.rejects)
            excess = refusals.find_refusal(intake)
    except sqlite3.Error as error:  # pragma: no cover - a test limits another process
        raise OutputError(f"SQLite's temporary files: {error}") from None
    completed = count_completed(map(roster.get_record, findings.observed))
    needs_game = inputs.game is None and (roster.is_open or completed.get("game"))
    return DryRun(
        rows=tuple(map(intake.describe_row, intake.first_rows)),
        read=intake.rows,
        kept=findings.kept,
        repeated=intake.repeated,
        conflicting=intake.rejects.conflicting,
        rejected=intake.rejects.malformed,
        servers=len(findings.observed),
        withheld=len(roster.withheld),
        completed=completed,
        first_observed_at=min(findings.instants, default=None),
        last_observed_at=max(findings.instants, default=None),
        intervals=findings.intervals.most_common(),
        dropped=_group_reasons(reasons, examples),
        warnings=intake.warnings,
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
            columns = (batch.codes, batch.instants, batch.players)
            rows = zip(*(each[:_MAX_ROWS].tolist() for each in columns), strict=True)
            self.first_rows = [(batch.names[code], *row) for code, *row in rows]
        super().take_batch(number, batch)

    def describe_row(self, row: tuple[str, int, int]) -> UnderstoodRow:
        """Return a row with the id of the server that keeps it, if any."""
        name, observed_at, players = row
        server_id = None
        as_of = self.inputs.as_of
        if as_of is None or observed_at <= as_of:
            key = self.roster[name]
            ids = (each for each, of in self.roster.server_keys.items() if of == key)
            server_id = next(ids, None)
        return UnderstoodRow(name, server_id, observed_at, players)


def _sort_observations(intake: Intake) -> _Findings:
    findings = _Findings()
    for server_id in intake.roster.server_keys:
        instants = intake.take_series(server_id).observations.instants
        findings.kept += len(instants)
        if len(instants) or not intake.roster.is_open:
            findings.observed.append(server_id)
        if len(instants):
            findings.instants += instants[[0, -1]].tolist()
        if len(instants) > 1:
            middle = (len(instants) - 2) // 2
            findings.intervals[int(np.partition(np.diff(instants), middle)[middle])] += 1
        intake.inputs.progress("storing", 0, len(instants))
    return findings


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
    """Return the reasons with examples, the commonest first. All conflicts have one reason."""
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


_STRICT_COLUMNS = {key: getattr(STRICT, key) for key in COLUMNS}

_STRICT_REASONS = {
    f"observedAt: {NOT_AN_INSTANT}": f"observedAt: {NOT_MILLISECONDS}",
    f"players: {LOOKS_LIKE_THOUSANDS}": f"players: {COUNT_RULE}",
}
"""How the strict forms begin to call what a mapping calls by other words."""

_MAX_CONFLICTS = Fraction(1, 100)
"""More conflicts show that a proposed column does not name the server, such as one of regions."""

Outcome = DryRun | SourceError
"""What a build would do; an error if its sources can't be read."""


class Change(NamedTuple):
    """Options that may help against an obstacle, and a sentence for a person."""

    obstacle: DroppedRows
    options: MappingOptions
    advice: str


@dataclass(slots=True)
class Search:
    """The outcome with the given options, and with those that were found to help.

    `notes` say why other options do not help.
    """

    given: Outcome
    given_options: MappingOptions
    found: Outcome
    options: MappingOptions
    adopted: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def search_options(
    attempt: Callable[[MappingOptions], DryRun], sources: Sequence[Source], options: MappingOptions
) -> Search:
    """Try changes of the options, one after another, as long as one helps.

    `attempt` returns what a build with some options would do, or raises SourceError. Of sources
    that can be read only once, the likeliest change is adopted without a trial.
    """
    given = _attempt(attempt, options)
    search = Search(given, options, given, options)
    if not all(
        each.is_in_memory or is_url(each.name) or os.path.isfile(each.name) for each in sources
    ):
        for change in _list_remedies(search)[:1]:
            search.adopted, search.options = [change], change.options
        return search
    tried: list[MappingOptions] = []
    changes = _list_changes(search, sources)
    while changes:
        change = changes.pop(0)
        if change.options in tried:
            continue
        tried.append(change.options)
        outcome = _attempt(attempt, change.options)
        if note := _describe_conflicts(outcome, options, change.options):
            return Search(given, options, given, options, notes=[note])
        if _is_better(outcome, search.found, change.obstacle):
            search.found, search.options = outcome, change.options
            search.adopted.append(change)
            changes = _list_changes(search, sources)
        elif isinstance(outcome, SourceError) and isinstance(search.found, DryRun):
            search.notes.append(outcome.reason)
    return search


def _attempt(attempt: Callable[[MappingOptions], DryRun], options: MappingOptions) -> Outcome:
    try:
        return attempt(options)
    except SourceError as error:
        return error


def _describe_conflicts(
    outcome: Outcome, given: MappingOptions, found: MappingOptions
) -> str | None:
    """Return that found columns are wrong ones: many rows of them conflict; None if they are not.

    Columns of our own names were not chosen.
    """
    if isinstance(outcome, SourceError) or found.columns == _STRICT_COLUMNS:
        return None
    is_given = (found.columns, found.wide) == (given.columns, given.wide)
    if is_given or outcome.conflicting <= _MAX_CONFLICTS * outcome.read:
        return None
    name, value = Proposal(found.columns, found.wide).format_option()
    return (
        f"{outcome.conflicting:,} of {outcome.read:,} rows would conflict with"
        f" {name} {shlex.quote(value)}"
    )


def _is_better(outcome: Outcome, current: Outcome, obstacle: DroppedRows) -> bool:
    """Return whether more rows are kept, or fewer meet an obstacle; they may meet the next one."""
    if isinstance(outcome, SourceError):
        return isinstance(current, SourceError) and outcome.reason != current.reason
    if isinstance(current, SourceError):
        return True
    rows = sum(
        each.rows
        for each in outcome.dropped
        if _STRICT_REASONS.get(each.reason, each.reason) in obstacle.reason
    )
    return (outcome.kept, -rows) > (current.kept, -obstacle.rows)


def _list_changes(search: Search, sources: Sequence[Source]) -> list[Change]:
    """Return the changes that may help against the obstacles, the likeliest first."""
    changes = _list_remedies(search)
    source = next((each for each in sources if not KINDS[each.kind].is_fixed), None)
    obstacle = next(iter(_list_obstacles(search.found)), None)
    if source is None or obstacle is None:
        return changes
    options = search.options
    source = replace(source, mapping=options.build_mapping())
    with suppress(SourceError):
        proposal = (
            propose_label(search.found.labels)
            if isinstance(search.found, LabelError)
            else propose_columns(source)
        )
        if proposal and (proposal.columns, proposal.wide) != (options.columns, options.wide):
            changes.append(_propose(obstacle, options, proposal))
    # An error is about a header without these columns.
    is_header_strict = isinstance(search.found, DryRun) and OTHER_KEYS not in obstacle.reason
    if source.mapping.is_strict and source.kind in TEXT_KINDS and is_header_strict:
        changes.append(_propose(obstacle, options, Proposal(_STRICT_COLUMNS, None)))
    return changes


def _list_remedies(search: Search) -> list[Change]:
    """Return the changes that the reasons of rejected rows suggest."""
    changes = []
    # Values of two forms in one column would change an option to and fro.
    known = list_missing(search.given_options, search.options)
    for obstacle in _list_obstacles(search.found):
        remedy = obstacle.remedy
        if remedy and remedy.option and remedy.option[0] not in known:
            name, value = remedy.option
            changed: dict[str, Any] = {name.strip("-").replace("-", "_"): value}
            changes.append(Change(obstacle, replace(search.options, **changed), remedy.text))
    return changes


def _list_obstacles(outcome: Outcome) -> list[DroppedRows]:
    if isinstance(outcome, SourceError):
        remedy = refusals.find_remedy([Reason(outcome.reason, 0, None, is_rejected=True)])
        return [DroppedRows(outcome.reason, 0, is_rejected=True, examples=(), remedy=remedy)]
    return [dropped for dropped in outcome.dropped if dropped.is_rejected]


def _propose(obstacle: DroppedRows, options: MappingOptions, proposal: Proposal) -> Change:
    is_strict = proposal.columns == _STRICT_COLUMNS
    purpose = "to read other forms of values" if is_strict else "if these are the columns"
    name, value = proposal.format_option()
    changed = replace(options, columns=proposal.columns, wide=proposal.wide)
    return Change(obstacle, changed, f"add {name} {shlex.quote(value)} {purpose}")


def list_missing(given: MappingOptions, found: MappingOptions) -> dict[str, str | None]:
    """Return the options of the command line that make found options of given ones, by name.

    None removes an option.
    """
    missing: dict[str, str | None] = {
        f"--{name.replace('_', '-')}": getattr(found, name)
        for name in ("time_zone", "time_unit", "ids")
        if getattr(found, name) != getattr(given, name)
    }
    if (found.columns, found.wide) != (given.columns, given.wide):
        name, value = Proposal(found.columns, found.wide).format_option()
        missing |= {"--columns": None, "--wide": None, name: value}
    return missing


class ProposedRecords(NamedTuple):
    """The number of servers in some observations, their records by id, and the rejected rows.

    `reason` describes the commonest reason to reject a row; it is empty if there is none.
    """

    servers: int
    records: Iterator[ServerRecord]
    rejected: int
    reason: str


def draft_records(inputs: Inputs, warn: Callable[[str], None]) -> ProposedRecords:
    """Return a record for each identifier in some observations, as a build without records makes.

    `warn` is called with one line about each source that may be cut off.

    Raises UsageError without a game, and SourceError if a source can't be read or no row is usable.
    """
    check_sources(inputs.observations)
    roster = read_roster(None, uses_slugs=inputs.uses_slugs, game=inputs.game)
    with closing(sqlite3.connect("")) as connection:
        intake = Intake(connection, roster, inputs)
        intake.read()
        for warning in intake.warnings:
            warn(warning)
        if not roster.server_keys:
            reasons = refusals.describe_reasons(refusals.list_reasons(intake))
            raise SourceError(f"no server was found: {reasons}")
        commonest = intake.rejects.list_reasons()[:1]
    records = map(roster.get_record, sorted(roster.server_keys))
    reason = refusals.describe_reasons(commonest, rejected="") if commonest else ""
    return ProposedRecords(len(roster.server_keys), records, intake.rejects.malformed, reason)
