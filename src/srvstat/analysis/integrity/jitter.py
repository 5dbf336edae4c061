"""The rule jitter: counts that go up and down at random, observed every few minutes."""

from collections.abc import Iterable, Sequence
from itertools import compress, islice
from operator import and_, mul, sub

from srvstat.analysis.integrity.series import Series, choose_result
from srvstat.documents.integrity import JitterEvidence, JitterRule, JitterThreshold

_MIN_PAIRS = 500
_MAX_MINUTES = 12
"""With longer intervals, most players change between two observations, which looks the same."""
_PERCENT = -30
_LARGEST = 4
"""A difference counts as at most so many times the median one: restarts must not outweigh the
rest."""
_THRESHOLD = JitterThreshold(correlation=_PERCENT / 100)
_CAUSES = (
    "The collector alternates between sources that disagree.",
    "Some queries reach only part of a network.",
    "Players stay for a few minutes only.",
)


def check_jitter(series: Series) -> JitterRule:
    """Look for successive differences that cancel each other."""
    reason, pairs, products, squares = _correlate(series)
    evidence = None
    if reason is None:
        evidence = JitterEvidence(correlation=products / squares, pairs=pairs)
    return JitterRule(
        result=choose_result(reason, is_suspect=100 * products <= _PERCENT * squares),
        reason=reason,
        evidence=evidence,
        threshold=_THRESHOLD,
        innocent_causes=_CAUSES,
    )


def _correlate(series: Series) -> tuple[str | None, int, int, int]:
    """Return why there is no correlation, or None, and the pairs, products and squares.

    The correlation is the sum of the products of successive differences over the sum of their
    squares. Counts of 0 and differences over gaps are left out, and large differences are limited.
    """
    reason = series.explain_shortage(_MIN_PAIRS)
    interval, players = series.usual_interval, series.players
    if reason is not None or interval is None:
        return reason, 0, 0, 0
    if interval > _MAX_MINUTES * 60_000:
        return f"needs a usual interval of at most {_MAX_MINUTES} minutes", 0, 0, 0
    is_used = [
        before > 0 and after > 0 and 2 * distance <= 3 * interval
        for before, after, distance in zip(
            players, islice(players, 1, None), series.distances, strict=False
        )
    ]
    pairs = sum(map(and_, is_used, islice(is_used, 1, None)))
    if pairs < _MIN_PAIRS:
        return f"needs {_MIN_PAIRS:,} pairs of successive differences, has {pairs:,}", pairs, 0, 0
    differences = map(sub, islice(players, 1, None), players)
    limited = _limit(differences, is_used)
    squares = sum(map(mul, limited, limited))
    products = sum(map(mul, limited, islice(limited, 1, None)))
    return None if squares else "the count never changes", pairs, products, squares


def _limit(differences: Iterable[int], is_used: Sequence[bool]) -> list[int]:
    """Limit differences to a multiple of their median size, at least 1; an unused one becomes 0.

    A 0 changes neither the products nor the squares.
    """
    used = list(map(mul, differences, is_used))
    sizes = sorted(map(abs, compress(used, is_used)))
    most = _LARGEST * max(sizes[len(sizes) // 2], 1)
    return [one if -most <= one <= most else most if one > 0 else -most for one in used]
