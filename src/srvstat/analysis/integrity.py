"""Find unusual patterns in player counts: the document `integrity`."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from itertools import compress, islice, pairwise
from operator import and_, mul, sub
from typing import NamedTuple, TypeVar
from zoneinfo import ZoneInfo

from srvstat.analysis.statistics import build_window_part
from srvstat.contract.instants import LATEST
from srvstat.contract.windows import DAY_MS, Window
from srvstat.documents.document import GapPart
from srvstat.documents.integrity import (
    AnyRule,
    DailyCycleEvidence,
    DailyCycleRule,
    DailyCycleThreshold,
    FlatLineEvidence,
    FlatLineRule,
    FlatLineThreshold,
    FloorEvidence,
    FloorRule,
    FloorThreshold,
    GapsEvidence,
    GapsRule,
    GapsThreshold,
    Integrity,
    JitterEvidence,
    JitterRule,
    JitterThreshold,
    MaximumEvidence,
    MaximumRule,
    MaximumThreshold,
    MissingValuesEvidence,
    MissingValuesRule,
    MissingValuesThreshold,
    Result,
    ServerIntegrity,
    StepChangeEvidence,
    StepChangeRule,
    StepChangeThreshold,
)
from srvstat.snapshot.format.days import find_day_starts
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.stats import compute_usual_interval, find_gaps

_Rule = TypeVar("_Rule")


@dataclass(frozen=True)
class Series:
    """Observations in ascending order, and the facts about their server that rules need.

    Instants are Unix milliseconds. `maximum` is that of the server's record, 0 if it has none.
    `zone` defines the hours of the day.
    """

    instants: list[int]
    players: list[int]
    window: Window
    zone: ZoneInfo
    maximum: int = 0

    @cached_property
    def distances(self) -> list[int]:
        """The distances between successive observations."""
        return list(map(sub, islice(self.instants, 1, None), self.instants))

    @cached_property
    def usual_interval(self) -> float | None:
        """The median distance between successive observations; None for fewer than two."""
        return compute_usual_interval(self.instants)

    @cached_property
    def positive(self) -> list[int]:
        """The counts above 0, in ascending order."""
        ascending = sorted(self.players)
        return ascending[bisect_left(ascending, 1) :]

    def explain_shortage(self, least: int, *, days: int = 0) -> str | None:
        """Say why there are too few counts above 0, or too few days of observations.

        Returns None if there are enough.
        """
        if len(self.positive) < least:
            return f"needs {least:,} counts above 0, has {len(self.positive):,}"
        if self.instants[-1] - self.instants[0] < days * DAY_MS:
            return f"needs observations over {days} days"
        return None


def _build_rule(  # noqa: PLR0913 - the fields of a rule
    kind: Callable[..., _Rule],
    reason: str | None,
    evidence: object,
    threshold: object,
    causes: tuple[str, ...],
    *,
    suspect: bool,
) -> _Rule:
    """Return a rule with its result; `reason` says why it was not evaluated."""
    result: Result = "suspect" if suspect else "pass"
    return kind(
        result="notEvaluated" if reason is not None else result,
        reason=reason,
        evidence=evidence,
        threshold=threshold,
        innocent_causes=causes,
    )


_FLAT_MIN_COUNTS = 100
_MIN_RUN = 12
_LONGEST_HOURS = 24
"""The hours of a suspect run of a count below 10; greater counts have less."""
_TENS, _HUNDREDS = 10, 100
_HOUR_MS = 3_600_000
_FLAT_CAUSES = (
    "The collector repeated its last count.",
    "The server was full, or its queue kept it at one count.",
    "A few players stayed connected while they were away.",
    "The game fills empty slots with bots, or the source shows no lower counts.",
)


def check_flat_line(series: Series) -> FlatLineRule:
    """Look for a long run of equal counts above 0."""
    reason = series.explain_shortage(_FLAT_MIN_COUNTS)
    evidence = threshold = None
    is_suspect = False
    if reason is None:
        evidence = _find_longest_run(series)
        hours = _LONGEST_HOURS // _get_weight(evidence.players)
        threshold = FlatLineThreshold(longest_run=_MIN_RUN, hours=hours)
        length = evidence.to - evidence.from_
        is_suspect = evidence.longest_run >= _MIN_RUN and length >= hours * _HOUR_MS
    return _build_rule(FlatLineRule, reason, evidence, threshold, _FLAT_CAUSES, suspect=is_suspect)


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


_FLOOR_MIN_COUNTS = 200
_FLOOR_MIN_DAYS = 3
_FLOOR_MIN_PLAYERS = 5
"""Small servers often have 1 to 4 players, which is no floor."""
_FLOOR_PERCENT = 20
_FLOOR_RARE = 100
"""One of so many counts above 0 may be below the floor: restarts pass through low counts."""
_FLOOR_THRESHOLD = FloorThreshold(players=_FLOOR_MIN_PLAYERS, share=_FLOOR_PERCENT / 100)
_FLOOR_CAUSES = (
    "The game counts bots as players, or fills empty slots with them.",
    "The source lists a server only if it has at least this many players.",
    "Slots are reserved, or held by a queue.",
    "A group of players is always connected.",
)


def check_floor(series: Series) -> FloorRule:
    """Look for a lowest count above 0 that many observations have."""
    reason = series.explain_shortage(_FLOOR_MIN_COUNTS, days=_FLOOR_MIN_DAYS)
    evidence = None
    is_suspect = False
    if reason is None:
        counts = series.positive
        floor = counts[len(counts) // _FLOOR_RARE]
        equal = bisect_right(counts, floor) - bisect_left(counts, floor)
        evidence = FloorEvidence(players=floor, share=equal / len(counts))
        is_suspect = floor >= _FLOOR_MIN_PLAYERS and 100 * equal >= _FLOOR_PERCENT * len(counts)
    return _build_rule(
        FloorRule, reason, evidence, _FLOOR_THRESHOLD, _FLOOR_CAUSES, suspect=is_suspect
    )


_MIN_PAIRS = 500
_MAX_MINUTES = 12
"""With longer intervals, most players change between two observations, which looks the same."""
_JITTER_PERCENT = -30
_LARGEST = 4
"""A difference counts as at most so many times the median one: restarts must not outweigh the
rest."""
_JITTER_THRESHOLD = JitterThreshold(correlation=_JITTER_PERCENT / 100)
_JITTER_CAUSES = (
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
    return _build_rule(
        JitterRule,
        reason,
        evidence,
        _JITTER_THRESHOLD,
        _JITTER_CAUSES,
        suspect=100 * products <= _JITTER_PERCENT * squares,
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


_MISSING_MIN_COUNTS = 200
_MIN_NUMBERS = 15
_PER_NUMBER = 5
"""The mean number of observations of each number: fewer leave numbers out by chance."""
_MISSING_RARE = 20
"""One of so many counts above 0 is below the lowest usual count, and one above the highest."""
_SHARE_PERCENT = 5
_REGULAR_PERCENT = 90
_MIN_HOLES = 5
_MISSING_MAX_SHOWN = 5
_MISSING_THRESHOLD = MissingValuesThreshold(
    share=_SHARE_PERCENT / 100, holes=_MIN_HOLES, regular=_REGULAR_PERCENT / 100
)
_MISSING_CAUSES = (
    "The source rounds its counts, or the game adds players in groups.",
    "With few observations of a large server, numbers are missing by chance.",
)


def check_missing_values(series: Series) -> MissingValuesRule:
    """Look for numbers between the usual counts that never occur, at regular distances."""
    reason = series.explain_shortage(_MISSING_MIN_COUNTS)
    evidence = None
    is_suspect = False
    counts = _select_usual(series.positive) if reason is None else ()
    reason = reason or _explain_few_counts(counts)
    if reason is None:
        evidence, is_suspect = _find_holes(sorted(set(counts)))
    return _build_rule(
        MissingValuesRule, reason, evidence, _MISSING_THRESHOLD, _MISSING_CAUSES, suspect=is_suspect
    )


def _select_usual(counts: Sequence[int]) -> Sequence[int]:
    """Return the counts from 5 to 95 percent of ascending counts, with all equal to the ends."""
    rare = len(counts) // _MISSING_RARE
    low, high = counts[rare], counts[-1 - rare]
    return counts[bisect_left(counts, low) : bisect_right(counts, high)]


def _explain_few_counts(counts: Sequence[int]) -> str | None:
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
        first=tuple(islice(_iter_missing(seen), _MISSING_MAX_SHOWN)),
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


_DAYS = 7
"""The days on each side: a whole week, so that weekends do not matter."""
_PER_DAY = 8
"""The fewest observations above 0 of a day that counts."""
_ADDED = 5
"""Players added to both medians, so that small servers need a greater change."""
_RATIO = 3
_CHANGE_THRESHOLD = StepChangeThreshold(ratio=_RATIO)
_CHANGE_CAUSES = (
    "The game or the server was updated, advertised or reset.",
    "A streamer played there, or an event took place.",
    "Servers were merged or split, or the collector counts something else.",
)


class _Split(NamedTuple):
    """The first midnight after a split, twice the medians on its sides, and their ratio."""

    at: int
    before: int
    after: int
    ratio: Fraction


def check_step_change(series: Series) -> StepChangeRule:
    """Look for two successive weeks with very different medians."""
    days = list(_iter_days(series))
    reason = evidence = None
    is_suspect = False
    if len(days) < 2 * _DAYS:
        reason = f"needs {2 * _DAYS} days with {_PER_DAY} counts above 0, has {len(days):,}"
    else:
        split = max(_iter_splits(days), key=lambda one: one.ratio)
        is_suspect = split.ratio >= _RATIO
        evidence = StepChangeEvidence(
            at=split.at,
            median_before=split.before / 2,
            median_after=split.after / 2,
            ratio=split.ratio.numerator / split.ratio.denominator,
        )
    return _build_rule(
        StepChangeRule, reason, evidence, _CHANGE_THRESHOLD, _CHANGE_CAUSES, suspect=is_suspect
    )


def _iter_days(series: Series) -> Iterator[tuple[int, int]]:
    """Yield the midnight (UTC) of each day that counts, and twice the median above 0."""
    instants, players = series.instants, series.players
    starts = [*find_day_starts(instants), len(instants)]
    for start, end in pairwise(starts):
        counts = sorted(count for count in players[start:end] if count > 0)
        if len(counts) >= _PER_DAY:
            double = counts[(len(counts) - 1) // 2] + counts[len(counts) // 2]
            yield instants[start] // DAY_MS * DAY_MS, double


def _iter_splits(days: Sequence[tuple[int, int]]) -> Iterator[_Split]:
    """Yield each split of the days that has a week on both sides; the medians are of the weeks."""
    for at in range(_DAYS, len(days) - _DAYS + 1):
        before, after = (
            sorted(double for _, double in days[first : first + _DAYS])[_DAYS // 2]
            for first in (at - _DAYS, at)
        )
        lesser, greater = sorted((before + 2 * _ADDED, after + 2 * _ADDED))
        yield _Split(days[at][0], before, after, Fraction(greater, lesser))


_HOURS = 24
_PER_HOUR = 5
"""The fewest observations of each hour of the day."""
_CYCLE_MIN_DAYS = 7
_CYCLE_MIN_PLAYERS = 5
"""Below this, one player more or less hides a cycle."""
_CYCLE_PERCENT = 10
_CYCLE_THRESHOLD = DailyCycleThreshold(share=_CYCLE_PERCENT / 100)
_CYCLE_CAUSES = (
    "The players live all around the world.",
    "The server is always full, or most of its players are always connected.",
    "The collector repeated its counts.",
    "The game fills empty slots with bots, or the source shows no lower counts.",
)


def check_daily_cycle(series: Series) -> DailyCycleRule:
    """Look for hours of the day with nearly the same medians."""
    reason = series.explain_shortage(_HOURS * _PER_HOUR, days=_CYCLE_MIN_DAYS)
    doubles = [] if reason else _compute_medians(series)
    reason = reason or _explain_few_hours(doubles)
    evidence = None
    is_suspect = False
    if reason is None:
        values = [double for double in doubles if double is not None]
        ascending = sorted(values)
        low, high = ascending[0], ascending[-1]
        typical = ascending[_HOURS // 2 - 1] + ascending[_HOURS // 2]
        evidence = DailyCycleEvidence(
            lowest_players=low / 2,
            lowest_hour=values.index(low),
            highest_players=high / 2,
            highest_hour=values.index(high),
            typical_players=typical / 4,
            share=2 * (high - low) / typical,
        )
        is_suspect = 100 * 2 * (high - low) <= _CYCLE_PERCENT * typical
    return _build_rule(
        DailyCycleRule, reason, evidence, _CYCLE_THRESHOLD, _CYCLE_CAUSES, suspect=is_suspect
    )


def _compute_medians(series: Series) -> list[int | None]:
    """Return twice the median of each local hour of the day; None for too few observations."""
    hours: defaultdict[int, list[int]] = defaultdict(list)
    for at, players in zip(series.instants, series.players, strict=True):
        hours[_find_hour(at, series.zone)].append(players)
    doubles: list[int | None] = []
    for hour in range(_HOURS):
        counts = sorted(hours[hour])
        is_enough = len(counts) >= _PER_HOUR
        double = counts[(len(counts) - 1) // 2] + counts[len(counts) // 2] if is_enough else None
        doubles.append(double)
    return doubles


def _find_hour(at: int, zone: ZoneInfo) -> int:
    # A local time after the year 9999 can't be represented. The day before has the same hours.
    is_last_day = at > LATEST - DAY_MS
    return datetime.fromtimestamp((at - DAY_MS if is_last_day else at) // 1000, zone).hour


def _explain_few_hours(doubles: list[int | None]) -> str | None:
    values = sorted(double for double in doubles if double is not None)
    if len(values) < _HOURS:
        return f"needs {_PER_HOUR} observations of each hour of the day"
    if values[_HOURS // 2 - 1] + values[_HOURS // 2] < 4 * _CYCLE_MIN_PLAYERS:
        return f"needs a median of {_CYCLE_MIN_PLAYERS} players"
    return None


_MAXIMUM_THRESHOLD = MaximumThreshold(observations=1)
_MAXIMUM_CAUSES = (
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
    return _build_rule(
        MaximumRule, reason, evidence, _MAXIMUM_THRESHOLD, _MAXIMUM_CAUSES, suspect=bool(above)
    )


_MIN_OBSERVATIONS = 10
_GAPS_PERCENT = 90
_GAPS_MAX_SHOWN = 3
_LASTS = 3
"""The usual intervals that an observation lasts at most, as in the coverage of other documents."""
_GAPS_THRESHOLD = GapsThreshold(coverage=_GAPS_PERCENT / 100)
_GAPS_CAUSES = (
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
            longest=tuple(GapPart(from_=first, to=last) for first, last in gaps[:_GAPS_MAX_SHOWN]),
        )
        is_suspect = 100 * covered < _GAPS_PERCENT * length
    return _build_rule(
        GapsRule, reason, evidence, _GAPS_THRESHOLD, _GAPS_CAUSES, suspect=is_suspect
    )


RULES: Sequence[Callable[[Series], AnyRule]] = (
    check_flat_line,
    check_floor,
    check_jitter,
    check_missing_values,
    check_step_change,
    check_daily_cycle,
    check_maximum,
    check_gaps,
)
"""All rules, in the order of the document."""


def check_integrity(
    snapshot: Snapshot, servers: Iterable[ServerRow], window: Window, zone: ZoneInfo
) -> Integrity:
    """Return the results of all rules for servers, in their order.

    Reads the observations of one server at a time. `zone` defines the hours of the day.

    Raises SnapshotError.
    """
    return Integrity(
        as_of=snapshot.as_of,
        root=snapshot.root,
        window=build_window_part(window),
        time_zone=zone.key,
        servers=tuple(_check_server(snapshot, server, window, zone) for server in servers),
    )


def check_series(series: Series) -> tuple[AnyRule, ...]:
    """Return the results of all rules for one server."""
    return tuple(rule(series) for rule in RULES)


def _check_server(
    snapshot: Snapshot, server: ServerRow, window: Window, zone: ZoneInfo
) -> ServerIntegrity:
    # A window may end after the snapshot. The time between is no gap.
    known = Window(window.start, min(window.end, snapshot.as_of))
    instants, players = snapshot.read_observations(server, known)
    return ServerIntegrity(
        server_id=server.id,
        cfx_id=server.cfx_id,
        hostname=server.hostname,
        rules=check_series(Series(instants, players, known, zone, server.players_max)),
    )
