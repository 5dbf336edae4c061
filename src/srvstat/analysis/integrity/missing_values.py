"""The rule missingValues: whole numbers that are left out at regular distances."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from srvstat.analysis.integrity.series import Series, choose_result
from srvstat.documents.integrity import (
    MissingValuesEvidence,
    MissingValuesRule,
    MissingValuesThreshold,
)

_MIN_COUNTS = 200
_MIN_NUMBERS = 15
_PER_NUMBER = 5
"""The mean number of observations of each number: fewer leave numbers out by chance."""
_RARE = 20
"""One of so many counts above 0 is below the lowest usual count, and one above the highest."""
_SHARE_PERCENT = 5
_REGULAR_PERCENT = 90
_MIN_HOLES = 5
_MAX_SHOWN = 5
_THRESHOLD = MissingValuesThreshold(
    share=_SHARE_PERCENT / 100, holes=_MIN_HOLES, regular=_REGULAR_PERCENT / 100
)
_CAUSES = (
    "The source rounds its counts, or the game adds players in groups.",
    "With few observations of a large server, numbers are missing by chance.",
)


def check_missing_values(series: Series) -> MissingValuesRule:
    """Look for numbers between the usual counts that never occur, at regular distances."""
    reason = series.explain_shortage(_MIN_COUNTS)
    evidence = None
    is_suspect = False
    counts = _select_usual(series.positive) if reason is None else ()
    reason = reason or _explain_shortage(counts)
    if reason is None:
        evidence, is_suspect = _find_holes(sorted(set(counts)))
    return MissingValuesRule(
        result=choose_result(reason, is_suspect=is_suspect),
        reason=reason,
        evidence=evidence,
        threshold=_THRESHOLD,
        innocent_causes=_CAUSES,
    )


def _select_usual(counts: Sequence[int]) -> Sequence[int]:
    """Return the counts from 5 to 95 percent of ascending counts, with all equal to the ends."""
    rare = len(counts) // _RARE
    low, high = counts[rare], counts[-1 - rare]
    return counts[bisect_left(counts, low) : bisect_right(counts, high)]


def _explain_shortage(counts: Sequence[int]) -> str | None:
    numbers = counts[-1] - counts[0] + 1
    if numbers < _MIN_NUMBERS:
        return f"needs usual counts that span {_MIN_NUMBERS} numbers, has {numbers:,}"
    if len(counts) < _PER_NUMBER * numbers:
        return f"needs {_PER_NUMBER * numbers:,} usual counts, has {len(counts):,}"
    return None


def _find_holes(seen: Sequence[int]) -> tuple[MissingValuesEvidence, bool]:
    """Return the holes between ascending numbers, and whether they are suspect."""
    starts = [before + 1 for before, after in pairwise(seen) if after - before > 1]
    distances = Counter(after - before for before, after in pairwise(starts))
    spacing = regular = None
    if distances:
        spacing = max(sorted(distances), key=lambda one: distances[one] + distances[one + 1])
        regular = distances[spacing] + distances[spacing + 1]
    numbers = seen[-1] - seen[0] + 1
    missing = numbers - len(seen)
    evidence = MissingValuesEvidence(
        from_=seen[0],
        to=seen[-1],
        missing=missing,
        share=missing / numbers,
        first=tuple(islice(_iter_missing(seen), _MAX_SHOWN)),
        holes=len(starts),
        spacing=spacing,
        regular=None if regular is None else regular / (len(starts) - 1),
    )
    is_suspect = (
        100 * missing >= _SHARE_PERCENT * numbers
        and len(starts) >= _MIN_HOLES
        and 100 * (regular or 0) >= _REGULAR_PERCENT * (len(starts) - 1)
    )
    return evidence, is_suspect


def _iter_missing(seen: Sequence[int]) -> Iterator[int]:
    for before, after in pairwise(seen):
        yield from range(before + 1, after)
