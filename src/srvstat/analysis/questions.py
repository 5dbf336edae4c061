"""Choose the window of an analysis, and divide it into steps of local time.

A step includes its start and excludes its end, as `date_trunc` does in SQL. The window of an
analysis excludes its start and includes its end, so its last step also includes its end: each
observation of the window is in exactly one step.

Local time is counted like Unix milliseconds: from midnight of 1970-01-01 on the local clock.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, ClassVar, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from srvstat.analysis import series
from srvstat.analysis.parameters import Parameter, check_text
from srvstat.analysis.selection import Question
from srvstat.contract import time, wire
from srvstat.contract.arrays import Doubles, Exact, Numbers, multiply, sum_groups
from srvstat.contract.errors import ParameterError, UsageError
from srvstat.contract.requests import MAX_SERVERS
from srvstat.contract.windows import BEFORE_ALL, DAY_MS, DAYS, DEFAULT_RANGE, Window
from srvstat.documents.analysis import MarkPart
from srvstat.operations.answers import check_coverage, find_whole_window
from srvstat.snapshot.read.observations import HeldFigures, WindowFigures
from srvstat.snapshot.read.snapshot import Snapshot
from srvstat.snapshot.rows import ForgedRowError

HOUR_MS = DAY_MS // 24
LONGEST_MS = 36_500 * DAY_MS
"""100 years. A longer range is a mistake and could start before year 1."""

_NO_PREVIOUS = "{range} all has no previous window; use {start} or a shorter range"
_LENGTH = re.compile(r"([1-9][0-9]{0,5})(h|d|w|mo|y)")
_LENGTHS = {"h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS, "mo": 30 * DAY_MS, "y": 365 * DAY_MS}
"""Milliseconds per unit. A day is always 24 hours."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

WEEK_HOURS = 7 * 24

_USUAL_WEEKS = 4
_MOST_DAYS = 30
"""The default number of days on each side of a date."""

_MAX_STEPS = 1_000_000
_MONDAY = 4 * DAY_MS
"""1970-01-05, the first Monday in local time."""
_THURSDAY_HOUR = 3 * 24
"""The hour of the week at which local time begins: 1970-01-01 was a Thursday."""
_SHORTEST_MONTH = 28 * DAY_MS

# In the IANA database of 2026, changes of a zone's offset are at least 3.9 days apart since 1900,
# and 6.9 days since 1970.
_BETWEEN_LOOKUPS = 2 * DAY_MS

_STEP = re.compile(r"([1-9][0-9]{0,3})([mhd])")
_UNITS = {"m": 60_000, "h": HOUR_MS, "d": DAY_MS}


def _describe_range(default: str) -> Parameter:
    return Parameter(
        "The length of the window, such as 7d, 12h, 2w, 6mo or 1y, or all. A month has 30 days, a"
        f" year 365 [default: {default}].",
        "LENGTH|all",
        completes=(*DAYS, "all"),
    )


@dataclass(frozen=True)
class WindowQuery:
    """The window options: a range, or a start and end. A date means midnight in the time zone.

    Without any of them, the window is the last `default` of the snapshot.
    """

    panel = "Window"
    default: ClassVar[str] = DEFAULT_RANGE

    range: Annotated[str | None, _describe_range(DEFAULT_RANGE)] = None
    start: Annotated[
        str | None,
        Parameter(
            "The start of the window, exclusive: a date such as 2026-02-01, a time such as"
            " 2026-02-01T12:00Z, or Unix milliseconds.",
            "TIME",
            ("--from",),
        ),
    ] = None
    end: Annotated[
        str | None,
        Parameter(
            "The end of the window, inclusive [default: the end of the snapshot]. Alias: --at.",
            "TIME",
            ("--to", "--at"),
        ),
    ] = None
    tz: Annotated[
        str, Parameter("The time zone of dates, hours and steps, such as Europe/Berlin.", "ZONE")
    ] = "UTC"


@dataclass(frozen=True)
class LongWindowQuery(WindowQuery):
    """Window options with a default of 90 days, because most integrity rules need weeks."""

    default = "90d"
    range: Annotated[str | None, _describe_range("90d")] = None


