"""The observations of a server in a window, and what several rules compute from them."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from operator import sub
from zoneinfo import ZoneInfo

from srvstat.contract.ranges import DAY_MS, Window
from srvstat.documents.integrity import Result
from srvstat.stats import compute_usual_interval


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


def choose_result(reason: str | None, *, is_suspect: bool) -> Result:
    """Return the result of a rule; `reason` says why it was not evaluated."""
    if reason is not None:
        return "notEvaluated"
    return "suspect" if is_suspect else "pass"
