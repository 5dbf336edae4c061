"""Compute the totals of the steps of a window, and find its long intervals, from summaries."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, repeat
from operator import sub

from srvstat.contract.ranges import DAY_MS, Window
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.format.summaries import has_all_long_intervals
from srvstat.snapshot.format.summary_blocks import read_long_intervals
from srvstat.snapshot.read.figures import (
    StepTotals,
    build_empty_steps,
    check_total,
    compute_observed_steps,
)
from srvstat.snapshot.read.summary_rows import read_summaries
from srvstat.snapshot.read.verified_rows import VerifiedRows
from srvstat.snapshot.read.window_parts import WindowParts, divide_window

ReadObservations = Callable[[ServerRow, Window], tuple[list[int], list[int]]]


def compute_steps(
    rows: VerifiedRows, read_observations: ReadObservations, server: ServerRow, edges: Sequence[int]
) -> StepTotals:
    """Return the totals of the steps of a server between successive ascending edges.

    For the fast way, all edges but the first and the last must be the last millisecond of a day,
    and the server must have no observation at the midnights after them: a summary day includes
    its end.

    Raises SnapshotError; ValueError, TypeError and LookupError for rows that no build writes.
    """
    window = Window(edges[0], edges[-1])
    midnights = [edge + 1 for edge in edges[1:-1]]
    if server.summary_digest and not any(map(DAY_MS.__rmod__, midnights)):
        (ends,) = rows.find_ends([server], window)
        if not ends:
            return build_empty_steps(len(edges) - 1)
        (days,) = rows.read_days([(server, ends)])
        (summaries,) = read_summaries(rows, [server], window)
        parts = divide_window(summaries, days, window)
        if parts and not _has_observation_at(parts, midnights):
            return _compute_whole_steps(parts, midnights)
    return compute_observed_steps(*read_observations(server, window), edges)


def find_long_intervals(
    rows: VerifiedRows, server: ServerRow, window: Window, usual: int
) -> list[tuple[int, int]] | None:
    """Return the intervals that end in a window and are longer than three usual ones.

    Each is a pair of successive observations, of which the first may be before the window. `usual`
    is in half milliseconds. None if the summaries do not list all of these intervals.

    Raises SnapshotError; ValueError, TypeError and LookupError for rows that no build writes.
    """
    if not server.summary_digest:
        return None
    (summaries,) = read_summaries(rows, [server], window)
    blocks = [read_long_intervals(row) for row in summaries.blocks.rows]
    if None in blocks or not has_all_long_intervals(usual, summaries.index.longest_usual):
        return None
    return [
        (end - length, end)
        for block in blocks
        for end, length, _ in block or ()
        if window.start < end <= window.end and 2 * length > 3 * usual
    ]


def _has_observation_at(parts: WindowParts, midnights: Sequence[int]) -> bool:
    """Check whether a summary day ends with an observation at one of some midnights."""
    ends = {
        day
        for day, time in zip(parts.blocks.days, parts.blocks.read_column("last_times"), strict=True)
        if time == DAY_MS
    }
    return any(midnight // DAY_MS in ends for midnight in midnights)


def _compute_whole_steps(parts: WindowParts, midnights: Sequence[int]) -> StepTotals:
    """Return the totals of the steps of a window that midnights divide."""
    blocks, days = parts.blocks, parts.blocks.days
    inner = map(bisect_right, repeat(days), map(DAY_MS.__rfloordiv__, midnights))
    bounds = [parts.first, *inner, parts.end]
    firsts: list[int | None] = [*blocks.read_column("first_players"), None]
    lasts: list[int | None] = [None, *blocks.read_column("last_players")]
    steps = StepTotals(
        _add_between(bounds, blocks.read_column("observation_counts")),
        _add_between(bounds, blocks.read_column("player_sums")),
        [*map(firsts.__getitem__, bounds[:-1])],
        [*map(lasts.__getitem__, bounds[1:])],
    )
    if not all(steps.counts):
        for step in (step for step, count in enumerate(steps.counts) if not count):
            steps.firsts[step] = steps.lasts[step] = None
    for step, players in ((0, parts.head.players), (-1, parts.tail.players)):
        if players:
            _add(steps, step, players)
    for count, total in zip(steps.counts, steps.sums, strict=True):
        check_total(count, total)
    return steps


def _add_between(bounds: Sequence[int], values: Sequence[int]) -> list[int]:
    """Return the sums of the values from each bound to the next."""
    before = [*map([*accumulate(values, initial=0)].__getitem__, bounds)]
    return [*map(sub, before[1:], before)]


def _add(steps: StepTotals, step: int, players: Sequence[int]) -> None:
    """Add the observations before the first step, or after the last one, to it."""
    steps.counts[step] += len(players)
    steps.sums[step] += sum(players)
    if step == 0 or steps.firsts[step] is None:
        steps.firsts[step] = players[0]
    if step != 0 or steps.lasts[step] is None:
        steps.lasts[step] = players[-1]
