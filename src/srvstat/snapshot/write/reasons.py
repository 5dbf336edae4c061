"""Explain why rows were not kept: the reasons, the first row of each, and what helps."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from srvstat.contract import wire
from srvstat.contract.instants import NO_TIME_ZONE, NOT_MILLISECONDS
from srvstat.documents.snapshot import Remedy
from srvstat.snapshot.write.ingest import AFTER_AS_OF
from srvstat.snapshot.write.rejects import Rejects
from srvstat.snapshot.write.roster import MALFORMED_REASON, NOT_PUBLISHABLE, SKIP_REASONS
from srvstat.sources.batch import RowError
from srvstat.sources.mapping import NO_ZONE, ColumnMapping
from srvstat.sources.ndjson_observations import AS_INTEGER, OTHER_KEYS
from srvstat.sources.registry import KINDS
from srvstat.sources.server_records import SlugError, make_slug
from srvstat.sources.source import Source
from srvstat.sources.sql import quote_identifier
from srvstat.sources.values import (
    BEFORE_2001,
    DIGITS_ONLY,
    LOOKS_LIKE_MILLISECONDS,
    LOOKS_LIKE_SECONDS,
    ValueParser,
)

_MAX_LISTED = 3
"""More reasons would hide the commonest one."""


class Reason(NamedTuple):
    """A reason why rows were rejected or skipped.

    `rows` is their number, and `first` is the source and the line of the first of them; it is None
    if the source does not tell. `value` is the malformed value of that row, and `column` its
    column; the value is the text of the row, and the column empty, if the row as a whole is
    malformed. The value is None if it is not known. `kind` is the kind of that row's source.
    """

    text: str
    rows: int
    first: str | None
    is_rejected: bool
    value: str | None = None
    column: str = ""
    kind: str | None = None


_ZONE_REMEDY = Remedy(("--time-zone", "UTC"), "add --time-zone UTC if the times are in UTC")

_REMEDIES = (
    (
        LOOKS_LIKE_SECONDS,
        Remedy(("--time-unit", "s"), "add --time-unit s if the times are in seconds"),
    ),
    (
        BEFORE_2001,
        Remedy(None, "declare the unit of such times with --time-unit s or --time-unit ms"),
    ),
    (
        LOOKS_LIKE_MILLISECONDS,
        Remedy(
            ("--time-unit", "ms"), "give --time-unit ms instead if the times are in milliseconds"
        ),
    ),
    (NO_TIME_ZONE, _ZONE_REMEDY),
    (NO_ZONE, _ZONE_REMEDY),
    (
        MALFORMED_REASON,
        Remedy(("--ids", "slug"), "add --ids slug to convert the identifiers"),
    ),
    (OTHER_KEYS, Remedy(None, "name other keys with --columns id=KEY,at=KEY,players=KEY")),
    (
        SKIP_REASONS[NOT_PUBLISHABLE],
        Remedy(None, "the servers file says that these servers are not publishable"),
    ),
    (AFTER_AS_OF, Remedy(None, "give a later time, or leave it out to use all observations")),
)
"""What helps, by a part of the reason's text."""

_OTHER_FORMS = Remedy(
    None, "add --columns id=serverId,at=observedAt,players=players to read such values"
)

_COUNT_REMEDIES = (
    (
        re.compile(r"[1-9][0-9]{0,2}\.000"),
        "remove the separators of thousands",
        "replace({}, '.', '')",
    ),
    (
        re.compile(r"[0-9]{1,3}(,[0-9]{3})+"),
        "remove the separators of thousands",
        "replace({}, ',', '')",
    ),
    (
        re.compile(r"[0-9]+\.[0-9]+"),
        "round the counts to whole numbers",
        "round({})",
    ),
)
"""What helps against counts that no option reads, by their form: in the source, and in SQL."""

_PROMQL = "use round(…) in the PromQL query"

_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")


def list_reasons(
    rejects: Rejects, skipped: Mapping[str, int], first_skipped: Mapping[str, int]
) -> list[Reason]:
    """Return the reasons why rows were rejected or skipped, the commonest first.

    `skipped` has the number of rows and `first_skipped` the place of the first one by reason.
    """
    rejected = _list_rejected(rejects)
    others = [
        Reason(
            text,
            count,
            rejects.format_place(first_skipped[text]) if text in first_skipped else None,
            is_rejected=False,
        )
        for text, count in skipped.items()
        if count
    ]
    return sort_reasons([*rejected, *others])