@dataclass(frozen=True)
class ComparedQuery(WindowQuery):
    """A window and its comparison window, by default the preceding window of equal length.

    The statistics of the comparison window are included only if it is requested.
    """

    versus: Annotated[
        str | None,
        Parameter(
            "Compare with another window: previous (of equal length), usual (the same hours in the"
            " four weeks before), or the window between two times.",
            "previous|usual|FROM..TO",
            completes=("previous", "usual"),
        ),
    ] = None
    around: Annotated[
        str | None,
        Parameter(
            "Compare the days from this date on with as many days before it. --range sets how many"
            " [default: as many as the snapshot has, up to 30].",
            "DATE",
        ),
    ] = None
    until_last_seen: Annotated[
        bool, Parameter("End each server's window at its last observation.")
    ] = False

    def __post_init__(self) -> None:
        others = (self.start, self.end, self.versus)
        if self.around is not None and (self.until_last_seen or any(others)):
            raise ParameterError(
                "{around} can't be combined with {start}, {end}, {versus} or {until_last_seen}"
            )
        if self.versus in {"previous", "usual"} and self.range == "all":
            raise ParameterError(_NO_PREVIOUS)


def choose_window(snapshot: Snapshot, query: WindowQuery) -> Window:
    """Return the window of a query. It starts at BEFORE_ALL if all observations count.

    A range ends at `end`, by default at the snapshot's as_of. For a bundle, all observations means
    all that it covers.

    Raises UsageError for an invalid query, and NotInBundleError if a bundle does not cover the
    window.
    """
    start, end, length = parse_query(query)
    end = snapshot.as_of if end is None else end
    if isinstance(query, ComparedQuery) and query.around is not None:
        start, end = _find_days(query, query.around, end)
    elif start is None:
        if length is None:
            return find_whole_window(snapshot, end)
        start = end - length
    elif start >= end:
        problem = "{start}: must be earlier than the end of the snapshot, {end_time}"
        raise ParameterError(problem, end_time=time.format_instant(end))
    window = Window(start, end)
    check_coverage(snapshot, window)
    return window


def parse_query(query: WindowQuery) -> tuple[int | None, int | None, int | None]:
    """Return a query's start, end and length of range, each None if not given.

    Raises UsageError if the query is invalid.
    """
    zone = find_zone(query.tz)
    if query.range is not None and query.start is not None:
        raise ParameterError(
            "{range} and {start} can't be combined; use {start} and {end}, or {range}"
        )
    start = None if query.start is None else parse_edge("start", query.start, zone)
    end = None if query.end is None else parse_edge("end", query.end, zone)
    if start is not None and end is not None and start >= end:
        raise ParameterError("{start}: must be earlier than {end}")
    if isinstance(query, ComparedQuery):
        if query.around is not None:
            _find_midnight("around", query.around, zone)
        if query.versus not in {None, "previous", "usual"}:
            _parse_versus(query.versus or "", zone)
    asked = query.default if query.range is None else query.range
    return start, end, None if asked == "all" else parse_length(asked)


def find_previous(window: Window) -> Window:
    """Return the preceding window of equal length.

    Raises UsageError for a window without a start, and for a window that is too long.
    """
    if window.start == BEFORE_ALL:
        raise ParameterError(_NO_PREVIOUS)
    if window.end - window.start > LONGEST_MS:
        raise ParameterError("the window is longer than 100 years; use a later {start}")
    return Window(2 * window.start - window.end, window.start)


def _find_days(query: ComparedQuery, day: str, as_of: int) -> Window:
    """Return the window of whole local days that begins with a day.

    Raises UsageError if the snapshot has no whole day from it on, or if the range is not a number
    of whole days.
    """
    zone = find_zone(query.tz)
    first = _find_midnight("around", day, zone)
    most = _count_days(first, as_of + 1, zone)
    if most < 1:
        raise ParameterError(
            "{around}: the snapshot has no whole day from {day} on; it ends {end_time}, so use an"
            " earlier date",
            day=day,
            end_time=time.format_instant(as_of),
        )
    days = min(most, _MOST_DAYS)
    if query.range is not None:
        length = DAY_MS // 2 if query.range == "all" else parse_length(query.range)
        days, rest = divmod(length, DAY_MS)
        if rest:
            raise ParameterError("{range}: must be whole days with {around}, such as 7d or 2w")
    return Window.from_first(first, _find_midnight("around", day, zone, days) - 1)


def _count_days(first: int, until: int, zone: ZoneInfo) -> int:
    """Return the number of local midnights in (first, until]."""
    start, end = (at + _find_offset(at, zone) for at in (first, until))
    return end // DAY_MS - start // DAY_MS


