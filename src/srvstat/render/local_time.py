"""Format instants on the clock of a time zone, in words that a report can use."""

from datetime import datetime
from zoneinfo import ZoneInfo

from srvstat.render.axes import MONTHS
from srvstat.render.text import format_time

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def format_local_time(at: int, zone: ZoneInfo) -> str:
    """Format an instant to the minute: `Aug 22, 2026, 19:30`.

    A time that the clock shows twice has its UTC offset: `Oct 25, 2026, 02:30 +01:00`.
    """
    moment = _convert(at, zone)
    if moment is None:
        return format_time(at)
    text = f"{_format_date(moment)}, {moment:%H:%M}"
    is_repeated = moment.replace(fold=1 - moment.fold).utcoffset() != moment.utcoffset()
    return f"{text} {moment.isoformat(timespec='minutes')[16:]}" if is_repeated else text


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


def _format_date(moment: datetime) -> str:
    return f"{MONTHS[moment.month - 1]} {moment.day}, {moment.year}"
