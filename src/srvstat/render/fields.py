"""Lay out names and values in a grid."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from srvstat.render.screen import Screen
from srvstat.render.text import NOTHING

Fields = Sequence[tuple[str, str | Text] | None]
"""Names and values; None is a blank line."""

_MIN_VALUE_WIDTH = 20


def build_fields_grid(fields: Fields, screen: Screen) -> Table:
    """Lay out names and values side by side where they fit, else one below the other."""
    widest = max(len(entry[0]) for entry in fields if entry is not None)
    fits = screen.width is None or screen.width >= widest + 2 + _MIN_VALUE_WIDTH
    grid = Table.grid(padding=(0, 2, 0, 0) if fits else 0)
    if fits:
        grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for entry in fields:
        if entry is None:
            grid.add_row()
            continue
        name, value = entry
        shown = Text(value, overflow="fold") if isinstance(value, str) else value
        cells = (Text(name, "dim"), shown if shown.plain else Text(NOTHING, "dim"))
        for row in [cells] if fits else [cells[:1], cells[1:]]:
            grid.add_row(*row)
    return grid
