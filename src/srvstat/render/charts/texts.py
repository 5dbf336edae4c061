"""What all charts have in common: their width and styles, titles above and captions below."""

from collections.abc import Iterable

from rich.text import Text

from srvstat.render.screen import Screen

USUAL_WIDTH = 80
"""The width of a chart where there is no limit."""

AXIS_WIDTH = 2
"""The vertical axis and the space before it."""

STYLE, AXIS_STYLE = "cyan", "dim"

_MIN_NAME_WIDTH = 12
"""A hostname that would be cut to fewer cells than this is left out."""


def get_chart_width(screen: Screen) -> int:
    """Return the width of charts on a screen."""
    return screen.width or USUAL_WIDTH


def build_title(hostname: str, identifier: str, note: str, screen: Screen) -> Text:
    """Return the line above a chart: the id, the hostname, which may be cut, and a note.

    The id identifies the server, so the note has room before the hostname.
    """
    width = get_chart_width(screen)
    title, name = screen.escape(identifier, "bold"), screen.escape_name(hostname)
    rest = f"  {note}" if title.cell_len + 2 + len(note) <= width else ""
    room = width - title.cell_len - 2 - len(rest)
    if name.plain != title.plain and room >= min(_MIN_NAME_WIDTH, name.cell_len):
        title = Text.assemble(title, "  ", screen.truncate(name, room))
    return Text.assemble(title, rest)


def build_caption(notes: Iterable[str], tops: Iterable[float]) -> Text:
    """Return the text below a chart; `tops` are the upper ends of its vertical scales."""
    differ = ["the scales differ"] if len({*tops}) > 1 else []
    return Text("; ".join([*notes, *differ]), AXIS_STYLE, overflow="fold")


def render_nothing(reason: str, screen: Screen) -> str:
    """Render what is there in place of a chart without any value."""
    return screen.render(Text(f"nothing to draw: {reason} in the window"))
