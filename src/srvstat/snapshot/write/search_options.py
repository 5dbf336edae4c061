"""Search the options that a build needs to keep the rows of its sources, for a dry run.

Each change is tried: it is proposed only if the build then keeps more rows, or rejects fewer.
"""

import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from srvstat.contract.errors import SourceError
from srvstat.contract.instants import NOT_MILLISECONDS
from srvstat.documents.snapshot import DroppedRows, DryRun
from srvstat.files.reading import is_url
from srvstat.snapshot.write.reasons import Reason, find_remedy
from srvstat.sources.batch import COUNT_RULE
from srvstat.sources.mapping import COLUMNS, STRICT, MappingOptions
from srvstat.sources.ndjson_observations import OTHER_KEYS
from srvstat.sources.prometheus import LabelError
from srvstat.sources.proposal import Proposal, propose_columns, propose_label
from srvstat.sources.registry import KINDS, TEXT_KINDS
from srvstat.sources.source import Source
from srvstat.sources.values import LOOKS_LIKE_THOUSANDS, NOT_AN_INSTANT

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
    attempt: Callable[[MappingOptions], DryRun],
    sources: Sequence[Source],
    options: MappingOptions,
) -> Search:
    """Try changes of the options, one after another, as long as one helps.

    `attempt` returns what a build with some options would do, or raises SourceError. Of sources
    that can be read only once, the likeliest change is adopted without a trial.
    """
    given = _attempt(attempt, options)
    search = Search(given, options, given, options)
    if not all(map(_can_be_read_again, sources)):
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


def _can_be_read_again(source: Source) -> bool:
    return source.is_in_memory or is_url(source.name) or os.path.isfile(source.name)


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
        proposal = _propose_columns(search.found, source)
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
        remedy = find_remedy([Reason(outcome.reason, 0, None, is_rejected=True)])
        return [DroppedRows(outcome.reason, 0, is_rejected=True, examples=(), remedy=remedy)]
    return [dropped for dropped in outcome.dropped if dropped.is_rejected]


def _propose_columns(outcome: Outcome, source: Source) -> Proposal | None:
    """Return the likeliest columns, or the label of Prometheus, if an error names labels.

    Raises SourceError.
    """
    return (
        propose_label(outcome.labels)
        if isinstance(outcome, LabelError)
        else propose_columns(source)
    )


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
