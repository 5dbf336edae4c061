"""Find unusual patterns in player counts: the document `integrity`."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from srvstat.analysis.questions import HOUR_MS, convert_to_local
from srvstat.analysis.selection import Question
from srvstat.analysis.series import Total, compute_figures, get_name
from srvstat.contract.arrays import Numbers, compute_double_medians, dot_exactly, find_ranks
from srvstat.contract.stats import find_middle_ranks
from srvstat.contract.windows import DAY_MS, Window
from srvstat.documents import integrity as parts
from srvstat.documents.document import GapPart, Part
from srvstat.snapshot.read.observations import WindowFigures, find_gaps
from srvstat.snapshot.rows import ServerRow


class _NotEvaluatedError(Exception):
    """The observations are too few or of the wrong kind; the message says what is missing."""


def _require(least: int, what: str, count: int) -> None:
    """Raise _NotEvaluatedError if the count is below `least`."""
    if count < least:
        raise _NotEvaluatedError(f"needs {least:,} {what}, has {count:,}")


@dataclass(frozen=True)
class Series(WindowFigures):
    """The observations of a window, and the facts about their server that rules need.

    - `zone`: defines the hours of the day.
    - `maximum`: from the server's record, or 0 if it has none.
    - `is_held`: whether counts are held, so that there are no polls.
    """

    zone: ZoneInfo
    maximum: int = 0
    is_held: bool = False

    @property
    def double_interval(self) -> int:
        """Twice the polling interval, which can have a half. Needs two observations."""
        return int(2 * (self.usual_interval or 0))

    def require_polls(self) -> None:
        """Raise _NotEvaluatedError if counts are held."""
        if self.is_held:
            raise _NotEvaluatedError("needs regular polls, but the snapshot was built with --hold")

    @cached_property
    def _positive(self) -> Numbers:
        return np.sort(self.observations.players[self.observations.players > 0])

    def list_positive(self, least: int, *, days: int = 0) -> Numbers:
        """Return the counts above 0 in ascending order.

        Raises _NotEvaluatedError for fewer than `least` counts, or observations over fewer days.
        """
        _require(least, "counts above 0", len(self._positive))
        if self.distances.sum() < days * DAY_MS:
            raise _NotEvaluatedError(f"needs observations from at least {days} days")
        return self._positive


class _Finding(NamedTuple):
    """The finding of a rule. `threshold` is None if it is the same for all servers."""

    evidence: Part | None
    is_suspect: bool
    threshold: Part | None = None


def check_integrity(question: Question) -> parts.Integrity:
    """Return the results of all rules for servers, in their order.

    Reads the observations of one server at a time.

    Raises SnapshotError if data are damaged.
    """
    snapshot, servers, window, zone = question
    # A window may end after the snapshot. The time in between is not a gap.
    known = Window(window.start, min(window.end, snapshot.as_of))

    def check(server: ServerRow | Total) -> tuple[parts.AnyRule, ...]:
        observations = compute_figures(snapshot, server, known).observations
        return check_series(Series(observations, known, zone, server.players_max, snapshot.is_held))

    return parts.Integrity(
        **question.describe(),
        servers=tuple(
            parts.ServerIntegrity(**get_name(server)._asdict(), rules=check(server))
            for server in servers
        ),
    )


def check_series(series: Series) -> tuple[parts.AnyRule, ...]:
    """Return the results of all rules for one server."""
    return tuple(check(series) for check in _CHECKS)


_Find = Callable[[Series], _Finding]

_CHECKS: list[Callable[[Series], parts.AnyRule]] = []
"""The rules, in document order."""


def _define_rule(
    part: Callable[..., parts.AnyRule],
    threshold: Part | None,
    *causes: str,
    needs_polls: bool = True,
) -> Callable[[_Find], _Find]:
    """Turn a function that finds evidence into a rule, with a threshold and benign causes.

    Rules that count observations, or use the time between them, need polls.
    """

    def decorate(find: _Find) -> _Find:
        def check(series: Series) -> parts.AnyRule:
            try:
                if needs_polls:
                    series.require_polls()
                found, reason = find(series), None
            except _NotEvaluatedError as error:
                found, reason = _Finding(None, is_suspect=False), str(error)
            return part(
                result="notEvaluated" if reason else "suspect" if found.is_suspect else "pass",
                reason=reason,
                evidence=found.evidence,
                threshold=found.threshold or threshold,
                innocent_causes=causes,
            )

        _CHECKS.append(check)
        return find

    return decorate


_MIN_RUN = 12
_LONGEST_HOURS = 24
"""The minimum hours of a suspect run for counts below 10; shorter for larger counts."""


@_define_rule(
    parts.FlatLineRule,
    None,
    "The collector repeated its last count.",
    "The server was full, or its queue kept it at one count.",
    "A few players stayed connected while they were away.",
    "The game fills empty slots with bots, or the source shows no lower counts.",
)
def check_flat_line(series: Series) -> _Finding:
    """Find the most suspicious run of equal counts above 0.

    This is the longest run relative to the threshold in hours for its count. Runs with at least 12
    observations come before all others; among equal runs, the first is used.
    """
    series.list_positive(100)
    instants, players = series.observations
    is_gap = 2 * series.distances > 3 * series.double_interval
    breaks = np.flatnonzero((np.diff(players) != 0) | is_gap) + 1
    starts, ends = np.append(0, breaks), np.append(breaks, len(players))
    counts, lengths = players[starts], instants[ends - 1] - instants[starts]
    # The threshold is `_LONGEST_HOURS` divided by this weight, which depends on the count.
    weights = np.array([1, 2, 4])[np.searchsorted([10, 100], counts, "right")]
    is_long = ends - starts >= _MIN_RUN
    rank = lengths * weights + is_long * 4 * instants[-1]
    run = np.argmax(np.where(counts > 0, rank, -1))
    hours = _LONGEST_HOURS // int(weights[run])
    evidence = parts.FlatLineEvidence(
        longest_run=int(ends[run] - starts[run]),
        players=int(counts[run]),
        from_=int(instants[starts[run]]),
        to=int(instants[ends[run] - 1]),
    )
    threshold = parts.FlatLineThreshold(longest_run=_MIN_RUN, hours=hours)
    return _Finding(evidence, bool(is_long[run] and lengths[run] >= hours * HOUR_MS), threshold)


_FLOOR_MIN_PLAYERS = 5
"""The lowest count that can be a floor; small servers often have 1 to 4 players."""
_FLOOR_PERCENT = 20
_FLOOR_RARE = 100
"""The floor ignores the lowest hundredth of the counts, because counts are low after a restart."""


@_define_rule(
    parts.FloorRule,
    parts.FloorThreshold(players=_FLOOR_MIN_PLAYERS, share=_FLOOR_PERCENT / 100),
    "The game counts bots as players, or fills empty slots with them.",
    "The source lists a server only if it has at least this many players.",
    "Slots are reserved, or held by a queue.",
    "A group of players is always connected.",
)
def check_floor(series: Series) -> _Finding:
    """Find the lowest usual count above 0, and the share of observations equal to it."""
    counts = series.list_positive(200, days=3)
    floor = int(counts[len(counts) // _FLOOR_RARE])
    equal = int(np.count_nonzero(counts == floor))
    return _Finding(
        parts.FloorEvidence(players=floor, share=equal / len(counts)),
        floor >= _FLOOR_MIN_PLAYERS and 100 * equal >= _FLOOR_PERCENT * len(counts),
    )


_MIN_PAIRS = 500
_MAX_MINUTES = 12
"""The maximum polling interval for this rule; over longer intervals most players change anyway."""
_JITTER_PERCENT = -30


@_define_rule(
    parts.JitterRule,
    parts.JitterThreshold(correlation=_JITTER_PERCENT / 100),
    "The collector alternates between sources that disagree.",
    "Some queries reach only part of a network.",
    "Players stay for a few minutes only.",
)
def check_jitter(series: Series) -> _Finding:
    """Correlate successive differences, excluding gaps and differences to or from 0."""
    series.list_positive(_MIN_PAIRS)
    if series.double_interval > 2 * _MAX_MINUTES * 60_000:
        raise _NotEvaluatedError(f"needs a polling interval of at most {_MAX_MINUTES} minutes")
    players = series.observations.players
    is_positive = players > 0
    is_near = 4 * series.distances <= 3 * series.double_interval
    is_used = is_positive[:-1] & is_positive[1:] & is_near
    pairs = int(np.count_nonzero(is_used[:-1] & is_used[1:]))
    _require(_MIN_PAIRS, "pairs of successive differences", pairs)
    differences = np.diff(players)
    sizes = np.sort(np.abs(differences[is_used]))
    # Restarts must not outweigh the rest.
    most = 4 * max(int(sizes[len(sizes) // 2]), 1)
    # A zero contributes nothing to the sums.
    limited = np.clip(differences, -most, most) * is_used
    squares, products = dot_exactly(limited, limited), dot_exactly(limited[:-1], limited[1:])
    if not squares:
        raise _NotEvaluatedError("the count never changes")
    evidence = parts.JitterEvidence(correlation=products / squares, pairs=pairs)
    return _Finding(evidence, 100 * products <= _JITTER_PERCENT * squares)


_MIN_NUMBERS = 15
_PER_NUMBER = 5
"""The minimum mean number of observations per number; with fewer, numbers are missing by chance."""
_MISSING_RARE = 20
"""Usual counts exclude the lowest and the highest twentieth of the counts above 0."""
_SHARE_PERCENT = 5
_REGULAR_PERCENT = 90
_MIN_HOLES = 5


@_define_rule(
    parts.MissingValuesRule,
    parts.MissingValuesThreshold(
        share=_SHARE_PERCENT / 100, holes=_MIN_HOLES, regular=_REGULAR_PERCENT / 100
    ),
    "The source rounds its counts, or the game adds players in groups.",
    "With few observations of a large server, numbers are missing by chance.",
)
def check_missing_values(series: Series) -> _Finding:
    """Find the numbers between the usual counts that never occur, and how regular they are."""
    counts = series.list_positive(200)
    rare = len(counts) // _MISSING_RARE
    low, high = int(counts[rare]), int(counts[-1 - rare])
    usual = counts[(counts >= low) & (counts <= high)]
    numbers = high - low + 1
    if numbers < _MIN_NUMBERS:
        raise _NotEvaluatedError(
            f"needs usual counts that span {_MIN_NUMBERS} numbers, has {numbers:,}"
        )
    _require(_PER_NUMBER * numbers, "usual counts", len(usual))
    missing = low + np.flatnonzero(np.bincount(usual - low) == 0)
    starts = missing[np.diff(missing, prepend=low - 1) > 1]
    distances = Counter(np.diff(starts).tolist())
    spacing = regular = None
    if distances:
        spacing = max(sorted(distances), key=lambda one: distances[one] + distances[one + 1])
        regular = distances[spacing] + distances[spacing + 1]
    evidence = parts.MissingValuesEvidence(
        from_=low,
        to=high,
        missing=len(missing),
        share=len(missing) / numbers,
        first=tuple(missing[:5].tolist()),
        holes=len(starts),
        spacing=spacing,
        regular=None if regular is None else regular / (len(starts) - 1),
    )
    is_suspect = (
        100 * len(missing) >= _SHARE_PERCENT * numbers
        and len(starts) >= _MIN_HOLES
        and 100 * (regular or 0) >= _REGULAR_PERCENT * (len(starts) - 1)
    )
    return _Finding(evidence, is_suspect)


_DAYS = 7
"""The number of days on each side: a whole week, so that weekends do not matter."""
_PER_DAY = 8
"""The minimum number of counts above 0 for a day to be used."""
_ADDED = 5
"""Players added to both medians, so that small servers need a larger change."""
_RATIO = 3


@_define_rule(
    parts.StepChangeRule,
    parts.StepChangeThreshold(ratio=_RATIO),
    "The game or the server was updated, advertised or reset.",
    "A streamer played there, or an event took place.",
    "Servers were merged or split, or the collector counts something else.",
)
def check_step_change(series: Series) -> _Finding:
    """Find the two successive weeks with the most different medians."""
    instants, players = series.observations
    is_positive = players > 0
    days = instants[is_positive] // DAY_MS
    first = int(days[0]) if len(days) else 0
    counts, doubles = compute_double_medians(days - first, players[is_positive])
    days = np.flatnonzero(counts >= _PER_DAY)
    _require(2 * _DAYS, f"days with {_PER_DAY} counts above 0", len(days))
    weeks = np.lib.stride_tricks.sliding_window_view(doubles[days], _DAYS)
    medians = np.sort(weeks, axis=1)[:, _DAYS // 2].tolist()
    splits = list(zip(medians[:-_DAYS], medians[_DAYS:], strict=True))
    ratios = [Fraction(max(split) + 2 * _ADDED, min(split) + 2 * _ADDED) for split in splits]
    ratio = max(ratios)
    at = ratios.index(ratio)
    before, after = splits[at]
    evidence = parts.StepChangeEvidence(
        at=(first + int(days[at + _DAYS])) * DAY_MS,
        median_before=before / 2,
        median_after=after / 2,
        ratio=ratio.numerator / ratio.denominator,
    )
    return _Finding(evidence, ratio >= _RATIO)


_HOURS = 24
_PER_HOUR = 5
"""The minimum number of observations for each hour of the day."""
_CYCLE_MIN_PLAYERS = 5
"""The minimum typical players. Below this, a difference of one player hides a cycle."""
_CYCLE_PERCENT = 10


@_define_rule(
    parts.DailyCycleRule,
    parts.DailyCycleThreshold(share=_CYCLE_PERCENT / 100),
    "The players live all around the world.",
    "The server is always full, or most of its players are always connected.",
    "The collector repeated its counts.",
    "The game fills empty slots with bots, or the source shows no lower counts.",
)
def check_daily_cycle(series: Series) -> _Finding:
    """Find the hours of the day with the lowest and the highest median."""
    series.list_positive(_HOURS * _PER_HOUR, days=7)
    instants, players = series.observations
    hours = convert_to_local(instants, series.zone) // HOUR_MS % _HOURS
    counts, medians = compute_double_medians(hours, players)
    if len(counts) < _HOURS or counts.min() < _PER_HOUR:
        raise _NotEvaluatedError(f"needs {_PER_HOUR} observations in each hour of the day")
    # These are twice the medians, and four times their median.
    low, high = int(medians.min()), int(medians.max())
    typical = sum(find_ranks(medians, *find_middle_ranks(_HOURS)))
    if typical < 4 * _CYCLE_MIN_PLAYERS:
        raise _NotEvaluatedError(f"needs a median of at least {_CYCLE_MIN_PLAYERS} players")
    evidence = parts.DailyCycleEvidence(
        lowest_players=low / 2,
        lowest_hour=int(medians.argmin()),
        highest_players=high / 2,
        highest_hour=int(medians.argmax()),
        typical_players=typical / 4,
        share=2 * (high - low) / typical,
    )
    return _Finding(evidence, 100 * 2 * (high - low) <= _CYCLE_PERCENT * typical)


@_define_rule(
    parts.MaximumRule,
    parts.MaximumThreshold(observations=1),
    "The maximum of the record was changed after these observations.",
    "The count includes players in a queue, or of several servers.",
    needs_polls=False,
)
def check_maximum(series: Series) -> _Finding:
    """Find the counts above the maximum in the record."""
    if series.maximum <= 0:
        raise _NotEvaluatedError("the server has no player limit in its metadata")
    _require(1, "observation", series.count)
    instants, players = series.observations
    above = instants[players > series.maximum].tolist()
    evidence = parts.MaximumEvidence(
        observations=len(above),
        maximum_players=series.maximum,
        peak_players=int(players.max()),
        first_at=above[0] if above else None,
        last_at=above[-1] if above else None,
    )
    return _Finding(evidence, bool(above))


_GAPS_PERCENT = 90


@_define_rule(
    parts.GapsRule,
    parts.GapsThreshold(coverage=_GAPS_PERCENT / 100),
    "The collector was down, or could not reach the server. Gaps are never treated as downtime.",
    "The collector stopped observing the server.",
    "Observations were deleted, or were not imported.",
)
def check_gaps(series: Series) -> _Finding:
    """Compute the coverage from the first observation to the end of the window."""
    _require(10, "observations", series.count)
    edges = np.append(series.observations.instants, series.window.end)
    covered, length = int(series.durations.sum()), 2 * int(edges[-1] - edges[0])
    gaps = find_gaps(edges, series.usual_interval or 0)
    evidence = parts.GapsEvidence(
        coverage=covered / length,
        gap_count=len(gaps),
        longest=tuple(GapPart(from_=first, to=last) for first, last in gaps[:3]),
    )
    return _Finding(evidence, 100 * covered < _GAPS_PERCENT * length)
