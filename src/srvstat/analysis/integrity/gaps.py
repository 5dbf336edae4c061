"""The rule gaps: observations that are missing. They say nothing about whether a server was up."""

from srvstat.analysis.integrity.series import Series, choose_result
from srvstat.documents.document import GapPart
from srvstat.documents.integrity import GapsEvidence, GapsRule, GapsThreshold
from srvstat.stats import find_gaps

_MIN_OBSERVATIONS = 10
_PERCENT = 90
_MAX_SHOWN = 3
_LASTS = 3
"""The usual intervals that an observation lasts at most, as in the coverage of other documents."""
_THRESHOLD = GapsThreshold(coverage=_PERCENT / 100)
_CAUSES = (
    "The collector was down, or could not reach the server. Gaps are never treated as downtime.",
    "The collector stopped observing the server.",
    "Observations were deleted, or were not imported.",
)


def check_gaps(series: Series) -> GapsRule:
    """Look for a low coverage, from the first observation to the end of the window."""
    count, interval = len(series.instants), series.usual_interval
    reason = evidence = None
    is_suspect = False
    if count < _MIN_OBSERVATIONS or interval is None:
        reason = f"needs {_MIN_OBSERVATIONS} observations, has {count:,}"
    else:
        end = series.window.end
        gaps = find_gaps([*series.instants, end], interval)
        # In half milliseconds, because the usual interval can have a half.
        length = 2 * (end - series.instants[0])
        longest = _LASTS * int(2 * interval)
        covered = length - sum(max(2 * (last - first) - longest, 0) for first, last in gaps)
        evidence = GapsEvidence(
            coverage=covered / length,
            gap_count=len(gaps),
            longest=tuple(GapPart(from_=first, to=last) for first, last in gaps[:_MAX_SHOWN]),
        )
        is_suspect = 100 * covered < _PERCENT * length
    return GapsRule(
        result=choose_result(reason, is_suspect=is_suspect),
        reason=reason,
        evidence=evidence,
        threshold=_THRESHOLD,
        innocent_causes=_CAUSES,
    )
