"""Lay out text for a screen, with its width, colors and character set."""

import io
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch

from rich.box import SIMPLE_HEAD
from rich.cells import set_cell_size
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.padding import PaddingDimensions
from rich.table import Table
from rich.text import Text

from srvstat.documents.document import remove_color_codes
from srvstat.render.text import NOTHING, escape_non_ascii, escape_text

UNLIMITED = 100_000
"""The width used for output without a width limit."""

_MAX_CELL_LENGTH = 200
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_LEVELS_IN_ASCII = "_.:-=+*#"
_DRAWINGS_IN_ASCII: dict[int, int | str] = {
    **str.maketrans("▁▂▃▄▅▆▇█░▒▓│─–·┤├└┬━┃", f"{_LEVELS_IN_ASCII}:=*|---++++=#"),  # noqa: RUF001 - the characters of drawings
    ord("✓"): ".",
    ord("✗"): "x",
    ord("◦"): "o",
    ord("→"): "->",  # only in texts outside of columns: see Screen.arrow
    **{0x2800 + dots: _LEVELS_IN_ASCII[dots.bit_count() - 1] for dots in range(1, 256)},
}
"""ASCII replacements of drawing characters. Braille patterns are replaced by their number of
dots.
"""

SERIES_STYLES = ("color(32)", "color(166)", "color(29)", "color(133)", "default")
"""The colors of the servers in a table, in order, as for the series in palette.css.

The background is unknown, so they have a contrast of at least 3.8:1 with both black and white.
"""

HEAT_STYLES = tuple(
    f"color({231 if level in {17, 19, 25} else 16}) on color({level})"
    for level in (17, 19, 25, 32, 74, 117, 195)
)
"""The colors of a heat map from the lowest to the highest value, in equal steps of lightness."""

_PART_OF_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{0,3}|U[0-9a-f]{0,7})?$")
"""Matches a truncated escape, which must be removed because it would mislead."""


@dataclass(frozen=True, slots=True)
class Screen:
    """The properties of an output. `height` is in terminal rows, or None without a terminal."""

    width: int = UNLIMITED
    height: int | None = None
    color: bool = False
    ascii_only: bool = False

    @property
    def arrow(self) -> str:
        """An arrow to the right."""
        # The ASCII arrow is wider, so it must be in a text before columns are measured.
        return "->" if self.ascii_only else "→"

    def render(self, *parts: RenderableType) -> str:
        """Lay out parts one below the other, without trailing spaces."""
        console = self._create_console()
        with console.capture() as captured:
            for part in parts:
                console.print(part)
        text = "\n".join(line.rstrip() for line in captured.get().split("\n"))
        return text.translate(_DRAWINGS_IN_ASCII) if self.ascii_only else text

    def render_blocks(self, *blocks: Sequence[RenderableType]) -> str:
        """Lay out the nonempty blocks, separated by blank lines."""
        return "\n".join(self.render(*block) for block in blocks if block)

    def has_room_for(self, part: RenderableType) -> bool:
        """Return whether a part fits without wrapping."""
        console = self._create_console()
        wide = console.options.update(width=UNLIMITED)
        return Measurement.get(console, wide, part).maximum <= self.width

    def escape_cell(self, text: str, style: str = "") -> Text:
        """Return untrusted text for a cell, escaped and cut to 200 characters."""
        return self._build_text(escape_text(text, max_length=_MAX_CELL_LENGTH), style)

    def escape_name(self, text: str) -> Text:
        """Return a hostname for a cell, as `escape_cell` does, without color codes."""
        return self.escape_cell(remove_color_codes(text))

    def truncate(self, text: Text, width: int) -> Text:
        """Cut a text to `width` cells, ending with an ellipsis if anything is cut."""
        if text.cell_len <= width:
            return text
        ellipsis = "..." if self.ascii_only else "…"
        kept = _PART_OF_ESCAPE.sub("", set_cell_size(text.plain, width - len(ellipsis)))
        return Text(kept.rstrip() + ellipsis, text.style)

    def escape(self, text: str, style: str = "") -> Text:
        """Return untrusted text, such as an identifier, escaped but never cut."""
        return self._build_text(escape_text(text), style)

    def escape_lines(self, text: str) -> Text:
        """Return untrusted text, escaped except for its line breaks."""
        lines = _LINE_BREAK.split(text.strip("\r\n"))
        return Text("\n", overflow="fold").join(map(self.escape, lines))

    def _create_console(self) -> Console:
        return Console(
            file=io.StringIO(),
            width=self.width,
            # Without a height Rich ignores the width on a dumb terminal and uses 80.
            height=100,
            force_terminal=self.color,
            color_system="256" if self.color else None,
            no_color=not self.color,
            markup=False,
            emoji=False,
            highlight=False,
        )

    def _build_text(self, text: str, style: str) -> Text:
        return Text(escape_non_ascii(text) if self.ascii_only else text, style, overflow="fold")


Fields = Iterable[tuple[str, str | Text | None] | None]
"""Names and values. A name without a value is left out; None is a blank line."""

_MIN_VALUE_WIDTH = 20


def build_fields_grid(fields: Fields, screen: Screen) -> Table:
    """Lay out names and values side by side if they fit, otherwise one below the other."""
    entries = [entry for entry in fields if entry is None or entry[1] is not None]
    widest = max(len(entry[0]) for entry in entries if entry is not None)
    is_wide = screen.width >= widest + 2 + _MIN_VALUE_WIDTH
    grid = Table.grid(padding=(0, 2, 0, 0) if is_wide else 0)
    if is_wide:
        grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for entry in entries:
        if entry is None:
            grid.add_row()
            continue
        name, value = entry
        shown = value if isinstance(value, Text) else Text(value or "", overflow="fold")
        cells = (Text(name, "dim"), shown if shown.plain else Text(NOTHING, "dim"))
        for row in [cells] if is_wide else [cells[:1], cells[1:]]:
            grid.add_row(*row)
    return grid


def start_table(
    *names: str,
    right: Collection[str] = (),
    header_style: str = "bold",
    padding: PaddingDimensions = (0, 1),
) -> Table:
    """Return a table with columns that wrap. `right` names the right-aligned columns."""
    table = Table(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style=header_style, padding=padding
    )
    for name in names:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


@singledispatch
def render_table(document: object, _screen: Screen) -> str:
    """Render a document as a table for a screen.

    The package `tables` registers the functions by type.
    """
    raise TypeError(type(document))
