"""Ticks are round, few and inside, on the clock of any time zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srvstat.contract.time import DAY_MS, LATEST
from srvstat.render.axes import choose_ticks, choose_time_ticks, format_ticks

ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Sao_Paulo")
BERLIN = ZoneInfo("Europe/Berlin")
VALUES = st.integers(-(2**53), 2**53) | st.floats(-1000, 1000)


@given(st.tuples(VALUES, VALUES).map(sorted), st.integers(3, 20))
@settings(max_examples=50)
def test_few_equidistant_ticks_enclose_the_values(ends: list[float], most: int) -> None:
    low, high = ends
    ticks = choose_ticks(low, high, most)
    texts = format_ticks(ticks)

    assert 2 <= len(ticks) <= most
    assert ticks[0] <= low <= high <= ticks[-1]
    assert len(set(texts)) == len(texts)
    step = ticks[1] - ticks[0]
    assert ticks == pytest.approx([ticks[0] + step * at for at in range(len(ticks))])
    assert f"{step:.9e}"[0] in "125"


@pytest.mark.parametrize(
    ("high", "most", "texts"),
    [
        (97, 6, "0 20 40 60 80 100"),
        (1234, 5, "0 500 1,000 1,500"),
        (0.3, 4, "0.0 0.1 0.2 0.3"),
        (0, 5, "0.0 0.5 1.0"),
        (2.4e7, 6, "0 5M 10M 15M 20M 25M"),
        (2**53 - 1, 3, "0 5P 10P"),
    ],
)
def test_ticks_from_zero(high: float, most: int, texts: str) -> None:
    assert " ".join(format_ticks(choose_ticks(0, high, most))) == texts


@given(
    st.integers(0, LATEST),
    st.integers(1, 40_000 * DAY_MS) | st.integers(1, 40) | st.integers(1, 40 * DAY_MS),
    st.integers(1, 20),
    st.sampled_from(ZONES),
)
@settings(max_examples=50)
def test_few_ascending_time_ticks_are_inside(end: int, length: int, most: int, name: str) -> None:
    start, zone = max(end - length, 0), ZoneInfo(name)
    ticks = choose_time_ticks(start, end, most, zone)

    assert len(ticks) <= most
    instants = [tick.at for tick in ticks]
    assert instants == sorted(set(instants))
    assert all(start <= at <= end for at in instants)
    for at, label in ticks:
        local = datetime.fromtimestamp(at / 1000, zone)
        day = f"{local:%b} {local.day}"
        assert label in {f"{local:%H:%M}", day, f"{local:%b}", f"{local.year}"}


def find_labels(end: str, days: float, most: int, zone: ZoneInfo = BERLIN) -> list[str]:
    at = int(datetime.fromisoformat(end).replace(tzinfo=UTC).timestamp() * 1000)
    return [tick.label for tick in choose_time_ticks(at - int(days * DAY_MS), at, most, zone)]


@pytest.mark.parametrize(
    ("days", "most", "labels"),
    [
        (0.1, 4, ["18:00", "19:00"]),
        (1, 4, ["Mar 31", "06:00", "12:00", "18:00"]),
        (7, 6, ["Mar 26", "Mar 28", "Mar 30"]),
        (30, 6, ["Mar 2", "Mar 9", "Mar 16", "Mar 23", "Mar 30"]),
        (90, 6, ["2026", "Feb", "Mar"]),
        (365, 4, ["Apr", "Jul", "Oct", "2026"]),
        (1000, 4, ["2024", "2025", "2026"]),
    ],
)
def test_labels_suit_the_length(days: float, most: int, labels: list[str]) -> None:
    assert find_labels("2026-03-31T17:30", days, most) == labels


def test_the_clock_may_change() -> None:
    # In Berlin 02:00 is skipped on March 29 and comes twice on October 25; in São Paulo November 4
    # begins at 01:00.
    assert find_labels("2026-03-29T03:30", 0.2, 9) == ["Mar 29", "01:00", "03:00", "04:00", "05:00"]
    assert find_labels("2026-10-25T03:30", 0.25, 9) == [
        "Oct 25",
        "01:00",
        "02:00",
        "03:00",
        "04:00",
    ]
    sao_paulo = ZoneInfo("America/Sao_Paulo")
    assert find_labels("2018-11-06T00:00", 3, 3, sao_paulo) == ["Nov 3", "Nov 4", "Nov 5"]