def list_compared(question: Question, query: ComparedQuery, window: Window) -> list[Window]:
    """Return the comparison windows in ascending order, or none.

    Raises UsageError if there is no such window, and NotInBundleError if a bundle does not cover
    it.
    """
    zone, versus = question.zone, query.versus
    if query.around is not None:
        days = _count_days(window.first, window.end + 1, zone)
        first = _find_midnight("around", query.around, zone, -days)
        found = [Window.from_first(first, window.start)]
    elif versus is None:
        return []
    elif versus == "previous":
        found = [find_previous(window)]
    elif versus == "usual":
        found = _list_usual(window, zone)
    else:
        found = [_parse_versus(versus, zone)]
    for one in found:
        check_coverage(question.snapshot, one)
    return found


def _parse_versus(text: str, zone: ZoneInfo) -> Window:
    """Parse a window such as 2026-02-01..2026-02-08. Raises UsageError if it is invalid."""
    start, dots, end = text.partition("..")
    if not (start and dots and end):
        raise ParameterError(
            "{versus}: {value} is not previous, usual or two times such as 2026-02-01..2026-02-08",
            value=wire.quote_value(text),
        )
    window = Window(parse_edge("versus", start, zone), parse_edge("versus", end, zone))
    if window.start >= window.end:
        raise ParameterError("{versus}: the first time must be earlier than the second")
    return window


def _list_usual(window: Window, zone: ZoneInfo) -> list[Window]:
    """Return the same local hours in the four weeks before a window of at most a week.

    If the clock changed, hours that two of the windows share count once.

    Raises UsageError if the window is longer or has no start.
    """
    find_previous(window)  # raises for a window without a start
    if window.end - window.start > 7 * DAY_MS and _go_back(window.end, 1, zone) > window.start:
        raise ParameterError("{versus} usual: the window must be at most a week; add {range} 7d")
    found: list[Window] = []
    for weeks in range(_USUAL_WEEKS, 0, -1):
        start, end = (_go_back(at, weeks, zone) for at in window)
        start = max([start, *(one.end for one in found)])
        if start < min(end, window.start):
            found.append(Window(start, min(end, window.start)))
    return found


def _go_back(at: int, weeks: int, zone: ZoneInfo) -> int:
    """Return the instant of the same local time some weeks earlier."""
    return _find_instant(at + _find_offset(at, zone) - weeks * 7 * DAY_MS, zone)


def _find_instant(local: int, zone: ZoneInfo) -> int:
    """Return the instant at which the local clock first reached, or skipped, a local time."""
    periods = _list_periods(local - _BETWEEN_LOOKUPS, local + _BETWEEN_LOOKUPS, zone)
    return int(_convert_to_instants(np.array([local]), periods, _BETWEEN_LOOKUPS)[0])


def parse_length(text: str, name: str = "range") -> int:
    """Parse a length such as 12h, 3d, 2w, 6mo or 1y, and return it in milliseconds.

    Raises UsageError, which names the field `name`, if it is invalid.
    """
    match = _LENGTH.fullmatch(text)
    length = int(match[1]) * _LENGTHS[match[2]] if match else LONGEST_MS + 1
    if length > LONGEST_MS:
        raise ParameterError(
            f"{{{name}}}: {{value}} is not a duration; use a value such as 12h, 3d, 2w, 6mo or 1y,"
            f" up to 100y{', or all' if name == 'range' else ''}",
            value=wire.quote_value(text),
        )
    return length


def find_zone(name: str) -> ZoneInfo:
    """Return a time zone of the IANA database, such as Europe/Berlin.

    Raises UsageError if there is none.
    """
    try:
        return time.load_zone(name)
    except ValueError as error:
        raise ParameterError("{tz}: {problem}", problem=str(error)) from None


def parse_edge(name: str, text: str, zone: ZoneInfo) -> int:
    """Parse the start or end of a window. Raises UsageError if it is invalid."""
    if not _DATE.fullmatch(text):
        try:
            return time.parse_shown_time(text)
        except time.InstantError as error:
            remedy = "write a date such as 2026-02-01, or 2026-02-01T12:00Z"
            problem = time.explain_instant_error(text, error, remedy)
            raise ParameterError(f"{{{name}}}: {{problem}}", problem=problem) from None
    return _find_midnight(name, text, zone)


