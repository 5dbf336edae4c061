"""The figures of a compared server as text, rounded for reading; JSON is exact."""

from collections.abc import Sequence

from rich.text import Text

from srvstat.contract.ranges import DAY_MS
from srvstat.contract.responses import ServerResult
from srvstat.documents.views import ComparisonView, ServerView
from srvstat.render.fields import NOTHING
from srvstat.render.text import date_text, format_count

_MARKS = "▁▂▃▄▅▆▇█"
_SMALL_BASE = 10
"""From fewer players than this, both counts say more than a percentage."""


def figures_of(result: ServerResult) -> dict[str, str]:
    """Return the figures of a server except its growth, by the names of their columns."""
    return {
        "current": f"{result.currentPlayers:,}",
        "average": _rounded(result.averagePlayers, 2),
        "median": _rounded(result.medianPlayers, 1),
        "peak": _whole(result.peakPlayers),
        "lowest": _whole(result.lowestPlayers),
    }


def _rounded(value: float | None, digits: int) -> str:
    if value is None:
        return NOTHING
    text = f"{value:,.{digits}f}"
    return text.removesuffix(".0") if digits == 1 else text


def _whole(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def growths(servers: Sequence[ServerView], *, ascii_only: bool) -> list[Text]:
    """Return the growth of servers, players and percent in columns as wide as the widest."""
    parts = [_growth_parts(server, ascii_only=ascii_only) for server in servers]
    players_width, percent_width = (
        max((len(part[at]) for part in parts if len(part) > 1), default=0) for at in (0, 1)
    )
    return [
        Text(
            part[0].rjust(players_width) + "  " + part[1].rjust(percent_width)
            if len(part) > 1
            else part[0],
            _style(server.result.growth.players or 0),
        )
        for part, server in zip(parts, servers, strict=True)
    ]


def _growth_parts(server: ServerView, *, ascii_only: bool) -> tuple[str, ...]:
    """Return players and percent, or one text where a percentage would say little."""
    players, percentage = server.result.growth.players, server.result.growth.percentage
    if players is None or server.first_players is None:
        return (NOTHING,)
    base = server.first_players
    if base < _SMALL_BASE or percentage is None:
        # The arrow of ASCII is wider, so it must be there before columns are measured.
        return (f"{base:,} {'->' if ascii_only else '→'} {base + players:,}",)
    return (f"{players:+,}", f"{percentage:+,.1f}%") if players else ("0", "0.0%")


def _style(players: int) -> str:
    if not players:
        return ""
    return "green" if players > 0 else "red"


def drawing(averages: Sequence[float | None]) -> str:
    """Draw averages from 0 to the highest of them, with blanks where nothing was observed.

    Each is rounded to the nearest mark, but only 0 gets the lowest.
    """
    top = max((average for average in averages if average is not None), default=0) or 1
    return f"│{''.join(_mark(average, top) for average in averages)}│"


def _mark(average: float | None, top: float) -> str:
    if average is None:
        return " "
    nearest = int(average / top * (len(_MARKS) - 1) + 0.5)
    return _MARKS[max(nearest, 1) if average else 0]


def highest_mark(averages: Sequence[float | None]) -> str | None:
    """Return the average that the highest mark of a drawing stands for; None without marks."""
    top = max((average for average in averages if average is not None), default=None)
    return None if top is None else _rounded(top, 2 if 0 < top < 1 else 1)


def observed_lines(server: ServerView, view: ComparisonView, *, is_narrow: bool) -> list[str]:
    """Say how much of the window was observed, and when last if that is long before its end."""
    observations = format_count(server.result.sampleCount, "observation")
    lines = [observations]
    if server.result.sampleCount and server.observed_spans < view.span_count:
        unit = "hours" if view.response.range == "24h" else "days"
        spans = f"in {server.observed_spans} of {view.span_count} {unit}"
        count = f"{server.result.sampleCount:,}"
        lines = [observations, spans] if is_narrow else [f"{count} {spans}"]
    last = _last_seen(server, view.window.end)
    return [*lines, last] if last else lines


def _last_seen(server: ServerView, end: int) -> str | None:
    if server.last_observed_at is None:
        return "never seen"
    if server.result.sampleCount and end - server.last_observed_at <= DAY_MS:
        return None
    return f"last seen {date_text(server.last_observed_at)}"
