"""Where text goes: how wide, with colours or without, in Unicode or ASCII. Rich starts here."""

import io
import re
from dataclasses import dataclass

from rich.cells import set_cell_size
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.text import Text

from srvstat.render.text import ascii_text, safe_text

_LONGEST_CELL = 200
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
NATURAL_WIDTH = 100_000
"""The width of what nothing limits."""
_ASCII_OF_OURS = str.maketrans("▁▂▃▄▅▆▇█│─–·", "_.:-=+*#|---")  # noqa: RUF001 - what stands for what


_PART_OF_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{0,3}|U[0-9a-f]{0,7})?$")
"""The beginning of an escape at the end of a text that was cut; it would read as another one."""


@dataclass(frozen=True, slots=True)
class Screen:
    """What will show a text. Without a width nothing is wrapped or cut."""

    width: int | None = None
    color: bool = False
    ascii_only: bool = False

    def text(self, *parts: RenderableType) -> str:
        """Lay out parts below one another, without spaces at the ends of lines."""
        console = self._console()
        with console.capture() as captured:
            for part in parts:
                console.print(part)
        text = "\n".join(line.rstrip() for line in captured.get().split("\n"))
        return text.translate(_ASCII_OF_OURS) if self.ascii_only else text

    def width_of(self, part: RenderableType) -> int:
        """Return the width at which a part need not wrap."""
        console = self._console()
        wide = console.options.update(width=NATURAL_WIDTH)
        return Measurement.get(console, wide, part).maximum

    def cell(self, text: str, style: str = "") -> Text:
        """Return foreign text for a cell: visible, harmless, on one line unless it must wrap."""
        return self._shown(safe_text(text, longest=_LONGEST_CELL), style)

    def cut(self, text: Text, width: int) -> Text:
        """Return text of at most `width` cells; a text that is cut ends with an ellipsis."""
        if text.cell_len <= width:
            return text
        ellipsis = "..." if self.ascii_only else "…"
        kept = _PART_OF_ESCAPE.sub("", set_cell_size(text.plain, width - len(ellipsis)))
        return Text(kept.rstrip() + ellipsis, text.style)

    def whole(self, text: str, style: str = "") -> Text:
        """Return foreign text, such as an identifier, to be wrapped where it must be, never cut."""
        return self._shown(safe_text(text), style)

    def lines(self, text: str) -> Text:
        """Return foreign text whose line breaks stay; nothing else of it moves the cursor."""
        lines = _LINE_BREAK.split(text.strip("\r\n"))
        return Text("\n", overflow="fold").join(map(self.whole, lines))

    def _console(self) -> Console:
        return Console(
            file=io.StringIO(),
            width=self.width or NATURAL_WIDTH,
            # Without a height Rich would take a dumb terminal to be 80 wide, whatever we say.
            height=100,
            force_terminal=self.color,
            color_system="standard" if self.color else None,
            no_color=not self.color,
            markup=False,
            emoji=False,
            highlight=False,
        )

    def _shown(self, text: str, style: str) -> Text:
        return Text(ascii_text(text) if self.ascii_only else text, style, overflow="fold")