def parse_marks(texts: Iterable[str] | None, zone: ZoneInfo) -> tuple[MarkPart, ...]:
    """Parse marks such as `2026-03-01=Update 5`, and return them in order of time.

    A time without an offset is a local time in the zone.

    Raises UsageError if a mark is invalid.
    """
    marks = []
    for text in texts or ():
        check_text("mark", text)
        moment, _, label = text.partition("=")
        if not label.strip():
            raise ParameterError(
                '{mark}: {value} has no label; give one such as 2026-03-01="Update 5"',
                value=wire.quote_value(text),
            )
        marks.append(MarkPart(_parse_moment(moment.strip(), zone), label.strip()))
    return tuple(sorted(marks, key=lambda mark: mark.at))


def _parse_moment(text: str, zone: ZoneInfo) -> int:
    """Parse a date or a time. A time without an offset is a local time in the zone."""
    try:
        return _find_instant(time.parse_instant(f"{text}Z"), zone)
    except time.InstantError:
        return parse_edge("mark", text, zone)


def _find_midnight(name: str, day: str, zone: ZoneInfo, days: int = 0) -> int:
    """Return the start of a local day, `days` after the given day.

    Raises UsageError if the day is invalid or out of range.
    """
    try:
        start = datetime.fromisoformat(day) + timedelta(days)
        at = round(start.replace(tzinfo=zone).timestamp()) * 1000
    except (ValueError, OverflowError):
        at = -1
    if at < 0 or not _DATE.fullmatch(day):
        raise ParameterError(
            f"{{{name}}}: {{value}} is not a valid date from 1970 to 9999, UTC; write one such as"
            " 2026-01-31",
            value=wire.quote_value(day),
        )
    return at


class Step(NamedTuple):
    """A step as a user names it.

    - `length`: in milliseconds, or None for a month.
    - `origin`: a local time at which a step begins. The others differ from it by multiples of
      `length`.
    """

    name: str
    length: int | None
    origin: int = 0

    @property
    def shortest(self) -> int:
        """The length of the shortest step, apart from clock changes."""
        return _SHORTEST_MONTH if self.length is None else self.length


_CALENDAR_STEPS = (Step("day", DAY_MS), Step("week", 7 * DAY_MS, _MONDAY), Step("month", None))


def parse_step(text: str) -> Step:
    """Parse a step: minutes or hours that divide 24 hours, days, a week or a month.

    Raises UsageError for any other text.
    """
    for step in _CALENDAR_STEPS:
        if step.name == text:
            return step
    text = {"hour": "1h"}.get(text, text)
    match = _STEP.fullmatch(text)
    length = int(match[1]) * _UNITS[match[2]] if match else 0
    if match and (match[2] == "d" or DAY_MS % length == 0):
        return Step(text, length)
    raise ParameterError(
        "{step}: {value} is not supported; use minutes or hours that divide 24 hours (15m, 1h, 6h),"
        " whole days (7d), or day, week, month",
        value=wire.quote_value(text),
    )


def list_step_edges(first: int, last: int, step: Step, zone: ZoneInfo) -> Numbers:
    """Return the ascending edges of the steps that contain the instants from `first` to `last`.

    A step is `[edge, next edge)`: the first edge is at most `first`, and the last edge is after
    `last`. A step begins when the local clock first reaches its start, or skips it.

    If the clock is set back by at least the length of a step, the repeated time has its own steps:
    with `1h`, a repeated hour is a second step, while with `6h` one step has seven hours. Steps of
    several days are counted from 1970-01-01.

    Raises UsageError for more than a million steps.
    """
    if (last - first) // step.shortest > _MAX_STEPS:
        raise ParameterError(
            f"{{step}}: more than {_MAX_STEPS:,} steps in the window; use a longer step or a"
            " shorter window"
        )
    # A partly repeated step is less than twice as long, and the clock may have been set back
    # shortly before it.
    margin = 2 * step.shortest + _BETWEEN_LOOKUPS
    periods = _list_periods(first - margin, last + margin, zone)
    low = min(period.start + period.offset for period in periods)
    starts = _list_local_starts(low, max(period.end + period.offset for period in periods), step)
    edges = _convert_to_instants(starts, periods, step.shortest)
    return edges[edges.searchsorted(first, "right") - 1 : edges.searchsorted(last, "right") + 1]


