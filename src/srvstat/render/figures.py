"""Statistics of servers as text, shared by tables, charts, pictures and reports."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo

from rich.text import Text

from srvstat.contract.time import LATEST
from srvstat.contract.windows import DAY_MS
from srvstat.documents import analysis
from srvstat.documents.document import LEAST_COVERAGE, ChangePart, WindowPart, is_silent
from srvstat.render import text
from srvstat.render.screen import Screen


def format_current(
    players: int, last_observed_at: int | None, as_of: int, *, hold: bool = False
) -> Text:
    """Format a current count, or `silent` for a silent server.

    The record of a silent server often keeps its last count. Among current counts, it would look as
    if these players were online.
    """
    if is_silent(last_observed_at, as_of, hold=hold):
        return Text("silent", "dim")
    return Text(f"{players:,}")


def format_last_seen(last_observed_at: int | None, as_of: int, zone: ZoneInfo = text.UTC) -> str:
    """Return when a server was last observed, as a local day, or `not seen`."""
    if last_observed_at is None:
        return "not seen"
    return f"last seen {text.format_day(last_observed_at, as_of, zone)}"


def describe_silence(last_observed_at: int | None, as_of: int, *, hold: bool) -> str:
    """Return a suffix for a silent server's count that says when it was last observed, or ""."""
    if not is_silent(last_observed_at, as_of, hold=hold):
        return ""
    return f", {format_last_seen(last_observed_at, as_of)}"


# First and last counts, changes and trends.

Server = analysis.ServerStatistics | analysis.ServerGrowth
"""A server in a table with changes."""

_LEAST_COUNT_BASE = 10
"""The minimum first count (players) for showing a percentage."""

_LEAST_PERCENT_BASE = 1
"""The minimum average for showing a percentage."""

_LEAST_TREND = 0.01
"""The minimum weekly change of a trend, as a share of the average."""


def format_first_last(first: int | None, rise: int | None, arrow: str = "→") -> str:
    """Format the first and last count of a window, given its growth: `120 → 87 -27.5%`.

    These are two moments, usually at different times of day, so a morning report would contradict
    an evening report. Therefore they have no color, and tables show changes of averages first.
    """
    if first is None or rise is None:
        return text.NOTHING
    shown = f"{first:,} {arrow} {first + rise:,}"
    if first < _LEAST_COUNT_BASE:
        return shown
    return f"{shown} {_format_signed(100 * rise / first, 1)}%"


def format_change(change: ChangePart | None, average: float | None) -> tuple[str, ...]:
    """Format the change of an average in players and percent: `+12.34` and `+5.3%`.

    `average` is the later average. The percentage is omitted if the earlier average is less than 1.
    """
    if change is None:
        return ()
    players = _format_signed(change.players, 2)
    if change.percentage is None or (average or 0) - change.players < _LEAST_PERCENT_BASE:
        return (players,)
    return (players, f"{_format_signed(change.percentage, 1)}%")


def _format_signed(value: float, digits: int) -> str:
    """Format a value with its sign. A value that rounds to 0 has no sign."""
    shown = f"{value:+z,.{digits}f}"
    return shown if shown.strip("+0.") else shown.removeprefix("+")


def choose_class(change: ChangePart | None, average: float | None) -> str:
    """Return the CSS class of a change, `rise` or `fall`, or "" if it rounds to 0."""
    texts = format_change(change, average)
    return {"+": "rise", "-": "fall"}.get(texts[0][0], "") if texts else ""


def align_changes(changes: Iterable[tuple[ChangePart | None, float | None]]) -> list[Text]:
    """Return colored changes, with players and percentages aligned in two columns.

    Each item is a change and the later average, as for `format_change`.
    """
    pairs = [(*format_change(*one), "", "")[:2] for one in changes]
    widths = [max(map(len, column), default=0) for column in zip(*pairs, strict=True)]
    colors = {"+": "green", "-": "red"}
    texts = []
    for players, percent in pairs:
        shown = players.rjust(widths[0]) + (f"  {percent:>{widths[1]}}" if widths[1] else "")
        texts.append(Text(shown, colors.get(players[0], "")) if players else Text(text.NOTHING))
    return texts


_USUAL_COVERAGE = 0.95
"""Tables note servers whose coverage is lower."""

HELD = "each count lasts until the next one"
"""The note about statistics of a snapshot that was built with `--hold`."""


