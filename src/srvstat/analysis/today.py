"""Summarize the network at the end of a snapshot: the document `today`."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from srvstat.analysis import events, questions, series, statistics
from srvstat.analysis.selection import Question
from srvstat.analysis.series import Total, carry_counts, cut_to, find_longest, is_silent
from srvstat.contract.arrays import sum_exactly
from srvstat.contract.windows import DAY_MS, Window
from srvstat.documents.analysis import EventPart
from srvstat.documents.document import LEAST_COVERAGE
from srvstat.documents.today import ChangedServer, PeakPart, Today, TotalPart
from srvstat.snapshot.blocks import Observations
from srvstat.snapshot.rows import ServerRow

_WEEKS = 4
_EVENTS_MS = 90 * DAY_MS
"""The default of `events`, so that both commands expect the same players."""
_LEAST_WEEKS = 2
_MOST_CHANGED = 5


def compute_today(question: Question) -> Today:
    """Return the summary of servers as of the snapshot's end. Ignores the window of the query.

    Raises UsageError for a total above 2^53 - 1, and SnapshotError if data are damaged.
    """
    snapshot, zone, as_of = question.snapshot, question.zone, question.snapshot.as_of
    total = Total(snapshot, [one for one in question.servers if isinstance(one, ServerRow)])
    edges = questions.list_step_edges(as_of - 3 * DAY_MS, as_of, questions.parse_step("day"), zone)
    start, end = edges[-3:-1].tolist()
    query = _Query(
        instants=[questions.subtract_days(as_of, 7 * weeks, zone) for weeks in range(_WEEKS + 1)],
        yesterday=Window.from_first(start, end - 1),
        week=Window(as_of - 7 * DAY_MS, as_of),
    )
    # Reading the observations takes most of the time.
    counts = [_read_counts(total, server, query) for server in total.servers]
    return Today(
        **question.describe("window"),
        yesterday=start,
        total=_compare_hours(counts),
        silent=tuple(_list_silent(total)),
        changed=_find_changed(total, counts, query.week),
        yesterday_peak=_find_peak(total, counts, query.yesterday),
        events=_find_events(question, total, counts, start),
    )


class _Query(NamedTuple):
    """The instants at which totals are compared, the latest first, and the windows."""

    instants: Sequence[int]
    yesterday: Window
    week: Window


class _Moment(NamedTuple):
    """The total at an instant, with the numbers of included and missing servers."""

    players: int
    present: int
    missing: int

    @property
    def is_observed(self) -> bool:
        """Whether enough of the expected servers are present."""
        expected = self.present + self.missing
        return self.present > 0 and self.present / expected >= LEAST_COVERAGE


class _Counts(NamedTuple):
    """A server's contribution to the summary.

    - `day`: its counts of yesterday, preceded by one earlier count; each lasts for `longest`.
    - `rise`: the absolute change of its weekly average. Unlike the reported change, it does not
      consider coverage.
    - `may_be_down`: whether it may have been down since yesterday, but is not silent.
    """

    moments: Sequence[_Moment]
    day: Observations
    longest: int
    rise: float
    may_be_down: bool


def _read_counts(total: Total, server: ServerRow, query: _Query) -> _Counts:
    snapshot, (instants, yesterday, week) = total.snapshot, query
    recent = series.read_recent(snapshot, server, Window(instants[-1] - 1, instants[0]))
    day, usual = carry_counts(recent, yesterday)
    longest = snapshot.as_of if snapshot.is_held else find_longest(usual)
    rise = 0.0
    before, after = (
        cut_to(one, recent).players for one in (Window(2 * week.start - week.end, week.start), week)
    )
    if len(before) and len(after):
        sums = (sum_exactly(before), len(before), sum_exactly(after), len(after))
        rise = abs(statistics.compare_averages(*sums).players)
    moments = list(_iter_moments(total, server, recent, instants))
    since = Window(yesterday.start - 2 * questions.HOUR_MS, snapshot.as_of)
    is_down = snapshot.is_held or events.may_be_down(cut_to(since, recent), since)
    is_down = is_down and not is_silent(snapshot, server)
    return _Counts(moments, day, longest, rise, is_down)


def _iter_moments(
    total: Total, server: ServerRow, recent: Observations, instants: Sequence[int]
) -> Iterator[_Moment]:
    """Yield a server's contribution to the total at each instant."""
    snapshot = total.snapshot
    first, last = total.find_expected(server) or (snapshot.as_of + 1, -1)
    if snapshot.covered_from is not None:  # a bundle lacks earlier observations
        first = snapshot.covered_from
    for at in instants:
        (times, players), usual = carry_counts(recent, Window(at - 1, at))
        longest = snapshot.as_of if snapshot.is_held else find_longest(usual)
        if at >= first and len(times) and at - int(times[-1]) <= longest:
            yield _Moment(int(players[-1]), 1, 0)
        else:
            yield _Moment(0, 0, int(first <= at <= last))