def subtract_days(at: int, days: int, zone: ZoneInfo) -> int:
    """Return the instant some days earlier at which the local clock shows the same time.

    If the local clock skipped that time, the result shows a later time. If that time occurred
    twice, the UTC offset exactly `days` times 24 hours earlier decides.
    """
    before = at - days * DAY_MS
    return before + _find_offset(at, zone) - _find_offset(before, zone)


def find_hours_of_week(instants: Numbers, zone: ZoneInfo) -> Numbers:
    """Return the local hours of the week, from 0 (Monday 0:00) to 167."""
    hours: Numbers = convert_to_local(instants, zone) // HOUR_MS + _THURSDAY_HOUR
    # In numpy, a quotient takes much less time than a remainder.
    return hours - hours // WEEK_HOURS * WEEK_HOURS


def convert_to_local(instants: Numbers, zone: ZoneInfo) -> Numbers:
    """Return the local times of ascending instants."""
    if not len(instants):
        return instants
    periods = _list_periods(int(instants[0]), int(instants[-1]) + 1, zone)
    ends = instants.searchsorted([period.end for period in periods])
    offsets = np.repeat([period.offset for period in periods], np.diff(ends, prepend=0))
    local: Numbers = instants + offsets
    return local


class _Period(NamedTuple):
    """An interval `[start, end)` in which local time is the instant plus `offset`."""

    start: int
    end: int
    offset: int


def _list_periods(start: int, end: int, zone: ZoneInfo) -> list[_Period]:
    """Return the periods of equal offset that cover `[start, end)`."""
    changes = [(start, _find_offset(start, zone))]
    if zone.utcoffset(None) is None:  # the offset is not constant
        first = start - start % _BETWEEN_LOOKUPS + _BETWEEN_LOOKUPS
        for before, after in pairwise([start, *range(first, end, _BETWEEN_LOOKUPS), end]):
            offset = _find_offset(after, zone)
            if offset != changes[-1][1]:
                changes.append((_find_change(before, after, offset, zone), offset))
    ends = [*(at for at, _ in changes[1:]), end]
    return [
        _Period(at, until, offset)
        for (at, offset), until in zip(changes, ends, strict=True)
        if at < until
    ]