def list_unobserved(
    servers: Sequence[Server],
    window: WindowPart,
    screen: Screen,
    versus: analysis.Versus | None = None,
) -> Iterator[str]:
    """Yield notes on servers with low coverage, and on averages without a change."""
    names = [screen.escape(text.format_id(one.server_id)).plain for one in servers]
    gaps = [
        f"{name} ({text.format_share(one.coverage)} observed)"
        for name, one in zip(names, servers, strict=True)
        if one.coverage is not None and one.coverage < _USUAL_COVERAGE
    ]
    if gaps:
        yield f"incomplete data: {text.name_some(gaps, 1)}"
    missing = [(name, one) for name, one in zip(names, servers, strict=True) if not one.change]
    before = {one.previous_coverage for _, one in missing}
    if len(missing) == len(servers) and before in ({None}, {0}):
        yield f"no change: {explain_missing_change(window, servers[0], versus)}"
    elif missing:
        shown = missing[0][0] if len(missing) == 1 else f"{len(missing):,} servers"
        yield f"no change shown below {LEAST_COVERAGE:.0%}: {shown}"


def explain_missing_change(
    window: WindowPart, server: Server, versus: analysis.Versus | None = None
) -> str:
    """Explain why there is no change."""
    if window.from_ is None and versus != "other":
        return "there is no window before all observations"
    length = "window" if window.from_ is None else format_window_length(window)
    named = {"usual": "one of the four weeks before", "other": "the other window"}
    before = named.get(versus or "", f"the {length} before")
    was = "were" if length[0].isdecimal() else "was"
    was_before = "was" if before in named.values() else was
    if server.previous_coverage is None:
        return f"the bundle does not cover {named.get(versus or '', 'the window before')}"
    if not server.previous_coverage:
        return f"{before} {was_before} not observed"
    if server.previous_coverage < LEAST_COVERAGE:
        share = text.format_share(server.previous_coverage)
        return f"{before} {was_before} observed for {share} only"
    share = text.format_share(server.coverage or 0)
    return f"the {length} of the window {was} observed for {share} only"


def format_title_window(window: WindowPart, zone: ZoneInfo = text.UTC) -> str:
    """Format a window for a title: `7 days to 2026-03-01 12:00 UTC`.

    If the window is not a whole number of days or hours, the start replaces the length.
    """

    def format_at(at: int) -> str:
        # A window of whole seconds ends, inclusively, at the last millisecond of a second.
        at += (at + 1) % 1000 == 0 and at < LATEST
        return text.format_clock(at, zone, "seconds" if at % 60_000 else "minutes")

    end = format_at(window.to)
    end = end if end.endswith(" UTC") else f"{end} {zone.key}"
    if window.from_ is None:
        return f"all observations to {end}"
    length = text.format_exact_duration(window.to - window.from_)
    if length.count(" ") > 1 or length.split()[1].rstrip("s") not in {"day", "hour"}:
        return f"{format_at(window.from_)} to {end}"
    return f"{length} to {end}"


def format_window_length(window: WindowPart) -> str:
    """Format the length of a window that has a start: `30 days`, `day`."""
    shown = text.format_exact_duration(window.to - (window.from_ or 0))
    return shown.removeprefix("1 ") if shown.count(" ") == 1 else shown


def format_trend(per_week: float | None, average: float | None, coverage: float | None) -> str:
    """Format a trend in words: `up 2.5 a week`.

    A trend below 1 % of the average per week is `flat`. Without three whole days, or if less than
    80 % of the window was observed, there is no trend.
    """
    if per_week is None or average is None or (coverage or 0) < LEAST_COVERAGE:
        return text.NOTHING
    if abs(per_week) < _LEAST_TREND * average or not per_week:
        return "flat"
    digits = 2 if abs(per_week) < 1 else 1
    return f"{'up' if per_week > 0 else 'down'} {abs(per_week):,.{digits}f} a week"


_WEEK_MS = 7 * DAY_MS


class TrendLine(NamedTuple):
    """A line through `base` players at `start`, with a slope in players per millisecond."""

    start: float
    end: float
    base: float
    slope: float

    def find_players(self, at: float) -> float:
        """Return the line's value at an instant."""
        return self.base + self.slope * (at - self.start)


