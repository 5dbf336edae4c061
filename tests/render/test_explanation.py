"""The lines of an explanation: what rounding hides, few observations, and edges of the window."""

from collections.abc import Callable

import pytest

from conftest import AS_OF, DAY, Build, Cli, server
from srvstat.render.text import format_ordinal

HOUR = DAY // 24
DAY_OF_A = ("compare", "a", "b", "--range", "24h")
NO_COUNT = "the server record has no current count"

Explain = Callable[..., list[str]]


@pytest.fixture
def explain(build: Build, cli: Cli) -> Explain:
    """Explain server `a`, observed at offsets to AS_OF; return its lines, continuations joined."""

    def run(observed: dict[int, int], *command: str, **fields: object) -> list[str]:
        rows = [("a", AS_OF + at, players) for at, players in observed.items()]
        path = build([server("a", **fields), server("b")], [*rows, ("b", AS_OF, 1)])
        ran = cli(*(command or DAY_OF_A), "-s", path, "--explain", "--table")
        text = ran.stdout.decode()
        assert all(line == line.rstrip() and len(line) <= 78 for line in text.split("\n"))
        return text.replace("\n  ", " ").split("\n\n")[1].split("\n")

    return run


def test_a_window_without_observations(explain: Explain) -> None:
    assert explain({-DAY: 5}) == [
        "a (id a, cfxId x-a)",
        (
            f"current: 5, from the last observation in the snapshot, at 2026-02-28 12:00:00 UTC:"
            f" {NO_COUNT}"
        ),
        (
            "observations: none in the window; the only one in the snapshot is at"
            " 2026-02-28 12:00:00 UTC"
        ),
        "average, median, peak, lowest, growth: null, because the window has no observation",
        "usual interval: unknown, because it takes two observations",
    ]


def test_a_server_with_one_observation(explain: Explain) -> None:
    assert explain({-HOUR: 7}, players={"current": 1234})[1:] == [
        "current: 1,234, from the server record; it is not an observation",
        "observations: 1, at 2026-03-01 11:00:00 UTC",
        "average: 7.00 = 7 / 1, the sum of the counts divided by their number",
        "median: 7, the only value",
        "peak: 7, first at 2026-03-01 11:00:00 UTC",
        "lowest: 7, first at 2026-03-01 11:00:00 UTC",
        "growth: null, because it takes two observations",
        "usual interval: unknown, because it takes two observations",
    ]


def test_a_server_with_two_observations(explain: Explain) -> None:
    assert explain({-HOUR: 0, -1: 1})[2:] == [
        (
            "observations: 2, the first at 2026-03-01 11:00:00 UTC, the last at"
            " 2026-03-01 11:59:59.999 UTC"
        ),
        "average: 0.50 = 1 / 2, the sum of the counts divided by their number",
        "median: 0.5 = the mean of 0 and 1, the 1st and 2nd of 2 values in ascending order",
        "peak: 1, first at 2026-03-01 11:59:59.999 UTC",
        "lowest: 0, first at 2026-03-01 11:00:00 UTC",
        (
            "growth: +1 (no percentage from 0): from 0 at 2026-03-01 11:00:00 UTC to 1 at"
            " 2026-03-01 11:59:59.999 UTC"
        ),
        (
            "usual interval: 59 minutes 59 seconds 999 milliseconds, the median distance between"
            " successive observations; 24 expected in the window, 2 observed"
        ),
        "gaps over 1.5 usual intervals: 1",
        (
            "- 2026-02-28 12:00:00 UTC to 2026-03-01 11:00:00 UTC: 23 hours, from the start of the"
            " window to the first observation in the snapshot"
        ),
    ]


def test_a_gap_to_the_end_and_half_a_millisecond(explain: Explain) -> None:
    lines = explain({1 - DAY: 3, 2 - DAY: 3, 4 - DAY: 3})

    assert lines[-4:] == [
        (
            "growth: 0 (0.0%): from 3 at 2026-02-28 12:00:00.001 UTC to 3 at"
            " 2026-02-28 12:00:00.004 UTC"
        ),
        (
            "usual interval: 0.0015 seconds, the median distance between successive observations;"
            " 57,600,000 expected in the window, 3 observed"
        ),
        "gaps over 1.5 usual intervals: 1",
        (
            "- 2026-02-28 12:00:00.004 UTC to 2026-03-01 12:00:00 UTC: 23 hours 59 minutes 59"
            " seconds 996 milliseconds, from the last observation in the snapshot to the end of the"
            " window"
        ),
    ]


