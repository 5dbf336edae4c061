"""Times on the clock of a time zone, in words."""

from zoneinfo import ZoneInfo

import pytest

from srvstat.contract.time import LATEST, parse_instant
from srvstat.render.text import format_local_date, format_local_month, format_local_time

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("instant", "shown"),
    [
        ("2026-08-22T17:30:00Z", "Aug 22, 2026, 19:30"),
        ("2026-10-25T00:30:00Z", "Oct 25, 2026, 02:30 +02:00"),
        ("2026-10-25T01:30:00Z", "Oct 25, 2026, 02:30 +01:00"),
        ("2026-10-25T02:30:00Z", "Oct 25, 2026, 03:30"),
        ("2026-03-29T01:30:00Z", "Mar 29, 2026, 03:30"),
        ("2026-01-01T12:00:59.998Z", "Jan 1, 2026, 13:00"),
    ],
)
def test_a_time_has_an_offset_only_where_the_clock_shows_it_twice(instant: str, shown: str) -> None:
    assert format_local_time(parse_instant(instant), BERLIN) == shown


def test_a_day_and_a_month_are_local() -> None:
    at = parse_instant("2025-12-31T23:00:00Z")

    assert format_local_date(at, BERLIN) == "Jan 1, 2026"
    assert format_local_month(at, BERLIN) == "Jan 2026"
    assert format_local_time(LATEST, BERLIN) == "9999-12-31 23:59:59.999 UTC"
