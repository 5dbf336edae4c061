"""The rule floor: a count that many observations have and few go below."""

from bisect import bisect_left, bisect_right

from srvstat.analysis.integrity.series import Series, choose_result
from srvstat.documents.integrity import FloorEvidence, FloorRule, FloorThreshold

_MIN_COUNTS = 200
_MIN_DAYS = 3
_MIN_PLAYERS = 5
"""Small servers often have 1 to 4 players, which is no floor."""
_PERCENT = 20
_RARE = 100
"""One of so many counts above 0 may be below the floor: restarts pass through low counts."""
_THRESHOLD = FloorThreshold(players=_MIN_PLAYERS, share=_PERCENT / 100)
_CAUSES = (
    "The game counts bots as players, or fills empty slots with them.",
    "The source lists a server only if it has at least this many players.",
    "Slots are reserved, or held by a queue.",
    "A group of players is always connected.",
)


def check_floor(series: Series) -> FloorRule:
    """Look for a lowest count above 0 that many observations have."""
    reason = series.explain_shortage(_MIN_COUNTS, days=_MIN_DAYS)
    evidence = None
    is_suspect = False
    if reason is None:
        counts = series.positive
        floor = counts[len(counts) // _RARE]
        equal = bisect_right(counts, floor) - bisect_left(counts, floor)
        evidence = FloorEvidence(players=floor, share=equal / len(counts))
        is_suspect = floor >= _MIN_PLAYERS and 100 * equal >= _PERCENT * len(counts)
    return FloorRule(
        result=choose_result(reason, is_suspect=is_suspect),
        reason=reason,
        evidence=evidence,
        threshold=_THRESHOLD,
        innocent_causes=_CAUSES,
    )
