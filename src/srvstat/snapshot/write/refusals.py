"""Explain why rows were not kept, refuse builds that lost too many, and write the rejects."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import partial
from typing import BinaryIO, NamedTuple

from srvstat.contract import wire
from srvstat.contract.errors import SourceError
from srvstat.contract.time import NO_TIME_ZONE, NOT_MILLISECONDS
from srvstat.files.paths import convert_write_errors
from srvstat.files.writing import Stream, atomic_write, is_stream, open_stream
from srvstat.snapshot.rows import ServerRow
from srvstat.snapshot.write.intake import AFTER_AS_OF, Inputs, Intake, Reason, Rejects
from srvstat.snapshot.write.roster import MALFORMED_REASON, NOT_PUBLISHABLE, SKIP_REASONS, Roster
from srvstat.sources import values
from srvstat.sources.json import OTHER_KEYS

_MAX_LISTED = 3
"""The maximum number of reasons shown."""


_ZONE_REMEDY = "add --time-zone UTC if the times are in UTC"

_REMEDIES_OF_VALUES = (
    (
        values.COUNT_RULE,
        r"([0-9]{1,15}(\.0*)?|-?|nan?|n/a|null|none|\\n)",
        "add --columns id=serverId,at=observedAt,players=players to read such values",
    ),
    (values.COUNT_RULE, r"[0-9]+(\.[0-9]{3})+", "add --thousands . if a point separates thousands"),
    (values.COUNT_RULE, r"[0-9]+(,[0-9]{3})+", "add --thousands , if a comma separates thousands"),
    (values.COUNT_RULE, r"[0-9]+\.[0-9]+", "add --round to round fractional counts"),
    (NOT_MILLISECONDS, "[0-9]{4}-[0-9]{2}-[0-9]{2}", _ZONE_REMEDY),
    (
        "observedAt: ",
        "[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}.*",
        "add --time-format day-first or month-first",
    ),
)
"""Remedies by a part of the reason and the form of the malformed value."""

_REMEDIES = {
    values.LOOKS_LIKE_SECONDS: "add --time-unit s if the times are in seconds",
    values.BEFORE_2001: "set their unit with --time-unit s, ms or us",
    values.LOOKS_LIKE_MILLISECONDS: "use --time-unit ms if the times are in milliseconds",
    NO_TIME_ZONE: _ZONE_REMEDY,
    MALFORMED_REASON: "add --slug-ids to convert the identifiers",
    OTHER_KEYS: "name other keys with --columns id=KEY,at=KEY,players=KEY",
    SKIP_REASONS[NOT_PUBLISHABLE]: "the servers file marks them as not public",
    AFTER_AS_OF: "use a later --at, or omit it",
}
"""Remedies by a part of the reason, for any other value."""


def list_reasons(intake: Intake) -> list[Reason]:
    """Return the reasons why rows were rejected or skipped, the most frequent first."""
    reasons = intake.rejects.list_reasons()
    for text, count in (+intake.skipped).items():
        place = intake.first_skipped.get(text)
        first = None if place is None else intake.rejects.format_place(place)
        reasons.append(Reason(text, count, first, is_rejected=False))
    return sorted(reasons, key=lambda reason: (-reason.rows, reason.text))


def find_remedy(reasons: Iterable[Reason]) -> str | None:
    """Return the remedy for the most frequent reason with a remedy, or None."""
    return next(_iter_remedies(reasons), None)


def _iter_remedies(reasons: Iterable[Reason]) -> Iterator[str]:
    for reason in reasons:
        value = (reason.value or "").strip()
        for part, form, remedy in (
            *_REMEDIES_OF_VALUES,
            *((part, ".*", remedy) for part, remedy in _REMEDIES.items()),
        ):
            if part in reason.text and re.fullmatch(form, value, re.IGNORECASE | re.DOTALL):
                yield remedy
                break


def describe_reasons(reasons: Sequence[Reason], rejected: str = "rejected, ") -> str:
    """Describe the most frequent reasons with the first row of each, and the remedies.

    The remedies come last. `rejected` precedes the reason of a rejected row.
    """
    if not reasons:
        return "the files have no rows"
    listed = reasons[:_MAX_LISTED]
    parts = [_describe_reason(reason, rejected) for reason in listed]
    if others := reasons[_MAX_LISTED:]:
        rows = sum(reason.rows for reason in others)
        what = "another reason" if len(others) == 1 else f"{len(others):,} other reasons"
        parts.append(f"{rows:,} for {what}")
    parts += dict.fromkeys(_iter_remedies(listed))
    return "; ".join(parts)


def _describe_reason(reason: Reason, rejected: str) -> str:
    what = f"{rejected}{reason.text}" if reason.is_rejected else reason.text
    if not reason.first:
        return f"{reason.rows:,} {what}"
    value = "" if reason.value is None else f": {wire.quote_value(reason.value)}"
    return f"{reason.rows:,} {what} (first: {reason.first}{value})"


_TOLERATED_ROWS = 10
_TOLERATED_SHARE = Fraction(1, 100)
"""The default rejection limit per source: rows and share."""


class RowsRejectedError(SourceError):
    """All rows were read, but too few of them are usable."""


class Excess(NamedTuple):
    """The reason for a refusal, and a limit that would accept the rows, if no limit was given."""

    reason: str
    max_rejected: str | None = None


def find_refusal(intake: Intake) -> Excess | None:
    """Return the reason why too many rows were rejected, or None if there are not too many.

    A given limit applies to all sources together, in place of the default limit per source.
    """
    rejects, limit = intake.rejects, intake.inputs.max_rejected
    if limit is not None:
        if not limit.is_exceeded(rejects.malformed, intake.rows):
            return None
        counts = f"{rejects.malformed:,} of {intake.rows:,} rows rejected"
        first = rejects.describe_first() if rejects.malformed else None
        found = first and f"; first: {first}"
        return Excess(f"{counts}, more than --max-rejected {limit.text}{found or ''}")
    shares = {
        number: Fraction(rejected, intake.rows_of[number] or 1)
        for number, rejected in sorted(rejects.malformed_of.items())
        if rejected > _TOLERATED_ROWS
    }
    lost = [number for number, share in shares.items() if share > _TOLERATED_SHARE]
    if not lost:
        return None
    worst = max(lost, key=shares.__getitem__)
    title, rejected = intake.inputs.observations[worst].title, rejects.malformed_of[worst]
    others = f" (and too many of {len(lost) - 1:,} more)" if len(lost) > 1 else ""
    reasons = describe_reasons(rejects.list_reasons(worst), rejected="")
    # A given limit applies to all sources together, whose share is at most the highest share of a
    # source.
    admitted = f"{_round_up(shares[worst])}%"
    return Excess(
        f"{title}: {rejected:,} of {intake.rows_of[worst]:,} rows rejected{others}: {reasons};"
        f" add --max-rejected {admitted} to keep the other rows",
        admitted,
    )


def _round_up(share: Fraction) -> int:
    """Round a share up to a whole percentage, above 10% to a multiple of 5."""
    step = 1 if share <= Fraction(1, 10) else 5
    return step * math.ceil(100 * share / step)


def check_servers(inputs: Inputs, roster: Roster) -> None:
    """Raise SourceError if no server is public, unless empty snapshots are allowed."""
    if inputs.servers is None or roster.server_keys or inputs.allow_empty:
        return
    what = "no public server" if roster.withheld else "no server records"
    raise SourceError(
        f"{inputs.servers.title}: {what}, so every response would be SERVER_NOT_FOUND;"
        " --allow-empty builds it anyway"
    )


def check_rows(intake: Intake, last: int | None) -> int:
    """Check the rows of a build, and return the snapshot's as-of time in Unix milliseconds.

    `last`: the time of the last observation, or None if there is none.

    Raises RowsRejectedError if no observation was kept or too many rows were rejected.
    """
    as_of, allow_empty = intake.inputs.as_of, intake.inputs.allow_empty
    as_of = last if as_of is None else as_of
    if as_of is None or (last is None and not allow_empty):
        remedy = "; an empty snapshot needs --at TIME" if allow_empty else ""
        raise RowsRejectedError(f"{_describe_no_observation(intake)}{remedy}")
    _check_rejected(intake)
    return as_of


def check_update(intake: Intake, servers: Sequence[ServerRow], kept: int) -> None:
    """Check the rows of an update and the servers that would remain.

    Raises RowsRejectedError if there are observations but each was rejected or skipped, if too many
    rows were rejected, or if no server would remain.
    """
    if intake.inputs.observations and not kept + intake.repeated:
        raise RowsRejectedError(_describe_no_observation(intake))
    _check_rejected(intake)
    if not servers:
        raise RowsRejectedError(
            "no public server would be left, so every response would be SERVER_NOT_FOUND"
        )


def _describe_no_observation(intake: Intake) -> str:
    parts = [describe_reasons(list_reasons(intake)), *intake.roster.describe_unknown()]
    return f"no observations kept: {'; '.join(parts)}"


def _check_rejected(intake: Intake) -> None:
    if excess := find_refusal(intake):
        raise RowsRejectedError(excess.reason)


WriteRejects = Callable[[Rejects], None]
"""Writes the rejects to their file, if any. Raises OutputError if this fails."""


def discard_rejects(_rejects: Rejects) -> None:
    """Write no rejects."""


def _write_rejects(path: str, file: BinaryIO | Stream, rejects: Rejects) -> None:
    with convert_write_errors(path):
        for source, line, reason, text in rejects:
            fields = {"file": source.title, "line": line, "reason": reason, "text": text}
            file.write(wire.encode(fields) + b"\n")
        if not isinstance(file, Stream):
            # A full disk must stop the build before its output exists.
            file.flush()


@contextmanager
def open_rejects(path: str | None) -> Iterator[WriteRejects]:
    """Open the rejects file. If `path` is None, rejects are discarded.

    A stream is appended to. A file is replaced at the end of the block, even if the block raises
    RowsRejectedError, because the rejects then show why the build was refused.
    """
    if path is None:
        yield discard_rejects
        return
    if is_stream(path):
        with open_stream(path) as stream:
            yield partial(_write_rejects, path, stream)
        return
    refusal = None
    with atomic_write(path, overwrite=True) as draft:
        with convert_write_errors(path):
            file = open(draft, "wb")  # noqa: SIM115 - closed below
        try:
            yield partial(_write_rejects, path, file)
        except RowsRejectedError as error:
            refusal = error
        finally:
            # Write errors were already reported, unless the build failed for another reason.
            with suppress(OSError):
                file.close()
    if refusal:
        raise refusal
