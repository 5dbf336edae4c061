"""Choose the window and the time zone of an analysis from the texts of a user."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar
from zoneinfo import ZoneInfo

from srvstat.contract import wire
from srvstat.contract.errors import ParameterError
from srvstat.contract.parameters import Parameter
from srvstat.contract.time import (
    BEFORE_ALL,
    DAY_MS,
    DAYS,
    DEFAULT_RANGE,
    InstantError,
    Window,
    format_instant,
    load_zone,
    parse_instant,
)
from srvstat.operations.answers import check_coverage, find_whole_window
from srvstat.snapshot.read.snapshot import Snapshot

HOUR_MS = DAY_MS // 24
LONGEST_MS = 36_500 * DAY_MS
"""A century: a longer range is a mistake, and the start of a window before may have no text."""

_NO_PREVIOUS = "{range} all: no earlier window; give {start}, or another range"
_RANGE = re.compile(r"([1-9][0-9]{0,5})([hd])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True)
class WindowQuery:
    """A window as a user gives it: a range, or its ends; a date is midnight in the time zone.

    Without any of them, the window is the last `default` of the snapshot.
    """

    default: ClassVar[str] = DEFAULT_RANGE

    range: Annotated[
        str | None,
        Parameter(
            "The length of the window: hours, days, a year, or all [default: 30d; 90d for integrity"
            " and report].",
            "Nh|Nd|1y|all",
            completes=(*DAYS, "all"),
        ),
    ] = None
    start: Annotated[
        str | None,
        Parameter(
            "The start of the window, exclusive: a date such as 2026-01-31, an instant such as"
            " 2026-01-31T12:00Z, or Unix milliseconds.",
            "TIME",
            ("--from",),
        ),
    ] = None
    end: Annotated[
        str | None,
        Parameter(
            "The end of the window, inclusive [default: the end of the snapshot].",
            "TIME",
            ("--to",),
        ),
    ] = None
    tz: Annotated[
        str,
        Parameter("The time zone of dates, hours and steps, such as Europe/Berlin.", "ZONE"),
    ] = "UTC"


class LongWindowQuery(WindowQuery):
    """A window that is the last 90 days by default, because most rules of integrity need weeks."""

    default = "90d"


def choose_window(snapshot: Snapshot, query: WindowQuery) -> Window:
    """Return the window of a query. It begins at BEFORE_ALL if all observations count.

    A range ends at `end`, by default at the snapshot's as_of. In a bundle, all observations are
    those that it covers.

    Raises UsageError for an invalid query, NotInBundleError.
    """
    start, end, length = parse_query(query)
    end = snapshot.as_of if end is None else end
    if start is None:
        if length is None:
            return find_whole_window(snapshot, end)
        start = end - length
    elif start >= end:
        last = format_instant(end)
        raise ParameterError(
            "{start}: must be earlier than the end of the snapshot, {end_time}", end_time=last
        )
    window = Window(start, end)
    check_coverage(snapshot, window)
    return window


def check_previous(query: WindowQuery) -> None:
    """Check that there can be a window before that of a query, which needs no snapshot.

    Raises UsageError.
    """
    if query.range == "all":
        raise ParameterError(_NO_PREVIOUS)


def parse_query(query: WindowQuery) -> tuple[int | None, int | None, int | None]:
    """Return the start and the end of a query, and the length of its range; None without one.

    Raises UsageError.
    """
    zone = find_zone(query.tz)
    if query.range is not None and query.start is not None:
        raise ParameterError(
            "{range} and {start} can't be combined; use {start} and {end}, or {range}"
        )
    start = None if query.start is None else _parse_edge("start", query.start, zone)
    end = None if query.end is None else _parse_edge("end", query.end, zone)
    if start is not None and end is not None and start >= end:
        raise ParameterError("{start}: must be earlier than {end}")
    return start, end, _parse_range(query.default if query.range is None else query.range)


def find_previous(window: Window) -> Window:
    """Return the window of equal length that ends where a window begins.

    Raises UsageError for a window without a beginning, and for one that is too long.
    """
    if window.start == BEFORE_ALL:
        raise ParameterError(_NO_PREVIOUS)
    if window.end - window.start > LONGEST_MS:
        raise ParameterError("{start}: more than 36500d before {end}; use a shorter window")
    return Window(2 * window.start - window.end, window.start)


def _parse_range(text: str) -> int | None:
    """Return the length of a range in milliseconds; None for `all`.

    Raises UsageError.
    """
    if text == "all":
        return None
    match = _RANGE.fullmatch(f"{DAYS['1y']}d" if text == "1y" else text)
    length = int(match[1]) * (DAY_MS if match[2] == "d" else HOUR_MS) if match else LONGEST_MS + 1
    if length > LONGEST_MS:
        raise ParameterError(
            "{range}: {value} is not a number of hours or days such as 36h or 7d (at most 36500d),"
            " and not 1y or all",
            value=wire.quote_value(text),
        )
    return length


def find_zone(name: str) -> ZoneInfo:
    """Return a time zone of the IANA database, such as Europe/Berlin.

    Raises UsageError.
    """
    try:
        return load_zone(name)
    except ValueError as error:
        raise ParameterError("{tz}: {problem}", problem=str(error)) from None


def _parse_edge(name: str, text: str, zone: ZoneInfo) -> int:
    """Return the instant of an end of a window.

    Raises UsageError.
    """
    if not _DATE.fullmatch(text):
        try:
            return parse_instant(text)
        except InstantError as error:
            raise ParameterError(
                f"{{{name}}}: {{problem}}; a date is YYYY-MM-DD", problem=str(error)
            ) from None
    try:
        at = round(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()) * 1000
    except (ValueError, OverflowError):
        at = -1
    if at < 0:
        raise ParameterError(f"{{{name}}}: no such day in the years 1970 to 9999, UTC")
    return at