def list_malformed(rejects: Rejects, source: int) -> list[Reason]:
    """Return the reasons to call rows of a source malformed, the commonest first."""
    return sort_reasons(_list_rejected(rejects, source))


def _list_rejected(rejects: Rejects, source: int | None = None) -> list[Reason]:
    return [
        Reason(
            each.reason,
            each.rows,
            rejects.format_place(each.first),
            is_rejected=True,
            value=each.value,
            column=find_column(each.source, each.reason, each.column),
            kind=each.source.kind,
        )
        for each in rejects.count_reasons(source)
    ]


def find_column(source: Source, reason: str, column: str | None) -> str:
    """Return the column of a malformed value: the given one, or that of the reason's field."""
    if column is not None:
        return column
    mapping, field = source.mapping, reason.partition(":")[0]
    names = {"serverId": mapping.id, "observedAt": mapping.at, "players": mapping.players}
    return names.get(field, field)


def sort_reasons(reasons: Iterable[Reason]) -> list[Reason]:
    """Return reasons in order, the commonest first."""
    return sorted(reasons, key=lambda reason: (-reason.rows, reason.text))


def find_remedy(reasons: Iterable[Reason]) -> Remedy | None:
    """Return what helps against the commonest reason that has a remedy; None without one."""
    return next(_iter_remedies(reasons), None)


def _iter_remedies(reasons: Iterable[Reason]) -> Iterator[Remedy]:
    for reason in reasons:
        remedy = reason.value is not None and _find_remedy_of_value(reason, reason.value.strip())
        if remedy:
            yield remedy
            continue
        for part, remedy in _REMEDIES:
            if part in reason.text:
                yield remedy
                break


def _find_remedy_of_value(reason: Reason, value: str) -> Remedy | None:
    """Return what helps against a malformed value; None if that depends on the reason only."""
    if reason.text.startswith("players: "):
        return _find_remedy_of_count(reason, value)
    if reason.text == f"observedAt: {NOT_MILLISECONDS}" and _DATE.fullmatch(value):
        return _ZONE_REMEDY
    if reason.text == MALFORMED_REASON and value:
        try:
            make_slug(value)
        except SlugError as error:
            return Remedy(None, str(error))
    return None


def _find_remedy_of_count(reason: Reason, value: str) -> Remedy | None:
    if reason.text.endswith((DIGITS_ONLY, AS_INTEGER)) and _is_count(value):
        return _OTHER_FORMS
    for form, text, pattern in _COUNT_REMEDIES:
        if form.fullmatch(value):
            if reason.kind == "prometheus":
                return Remedy(None, _PROMQL)
            if reason.kind is not None and KINDS[reason.kind].is_fixed:
                return Remedy(None, text)
            function = pattern.format(quote_identifier(reason.column))
            return Remedy(None, f"{text}, or use --query with {function}")
    return None


def _is_count(value: str) -> bool:
    """Return whether a value is a count, or none, in a form that a mapping reads."""
    try:
        ValueParser(ColumnMapping()).parse_count(value)
    except RowError:
        return False
    return True


def describe_reasons(reasons: Sequence[Reason], rejected: str = "rejected, ") -> str:
    """Return the commonest reasons with the first row of each, and what helps, for an error.

    What helps against each of them follows all of them. `rejected` stands before the reason of a
    rejected row.
    """
    if not reasons:
        return "there are no rows; check the names of the observation files"
    listed = reasons[:_MAX_LISTED]
    parts = [_describe_reason(reason, rejected) for reason in listed]
    if others := reasons[_MAX_LISTED:]:
        rows = sum(reason.rows for reason in others)
        what = "another reason" if len(others) == 1 else f"{len(others):,} other reasons"
        parts.append(f"{rows:,} for {what}")
    parts += dict.fromkeys(remedy.text for remedy in _iter_remedies(listed))
    return "; ".join(parts)


def _describe_reason(reason: Reason, rejected: str) -> str:
    what = f"{rejected}{reason.text}" if reason.is_rejected else reason.text
    if not reason.first:
        return f"{reason.rows:,} {what}"
    place = f"{reason.first}, {reason.column}" if reason.column else reason.first
    value = f": {wire.quote_value(reason.value)}" if reason.column or reason.value else ""
    return f"{reason.rows:,} {what} (first: {place}{value})"
