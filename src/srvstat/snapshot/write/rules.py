"""Refuse builds whose sources are valid but whose snapshot would be of no use."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Self

from srvstat.contract.errors import SourceError
from srvstat.contract.instants import YEAR_2001, format_instant
from srvstat.snapshot.format.derive import find_observed_span
from srvstat.snapshot.write.ingest import Intake
from srvstat.snapshot.write.reasons import describe_reasons, list_reasons
from srvstat.snapshot.write.roster import Roster
from srvstat.snapshot.write.store import Stored
from srvstat.sources.source import Source
from srvstat.sources.values import SECONDS

_LIMIT = re.compile(
    r"(?P<rows>0|[1-9][0-9]{0,15})|(?P<percent>(0|[1-9][0-9]?|100)(\.[0-9]{1,15})?)%"
)


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

    Raises RowsRejectedError if too many rows were rejected or no observation was kept.
    """
    _check_limit(intake, rules.max_rejected, first_reject)
    _, last = find_observed_span(stored.derived.values())
    as_of = last if intake.as_of is None else intake.as_of
    if as_of is not None and (last is not None or rules.allow_empty):
        return as_of
    reasons = list_reasons(intake.rejects, intake.skipped, intake.first_skipped)
    remedy = "; an empty snapshot needs --as-of TIME" if rules.allow_empty else ""
    raise RowsRejectedError(f"no observation was kept: {describe_reasons(reasons)}{remedy}")


def check_update(
    intake: Intake, stored: Stored, limit: RejectLimit | None, first_reject: str | None
) -> None:
    """Check the rows that an update read.

    Raises RowsRejectedError if too many rows were rejected, if none of them is an observation that
    was kept or is in the snapshot already, or if no server would be left.
    """
    _check_limit(intake, limit, first_reject)
    if intake.sources and not stored.kept + stored.repeated:
        reasons = list_reasons(intake.rejects, intake.skipped, intake.first_skipped)
        raise RowsRejectedError(f"no observation was kept: {describe_reasons(reasons)}")
    if not stored.derived:
        raise RowsRejectedError(
            "no publishable server would be left, so every answer would be SERVER_NOT_FOUND"
        )


def _check_limit(intake: Intake, limit: RejectLimit | None, first_reject: str | None) -> None:
    rejected = intake.rejects.malformed
    if limit is not None and limit.is_exceeded(rejected, intake.rows):
        first = f"; first rejected or conflicting row: {first_reject}" if rejected else ""
        raise RowsRejectedError(
            f"{rejected:,} of {intake.rows:,} rows were rejected, but --max-rejected allows"
            f" {limit.text}{first}"
        )


def list_warnings(intake: Intake, first: int | None, last: int | None) -> list[str]:
    """Return the warnings of the sources, and one if the observations have times of two units.

    `first` and `last` are the instants of the first and the last observation.
    """
    # There is a warning already for a source with early integers only.
    if intake.has_early_integers or first is None or last is None:
        return intake.warnings
    if first not in SECONDS or last < YEAR_2001:
        return intake.warnings
    found = f"the first observation is of {format_instant(first)}"
    return [*intake.warnings, f"{found}: some times look like seconds among milliseconds"]