def _compare_hours(counts: Sequence[_Counts]) -> TotalPart:
    """Compare the current total with the totals at the same hour of the previous weeks."""
    nothing = [_Moment(0, 0, 0)] * (_WEEKS + 1)
    now, *before = (
        _Moment(*map(sum, zip(*moments, strict=True)))
        for moments in zip(nothing, *(one.moments for one in counts), strict=True)
    )
    weeks = [one.players for one in before if one.is_observed]
    usual = median(weeks) if len(weeks) >= _LEAST_WEEKS else None
    change = None
    if usual is not None and now.is_observed:
        change = statistics.compare_averages(int(2 * usual), 2, now.players, 1)
    return TotalPart(
        players=now.players if now.present else None,
        present_count=now.present,
        server_count=len(counts),
        same_hour_median=None if usual is None else float(usual),
        week_count=len(weeks),
        change=change,
    )


def _list_silent(total: Total) -> list[str]:
    silent = [server for server in total.servers if is_silent(total.snapshot, server)]
    silent.sort(
        key=lambda one: (one.last_observed_at is None, -(one.last_observed_at or 0), one.id)
    )
    return [server.id for server in silent]


def _find_changed(
    total: Total, counts: Sequence[_Counts], week: Window
) -> tuple[ChangedServer, ...]:
    """Return the servers whose averages changed most."""
    snapshot = total.snapshot
    earlier = statistics.find_earlier(snapshot, week)
    if not earlier:
        return ()
    ranked = zip(total.servers, counts, strict=True)
    found: list[ChangedServer] = []
    for server, one in sorted(ranked, key=lambda ranked: (-ranked[1].rise, ranked[0].id)):
        # With `hold`, averages are weighted by time, so all servers must be compared.
        if not snapshot.is_held and (not one.rise or len(found) == _MOST_CHANGED):
            break
        figures, _, change = statistics.compare_with_earlier(snapshot, server, week, earlier)
        if change and change.players and figures.mean is not None:
            found.append(ChangedServer(server.id, figures.mean, change))
    found.sort(key=lambda one: (-abs(one.change.players), one.server_id))
    return tuple(found[:_MOST_CHANGED])


def _find_peak(total: Total, counts: Sequence[_Counts], day: Window) -> PeakPart | None:
    """Return the highest total of a day, and its first instant."""
    covered_from = total.snapshot.covered_from
    if covered_from is not None and day.first < covered_from:
        return None
    parts = [one.day for one in counts]
    if total.snapshot.is_held:  # a count that is held into the day is one of its counts
        parts = [Observations(one.instants.clip(day.first), one.players) for one in parts]
    sums, _ = series.add_up(parts, [one.longest for one in counts])
    instants, players = cut_to(day, sums)
    if not len(players):
        return None
    return PeakPart(int(players.max()), int(instants[players.argmax()]))


def _find_events(
    question: Question, total: Total, counts: Sequence[_Counts], since: int
) -> tuple[EventPart, ...]:
    """Return the gaps and zeros that end after an instant, the newest first.

    Other kinds of events need many weeks of each server.
    """
    snapshot, as_of = question.snapshot, question.snapshot.as_of
    start = max(as_of - _EVENTS_MS, (snapshot.covered_from or 0) - 1)
    servers = [one for one, of_one in zip(total.servers, counts, strict=True) if of_one.may_be_down]
    options = events.EventOptions(kinds=["gap", "zeros"])
    asked = question._replace(servers=servers, window=Window(start, as_of))
    return tuple(one for one in events.find_events(asked, options) if one.to > since)
