"""Changes and trends in words, the same in tables, pictures and reports."""

from srvstat.documents.document import LEAST_COVERAGE, ChangePart, WindowPart
from srvstat.render.text import NOTHING, format_count, format_exact_duration, format_share

_LEAST_PERCENT_BASE = 1
"""In players: a percentage of a smaller average would mislead."""

_LEAST_COUNT_BASE = 10
"""In players: the same for a single count."""

_UNITS = {"m": "minute", "h": "hour", "d": "day"}

_LEAST_TREND = 0.01
"""The least part of the average by which a trend changes it in a week."""


def format_first_last(first: int | None, rise: int | None, *, ascii_only: bool = False) -> str:
    """Format the first and the last count of a window, from its growth: `120 → 87 -27.5%`.

    They are two moments, mostly at different times of day, so they have no color.
    """
    if first is None or rise is None:
        return NOTHING
    text = f"{first:,} {'->' if ascii_only else '→'} {first + rise:,}"
    if first < _LEAST_COUNT_BASE:
        return text
    return f"{text} {_format_signed(100 * rise / first, 1)}%"


def format_change(change: ChangePart | None, average: float | None) -> tuple[str, ...]:
    """Format the change of an average in players and percent: `+12.34` and `+5.3%`.

    `average` is the later one. The percentage is left out where the earlier one is less than 1.
    """
    if change is None:
        return ()
    players = _format_signed(change.players, 2)
    if change.percentage is None or (average or 0) - change.players < _LEAST_PERCENT_BASE:
        return (players,)
    return (players, f"{_format_signed(change.percentage, 1)}%")


def _format_signed(value: float, digits: int) -> str:
    """Format a value with its sign; one that is rounded to 0 has none."""
    text = f"{value:+z,.{digits}f}"
    return text if text.strip("+0.") else text.removeprefix("+")


def describe_step(name: str) -> str:
    """Return a step in words: `a day` for `day` and `1d`, `6 hours` for `6h`."""
    number, unit = name[:-1], _UNITS.get(name[-1], "")
    if not number.isdecimal():
        return f"a {name}"
    article = "an" if unit == "hour" else "a"
    return f"{article} {unit}" if number == "1" else format_count(int(number), unit)


def choose_class(change: ChangePart | None, average: float | None) -> str:
    """Return the CSS class of a change, `rise` or `fall`; none if it is rounded to 0."""
    texts = format_change(change, average)
    return {"+": "rise", "-": "fall"}.get(texts[0][0], "") if texts else ""


def explain_missing_change(
    window: WindowPart, coverage: float | None, previous_coverage: float | None
) -> str:
    """Say why there is no change: `the 30 days before were observed for 46.6% only`."""
    if window.from_ is None:
        return "there is no window before all observations"
    length = format_window_length(window)
    was = "were" if length[0].isdecimal() else "was"
    if previous_coverage is None:
        return f"the snapshot does not have the {length} before"
    if not previous_coverage:
        return f"the {length} before {was} not observed"
    if previous_coverage < LEAST_COVERAGE:
        return f"the {length} before {was} observed for {format_share(previous_coverage)} only"
    return f"the {length} of the window {was} observed for {format_share(coverage or 0)} only"


def format_window_length(window: WindowPart) -> str:
    """Format the length of a window that has a beginning: `30 days`, `day`."""
    text = format_exact_duration(window.to - (window.from_ or 0))
    return text.removeprefix("1 ") if text.count(" ") == 1 else text


def format_trend(
    per_week: float | None, average: float | None, coverage: float | None
) -> tuple[str, int]:
    """Format a trend in words, and return its direction: 1 for up, -1 for down, otherwise 0.

    It is `flat` if it changes the average by less than 1 % a week. There is none without three
    whole days, and none in a window that is observed for less than 80 %.
    """
    if per_week is None or average is None or (coverage or 0) < LEAST_COVERAGE:
        return NOTHING, 0
    if abs(per_week) < _LEAST_TREND * average or not per_week:
        return "flat", 0
    digits = 2 if abs(per_week) < 1 else 1
    direction, sign = ("up", 1) if per_week > 0 else ("down", -1)
    return f"{direction} {abs(per_week):,.{digits}f} a week", sign
