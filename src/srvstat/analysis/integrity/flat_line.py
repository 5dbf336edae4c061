"""The rule flatLine: a long run of equal counts above 0."""

from itertools import islice

from srvstat.analysis.integrity.series import Series, choose_result
from srvstat.documents.integrity import FlatLineEvidence, FlatLineRule, FlatLineThreshold

_MIN_COUNTS = 100
_MIN_RUN = 12
_LONGEST_HOURS = 24
"""The hours of a suspect run of a count below 10; greater counts have less."""
_TENS, _HUNDREDS = 10, 100
_HOUR_MS = 3_600_000
_CAUSES = (
    "The collector repeated its last count.",
    "The server was full, or its queue kept it at one count.",
    "A few players stayed connected while they were away.",
    "The game fills empty slots with bots, or the source shows no lower counts.",
)


def check_flat_line(series: Series) -> FlatLineRule:
    """Look for a long run of equal counts above 0."""
    reason = series.explain_shortage(_MIN_COUNTS)
    evidence = threshold = None
    is_suspect = False
    if reason is None:
        evidence = _find_longest_run(series)
        hours = _LONGEST_HOURS // _get_weight(evidence.players)
        threshold = FlatLineThreshold(longest_run=_MIN_RUN, hours=hours)
        length = evidence.to - evidence.from_
        is_suspect = evidence.longest_run >= _MIN_RUN and length >= hours * _HOUR_MS
    return FlatLineRule(
        result=choose_result(reason, is_suspect=is_suspect),
        reason=reason,
        evidence=evidence,
        threshold=threshold,
        innocent_causes=_CAUSES,
    )


def _find_longest_run(series: Series) -> FlatLineEvidence:
    """Return the run with the longest time for its count; the first one of equal runs.

    Runs of enough observations come before all shorter ones. A run ends at a distance of more than
    three usual intervals. Needs a count above 0.
    """
    instants, players = series.instants, series.players
    longest = 3 * (series.usual_interval or 0)
    observed = zip(players, islice(players, 1, None), series.distances, strict=False)
    breaks = [
        at
        for at, (before, after, distance) in enumerate(observed, 1)
        if before != after or distance > longest
    ]
    runs = zip([0, *breaks], [*breaks, len(players)], strict=True)
    start, end = max(
        (run for run in runs if players[run[0]] > 0),
        key=lambda run: (
            run[1] - run[0] >= _MIN_RUN,
            (instants[run[1] - 1] - instants[run[0]]) * _get_weight(players[run[0]]),
        ),
    )
    return FlatLineEvidence(
        longest_run=end - start, players=players[start], from_=instants[start], to=instants[end - 1]
    )


def _get_weight(players: int) -> int:
    """Return into how many parts the longest hours are divided; greater counts change more."""
    if players < _TENS:
        return 1
    return 2 if players < _HUNDREDS else 4
