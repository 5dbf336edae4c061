"""The table of an access file: what each plan allows."""

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from srvstat.documents.support import AccessCheck, PlanPermissions
from srvstat.render.fields import build_fields_grid
from srvstat.render.screen import Screen
from srvstat.render.text import NOTHING, format_count


def render_access(check: AccessCheck, screen: Screen) -> str:
    """Render a row for each plan, or a block for each where the rows do not fit."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in ("plan", "operations", "ranges", "raw history", "requests", "keys"):
        table.add_column(name, justify="right" if name == "keys" else "left", no_wrap=True)
    for plan in check.plans:
        table.add_row(plan.name, *(value or NOTHING for value in _list_fields(plan).values()))
    if screen.width is None or screen.width >= screen.measure(table):
        return screen.render(table)
    blocks = [part for plan in check.plans for part in _build_block(plan, screen)]
    return screen.render(*blocks[:-1])


def _build_block(plan: PlanPermissions, screen: Screen) -> tuple[RenderableType, ...]:
    fields = [*_list_fields(plan).items()]
    return (screen.escape(plan.name, "bold"), build_fields_grid(fields, screen), Text())


def _list_fields(plan: PlanPermissions) -> dict[str, str]:
    limit = plan.requests_per_minute
    return {
        "operations": ", ".join(plan.operations),
        "ranges": ", ".join(plan.ranges),
        "raw history": format_count(plan.raw_history_days, "day"),
        "requests": "no limit" if limit is None else f"{limit:,} per minute",
        "keys": f"{plan.keys:,}",
    }
