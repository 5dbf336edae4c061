"""The line of the trend of a server's growth, for charts and pictures."""

from typing import NamedTuple

from srvstat.contract.ranges import DAY_MS
from srvstat.documents.analysis import ServerGrowth
from srvstat.documents.document import LEAST_COVERAGE

_WEEK_MS = 7 * DAY_MS


class TrendLine(NamedTuple):
    """A line through `base` players at `start`, with a slope in players a millisecond."""

    start: float
    end: float
    base: float
    slope: float

    def find_players(self, at: float) -> float:
        """Return the players of the line at an instant."""
        return self.base + self.slope * (at - self.start)


def find_trend_line(server: ServerGrowth) -> TrendLine | None:
    """Return the line with the slope of the trend that has half of the whole steps above it.

    It lasts from the middle of the first whole step to that of the last. None without a trend, and
    in a window that is observed for less than 80 %.
    """
    points = [
        ((step.from_ + step.to) / 2, step.average_players)
        for step in server.steps
        if step.average_players is not None and not step.is_partial
    ]
    is_observed = (server.coverage or 0) >= LEAST_COVERAGE
    if server.players_per_week is None or not points or not is_observed:
        return None
    start, slope = points[0][0], server.players_per_week / _WEEK_MS
    # Importing `statistics` for a median would take 6 ms.
    bases = sorted(average - slope * (at - start) for at, average in points)
    base = (bases[(len(bases) - 1) // 2] + bases[len(bases) // 2]) / 2
    return TrendLine(start, points[-1][0], base, slope)
