"""Draw the observations of servers, and windows for them."""

import random
from itertools import cycle, islice
from typing import Any, NamedTuple

from hypothesis import strategies as st

from conftest import AS_OF, DAY
from srvstat.contract.time import LATEST
from srvstat.contract.windows import Window
from srvstat.snapshot.rows import ServerRow

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
    """Draw a server of a few values."""
    instants = draw(_instants())
    lowest = draw(st.sampled_from([0, 0, 1, 254, 4_090, 65_530, 2**32 - 3, LARGEST - 60]))
    highest = draw(st.sampled_from([lowest, lowest + 2, lowest + 60, LARGEST]))
    palette = draw(st.lists(st.integers(lowest, highest), min_size=1, max_size=20))
    return Observed(instants, list(islice(cycle(palette), len(instants))))


VALUES = [(0, 0), (0, 9), (0, 300), (0, 4_095), (4_090, 4_100), (0, 100_000), (0, LARGEST)]
"""Ranges of players: below, around and above the greatest value that blocks count."""


@st.composite
def many_values(draw: st.DrawFn) -> Observed:
    """Draw a server with enough observations for marks and often for several blocks.

    The values of its halves often differ, and often a few values are from another range.
    """
    drawn = random.Random(draw(st.integers(0, 2**32)))  # noqa: S311 - not for secrets
    count = draw(st.sampled_from([511, 512, 513, 1_100, 2_047, 2_048, 2_049, 2_600, 4_096, 4_097]))
    step, jitter = draw(st.sampled_from([(1, 1), (1_000, 900), (60_000, 1), (DAY // 24, 77)]))
    first = draw(st.sampled_from([0, AS_OF - 90 * DAY, LATEST - count * step]))
    instants = [first + number * step + drawn.randrange(jitter) for number in range(count)]
    early, late, rare = draw(st.lists(st.sampled_from(VALUES), min_size=3, max_size=3))
    share = draw(st.sampled_from([0, 0, 0.001, 0.4]))
    return Observed(
        instants,
        [
            drawn.randint(*(rare if drawn.random() < share else early if at < count / 2 else late))
            for at in range(count)
        ],
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
    """Draw windows with edges at, next to, and far from observations, marks and midnights."""
    seen = sorted({at for one in observed for at in one.instants})
    of_marks = {at for one in observed for first in (511, 512) for at in one.instants[first::512]}
    midnights = {at // DAY * DAY for at in seen}
    far = [-366 * DAY, 0, AS_OF, LATEST]
    marks = st.sampled_from(seen) | st.sampled_from([*far, *sorted(of_marks | midnights)])
    edges = st.builds(int.__add__, marks, st.sampled_from([0, 0, 0, -1, 1, -DAY, DAY]))
    starts = edges | st.sampled_from([-366 * DAY, seen[0] - 1])
    return st.tuples(starts, edges).map(lambda pair: Window(*sorted(pair)))


BUILD_ONE = "build one with `srvstat snapshot build`"
COMMANDS = [
    ["get", "a", "--snapshot"],
    ["compare", "a", "b", "--table", "--snapshot"],
    ["compare", "a", "b", "--json", "--snapshot"],
    ["snapshot", "info", "--json"],
    ["snapshot", "info", "--table"],
    ["snapshot", "verify"],
    ["snapshot", "bundle", "a", "-o", "case.db", "--snapshot"],
]
FILE_ROW = "the table snapshot"


def format_damage(part: str) -> str:
    return f"x.db: damaged ({part}); copy it again, or {BUILD_ONE}"


_BLOBS = ("player_sum", "counts", "block_ends", "block_peaks", "block_digests")


def build_server(key: int, **columns: Any) -> ServerRow:
    """Return a row with identifiers and the given columns; the other columns are empty."""
    empty: dict[str, Any] = dict.fromkeys(ServerRow._fields, "")
    numbers = [name for name, kind in ServerRow.__annotations__.items() if kind is int]
    unknown = dict.fromkeys(
        ("icon_url", "source_id", "first_observed_at", "last_observed_at", "last_players")
    )
    named = {"server": key, "id": f"id-{key}", "cfx_id": f"cfx-{key}"}
    empty |= {"other_source_ids": "[]"}
    empty |= dict.fromkeys(numbers, 0) | dict.fromkeys(_BLOBS, b"") | unknown
    return ServerRow(**{**empty, **named, **columns})