def test_a_server_without_observations(explain: Explain) -> None:
    assert explain({})[2] == "observations: none in this file"
    assert explain({-3 * DAY: 1, -2 * DAY: 2})[2] == (
        "observations: none in the window; the first one in the snapshot is at"
        " 2026-02-26 12:00:00 UTC, the last at 2026-02-27 12:00:00 UTC"
    )


def test_gaps_to_observations_outside_of_the_window(explain: Explain) -> None:
    observed = {at * HOUR: 1 for at in (-26, -18, -17, -16, 0)}
    lines = explain(observed, *DAY_OF_A, "--at", str(AS_OF - HOUR))

    assert lines[-2:] == [
        (
            "- 2026-02-28 20:00:00 UTC to 2026-03-01 11:00:00 UTC: 15 hours, to the end of the"
            " window"
        ),
        (
            "- 2026-02-28 11:00:00 UTC to 2026-02-28 18:00:00 UTC: 7 hours, from the start of the"
            " window"
        ),
    ]


def test_a_blank_hostname_begins_no_line(explain: Explain) -> None:
    assert explain({0: 1}, hostname=" ")[0] == "(id a, cfxId x-a)"


def test_a_rounded_value_is_also_shown_exactly(explain: Explain) -> None:
    most = 2**53 - 1
    lines = explain({-2 * HOUR: most, -HOUR: most - 2, 0: most - 1})

    assert "= 27,021,597,764,222,970 / 3, the sum" in lines[3]
    assert lines[4] == ("median: 9,007,199,254,740,990, the 2nd of 3 values in ascending order")
    assert lines[7].startswith("growth: -1 (-0.0%): from 9,007,199,254,740,991 at ")
    assert lines[7].endswith("; in the answer: -1.1102230246251567e-14")


def test_a_time_weighted_mean_is_shown_where_uneven_intervals_matter(explain: Explain) -> None:
    observed = {at * HOUR: 100 for at in range(-23, 1)}
    # The last observation counts in the average, but lasts for no time.
    regular = explain({**observed, 0: 900})
    del observed[-21 * HOUR], observed[-20 * HOUR]
    uneven = explain({**observed, -23 * HOUR: 124, -22 * HOUR: 124})

    assert not any(line.startswith("time-weighted") for line in regular)
    # Two observations last for 4 of 23 hours.
    assert uneven[8].startswith("time-weighted mean: 104.17, 1.9% higher than the average: each")
    # The last observation lasts for 3 of 21 hours.
    at_the_end = explain({**{at * HOUR: 100 for at in range(-23, -5)}, -5 * HOUR: 130})
    assert at_the_end[8].startswith("time-weighted mean: 104.29, 2.7% higher than the average: ")


def test_a_server_record_with_its_own_times(explain: Explain) -> None:
    times = {"firstSeenAt": "2020-01-02T03:04:05Z", "updatedAt": "2026-03-01T11:59:59Z"}

    assert explain({-HOUR: 7, 0: 8}, "get", "a", "--at", str(AS_OF - 1), **times) == [
        "a (id a, cfxId x-a)",
        (
            f"current: 8, from the last observation in the snapshot, at 2026-03-01 12:00:00 UTC:"
            f" {NO_COUNT}"
        ),
        "firstSeenAt: 2020-01-02 03:04:05 UTC, from the server record",
        "updatedAt: 2026-03-01 11:59:59 UTC, from the server record",
        "observations: 1, at 2026-03-01 11:00:00 UTC",
        "usual interval: unknown, because it takes two observations",
    ]


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        (AS_OF - 1, "2026-03-01 11:59:59.999 UTC, as requested"),
        (AS_OF, "2026-03-01 12:00:00 UTC, the end of the snapshot"),
        (AS_OF + 1, "2026-03-01 12:00:00.001 UTC, as requested; the snapshot ends earlier"),
    ],
)
def test_the_reason_of_the_as_of_time(cli: Cli, demo_snapshot: str, at: int, reason: str) -> None:
    ran = cli("get", "harbor-city", "-s", demo_snapshot, "--at", str(at), "--explain", "--table")

    assert f"\nas of: {reason}\n" in ran.stdout.decode()


def test_a_server_record_without_times_or_observations(explain: Explain) -> None:
    assert explain({}, "get", "a")[1:4] == [
        f"current: 0: {NO_COUNT}, and this file has no observation of the server",
        "firstSeenAt: 2026-03-01 12:00:00 UTC, the end of the snapshot",
        "updatedAt: 2026-03-01 12:00:00 UTC, the end of the snapshot",
    ]


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        *((1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th")),
        *((13, "13th"), (21, "21st"), (101, "101st"), (111, "111th"), (2123, "2,123rd")),
    ],
)
def test_a_rank_is_an_ordinal_number(number: int, shown: str) -> None:
    assert format_ordinal(number) == shown
