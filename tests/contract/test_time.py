"""Parse and format instants (D4, D18), and define ranges and windows (D1, D2)."""

from datetime import UTC, datetime, timedelta, timezone
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.contract.time import LATEST, InstantError, format_instant, load_zone, parse_instant
from srvstat.contract.windows import DAYS, Range, Window

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FORMATTED = [
    (0, "1970-01-01T00:00:00.000Z"),
    (951_782_400_000, "2000-02-29T00:00:00.000Z"),
    (1_772_366_400_000, "2026-03-01T12:00:00.000Z"),
    (1_772_366_400_120, "2026-03-01T12:00:00.120Z"),
    (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    (-1, "1969-12-31T23:59:59.999Z"),
]


@pytest.mark.parametrize(("at", "text"), FORMATTED)
def test_an_instant_is_formatted_in_utc_with_milliseconds(at: int, text: str) -> None:
    assert format_instant(at) == text


@given(at=st.integers(0, LATEST))
def test_a_formatted_instant_parses_to_the_same_value(at: int) -> None:
    assert parse_instant(format_instant(at)) == at
    assert parse_instant(str(at)) == at


PARSED = [
    ("0", 0),
    ("007", 7),
    ("253402300799999", 253_402_300_799_999),
    ("0000000000000000000000001", 1),
    ("2026-03-01T12:00Z", 1_772_366_400_000),
    ("2026-03-01T12:00:00Z", 1_772_366_400_000),
    ("2026-03-01 12:00:00.000Z", 1_772_366_400_000),
    ("2026-03-01T12:00:00.1Z", 1_772_366_400_100),
    ("2026-03-01T12:00:00.0009Z", 1_772_366_400_000),
    ("2026-03-01T12:00:00.999999999999Z", 1_772_366_400_999),
    ("2026-03-01T12:00:00-00:00", 1_772_366_400_000),
    ("2026-03-01T06:30:00.250-05:30", 1_772_366_400_250),
    ("2026-03-02T11:59+23:59", 1_772_366_400_000),
    ("2026-02-28T12:01-23:59", 1_772_366_400_000),
    ("2024-02-29T00:00Z", 1_709_164_800_000),
    ("9999-12-31T23:59:59.9999Z", 253_402_300_799_999),
]


@pytest.mark.parametrize(("text", "at"), PARSED)
def test_an_instant_is_parsed_to_the_millisecond(text: str, at: int) -> None:
    assert parse_instant(text) == at


NO_INSTANT = "not a time; use YYYY-MM-DDTHH:MM:SSZ or Unix milliseconds"
NO_ZONE = "no time zone; add Z or an offset such as +02:00"
NO_TIME = "invalid time of day"
NO_DAY = "invalid date"
OUTSIDE = "outside the years 1970 to 9999"

REJECTED = [
    ("", NO_INSTANT),
    ("-1", NO_INSTANT),
    ("1_000", NO_INSTANT),
    (" 1", NO_INSTANT),
    ("1\n", NO_INSTANT),
    ("\u0661", NO_INSTANT),
    ("2026-03-01", NO_INSTANT),
    ("2026-03-01T12Z", NO_INSTANT),
    ("2026-03-01t12:00Z", NO_INSTANT),
    ("2026-03-01T12:00z", NO_INSTANT),
    ("2026-03-01\u00a012:00Z", NO_INSTANT),
    ("2026-03-01T12:00 Z", NO_INSTANT),
    ("2026-03-01T12:00Z\n", NO_INSTANT),
    ("2026-03-01T12:00+0200", NO_INSTANT),
    ("2026-03-01T12:00\u221202:00", NO_INSTANT),
    ("2026-03-01T12:00:00,5Z", NO_INSTANT),
    ("2026-03-01T12:00:00.Z", NO_INSTANT),
    ("2026-03-01T1200Z", NO_INSTANT),
    ("20260301T120000Z", NO_INSTANT),
    ("2026-W09-7T12:00Z", NO_INSTANT),
    ("2026-03-01T12:0\u0660Z", NO_INSTANT),
    ("2026-03-01T12:00", NO_ZONE),
    ("2026-03-01T24:00Z", NO_TIME),
    ("2026-03-01T12:60Z", NO_TIME),
    ("2026-03-01T23:59:60Z", NO_TIME),
    ("2026-03-01T12:00+24:00", NO_TIME),
    ("2026-02-29T12:00Z", NO_DAY),
    ("2026-13-01T12:00Z", NO_DAY),
    ("0000-01-01T12:00Z", NO_DAY),
    ("1969-12-31T23:59:59.999Z", OUTSIDE),
    ("1970-01-01T00:59+01:00", OUTSIDE),
    ("9999-12-31T23:59-00:01", OUTSIDE),
    ("253402300800000", OUTSIDE),
    ("9" * 5000, OUTSIDE),
]


@pytest.mark.parametrize(("text", "reason"), REJECTED)
def test_anything_else_is_rejected_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(InstantError) as caught:
        parse_instant(text)

    assert str(caught.value) == reason


offsets = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(
    moment=st.datetimes(datetime(1970, 1, 3), datetime(9999, 12, 29), timezones=offsets),  # noqa: DTZ001 - `timezones` adds the offsets
    separator=st.sampled_from("T "),
    precision=st.sampled_from(["minutes", "seconds", "milliseconds", "microseconds"]),
)
def test_a_time_with_an_offset_is_parsed_as_python_does(
    moment: datetime, separator: str, precision: str
) -> None:
    text = moment.isoformat(separator, precision)

    # isoformat cuts to the precision; the floor division cuts to milliseconds.
    parsed = datetime.fromisoformat(text)
    assert parse_instant(text) == (parsed - EPOCH) // timedelta(milliseconds=1)


def test_the_ranges_and_their_order_are_those_of_the_specification() -> None:
    assert get_args(Range) == ("24h", "7d", "30d", "90d", "1y")
    assert list(DAYS.items()) == [("24h", 1), ("7d", 7), ("30d", 30), ("90d", 90), ("1y", 365)]


@given(
    instants=st.lists(st.integers(0, 9)).map(sorted),
    start=st.integers(-1, 9),
    end=st.integers(0, 9),
)
def test_a_window_excludes_its_start_and_includes_its_end(
    instants: list[int], start: int, end: int
) -> None:
    window = Window(min(start, end), end)

    inside = [at for at in instants if window.start < at <= window.end]
    assert [at for at in instants if window.includes(at)] == inside
    assert instants[window.locate(instants)] == inside
    assert Window.from_first(window.first, window.end) == window
    assert not inside or inside[0] >= window.first


@pytest.mark.parametrize("name", ["localtime", "posixrules", "Mars", "Europe", "/etc"])
def test_a_time_zone_means_the_same_on_each_machine(name: str) -> None:
    with pytest.raises(ValueError, match=f'^no time zone "{name}"; use UTC or a name such as'):
        load_zone(name)
