"""The sentences at the start of a report."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from conftest import AS_OF, Build, build_in, server
from srvstat.analysis.report import ReportOrigin, build_report
from srvstat.analysis.windows import WindowQuery, choose_window, find_zone
from srvstat.render.report.elements import Labels, read_text
from srvstat.render.report.summary import summarize
from srvstat.snapshot.read.reader import SnapshotFile, open_file

HOUR = 3_600_000
DAYS = 30


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SnapshotFile]:
    """Open a snapshot of 30 days, by the hour, of which AS_OF is a Sunday at 12:00 (UTC)."""
    counts = []
    for ago in range(24 * DAYS):
        at, evening = AS_OF - ago * HOUR, (12 - ago) % 24 == 20
        week = ago // (24 * 7)
        counts.append(("up", at, 100 + 60 * evening + 30 * (week == 0)))
        if not 30 <= ago < 78:
            counts.append(("down", at, 40 + 20 * (week == 1) + 5 * evening))
        if ago < 24 * 10:
            counts.append(("twin", at, 40 + 5 * evening))
        counts += [("even", at, 12), ("noon", at, 3 + (ago % 24 == 0))]
    counts.append(("once", AS_OF, 3))
    servers = [server(name) for name in ("down", "even", "new", "noon", "once", "twin", "up")]
    directory = tmp_path_factory.mktemp("summary")
    with closing(open_file(str(build_in(directory, servers, counts)))) as file:
        yield file


def read_summary(snapshot: SnapshotFile, names: str, zone: str = "UTC", **query: str) -> list[str]:
    window = choose_window(snapshot, WindowQuery(**query))
    rows = [row for row in snapshot.iter_servers() if row.id in names.split()]
    report = build_report(snapshot, rows, window, find_zone(zone), ReportOrigin("", "", ""))
    return [read_text(one) for one in summarize(report, Labels.choose(report.stats.servers, zone))]


def test_several_servers_are_ranked_and_compared(snapshot: SnapshotFile) -> None:
    size, before, coverage, integrity = read_summary(snapshot, "down new twin up", range="7d")

    assert size == (
        "up has the most players, 132.50 on average, followed by twin (40.21). down has 40.21"
        " players on average. up has the highest count, 190 players on Feb 22, 2026, 20:00 (last on"
        " Feb 28, 2026, 20:00)."
    )
    assert before == (
        "Compared with the 7 days before, the average rose on up (from 102.50 to 132.50, +29.3%)."
        " The change on down is unknown: the 7 days of the window were observed for 72% only. The"
        " change on twin is unknown: the 7 days before were observed for 42.3% only."
    )
    assert coverage == (
        "Observations cover 72% to 99.4% of the window, depending on the server. There are no"
        " observations of new."
    )
    assert integrity == (
        "4 integrity results are suspect: flat line and gaps on down, flat line on twin, and flat"
        " line on up. Such results can have innocent causes, and prove nothing."
    )


def test_one_server_is_not_named_again(snapshot: SnapshotFile) -> None:
    size, before, coverage, integrity = read_summary(snapshot, "up", "Asia/Tokyo", range="7d")

    assert size == (
        "up has 132.50 players on average. The highest count is 190 players, on Feb 23, 2026, 05:00"
        " (last on Mar 1, 2026, 05:00)."
    )
    assert before == (
        "Compared with the 7 days before, the average rose (from 102.50 to 132.50, +29.3%)."
    )
    assert coverage == (
        "Observations cover 99.4% of the window. Between the first and the last observation, no"
        " time without one is longer than three usual intervals."
    )
    assert integrity == (
        "1 integrity result is suspect: flat line. Such results can have innocent causes, and"
        " prove nothing."
    )


def test_equal_servers_share_a_place(snapshot: SnapshotFile) -> None:
    size, before, coverage, integrity = read_summary(snapshot, "twin down", range="24h")

    assert size == (
        "down and twin each have 40.21 players on average. The highest count is 45 players, on down"
        " and twin."
    )
    assert before == (
        "Compared with the day before, the average did not change on twin (40.21). The change on"
        " down is unknown: the day before was observed for 20.8% only."
    )
    assert coverage.startswith("Observations cover 95.8% of the window. Between the first")
    assert integrity == "No integrity result is suspect: 2 pass, and 14 could not be evaluated."


def test_all_observations_have_no_window_before(snapshot: SnapshotFile) -> None:
    size, hour, gap, _ = read_summary(snapshot, "up twin", range="all")

    assert size.startswith("up has the most players, 109.50 on average, followed by twin (40.21).")
    assert hour == "The busiest hour of the week is Monday 20:00 to 21:00 on up (UTC)."
    # The time before the first observation of twin is no gap between observations.
    assert gap.endswith(" no time without one is longer than three usual intervals.")


def test_windows_without_observations_are_named(snapshot: SnapshotFile) -> None:
    none = read_summary(snapshot, "twin", start="2026-01-01", end="2026-01-05")

    assert none == ["There are no observations in this window."]
    assert read_summary(snapshot, "twin", range="10d")[1] == (
        "The change of the average is unknown: the 10 days before were not observed."
    )
    assert read_summary(snapshot, "twin up", range="10d")[1].endswith(
        " The change on twin is unknown: the 10 days before were not observed."
    )


def test_the_followers_are_in_order_and_each_has_its_busiest_hour(snapshot: SnapshotFile) -> None:
    size, _, busiest, *_ = read_summary(snapshot, "even noon up", range="28d")

    assert ", followed by even (12.00) and noon (3.04)." in size
    assert busiest == (
        "The busiest hour of the week is Monday 12:00 to 13:00 on noon, and Monday 20:00 to 21:00"
        " on up (UTC)."
    )


def test_no_hour_is_the_busiest_among_equal_ones(snapshot: SnapshotFile) -> None:
    assert "busiest" in " ".join(read_summary(snapshot, "even up", range="28d"))
    assert "busiest" not in " ".join(read_summary(snapshot, "even", range="28d"))


def test_one_observation_has_no_usual_interval(snapshot: SnapshotFile) -> None:
    assert read_summary(snapshot, "once", range="all") == [
        "once has 3.00 players on average. The highest count is 3 players, on Mar 1, 2026, 12:00.",
        "No integrity rule could be evaluated.",
    ]


def test_the_end_of_the_snapshot_is_stated_in_a_longer_window(snapshot: SnapshotFile) -> None:
    coverage = read_summary(snapshot, "up", start="2026-02-22", end="2026-03-10")[-2]

    assert coverage == (
        "Observations cover 47.4% of the window. The snapshot ends on Mar 1, 2026, 12:00."
    )


def test_a_gap_before_the_last_observation_counts_in_a_longer_window(
    snapshot: SnapshotFile,
) -> None:
    coverage = read_summary(snapshot, "down", start="2026-02-10", end="2026-03-02")[-2]

    gap = "The longest time without observations is 2 days 1 hour from Feb 26, 2026, 06:00."
    assert gap in coverage


def test_no_sentence_compares_what_was_hardly_observed(snapshot: SnapshotFile) -> None:
    size, before, coverage, _ = read_summary(snapshot, "down twin", range="20d")

    # Of 20 days, twin was observed for 10.
    assert size == "down has 47.99 and twin has 40.21 players on average."
    assert "twin is unknown" in before
    assert coverage == (
        "Observations cover 49.8% to 90.2% of the window, depending on the server. On servers"
        " observed for 80% or more, the longest time without observations is 2 days 1 hour from"
        " Feb 26, 2026, 06:00, on down."
    )
    # All hours of the week have averages in 40 days, of which 30 were observed.
    assert "busiest" not in " ".join(read_summary(snapshot, "up", range="40d"))


def test_the_longest_gap_is_between_observations(snapshot: SnapshotFile) -> None:
    coverage = read_summary(snapshot, "down", range="28d")[-2]

    assert coverage == (
        "Observations cover 93% of the window. The longest time without observations is 2 days 1"
        " hour from Feb 26, 2026, 06:00."
    )


def test_daily_data_have_no_busiest_hour(build: Build) -> None:
    counts = [("daily", AS_OF - ago * 24 * HOUR, 10 + ago % 7) for ago in range(80)]
    with closing(open_file(build([server("daily")], counts))) as file:
        assert "busiest" not in " ".join(read_summary(file, "daily", range="60d"))
