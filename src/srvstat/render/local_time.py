"""Format instants on the clock of a time zone, in words that a report can use."""

from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

from srvstat.documents.document import WindowPart
from srvstat.render.text import MONTHS, format_time, format_window

UTC = ZoneInfo("UTC")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def format_local_time(at: int, zone: ZoneInfo) -> str:
    """Format an instant to the minute: `Aug 22, 2026, 19:30`.

    A time that the clock shows twice has its UTC offset: `Oct 25, 2026, 02:30 +01:00`.
    """
    moment = _convert(at, zone)
    if moment is None:
        return format_time(at)
    return f"{_format_date(moment)}, {moment:%H:%M}{_format_repeated_offset(moment)}"


def format_clock(at: int, zone: ZoneInfo, precision: str = "seconds") -> str:
    """Format an instant for a table that names its zone: `2026-08-22 19:30:00`.

    `precision` is that of `datetime.isoformat`. Milliseconds are shown where there are any, unless
    it is `minutes`. A time that the clock shows twice has its UTC offset.
    """
    try:
        moment = datetime.fromtimestamp(at // 1000, zone)
    except (OverflowError, ValueError):  # after the year 9999
        return format_time(at)
    if at % 1000 and precision == "seconds":
        moment, precision = moment.replace(microsecond=at % 1000 * 1000), "milliseconds"
    text = moment.replace(tzinfo=None).isoformat(" ", precision)
    return f"{text}{_format_repeated_offset(moment)}"


def format_zoned_time(at: int, zone: ZoneInfo, precision: str = "seconds") -> str:
    """Format an instant with its zone: `2026-08-22 19:30:00 Europe/Berlin`."""
    text = format_clock(at, zone, precision)
    return text if text.endswith(" UTC") else f"{text} {zone.key}"


def format_local_window(window: WindowPart, zone: ZoneInfo) -> str:
    """Format a window for a table that names its zone; see format_window."""
    return format_window(window.from_, window.to, partial(format_clock, zone=zone))


def format_day(at: int, today: int, zone: ZoneInfo) -> str:
    """Format the local day of an instant, with the year only if it is another one: `May 31`."""
    text = format_clock(at, zone)[:10]
    if text[:4] != format_clock(today, zone)[:4]:
        return text
    return f"{MONTHS[int(text[5:7]) - 1]} {int(text[8:])}"


def format_local_date(at: int, zone: ZoneInfo) -> str:
    """Format the local day of an instant: `Aug 22, 2026`."""
    moment = _convert(at, zone)
    return format_time(at) if moment is None else _format_date(moment)


def format_local_month(at: int, zone: ZoneInfo) -> str:
    """Format the local month of an instant: `Aug 2026`."""
    moment = _convert(at, zone)
    return format_time(at) if moment is None else f"{MONTHS[moment.month - 1]} {moment.year}"


def format_hour(weekday: int, hour: int) -> str:
    """Format an hour of a weekday, which is 1 for Monday: `Sunday 14:00 to 15:00`."""
    return f"{WEEKDAYS[weekday - 1]} {hour:02}:00 to {hour + 1:02}:00"


def _convert(at: int, zone: ZoneInfo) -> datetime | None:
    # A window of all observations begins 1 ms before the first one, not a minute.
    try:
        return datetime.fromtimestamp((at + 1) // 1000, zone)
    except (OverflowError, ValueError):  # after the year 9999
        return None


def _format_repeated_offset(moment: datetime) -> str:
    """Return the UTC offset after a space if the clock shows a time twice, else nothing."""
    if moment.replace(fold=1 - moment.fold).utcoffset() == moment.utcoffset():
        return ""
    return f" {moment.isoformat(timespec='minutes')[16:]}"


def _format_date(moment: datetime) -> str:
    return f"{MONTHS[moment.month - 1]} {moment.day}, {moment.year}"
