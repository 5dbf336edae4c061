"""Compute rank correlations between servers: the document `together`."""

from itertools import combinations, islice
from math import copysign, lcm, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from srvstat.analysis import questions
from srvstat.analysis.questions import Step, Steps
from srvstat.analysis.selection import Question
from srvstat.analysis.series import Series, compute_figures, get_name
from srvstat.contract.arrays import Exact, Numbers
from srvstat.contract.errors import UsageError
from srvstat.documents.analysis import MissingCorrelation, PairPart, Together
from srvstat.documents.document import LEAST_COVERAGE, WHOLE_SHARE

_MOST_SERVERS = 20

_LEAST_STEPS = 30
"""The minimum number of steps; fewer correlate by chance."""


class _Deviations(NamedTuple):
    """The deviations of a server's steps from its average at their hour of the week.

    - `order`: ascending with the deviation; equal deviations have equal numbers. It is meaningless
      for steps outside `is_used`.
    """

    server_id: str
    coverage: float
    is_used: npt.NDArray[np.bool]
    order: Numbers


def compute_together(question: Question, step: Step) -> Together:
    """Return the rank correlation of each pair of 2 to 20 servers, the highest first.

    Raises UsageError for another number of servers or too many steps, and SnapshotError if data are
    damaged.
    """
    servers = list(islice(question.servers, _MOST_SERVERS + 1))
    if not 1 < len(servers) <= _MOST_SERVERS:
        many = f"more than {_MOST_SERVERS}" if len(servers) > 1 else "fewer than 2"
        raise UsageError(f"servers: {many} selected; give 2 to {_MOST_SERVERS}")
    steps = questions.divide_window(question, step)
    hours = questions.find_hours_of_week(steps.edges[:-1], question.zone)
    found = [_find_deviations(question, server, steps, hours) for server in servers]
    pairs = [_correlate(one, other) for one, other in combinations(found, 2)]
    # Missing correlations are last.
    pairs.sort(key=lambda pair: 2 if pair.correlation is None else -pair.correlation)
    return Together(**question.describe(), step=step.name, pairs=tuple(pairs))


def _find_deviations(
    question: Question, server: Series, steps: Steps, hours: Numbers
) -> _Deviations:
    """Return the deviations of whole steps, if there is another whole step at the same hour."""
    figures = compute_figures(question.snapshot, server, question.window)
    counts = questions.count_steps(question.snapshot, server, figures, steps)
    totals, weights = counts.sum_players()
    is_used = (counts.shares >= WHOLE_SHARE) & (weights > 0)
    sizes = np.bincount(hours[is_used], minlength=questions.WEEK_HOURS)
    is_used &= sizes[hours] > 1
    groups = hours[is_used]
    order = np.zeros(len(hours), np.int64)
    order[is_used] = np.unique(
        _subtract_means(totals[is_used], weights[is_used], groups, sizes), return_inverse=True
    )[1]
    return _Deviations(get_name(server).server_id or "", figures.coverage or 0, is_used, order)


def _subtract_means(totals: Exact, weights: Numbers, groups: Numbers, sizes: Numbers) -> Exact:
    """Return the averages `totals / weights` minus the means of their groups, times a constant.

    The constant is a multiple of each weight and of the size of each group, so that the results are
    integers.
    """
    common = lcm(*set(weights.tolist()))
    multiple = lcm(*set(sizes[groups].tolist()))
    averages = totals * np.array([common // one for one in weights.tolist()], object)
    sums = np.zeros(len(sizes), object)
    np.add.at(sums, groups, averages)
    parts = np.array([multiple // one for one in sizes.clip(1).tolist()], object)
    deviations: Exact = averages * multiple - (sums * parts)[groups]
    return deviations


def _correlate(one: _Deviations, other: _Deviations) -> PairPart:
    """Return Spearman's rank correlation of two servers, or None and the reason."""
    is_used = one.is_used & other.is_used
    count = int(np.count_nonzero(is_used))
    first, second = (_rank(each.order[is_used]) for each in (one, other))
    product, squares = int(first @ second), int(first @ first) * int(second @ second)
    reason: MissingCorrelation | None = None
    if min(one.coverage, other.coverage) < LEAST_COVERAGE:
        reason = "coverage"
    elif count < _LEAST_STEPS:
        reason = "steps"
    elif not squares:
        reason = "constant"
    correlation = None if reason else copysign(sqrt(product * product / squares), product)
    return PairPart((one.server_id, other.server_id), count, correlation, reason)


def _rank(order: Numbers) -> Numbers:
    """Return twice the ranks of numbers, minus their mean.

    Equal numbers share their average rank.
    """
    _, positions, counts = np.unique(order, return_inverse=True, return_counts=True)
    ranks: Numbers = (2 * counts.cumsum() - counts)[positions] - len(order)
    return ranks
