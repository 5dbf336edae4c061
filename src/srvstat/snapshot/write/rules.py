"""Refuse builds whose sources are valid but whose snapshot would be of no use."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Self

from srvstat.contract.errors import SourceError
from srvstat.snapshot.format.derive import find_observed_span
from srvstat.snapshot.write.ingest import Intake
from srvstat.snapshot.write.reasons import (
    Reason,
    describe_reasons,
    list_malformed,
    list_reasons,
)
from srvstat.snapshot.write.roster import Roster
from srvstat.snapshot.write.store import Stored
from srvstat.sources.source import Source

_LIMIT = re.compile(
    r"(?P<rows>0|[1-9][0-9]{0,15})|(?P<percent>(0|[1-9][0-9]?|100)(\.[0-9]{1,15})?)%"
)

_TOLERATED_ROWS = 10
_TOLERATED_SHARE = Fraction(1, 100)
"""A source may lose so many rows, or this share of them, unless a limit is given."""


class RejectLimit(NamedTuple):
    """The maximum number or share of malformed rows that a build accepts."""

    text: str
    rows: int | None
    share: Fraction

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a limit such as `5` or `2.5%`.

        Raises ValueError.
        """
        found = _LIMIT.fullmatch(text)
        if not found:
            raise ValueError("must be a number of rows or a percentage, such as 100 or 2.5%")
        if found["rows"]:
            return cls(text, int(found["rows"]), Fraction(0))
        share = Fraction(found["percent"]) / 100
        if share > 1:
            raise ValueError("must be at most 100%")
        return cls(text, None, share)

    def is_exceeded(self, rejected: int, read: int) -> bool:
        """Check whether too many of the rows were rejected."""
        return rejected > (self.share * read if self.rows is None else self.rows)


@dataclass(frozen=True, slots=True)
class Rules:
    """The options that decide whether a build is refused."""

    strict: bool
    max_rejected: RejectLimit | None
    allow_empty: bool


class RowsRejectedError(SourceError):
    """All rows were read, but too few of them are usable."""


class SourceRows(NamedTuple):
    """The number of rows of a source, and how many of them were rejected."""

    title: str
    read: int
    rejected: int

    @property
    def share(self) -> Fraction:
        """The share of rows that were rejected."""
        return Fraction(self.rejected, self.read or 1)

    @property
    def lost_too_many(self) -> bool:
        """Whether the rejected rows are too many, if no limit is given."""
        return self.rejected > _TOLERATED_ROWS and self.share > _TOLERATED_SHARE


class Excess(NamedTuple):
    """Why too many rows were rejected, and the limit that admits them if none was given."""

    reason: str
    max_rejected: str | None = None


def find_excess(
    sources: Sequence[SourceRows],
    limit: RejectLimit | None,
    first_reject: str | None,
    list_reasons_of: Callable[[int], Sequence[Reason]],
) -> Excess | None:
    """Return why too many rows of some sources were rejected; None if they are not too many.

    A given limit is one of all sources together, and replaces the rule for each source.
    `list_reasons_of` returns why rows of a source, given by its number, were rejected.
    """
    if limit is not None:
        read = sum(each.read for each in sources)
        rejected = sum(each.rejected for each in sources)
        if not limit.is_exceeded(rejected, read):
            return None
        first = f"; first rejected or conflicting row: {first_reject}" if rejected else ""
        counts = f"{rejected:,} of {read:,} rows were rejected"
        return Excess(f"{counts}, but --max-rejected allows {limit.text}{first}")
    lost = [number for number, source in enumerate(sources) if source.lost_too_many]
    if not lost:
        return None
    worst = max(lost, key=lambda number: sources[number].share)
    title, read, rejected = sources[worst]
    others = f" (and too many of {len(lost) - 1:,} more)" if len(lost) > 1 else ""
    reasons = describe_reasons(list_reasons_of(worst), rejected="")
    # The greatest share of a source is at least the share of the rows of all.
    admitted = f"{_round_up(sources[worst].share)}%"
    return Excess(
        f"{title}: {rejected:,} of {read:,} rows were rejected{others}: {reasons};"
        f" --max-rejected {admitted} keeps the other rows",
        admitted,
    )


def _round_up(share: Fraction) -> int:
    """Return a share as a whole percentage, from 10 on as a multiple of 5."""
    step = 1 if share <= Fraction(1, 10) else 5
    return step * math.ceil(100 * share / step)


def check_servers(source: Source | None, roster: Roster, rules: Rules) -> None:
    """Raise SourceError if no server is publishable, unless empty snapshots are allowed."""
    if source is None or roster.server_keys or rules.allow_empty:
        return
    what = "no publishable server" if roster.withheld else "no server records"
    raise SourceError(
        f"{source.title}: {what}, so every answer would be SERVER_NOT_FOUND;"
        " --allow-empty builds it anyway"
    )


def check_rows(intake: Intake, stored: Stored, rules: Rules, first_reject: str | None) -> int:
    """Check the rows that were read, and return the snapshot's as of in Unix milliseconds.

    Raises RowsRejectedError if no observation was kept or too many rows were rejected.
    """
    _, last = find_observed_span(stored.derived.values())
    as_of = last if intake.as_of is None else intake.as_of
    if as_of is None or (last is None and not rules.allow_empty):
        reasons = list_reasons(intake.rejects, intake.skipped, intake.first_skipped)
        remedy = "; an empty snapshot needs --as-of TIME" if rules.allow_empty else ""
        parts = [describe_reasons(reasons), *intake.roster.describe_unknown()]
        raise RowsRejectedError(f"no observation was kept: {'; '.join(parts)}{remedy}")
    if excess := find_refusal(intake, rules.max_rejected, first_reject):
        raise RowsRejectedError(excess.reason)
    return as_of


def check_update(
    intake: Intake, stored: Stored, limit: RejectLimit | None, first_reject: str | None
) -> None:
    """Check the rows that an update read.

    Raises RowsRejectedError if none of them is an observation that was kept or is in the snapshot
    already, if too many were rejected, or if no server would be left.
    """
    if intake.sources and not stored.kept + stored.repeated:
        reasons = list_reasons(intake.rejects, intake.skipped, intake.first_skipped)
        parts = [describe_reasons(reasons), *intake.roster.describe_unknown()]
        raise RowsRejectedError(f"no observation was kept: {'; '.join(parts)}")
    if excess := find_refusal(intake, limit, first_reject):
        raise RowsRejectedError(excess.reason)
    if not stored.derived:
        raise RowsRejectedError(
            "no publishable server would be left, so every answer would be SERVER_NOT_FOUND"
        )


def find_refusal(
    intake: Intake, limit: RejectLimit | None, first_reject: str | None
) -> Excess | None:
    """Return why too many of the rows that were read were rejected, as `find_excess` does."""
    sources = [
        SourceRows(source.title, intake.rows_of[number], intake.rejects.malformed_of[number])
        for number, source in enumerate(intake.sources)
    ]
    return find_excess(
        sources, limit, first_reject, lambda number: list_malformed(intake.rejects, number)
    )
