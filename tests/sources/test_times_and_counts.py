"""Times and player counts as text, in the forms that a mapping declares."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.values import RowError

PLAIN = ColumnMapping()
SECONDS = ColumnMapping(time_unit="s")
MILLISECONDS = ColumnMapping(time_unit="ms")
UTC_TIMES = ColumnMapping(time_zone="UTC")
BERLIN = ColumnMapping(time_zone="Europe/Berlin")
NEW_YORK = ColumnMapping(time_zone="America/New_York")

AT = 1_741_129_200_000  # 2025-03-04 23:00 UTC
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        (PLAIN, "1741129200000"),
        (PLAIN, " 1741129200000.0 "),
        (PLAIN, "2025-03-04T23:00:00Z"),
        (PLAIN, "2025-03-04 23:00:00.000999 UTC"),
        (PLAIN, "2025-03-05 00:00+01"),
        (PLAIN, "2025-03-04 19:30:00 -0330"),
        (SECONDS, "1741129200"),
        (SECONDS, "1741129200.0009"),
        (SECONDS, "2025-03-04T23:00Z"),
        (UTC_TIMES, "2025-03-04 23:00:00"),
        (UTC_TIMES, "1741129200000"),
        (BERLIN, "2025-03-05"),
        (BERLIN, "2025-03-05T00:00:00.0"),
        (BERLIN, "2025-03-04T23:00:00Z"),
    ],
)
def test_a_time_is_a_number_or_a_date(mapping: ColumnMapping, text: str) -> None:
    assert mapping.parse_time(text) == AT


NO_TIME = "not a Unix time and not YYYY-MM-DD HH:MM:SS"
NO_ZONE = "no time zone: end it with Z or an offset such as +02:00"
OUTSIDE = "outside the years 1970 to 9999"
EARLY = "before 2001 as milliseconds"
LIKE_SECONDS = f"{EARLY}, so it looks like seconds"
LIKE_MILLISECONDS = "after the year 9999 as seconds, so it looks like milliseconds"


@pytest.mark.parametrize(
    ("mapping", "text", "reason"),
    [
        (PLAIN, "2025-03-04 23:00:00", NO_ZONE),
        (SECONDS, "2025-03-04", NO_ZONE),
        (PLAIN, "1741129200", LIKE_SECONDS),
        (UTC_TIMES, "1741129200.0", LIKE_SECONDS),
        (MILLISECONDS, "1741129200.0", LIKE_SECONDS),
        (MILLISECONDS, "253402300799", LIKE_SECONDS),
        (PLAIN, "978307199999", EARLY),
        (PLAIN, "0", EARLY),
        (PLAIN, "1411", EARLY),
        (UTC_TIMES, "20149923", EARLY),
        (UTC_TIMES, "20141123.5", EARLY),
        (UTC_TIMES, "020141123", EARLY),
        (PLAIN, "20141123", NO_ZONE),
        (UTC_TIMES, "19691231", OUTSIDE),
        (BERLIN, "19700101", OUTSIDE),
        (SECONDS, "1741129200000", LIKE_MILLISECONDS),
        (SECONDS, "9" * 5000, OUTSIDE),
        (PLAIN, "9" * 15, OUTSIDE),
        (PLAIN, "1.7e12", NO_TIME),
        (PLAIN, "-5", NO_TIME),
        (PLAIN, "04/03/2025 23:00", NO_TIME),
        (PLAIN, "", NO_TIME),
        (PLAIN, "٣", NO_TIME),
        (UTC_TIMES, "2025-02-29 12:00:00", "no such day in the calendar"),
        (UTC_TIMES, "1969-12-31 12:00:00", OUTSIDE),
        (BERLIN, "1970-01-01 00:30:00", OUTSIDE),
        (NEW_YORK, "9999-12-31 23:30:00", OUTSIDE),
        (BERLIN, "2025-03-30 02:30", "does not exist in Europe/Berlin, where the clock"),
        (BERLIN, "2025-10-26 02:30:00", "occurs twice in Europe/Berlin, where the clock"),
    ],
)
def test_any_other_time_is_an_error(mapping: ColumnMapping, text: str, reason: str) -> None:
    with pytest.raises(RowError) as caught:
        mapping.parse_time(text)

    assert str(caught.value).startswith(f"observedAt: {reason}")


@pytest.mark.parametrize("text", ["20250305", "20250305.0", " 20250305 "])
def test_eight_digits_that_are_a_day_are_its_midnight(text: str) -> None:
    assert BERLIN.parse_time(text) == AT
    assert SECONDS.parse_time("20250305") == 20_250_305_000
    assert MILLISECONDS.parse_time("20250305") == 20_250_305


@pytest.mark.parametrize("at", [0, 1_411, 20_250_305, 253_402_300_800, 978_307_199_999])
def test_a_declared_unit_is_that_of_any_number(at: int) -> None:
    assert MILLISECONDS.parse_time(str(at)) == at


@given(
    minutes=st.lists(st.integers(0, 4_200_000_000 // 60), min_size=1, max_size=5),
    zone=st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "Africa/Monrovia", "UTC"]),
)
def test_a_local_time_is_the_only_instant_with_that_clock_time(
    minutes: list[int], zone: str
) -> None:
    mapping = ColumnMapping(time_zone=zone)
    # Around an instant, so that changes of the clock are as frequent as any time.
    moments = [EPOCH + timedelta(minutes=each + 86_400) for each in minutes]
    for moment in moments:
        local = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        text = local.isoformat(sep=" ", timespec="seconds")
        offsets = {
            (moment + timedelta(hours=hours)).astimezone(ZoneInfo(zone)).utcoffset()
            for hours in (-24, 24)
        }
        instants = [
            at
            for offset in offsets
            if (at := local.replace(tzinfo=UTC) - (offset or timedelta()))
            .astimezone(ZoneInfo(zone))
            .replace(tzinfo=None)
            == local
        ]
        if len(instants) == 1:
            expected = (instants[0] - EPOCH) // timedelta(milliseconds=1)
            assert mapping.parse_time(text) == expected
        else:
            with pytest.raises(RowError):
                mapping.parse_time(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("007", 7),
        (" 12 ", 12),
        ("12.", 12),
        ("12.0000", 12),
        ("0.000", 0),
        ("9007199254740991", 2**53 - 1),
        *((text, None) for text in ("", " ", "NA", "NaN", "null", "NULL", "None", r"\N")),
    ],
)
def test_a_player_count_is_whole_or_empty(text: str, count: int | None) -> None:
    assert PLAIN.parse_count(text) == count


@pytest.mark.parametrize(
    "text", ["12.5", "-1", "+1", "1,234", "12.000", "1e3", "9007199254740992", "x", "٣"]
)
def test_any_other_player_count_is_an_error(text: str) -> None:
    with pytest.raises(RowError):
        PLAIN.parse_count(text)