def _find_change(before: int, after: int, offset: int, zone: ZoneInfo) -> int:
    """Return the first instant in `(before, after]` with an offset, in whole seconds."""
    seconds = range(before // 1000, after // 1000 + 1)
    position = bisect_left(seconds, 1, key=lambda at: _find_offset(at * 1000, zone) == offset)
    return 1000 * seconds[position]


@lru_cache(maxsize=10_000)
def _find_offset(at: int, zone: ZoneInfo) -> int:
    """Return local time minus UTC at an instant, in milliseconds."""
    # Local times after the year 9999 can't be represented.
    moment = datetime.fromtimestamp(min(at, time.LATEST - 2 * DAY_MS) // 1000, zone)
    return (moment.utcoffset() or timedelta()) // timedelta(milliseconds=1)


def _list_local_starts(low: int, high: int, step: Step) -> Numbers:
    """Return the local times from `low` to `high` at which steps begin."""
    if step.length is not None:
        return np.arange(low + (step.origin - low) % step.length, high + 1, step.length)
    first, last = np.array([low, high], "M8[ms]").astype("M8[M]")
    return np.arange(first, last + 1).astype("M8[ms]").astype(np.int64)


def _convert_to_instants(starts: Numbers, periods: Sequence[_Period], shortest: int) -> Numbers:
    """Return the instants at which the local clock first reaches or skips local times.

    If the clock is set back by at least `shortest`, also returns the times at which it reaches them
    again.
    """
    found = []
    before = periods[0].start + periods[0].offset
    for start, end, offset in periods:
        local = start + offset
        first = starts.searchsorted(local)
        is_repeated, is_skipped = before - local >= shortest, starts.searchsorted(before) < first
        if local < before and not is_repeated:
            first = starts.searchsorted(before)
        elif (is_repeated or is_skipped) and local not in starts[first : first + 1]:
            found.append(np.array([start]))
        found.append(starts[first : starts.searchsorted(end + offset)] - offset)
        before = end + offset
    return np.concatenate(found)


class Steps(NamedTuple):
    """The steps of a window. Step `i` is `[edges[i], edges[i + 1])`, clipped to the window.

    The first edge can be before the window, and the last edge after it. A window of all
    observations has no steps and no edges if there are no observations.
    """

    edges: Numbers
    window: Window

    @property
    def step_count(self) -> int:
        """The number of steps."""
        return max(len(self.edges) - 1, 0)

    def iter_times(self) -> Iterator[tuple[int, int]]:
        """Return the start and the end of each step, clipped to the window."""
        return pairwise(self.edges.clip(*self.window).tolist())

    def locate(self, instants: Numbers) -> Numbers:
        """Return positions, so that step `i` contains `instants[found[i] : found[i + 1]]`.

        All instants must be in the window.
        """
        found = instants.searchsorted(self.edges)
        found[:1], found[-1:] = 0, len(instants)
        return found


def divide_window(question: Question, step: Step) -> Steps:
    """Return the steps of a window.

    A window of all observations begins with the step that contains the servers' first observation.

    Raises UsageError for too many steps, and SnapshotError if data are damaged.
    """
    window = question.window
    first, end = window.first, window.end
    if window.start == BEFORE_ALL:
        first = _find_first_instant(question)
        if first > end:
            return Steps(np.array([], np.int64), window)
    # A window that ends where a step begins includes this instant in the preceding step.
    edges = list_step_edges(min(first, end - 1), end - 1, step, question.zone)
    if window.start == BEFORE_ALL:
        window = Window.from_first(int(edges[0]), end)
    return Steps(edges, window)


def _find_first_instant(question: Question) -> int:
    """Return the time of the servers' first observation, or LATEST if they have none.

    Raises SnapshotError if data are damaged.
    """
    with question.snapshot.convert_decode_errors("the servers"):
        firsts = [one.first_observed_at for one in question.servers]
        first = min((at for at in firsts if at is not None), default=time.LATEST)
        if not 0 <= first <= time.LATEST:
            raise ForgedRowError("not a time")
    return first


class StepCounts(NamedTuple):
    """The counts of a series in steps. Step `i` has the counts from `edges[i]` to `edges[i + 1]`.

    - `samples`: the number of observations in each step.
    - `present`: the maximum number of servers in one sum of each step.
    - `shares`: the share of each step's calendar length that observations cover.
    - `weights`: how long each count is held, in milliseconds, or None if all weigh the same.
    """

    players: Numbers
    edges: Numbers
    samples: Numbers
    present: Numbers
    shares: Doubles
    weights: Numbers | None = None

    def sum_players(self) -> tuple[Exact, Numbers]:
        """Return the sum and the weight of each step's counts, whose quotient is the mean."""
        if self.weights is None:
            return sum_groups(self.players, self.edges), self.samples
        totals = sum_groups(multiply(self.players, self.weights), self.edges)
        return totals, sum_groups(self.weights, self.edges)


def count_steps(
    snapshot: Snapshot, server: series.Series, figures: WindowFigures, steps: Steps
) -> StepCounts:
    """Return the counts of a window by step. Raises SnapshotError if data are damaged."""
    instants, players = figures.observations
    edges = steps.locate(instants)
    if isinstance(figures, HeldFigures) and steps.step_count:
        parts, lengths = figures.split(steps.edges)
        held = steps.locate(parts.instants)
        shares = sum_groups(lengths, held) / np.diff(steps.edges)
        present = series.count_begun(server, steps.edges[1:])
        return StepCounts(parts.players, held, np.diff(edges), present, shares, lengths)
    if isinstance(figures, series.TotalFigures):
        observed = figures.measure_observed(steps.edges)
        present = figures.count_present(edges)
    else:
        present = np.diff(edges).clip(max=1)
        lasting = series.read_lasting(snapshot, server, figures)
        usual = figures.usual_interval
        observed = series.measure_observed(lasting, usual, steps.window, steps.edges)
    shares = observed / (2 * np.diff(steps.edges))
    return StepCounts(players, edges, np.diff(edges), present, shares)


def check_server_count(count: int) -> None:
    """Check that the number of servers to draw is from 1 to MAX_SERVERS.

    Raises UsageError if it is not.
    """
    if not count:
        raise UsageError("no server given")
    if count > MAX_SERVERS:
        raise ParameterError(
            f"servers: {count:,} selected, at most {MAX_SERVERS} can be drawn; select fewer, or"
            " draw their total with {sum}"
        )


def bound_window(question: Question) -> Window:
    """Return the window. If it has no start, it starts just before the servers' first observation.

    Raises SnapshotError if data are damaged.
    """
    window = question.window
    if window.start != BEFORE_ALL:
        return window
    return Window.from_first(min(_find_first_instant(question), window.end), window.end)
