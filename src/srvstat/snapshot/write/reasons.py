"""Explain why rows were not kept: the reasons, the first row of each, and what helps."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from srvstat.contract.instants import NO_TIME_ZONE
from srvstat.snapshot.write.ingest import AFTER_AS_OF
from srvstat.snapshot.write.rejects import Rejects
from srvstat.snapshot.write.roster import (
    MALFORMED_REASON,
    NOT_IN_SNAPSHOT,
    NOT_LISTED,
    NOT_PUBLISHABLE,
    SKIP_REASONS,
)
from srvstat.sources.ndjson_observations import OTHER_KEYS
from srvstat.sources.values import LOOKS_LIKE_MILLISECONDS, LOOKS_LIKE_SECONDS

_MAX_LISTED = 3
"""More reasons would hide the commonest one."""


class Reason(NamedTuple):
    """A reason why rows were rejected or skipped.

    `rows` is their number, and `first` is the source and the line of the first of them; it is None
    if the source does not tell.
    """

    text: str
    rows: int
    first: str | None
    is_rejected: bool


class Remedy(NamedTuple):
    """What helps against a reason: an option and its value, or None, and a sentence."""

    option: tuple[str, str] | None
    text: str


SECONDS_REMEDY = Remedy(("--time-unit", "s"), "add --time-unit s if the times are in seconds")

_REMEDIES = (
    (LOOKS_LIKE_SECONDS, SECONDS_REMEDY),
    (
        LOOKS_LIKE_MILLISECONDS,
        Remedy(
            ("--time-unit", "ms"), "give --time-unit ms instead if the times are in milliseconds"
        ),
    ),
    (NO_TIME_ZONE, Remedy(("--time-zone", "UTC"), "add --time-zone UTC if the times are in UTC")),
    (
        MALFORMED_REASON,
        Remedy(("--ids", "slug"), "add --ids slug to convert the identifiers"),
    ),
    (OTHER_KEYS, Remedy(None, "name other keys with --columns id=KEY,at=KEY,players=KEY")),
    (
        SKIP_REASONS[NOT_LISTED],
        Remedy(
            None,
            "add the servers to the servers file, or build without one",
        ),
    ),
    (NOT_IN_SNAPSHOT, Remedy(None, "add the servers with --servers")),
    (
        SKIP_REASONS[NOT_PUBLISHABLE],
        Remedy(None, "the servers file says that these servers are not publishable"),
    ),
    (AFTER_AS_OF, Remedy(None, "give a later time, or leave it out to use all observations")),
)
"""What helps, by a part of the reason's text."""


def list_reasons(
    rejects: Rejects, skipped: Mapping[str, int], first_skipped: Mapping[str, int]
) -> list[Reason]:
    """Return the reasons why rows were rejected or skipped, the commonest first.

    `skipped` has the number of rows and `first_skipped` the place of the first one by reason.
    """
    rejected = [
        Reason(text, count, rejects.format_place(first), is_rejected=True)
        for text, count, first in rejects.count_reasons()
    ]
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
    return sorted([*rejected, *others], key=lambda reason: (-reason.rows, reason.text))


def find_remedy(reasons: Iterable[Reason]) -> Remedy | None:
    """Return what helps against the commonest reason that has a remedy; None without one."""
    for reason in reasons:
        for part, remedy in _REMEDIES:
            if part in reason.text:
                return remedy
    return None


def describe_reasons(reasons: Sequence[Reason]) -> str:
    """Return the commonest reasons with the first row of each, and what helps, for an error."""
    if not reasons:
        return "there are no rows; check the names of the observation files"
    parts = [_describe_reason(reason) for reason in reasons[:_MAX_LISTED]]
    if others := reasons[_MAX_LISTED:]:
        rows = sum(reason.rows for reason in others)
        what = "another reason" if len(others) == 1 else f"{len(others):,} other reasons"
        parts.append(f"{rows:,} for {what}")
    if remedy := find_remedy(reasons):
        parts.append(remedy.text)
    return "; ".join(parts)


def _describe_reason(reason: Reason) -> str:
    what = f"rejected, {reason.text}" if reason.is_rejected else reason.text
    first = f" (first: {reason.first})" if reason.first else ""
    return f"{reason.rows:,} {what}{first}"
