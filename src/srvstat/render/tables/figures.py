"""The figures of a server as text, rounded for reading."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from rich.text import Text

from srvstat.documents.analysis import (
    ComparedServer,
    Comparison,
    GrowthStepPart,
    ServerGrowth,
    ServerPeakHours,
    ServerStatistics,
    StepCell,
)
from srvstat.documents.document import WindowPart
from srvstat.documents.servers import is_silent
from srvstat.render.changes import (
    describe_step,
    explain_missing_change,
    format_change,
    format_window_length,
)
from srvstat.render.local_time import UTC, format_day
from srvstat.render.screen import Screen
from srvstat.render.text import NOTHING, format_count, format_date

_MARKS = "▁▂▃▄▅▆▇█"

PARTIAL = "*"
"""Marks the figure of a partial step in a table of steps."""

_MOST_NAMED = 3
"""The most servers that a note names."""

ChangingServer = ServerStatistics | ServerGrowth
"""A server with the change of its average."""


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
    players: int, last_observed_at: int | None, as_of: int, zone: ZoneInfo = UTC
) -> Text:
    """Format a current count; of a silent server, say instead when it was last observed."""
    if not is_silent(last_observed_at, as_of):
        return Text(f"{players:,}")
    return Text(format_last_seen(last_observed_at, as_of, zone), "dim")


def format_last_seen(last_observed_at: int | None, as_of: int, zone: ZoneInfo = UTC) -> str:
    """Return when a server was last observed, as a local day; a file can have no observation."""
    if last_observed_at is None:
        return "not seen"
    return f"last seen {format_day(last_observed_at, as_of, zone)}"


def name_first_last(*, ascii_only: bool) -> str:
    """Return the heading of the first and the last count."""
    # The ASCII arrow is wider, so it must be in the text before columns are measured.
    return f"first {'->' if ascii_only else '→'} last"


def format_changes(servers: Iterable[ChangingServer]) -> list[Text]:
    """Return the change of each average."""
    return align_changes(format_change(one.change, one.average_players) for one in servers)


def align_changes(parts: Iterable[tuple[str, ...]]) -> list[Text]:
    """Return changes in color, with their players and percent aligned in two columns."""
    changes = list(parts)
    players_width, percent_width = (
        max((len(change[at]) for change in changes if len(change) > at), default=0) for at in (0, 1)
    )
    return [
        Text(
            players.rjust(players_width) + f"  {percent:>{percent_width}}" * (percent_width > 0),
            {"+": "green", "-": "red"}.get(players[:1], ""),
        )
        if players
        else Text(NOTHING)
        for players, percent, *_ in ((*change, "", "") for change in changes)
    ]


def list_change_fields(
    servers: Sequence[ChangingServer], window: WindowPart, screen: Screen
) -> Iterator[tuple[str, str]]:
    """Yield notes on the change of averages, and on the first and the last count."""
    meaning = ""
    if window.from_ is not None:
        meaning = f"the average against that of the {format_window_length(window)} before"
    missing = _explain_missing_changes(servers, window, screen)
    yield "change", "; ".join(filter(None, [meaning, missing and f"{NOTHING} {missing}"]))
    about = "the API's growth: two moments, mostly at different times of day"
    yield name_first_last(ascii_only=screen.ascii_only), about


def _explain_missing_changes(
    servers: Sequence[ChangingServer], window: WindowPart, screen: Screen
) -> str:
    """Say why averages have no change, once for all servers with the same reason."""
    reasons: dict[str, list[str]] = {}
    for one in servers:
        if one.change is None:
            reason = explain_missing_change(window, one.coverage, one.previous_coverage)
            reasons.setdefault(reason, []).append(screen.escape(one.server_id).plain)
    if [len(ids) for ids in reasons.values()] == [len(servers)]:
        return next(iter(reasons))
    first = [(_list_first(ids), reason) for reason, ids in reasons.items()]
    return "; ".join(f"{ids}: {reason}" for ids, reason in first)


def _list_first(ids: Sequence[str]) -> str:
    rest = len(ids) - _MOST_NAMED
    return ", ".join([*ids[:_MOST_NAMED], *([f"{rest:,} more"] if rest > 0 else [])])


def list_growth_cells(steps: Iterable[GrowthStepPart]) -> list[StepCell]:
    """Return the averages of the steps of a growth as cells."""
    return [StepCell(one.sample_count, 1, one.average_players, one.observed_share) for one in steps]


def join_cells(cells: Sequence[StepCell], length: int) -> list[StepCell]:
    """Return the average of each `length` cells, and the share of them that was observed."""
    return [_join_cells(cells[start : start + length]) for start in range(0, len(cells), length)]


def _join_cells(cells: Sequence[StepCell]) -> StepCell:
    count = sum(cell.observations for cell in cells if cell.players is not None)
    total = sum(cell.observations * (cell.players or 0) for cell in cells)
    share = sum(cell.observed_share for cell in cells) / len(cells)
    return StepCell(count, 1, total / count if count else None, share)


def describe_partial(step: str) -> tuple[str, str]:
    """Return the note on the mark of partial steps."""
    return PARTIAL, f"part of {describe_step(step)}: less than 90% of it was observed"


def list_whole(cells: Iterable[StepCell]) -> list[float]:
    """Return the values of whole steps."""
    return [cell.players for cell in cells if cell.players is not None and not cell.is_partial]


def find_highest(cells: Sequence[StepCell]) -> float | None:
    """Return the highest value of whole steps; where no step is whole, of partial ones."""
    known = list_whole(cells) or [cell.players for cell in cells if cell.players is not None]
    return max(known, default=None)


def find_level(average: float, lowest: float, highest: float, count: int) -> int:
    """Return which of `count` equal parts of a scale an average is in, from 0."""
    if lowest == highest:
        return count // 2
    return min(int((average - lowest) / (highest - lowest) * count), count - 1)


def draw_averages(cells: Sequence[StepCell], *, ascii_only: bool) -> str:
    """Draw averages as bars from 0 to the highest one; a blank means no observation.

    Each is rounded to the nearest mark, but the lowest mark is for 0 only. Beside whole steps, a
    partial one has a mark of its own.
    """
    top = find_highest(cells) or 1
    partial = get_partial_mark(ascii_only=ascii_only) if list_whole(cells) else None
    return f"│{''.join(_choose_mark(cell, top, partial) for cell in cells)}│"


def get_partial_mark(*, ascii_only: bool) -> str:
    """Return the mark of a partial step in a drawing."""
    return "o" if ascii_only else "·"


def _choose_mark(cell: StepCell, top: float, partial: str | None) -> str:
    if cell.players is None:
        return " "
    if cell.is_partial and partial is not None:
        return partial
    nearest = int(cell.players / top * (len(_MARKS) - 1) + 0.5)
    return _MARKS[max(nearest, 1) if cell.players else 0]


def describe_drawings(
    drawn: Iterable[tuple[str, Sequence[StepCell]]], step: str, screen: Screen
) -> tuple[str, str]:
    """Return what the marks of drawings mean, and their scales; no text without an average.

    `drawn` has the id and the cells of each server. `step` is that of a mark, such as `a day`.
    """
    tops = []
    has_partial = False
    for server_id, cells in drawn:
        top = find_highest(cells)
        if top is not None:
            whole = list_whole(cells)
            has_partial |= len(whole) not in {0, sum(cell.players is not None for cell in cells)}
            shown = (
                f"{screen.escape(server_id).plain} {format_rounded(top, 2 if 0 < top < 1 else 1)}"
            )
            tops.append(shown if whole else f"{shown} (part of {step})")
    meaning = f"each mark is the average of {step}; ▁ is 0, blank is no observation"
    if has_partial:
        meaning += f", {get_partial_mark(ascii_only=screen.ascii_only)} is part of {step}"
    return meaning, f"each row from 0 to its highest average: {', '.join(tops)}" if tops else ""


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


def format_step(start: int, zone: ZoneInfo, step: str) -> str:
    """Return the local day on which a step begins, or its month."""
    try:
        day = datetime.fromtimestamp(start / 1000, zone).date().isoformat()
    except OverflowError:  # after the year 9999
        day = format_date(start)
    return day[: len("2026-01")] if step == "month" else day


def describe_shortage(server: ServerPeakHours) -> str:
    """Say why a server has no averages."""
    return (
        f"{format_count(server.sample_count, 'observation')}, fewer than 4 in each hour of the week"
    )
