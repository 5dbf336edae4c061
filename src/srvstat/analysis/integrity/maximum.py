"""The rule aboveMaximum: counts above the maximum that the server's record states."""

from srvstat.analysis.integrity.series import Series, choose_result
from srvstat.documents.integrity import MaximumEvidence, MaximumRule, MaximumThreshold

_THRESHOLD = MaximumThreshold(observations=1)
_CAUSES = (
    "The maximum of the record was changed after these observations.",
    "The count includes players in a queue, or of several servers.",
)


def check_maximum(series: Series) -> MaximumRule:
    """Look for counts above the maximum of the record."""
    reason = evidence = None
    above: list[int] = []
    if series.maximum <= 0:
        reason = "the record has no maximum"
    elif not series.players:
        reason = "needs 1 observation, has 0"
    else:
        observed = zip(series.instants, series.players, strict=True)
        above = [at for at, players in observed if players > series.maximum]
        evidence = MaximumEvidence(
            observations=len(above),
            maximum_players=series.maximum,
            peak_players=max(series.players),
            first_at=above[0] if above else None,
            last_at=above[-1] if above else None,
        )
    return MaximumRule(
        result=choose_result(reason, is_suspect=bool(above)),
        reason=reason,
        evidence=evidence,
        threshold=_THRESHOLD,
        innocent_causes=_CAUSES,
    )
