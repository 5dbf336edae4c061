"""The table of the document `growth`: one row a server, and the steps of a single one."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.documents.document import GrowthPart
from srvstat.documents.growth import GrowthDocument, GrowthStep, ServerGrowth
from srvstat.render.fields import NOTHING, build_fields_grid
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import (
    Change,
    draw_averages,
    format_growths,
    format_highest_average,
    format_rounded,
    join_averages,
)
from srvstat.render.tables.server_table import ServerLines, build_server_table
from srvstat.render.text import format_count, format_date, format_time, format_window

_MAX_MARKS = 36
"""The most marks of a drawing, so that it fits beside identifiers."""

_STEP_HEADERS = {"day": "day", "week": "week from", "month": "month"}

_MAX_STEPS_LISTED = 62
"""Two months of days."""

_LEAST_TREND = 0.005
"""In players a week; less is rounded to 0.00."""


def render_growth(document: GrowthDocument, screen: Screen) -> str:
    """Render the growth of servers, and for a single server a list of its steps."""
    servers = document.servers
    columns = {
        "average": [Text(format_rounded(one.average_players, 2)) for one in servers],
        "growth": _format_changes([one.growth for one in servers], screen),
    }
    if document.previous_window is not None:
        columns["previous"] = _format_changes([one.previous_growth for one in servers], screen)
    columns["trend"] = [format_trend(one.players_per_week) for one in servers]
    figures = zip(*columns.values(), strict=True)
    lines = [
        ServerLines(
            one.hostname, (one.server_id, one.cfx_id), texts, tuple(_list_notes(one, document))
        )
        for one, texts in zip(servers, figures, strict=True)
    ]
    parts: list[RenderableType] = [*build_server_table(list(columns), lines, screen), Text()]
    if len(servers) == 1 and servers[0].sample_count:
        parts += _list_steps(servers[0], document, screen)
    return screen.render(*parts, _build_fields(document, screen))


def _format_changes(growths: Sequence[GrowthPart | None], screen: Screen) -> list[Text]:
    return format_growths(list(map(_build_change, growths)), ascii_only=screen.ascii_only)


def _build_change(growth: GrowthPart | None) -> Change:
    """Return a growth with its first count, which follows from both of its figures."""
    if growth is None or growth.players is None:
        return Change(None, None, None)
    if not growth.percentage:
        # Without any growth, the first count is not known; it does not matter either.
        return Change(0 if growth.percentage is None else 1000, growth.players, growth.percentage)
    base = round(100 * growth.players / growth.percentage)
    return Change(base, growth.players, growth.percentage)


def format_trend(per_week: float | None) -> Text:
    """Format a slope in players a week: `up 1.5 a week`."""
    if per_week is None:
        return Text(NOTHING)
    if abs(per_week) < _LEAST_TREND:
        return Text("no trend")
    digits = 2 if abs(per_week) < 1 else 1
    direction, style = ("up", "green") if per_week > 0 else ("down", "red")
    return Text(f"{direction} {abs(per_week):,.{digits}f} a week", style)


def _list_notes(server: ServerGrowth, document: GrowthDocument) -> Iterator[str]:
    if server.sample_count:
        yield draw_averages(_join_averages(server.steps))
    yield format_count(server.sample_count, "observation")
    empty = sum(not step.sample_count for step in server.steps)
    if server.sample_count and empty:
        yield f"{empty:,} of {format_count(len(server.steps), document.step)} empty"


def _join_averages(steps: Sequence[GrowthStep]) -> list[float | None]:
    """Return the average of each mark of a drawing, which stands for one step or several."""
    averages = [(step.sample_count, step.average_players) for step in steps]
    return join_averages(averages, _find_mark_length(len(steps)))


def _find_mark_length(count: int) -> int:
    return -(-count // _MAX_MARKS)


def _list_steps(
    server: ServerGrowth, document: GrowthDocument, screen: Screen
) -> Iterator[RenderableType]:
    """Yield a list of the last steps of a server."""
    zone = ZoneInfo(document.time_zone)
    shown = server.steps[-_MAX_STEPS_LISTED:]
    if len(shown) < len(server.steps):
        earlier = format_count(len(server.steps) - len(shown), f"earlier {document.step}")
        yield Text(f"{earlier} not shown; --format csv prints all", "dim", overflow="fold")
    growths = [
        GrowthPart(players=step.growth_players, percentage=step.growth_percentage) for step in shown
    ]
    rows = [
        (
            Text(format_step(step.from_, zone, document.step)),
            Text(format_rounded(step.average_players, 2)),
            growth,
            Text(f"{step.sample_count:,}"),
            Text("partial" if step.is_partial else "", "dim"),
        )
        for step, growth in zip(shown, _format_changes(growths, screen), strict=True)
    ]
    headers = (_STEP_HEADERS[document.step], "average", "growth", "observations", "")
    yield _build_fitting_table(headers, rows, screen)
    yield Text()


def _build_fitting_table(
    headers: Sequence[str], rows: Sequence[Sequence[Text]], screen: Screen
) -> Table:
    """Build a table of the first columns, as many as fit."""
    table = Table()
    for count in range(len(headers), 1, -1):
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        for number, header in enumerate(headers[:count]):
            is_text = number == 0 or not header
            table.add_column(header, justify="left" if is_text else "right", overflow="fold")
        for row in rows:
            table.add_row(*row[:count])
        if screen.width is None or screen.measure(table) <= screen.width:
            break
    return table


def format_step(start: int, zone: ZoneInfo, step: str) -> str:
    """Return the local day on which a step begins, or its month."""
    try:
        day = datetime.fromtimestamp(start / 1000, zone).date().isoformat()
    except OverflowError:  # after the year 9999
        day = format_date(start)
    return day[: len("2026-01")] if step == "month" else day


def _build_fields(document: GrowthDocument, screen: Screen) -> Table:
    window, previous = document.window, document.previous_window
    fields = [("window", format_window(window.from_, window.to))]
    if previous is not None:
        fields.append(("previous", format_window(previous.from_, previous.to)))
    fields.append(("as of", format_time(document.as_of)))
    fields.append(("steps", f"{document.step}s in {document.time_zone}"))
    fields.append(("growth", "from the first observation to the last"))
    fields.append(("trend", define_trend(document)))
    if any(server.sample_count for server in document.servers):
        fields += _describe_drawing(document, screen)
    return build_fields_grid(fields, screen)


def define_trend(document: GrowthDocument) -> str:
    """Say what the trend is."""
    return f"the median change of the average, in players a week, between any two {document.step}s"


def _describe_drawing(document: GrowthDocument, screen: Screen) -> Iterator[tuple[str, str]]:
    length = _find_mark_length(len(document.servers[0].steps))
    steps = f"a {document.step}" if length == 1 else format_count(length, document.step)
    yield "marks", f"each the average of {steps}; ▁ is 0, blank is no observation"
    tops = [
        f"{screen.escape(server.server_id).plain} {top}"
        for server in document.servers
        if (top := format_highest_average(_join_averages(server.steps))) is not None
    ]
    yield "scale", f"each row from 0 to its highest average: {', '.join(tops)}"
