"""The table of the document `growth`: one row a server, and the steps of a single one."""

from collections.abc import Iterator, Sequence
from zoneinfo import ZoneInfo

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.documents.analysis import GrowthDocument, GrowthStepPart, ServerGrowth, StepCell
from srvstat.render.changes import describe_step, format_change, format_first_last, format_trend
from srvstat.render.fields import build_fields_grid
from srvstat.render.local_time import format_clock, format_local_window
from srvstat.render.screen import Screen
from srvstat.render.tables.figures import (
    PARTIAL,
    align_changes,
    describe_drawings,
    describe_partial,
    draw_averages,
    format_changes,
    format_rounded,
    format_step,
    join_cells,
    list_change_fields,
    list_growth_cells,
    name_first_last,
)
from srvstat.render.tables.server_table import ServerLines, build_server_table
from srvstat.render.text import format_count, format_share

_MAX_MARKS = 36
"""The most marks of a drawing, so that it fits beside identifiers."""

_STEP_HEADERS = {"day": "day", "week": "week from", "month": "month"}

_MAX_STEPS_LISTED = 62
"""Two months of days."""


def render_growth(document: GrowthDocument, screen: Screen) -> str:
    """Render the growth of servers, and for a single server a list of its steps."""
    servers = document.servers
    columns = {
        "average": [Text(format_rounded(one.average_players, 2)) for one in servers],
        "change": format_changes(servers),
        "trend": list(map(_format_trend, servers)),
        name_first_last(ascii_only=screen.ascii_only): [
            Text(
                format_first_last(
                    one.first_players, one.growth.players, ascii_only=screen.ascii_only
                )
            )
            for one in servers
        ],
    }
    figures = zip(*columns.values(), strict=True)
    lines = [
        ServerLines(
            one.hostname,
            (one.server_id, one.cfx_id),
            texts,
            tuple(_list_notes(one, document, screen)),
        )
        for one, texts in zip(servers, figures, strict=True)
    ]
    parts: list[RenderableType] = [*build_server_table(list(columns), lines, screen), Text()]
    if len(servers) == 1 and servers[0].sample_count:
        parts += _list_steps(servers[0], document, screen)
    return screen.render(*parts, _build_fields(document, screen))


def _format_trend(server: ServerGrowth) -> Text:
    text, _ = format_trend(server.players_per_week, server.average_players, server.coverage)
    return Text(text)


def _list_notes(server: ServerGrowth, document: GrowthDocument, screen: Screen) -> Iterator[str]:
    if server.sample_count:
        yield draw_averages(_join_steps(server.steps), ascii_only=screen.ascii_only)
    yield format_count(server.sample_count, "observation")
    empty = sum(not step.sample_count for step in server.steps)
    if server.sample_count and empty:
        yield f"{empty:,} of {format_count(len(server.steps), document.step)} empty"


def _join_steps(steps: Sequence[GrowthStepPart]) -> list[StepCell]:
    """Return the average of each mark of a drawing, which stands for one step or several."""
    return join_cells(list_growth_cells(steps), _find_mark_length(len(steps)))


def _find_mark_length(count: int) -> int:
    return max(-(-count // _MAX_MARKS), 1)


def _list_steps(
    server: ServerGrowth, document: GrowthDocument, screen: Screen
) -> Iterator[RenderableType]:
    """Yield a list of the last steps of a server."""
    zone = ZoneInfo(document.time_zone)
    shown = server.steps[-_MAX_STEPS_LISTED:]
    if len(shown) < len(server.steps):
        earlier = format_count(len(server.steps) - len(shown), f"earlier {document.step}")
        yield Text(f"{earlier} not shown; --format csv prints all", "dim", overflow="fold")
    step_changes = align_changes(format_change(step.change, step.average_players) for step in shown)
    rows = [
        (
            Text(format_step(step.from_, zone, document.step)),
            _format_average(step),
            change,
            Text(f"{step.sample_count:,}"),
            _describe_share(step),
        )
        for step, change in zip(shown, step_changes, strict=True)
    ]
    headers = (_STEP_HEADERS[document.step], "average", "change", "observations", "")
    styles = ["dim" if step.is_partial else "" for step in shown]
    yield _build_fitting_table(headers, rows, styles, screen)
    yield Text()


def _format_average(step: GrowthStepPart) -> Text:
    text = format_rounded(step.average_players, 2)
    return Text(f"{PARTIAL}{text}" if _is_part(step) else text)


def _describe_share(step: GrowthStepPart) -> Text:
    return Text(f"{format_share(step.observed_share)} observed" if _is_part(step) else "")


def _is_part(step: GrowthStepPart) -> bool:
    return step.is_partial and step.sample_count > 0


def _build_fitting_table(
    headers: Sequence[str], rows: Sequence[Sequence[Text]], styles: Sequence[str], screen: Screen
) -> Table:
    """Build a table of the first columns, as many as fit."""
    table = Table()
    for count in range(len(headers), 1, -1):
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        for number, header in enumerate(headers[:count]):
            is_text = number == 0 or not header
            table.add_column(header, justify="left" if is_text else "right", overflow="fold")
        for row, style in zip(rows, styles, strict=True):
            table.add_row(*row[:count], style=style)
        if screen.width is None or screen.measure(table) <= screen.width:
            break
    return table


def _build_fields(document: GrowthDocument, screen: Screen) -> Table:
    zone = ZoneInfo(document.time_zone)
    fields = [
        ("window", format_local_window(document.window, zone)),
        ("as of", format_clock(document.as_of, zone)),
        ("times", zone.key),
        *list_change_fields(document.servers, document.window, screen),
        ("trend", _TREND),
    ]
    length = _find_mark_length(len(document.servers[0].steps))
    step = describe_step(document.step) if length == 1 else format_count(length, document.step)
    drawn = [(server.server_id, _join_steps(server.steps)) for server in document.servers]
    marks, scale = describe_drawings(drawn, step, screen)
    if len(document.servers) == 1 and any(map(_is_part, document.servers[0].steps)):
        fields.append(describe_partial(document.step))
    if scale:
        fields += [("marks", marks), ("scale", scale)]
    return build_fields_grid(fields, screen)


_TREND = "the median change between two whole days, in players a week; flat is below 1% a week"
