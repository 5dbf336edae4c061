"""Compute the totals of the steps of a window from summaries of days."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise, repeat

from srvstat.contract.ranges import DAY_MS, Window
from srvstat.snapshot.format.rows import ServerRow
from srvstat.snapshot.read.figures import NO_OBSERVATIONS, StepTotals, compute_observed_steps
from srvstat.snapshot.read.summary_rows import read_summaries
from srvstat.snapshot.read.verified_rows import VerifiedRows
from srvstat.snapshot.read.window_parts import WindowParts, divide_window

ReadObservations = Callable[[ServerRow, Window], tuple[list[int], list[int]]]


def compute_steps(
    rows: VerifiedRows, read_observations: ReadObservations, server: ServerRow, edges: Sequence[int]
) -> list[StepTotals]:
    """Return the totals of the steps of a server between successive ascending edges.

    All edges but the first and the last must be midnights for the fast way.

    Raises SnapshotError; ValueError, TypeError and LookupError for rows that no build writes.
    """
    window = Window(edges[0], edges[-1])
    if server.summary_digest and not any(map(DAY_MS.__rmod__, edges[1:-1])):
        (ends,) = rows.find_ends([server], window)
        if not ends:
            return [NO_OBSERVATIONS] * (len(edges) - 1)
        (days,) = rows.read_days([(server, ends)])
        (summaries,) = read_summaries(rows, [server], window)
        if parts := divide_window(summaries, days, window):
            return _compute_whole_steps(parts, edges[1:-1])
    return compute_observed_steps(*read_observations(server, window), edges)


def _compute_whole_steps(parts: WindowParts, midnights: Sequence[int]) -> list[StepTotals]:
    """Return the totals of the steps of a window that midnights divide."""
    blocks, days = parts.blocks, parts.blocks.days
    inner = map(bisect_right, repeat(days), map(DAY_MS.__rfloordiv__, midnights))
    bounds = [parts.first, *inner, parts.end]
    counts = list(accumulate(blocks.read_column("observation_counts"), initial=0))
    sums = list(accumulate(blocks.read_column("player_sums"), initial=0))
    first, last = blocks.read_column("first_players"), blocks.read_column("last_players")
    steps = [
        StepTotals(
            counts[end] - counts[start], sums[end] - sums[start], first[start], last[end - 1]
        )
        if end > start
        else NO_OBSERVATIONS
        for start, end in pairwise(bounds)
    ]
    steps[0] = _join(_total(parts.head.players), steps[0])
    steps[-1] = _join(steps[-1], _total(parts.tail.players))
    return steps


def _total(players: Sequence[int]) -> StepTotals:
    if not players:
        return NO_OBSERVATIONS
    return StepTotals(len(players), sum(players), players[0], players[-1])


def _join(step: StepTotals, later: StepTotals) -> StepTotals:
    return StepTotals(
        step.observations + later.observations,
        step.total + later.total,
        later.first if step.first is None else step.first,
        step.last if later.last is None else later.last,
    )
