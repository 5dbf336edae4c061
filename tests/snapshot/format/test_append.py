"""Append newer observations to the rows of a server, as if all had been derived at once."""

import random
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from conftest import AS_OF, DAY, few_examples
from snapshot.observed import LARGEST
from snapshot.server_rows import build_server
from srvstat.snapshot.format.append import append, append_summaries
from srvstat.snapshot.format.bands import Members, find_epoch
from srvstat.snapshot.format.derive import derive
from srvstat.snapshot.format.rows import (
    BANDS_PER_SERVER,
    BLOCKS_PER_SERVER,
    DAYS_PER_BLOCK,
    Day,
    IntervalCounts,
    ServerRow,
    Summaries,
    SummaryIndex,
)
from srvstat.snapshot.format.summaries import MAX_LONG, read_block

KEY = 7
HOUR = DAY // 24


class DerivedServer:
    """The rows of a server, derived from its observations and kept in memory."""

    def __init__(self, instants: Sequence[int], players: Sequence[int]) -> None:
        self.rows: dict[tuple[str, int], tuple[Any, ...]] = {}
        columns = derive("a", KEY, instants, players, self.take)
        self.server: ServerRow = build_server(KEY, id="a", **columns._asdict())

    def take(self, table: str, row: tuple[Any, ...]) -> None:
        """Keep a row."""
        self.rows[table, row[0]] = row

    def read_last_day(self) -> Day:
        """Return the last row of `days`."""
        last = max(key for table, key in self.rows if table == "days")
        return Day._make(self.rows["days", last])

    def read_index(self) -> SummaryIndex:
        """Return the row of `summary_index`."""
        return SummaryIndex._make(self.rows["summary_index", KEY])

    def read_summaries(self, blocks: range) -> list[Summaries]:
        """Return rows of `summaries`."""
        first = KEY * BLOCKS_PER_SERVER
        return [Summaries._make(self.rows["summaries", first + block]) for block in blocks]

    def read_interval_counts(self, block: int) -> IntervalCounts:
        """Return a row of `interval_counts`."""
        key = KEY * BLOCKS_PER_SERVER + block
        return IntervalCounts._make(self.rows["interval_counts", key])

    def read_members(self, table: str, bands: Sequence[int]) -> dict[int, Members]:
        """Return rows of `bands` or `intervals`."""
        first = KEY * BANDS_PER_SERVER
        return {band: Members(*self.rows[table, first + band][1:]) for band in bands}


def draw_instants(drawn: random.Random, count: int) -> Iterator[int]:
    """Yield instants of regular, late or irregular polls, with gaps, mostly after midnights."""
    at = drawn.choice([0, 1, AS_OF // DAY * DAY, AS_OF // DAY * DAY + drawn.randrange(DAY)])
    usual = drawn.choice([60_000, HOUR, 6 * HOUR, DAY, 3 * DAY])
    late = drawn.choice([1, 2, 1000, usual])
    gap = drawn.choice([0, 0, 0.01, 0.3])
    for _ in range(count):
        yield at
        at += usual + drawn.randrange(late)
        if drawn.random() < gap:
            at += drawn.randrange(9 * usual)
        if drawn.random() < 0.05:
            usual = drawn.choice([usual, max(usual // 2, 1), min(2 * usual, 9 * DAY)])
        if drawn.random() < 0.05:
            at = -(-at // DAY) * DAY


def draw_values(drawn: random.Random, count: int) -> list[int]:
    """Draw few or many values, and others near the end."""
    kinds: list[Callable[[], int]] = [
        lambda: 0,
        lambda: drawn.randrange(9),
        lambda: drawn.choice([7, 300, 70_000]),
        lambda: drawn.randrange(2_000),
        lambda: 1000 + drawn.randrange(10 ** drawn.randrange(1, 9)),
        lambda: drawn.randrange(LARGEST + 1),
    ]
    early, late = drawn.choices(kinds, k=2)
    change = drawn.choice([count, count * 9 // 10, count // 2])
    return [early() if at < change else late() for at in range(count)]


@settings(max_examples=10 * few_examples())
@given(seed=st.integers(0, 2**32))
def test_appending_gives_the_rows_of_all_observations(seed: int) -> None:
    drawn = random.Random(seed)  # noqa: S311 - not for secrets
    count = drawn.choice([66, 90, 150, 400, 1_500])
    instants, players = [*draw_instants(drawn, count)], draw_values(drawn, count)
    # Mostly in the epoch of all observations.
    earliest = min(find_epoch("a", count) - drawn.choice([0, 0, 0, 9]), count - 1)
    split = drawn.choice([earliest, count - 1, drawn.randrange(earliest, count)])
    stored = DerivedServer(instants[:split], players[:split])

    event("appended" if check_appending(stored, instants, players, split) else "derived from all")


def test_an_instant_of_the_last_observation_is_not_appended() -> None:
    instants = range(0, 100 * HOUR, HOUR)
    stored = DerivedServer(instants, [5] * 100)

    assert append(stored, [instants[-1]], [6]) is None
    assert append(stored, [instants[-1] + 1], [6]) is not None


def test_a_new_usual_interval_does_not_follow_from_unlisted_long_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths = [HOUR * 12 + at * 7_919 % 9_001 + 3 * DAY * (at % 9 == 0) for at in range(299)]
    instants, players = [*accumulate(lengths, initial=0)], [at % 7 for at in range(300)]
    assert find_epoch("a", 298) == find_epoch("a", 300)
    listed = DerivedServer(instants[:299], players[:299])
    assert append(listed, instants[299:], players[299:]) is not None

    monkeypatch.setattr("srvstat.snapshot.format.summaries.MAX_LONG", 3)
    unlisted = DerivedServer(instants[:299], players[:299])

    assert append(unlisted, instants[299:], players[299:]) is None


@pytest.mark.parametrize("column", ["last_observed_at", "last_players"])
def test_summaries_without_a_last_observation_are_refused(column: str) -> None:
    stored = DerivedServer(range(0, 100 * HOUR, HOUR), [5] * 100)
    changed: dict[str, Any] = {column: None}
    stored.server = stored.server._replace(**changed)

    with pytest.raises(ValueError, match=r"^summaries without observations$"):
        append_summaries(stored, array("q", [100 * HOUR]), array("q", [5]), stored.take)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"day_count": 0}, "not the days of a block"),
        ({"day_count": DAYS_PER_BLOCK + 1}, "not the days of a block"),
        ({"long_count": -1}, "not a number of long intervals"),
        ({"long_count": MAX_LONG + 1}, "not a number of long intervals"),
    ],
)
def test_a_block_with_counts_that_no_build_writes_is_refused(
    changed: dict[str, Any], message: str
) -> None:
    (row,) = DerivedServer(range(0, 100 * HOUR, HOUR), [5] * 100).read_summaries(range(1))

    with pytest.raises(ValueError, match=f"^{message}$"):
        read_block(row._replace(**changed))


def check_appending(
    stored: DerivedServer, instants: Sequence[int], players: Sequence[int], split: int
) -> bool:
    """Append the observations from a split on, and check that all rows are those derived.

    Returns whether they could be appended.
    """
    appended = append(stored, instants[split:], players[split:])
    if appended is None:
        return False
    expected = DerivedServer(instants, players)
    for table, row in appended.rows:
        stored.take(table, row)
    stored.server = stored.server._replace(**appended.columns._asdict())
    assert stored.rows == expected.rows
    assert stored.server == expected.server
    return True