def find_trend_line(server: analysis.ServerGrowth) -> TrendLine | None:
    """Return the trend line, placed so that half of the whole steps are above it.

    It extends from the middle of the first whole step to the middle of the last. Returns None
    without a trend, or if less than 80 % of the window was observed.
    """
    points = [
        ((step.from_ + step.to) / 2, step.average_players)
        for step in server.steps
        if step.average_players is not None and not step.is_partial
    ]
    is_observed = (server.coverage or 0) >= LEAST_COVERAGE
    if server.players_per_week is None or not points or not is_observed:
        return None
    start, slope = points[0][0], server.players_per_week / _WEEK_MS
    # Importing `statistics` for a median would take 6 ms.
    bases = sorted(average - slope * (at - start) for at, average in points)
    base = (bases[(len(bases) - 1) // 2] + bases[len(bases) // 2]) / 2
    return TrendLine(start, points[-1][0], base, slope)


# Steps and drawings of them. A partially observed step is shown but not used in any statistic:
# players follow a daily cycle, so a day with six observed hours has no daily average.

PARTIAL = "*"
"""Marks the values of partial steps in tables."""

AGGREGATES = {
    "mean": "average",
    "median": "median",
    "max": "highest count",
    "min": "lowest count",
    "last": "last count",
    "share": "share of the total",
    "rank": "rank by average",
}
"""The aggregates of steps, in words."""


def format_aggregate(value: float | None, aggregate: analysis.Aggregate) -> str:
    """Format the aggregated value of a step."""
    if aggregate == "share" and value is not None:
        return text.format_share(value)
    return (text.format_average if aggregate == "mean" else text.format_median)(value)


_MARKS = "▁▂▃▄▅▆▇█"
_UNITS = {"m": "minute", "h": "hour", "d": "day"}


def describe_step(name: str) -> str:
    """Describe a step: `a day` for `day` and `1d`, `6 hours` for `6h`."""
    number, unit = name[:-1], _UNITS.get(name[-1], "")
    if not number.isdecimal():
        number, unit = "1", name
    article = "an" if unit == "hour" else "a"
    return f"{article} {unit}" if number == "1" else text.format_count(int(number), unit)


def format_step(start: int, zone: ZoneInfo, step: str) -> str:
    """Return the local day or month in which a step begins."""
    day = text.format_clock(start, zone)[: len("2026-01-31")]
    return day[: len("2026-01")] if step == "month" else day


HOURS: Mapping[analysis.HourKey, str] = {
    "week-hour": "hour of the week",
    "hour": "hour of the day",
    "weekday": "weekday",
}
"""The cells of peak hours, in words."""


def name_few(document: analysis.PeakHours) -> str:
    """Say for which hours of the week no average is shown."""
    return "held for less than an hour" if document.hold else "with fewer than 4 observations"


def describe_shortage(server: analysis.ServerPeakHours, by: analysis.HourKey = "week-hour") -> str:
    """Say why a server has no averages."""
    observations = text.format_count(server.sample_count, "observation")
    return f"{observations}, fewer than 4 in each {HOURS[by]}"


def list_growth_cells(
    growth: analysis.GrowthDocument, server: analysis.ServerGrowth
) -> list[analysis.StepCell]:
    """Return a server's step averages as cells, with their weights as counts."""
    cells = []
    for one in server.steps:
        held = round(one.observed_share * (one.to - one.from_))
        weight = held if growth.hold else one.sample_count
        cells.append(analysis.StepCell(weight, 1, one.average_players, one.observed_share))
    return cells


def join_cells(cells: Sequence[analysis.StepCell], length: int) -> list[analysis.StepCell]:
    """Merge each `length` cells into one, with their average and observed share."""
    joined = []
    for start in range(0, len(cells), length):
        group = cells[start : start + length]
        count = sum(cell.observations for cell in group if cell.players is not None)
        total = sum(cell.observations * (cell.players or 0) for cell in group)
        share = sum(cell.observed_share for cell in group) / len(group)
        joined.append(analysis.StepCell(count, 1, total / count if count else None, share))
    return joined


def list_whole(cells: Iterable[analysis.StepCell]) -> list[float]:
    """Return the values of whole steps."""
    return [cell.players for cell in cells if cell.players is not None and not cell.is_partial]


def find_highest(cells: Sequence[analysis.StepCell]) -> float | None:
    """Return the highest value of whole steps, or of partial steps if there are no whole steps."""
    known = list_whole(cells) or [cell.players for cell in cells if cell.players is not None]
    return max(known, default=None)


def find_level(average: float, lowest: float, highest: float, count: int) -> int:
    """Return the number, from 0, of the part of a scale that contains an average.

    The scale from `lowest` to `highest` has `count` equal parts.
    """
    if lowest == highest:
        return count // 2
    return min(int((average - lowest) / (highest - lowest) * count), count - 1)


def format_ends(cells: Sequence[analysis.StepCell]) -> tuple[str, str]:
    """Format the lowest and highest value of whole steps, or return two empty strings."""
    whole = list_whole(cells)
    if not whole:
        return "", ""
    digits = 2 if max(whole) < 1 else 1
    return f"{min(whole):,.{digits}f}", f"{max(whole):,.{digits}f}"


def draw_steps(cells: Sequence[analysis.StepCell], pitch: int, style: str) -> Text:
    """Draw steps as bars between the lowest and highest whole step, each `pitch` cells wide.

    A blank means no observations, and a ring means a partial step.
    """
    whole = list_whole(cells)
    drawn = Text()
    for cell in cells:
        if cell.players is None:
            drawn.append(" " * pitch)
        elif cell.is_partial:
            drawn.append("◦" * pitch, "dim")
        else:
            level = find_level(
                cell.players, min(whole), max(whole), len(_MARKS) if max(whole) else 1
            )
            drawn.append(_MARKS[level] * pitch, style)
    return drawn
