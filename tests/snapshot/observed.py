"""Draw the observations of servers, and windows for them."""

import random
from itertools import cycle, islice
from typing import NamedTuple

from hypothesis import strategies as st

from conftest import AS_OF, DAY
from srvstat.contract.instants import LATEST
from srvstat.contract.windows import Window

LARGEST = 2**53 - 1
LAST_DAY = LATEST // DAY


class Observed(NamedTuple):
    """The observations of one server in ascending order."""

    instants: list[int]
    players: list[int]

    def within(self, window: Window) -> list[int]:
        """Return the players of a window in ascending order of instants."""
        start, end = window
        pairs = zip(self.instants, self.players, strict=True)
        return [players for at, players in pairs if start < at <= end]

    def rows(self, name: str) -> list[tuple[str, int, int]]:
        """Return the observations as rows of a source."""
        return [(name, at, count) for at, count in zip(*self, strict=True)]


@st.composite
def _instants(draw: st.DrawFn) -> list[int]:
    """Draw instants on dense and sparse days with gaps."""
    first = draw(st.sampled_from([0, 1, AS_OF // DAY, LAST_DAY - 9]))
    days = draw(st.sets(st.integers(0, 9), min_size=1, max_size=5))
    times = st.sampled_from([0, 1, DAY // 2, DAY - 1]) | st.integers(0, DAY - 1)
    found: list[int] = []
    for day in sorted(days):
        if draw(st.booleans()):
            count = draw(st.integers(1, 40))
            of_day = [DAY // count * number for number in range(count)]
        else:
            of_day = sorted(draw(st.sets(times, min_size=1, max_size=6)))
        found += [(first + day) * DAY + time for time in of_day]
    return found


@st.composite
def few_values(draw: st.DrawFn) -> Observed:
    """Draw a server of few values; each is a band."""
    instants = draw(_instants())
    per_day = len(instants) // len({at // DAY for at in instants})
    most = min(20, 16 * per_day)
    lowest = draw(st.sampled_from([0, 0, 1, 254, 65_530, 2**32 - 3, LARGEST - 60]))
    highest = draw(st.sampled_from([lowest, lowest + 2, lowest + 60, LARGEST]))
    palette = draw(st.lists(st.integers(lowest, highest), min_size=1, max_size=most))
    return Observed(instants, list(islice(cycle(palette), len(instants))))


@st.composite
def many_values(draw: st.DrawFn) -> Observed:
    """Draw a server of many values with days in its own row and often in blocks.

    Often a few values are much more frequent than the others.
    """
    drawn = random.Random(draw(st.integers(0, 2**32)))  # noqa: S311 - not for secrets
    count = draw(st.sampled_from([18, 40, 63, 64, 65, 96, 97, 130]))
    first = draw(st.sampled_from([0, AS_OF // DAY - 200, LAST_DAY - 2 * count]))
    days = sorted(drawn.sample(range(first, first + 2 * count), count))
    most_per_day = draw(st.sampled_from([1, 1, 2, 5]))
    instants = [
        day * DAY + time
        for day in days
        for time in sorted(drawn.sample(range(0, DAY, 1000), drawn.randint(1, most_per_day)))
    ]
    lowest = draw(st.sampled_from([0, 3, 2**32 - 40]))
    highest = draw(st.sampled_from([lowest + 200, lowest + 2**20, LARGEST]))
    values = [drawn.randint(lowest, highest) for _ in instants]
    heavy = drawn.choices(values, k=2)
    share = draw(st.sampled_from([0, 0, 0.1, 0.4]))
    return Observed(
        instants, [drawn.choice(heavy) if drawn.random() < share else value for value in values]
    )


@st.composite
def draw_fleets(draw: st.DrawFn) -> dict[str, Observed]:
    """Draw a server of each kind, one without observations, and one with a single observation."""
    lonely = draw(st.sampled_from([0, DAY - 1, DAY, AS_OF]))
    return {
        "few-values": draw(few_values()),
        "lonely": Observed([lonely], [draw(st.integers(0, LARGEST))]),
        "many-values": draw(many_values()),
        "silent": Observed([], []),
    }


def windows(*observed: Observed) -> st.SearchStrategy[Window]:
    """Draw windows with edges at, next to, and far from observations and midnights."""
    seen = {at for one in observed for at in one.instants}
    midnights = {at // DAY * DAY for at in seen}
    far = [-366 * DAY, 0, AS_OF, LATEST]
    marks = st.sampled_from([*far, *sorted(seen | midnights) * 4])
    edges = st.builds(int.__add__, marks, st.sampled_from([0, 0, 0, -1, 1, -DAY, DAY]))
    starts = edges | st.sampled_from([-366 * DAY, min(seen) - 1])
    return st.tuples(starts, edges).map(lambda pair: Window(*sorted(pair)))
