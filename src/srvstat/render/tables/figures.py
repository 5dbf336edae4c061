"""The figures of a server as text, rounded for reading."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from srvstat.documents.comparison import ComparedServer, Comparison
from srvstat.documents.servers import is_silent
from srvstat.render.fields import NOTHING
from srvstat.render.text import format_count, format_date, format_day

_MARKS = "▁▂▃▄▅▆▇█"
SMALL_BASE = 10
"""Growth from fewer players than this is shown as two counts: a percentage would mislead."""


class Change(NamedTuple):
    """The growth from the first observation of a window, `base`, in players and in percent."""

    base: int | None
    players: int | None
    percentage: float | None


def format_rounded(value: float | None, digits: int) -> str:
    """Format a value with 2 digits after the point, or with 1 that is left out if it is 0."""
    if value is None:
        return NOTHING
    text = f"{value:,.{digits}f}"
    return text.removesuffix(".0") if digits == 1 else text


def format_whole(value: int | None) -> str:
    """Format a player count."""
    return NOTHING if value is None else f"{value:,}"


def format_current(
    players: int, last_observed_at: int | None, until: int, covered_from: int | None = None
) -> Text:
    """Format a current count; of a silent server, say instead when it was last observed.

    `covered_from` is the first instant that a bundle covers, None for a whole snapshot.
    """
    if not is_silent(last_observed_at, until):
        return Text(f"{players:,}")
    if last_observed_at is not None:
        text = f"last seen {format_day(last_observed_at, until)}"
    else:
        text = "never seen" if covered_from is None else f"none since {format_date(covered_from)}"
    return Text(text, "dim")


def format_growths(changes: Sequence[Change], *, ascii_only: bool) -> list[Text]:
    """Return the text of each change; players and percent are aligned in two columns."""
    parts = [format_growth_parts(change, ascii_only=ascii_only) for change in changes]
    players_width, percent_width = (
        max((len(part[at]) for part in parts if len(part) > 1), default=0) for at in (0, 1)
    )
    return [
        Text(
            part[0].rjust(players_width) + "  " + part[1].rjust(percent_width)
            if len(part) > 1
            else part[0],
            _choose_style(change.players or 0),
        )
        for part, change in zip(parts, changes, strict=True)
    ]


def format_growth_parts(change: Change, *, ascii_only: bool) -> tuple[str, ...]:
    """Return players and percent, or a single text where a percentage would mislead."""
    base, players, percentage = change
    if players is None or base is None:
        return (NOTHING,)
    if base < SMALL_BASE or percentage is None:
        # The ASCII arrow is wider, so it must be in the text before columns are measured.
        return (f"{base:,} {'->' if ascii_only else '→'} {base + players:,}",)
    return (f"{players:+,}", f"{percentage:+,.1f}%") if players else ("0", "0.0%")


def _choose_style(players: int) -> str:
    if not players:
        return ""
    return "green" if players > 0 else "red"


def join_averages(averages: Sequence[tuple[int, float | None]], length: int) -> list[float | None]:
    """Return the average of each `length` averages, given with their numbers of observations.

    An average that is None is left out.
    """
    return [
        _join_averages([one for one in averages[at : at + length] if one[1] is not None])
        for at in range(0, len(averages), length)
    ]


def _join_averages(averages: Sequence[tuple[int, float | None]]) -> float | None:
    count = sum(number for number, _ in averages)
    total = sum(number * (average or 0) for number, average in averages)
    return total / count if count else None


def find_level(average: float, lowest: float, highest: float, count: int) -> int:
    """Return which of `count` equal parts of a scale an average is in, from 0."""
    if lowest == highest:
        return count // 2
    return min(int((average - lowest) / (highest - lowest) * count), count - 1)


def draw_averages(averages: Sequence[float | None]) -> str:
    """Draw averages as bars from 0 to the highest one; a blank means no observation.

    Each is rounded to the nearest mark, but the lowest mark is for 0 only.
    """
    top = max((average for average in averages if average is not None), default=0) or 1
    return f"│{''.join(_choose_mark(average, top) for average in averages)}│"


def _choose_mark(average: float | None, top: float) -> str:
    if average is None:
        return " "
    nearest = int(average / top * (len(_MARKS) - 1) + 0.5)
    return _MARKS[max(nearest, 1) if average else 0]


def format_highest_average(averages: Sequence[float | None]) -> str | None:
    """Return the average that the highest mark of a drawing represents; None without averages."""
    top = max((average for average in averages if average is not None), default=None)
    return None if top is None else format_rounded(top, 2 if 0 < top < 1 else 1)


def describe_observations(
    server: ComparedServer, comparison: Comparison, *, is_narrow: bool
) -> list[str]:
    """Return lines that say how much of the window was observed."""
    observations = format_count(server.result.sampleCount, "observation")
    lines = [observations]
    if server.result.sampleCount and server.observed_spans < comparison.span_count:
        unit = "hours" if comparison.response.range == "24h" else "days"
        spans = f"in {server.observed_spans} of {comparison.span_count} {unit}"
        count = f"{server.result.sampleCount:,}"
        lines = [observations, spans] if is_narrow else [f"{count} {spans}"]
    return lines
