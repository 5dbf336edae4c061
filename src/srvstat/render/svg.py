"""Build SVG pictures from elements, axes, headings and keys, and encode them as files.

Geometry is in attributes, and appearance in CSS classes. A report's page needs pictures that take
their colors from its style sheets, in light and dark, under a strict Content-Security-Policy.
Libraries such as pygal and matplotlib write their own styles, and scripts or outlined text.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring
from zoneinfo import ZoneInfo

from srvstat.contract.errors import MissingLibraryError
from srvstat.documents.analysis import NamedServer
from srvstat.documents.document import remove_color_codes
from srvstat.render.axes import TimeTick, choose_ticks, choose_time_ticks, format_ticks
from srvstat.render.text import escape_text, format_id
from srvstat.render.web import read_asset

FONT_SIZE = 12
"""The height of text in pixels, as in pictures.css."""

BOLD = 1.15
"""The width of bold text relative to plain text."""
LINE_HEIGHT = 16
"""The distance between two lines of text in pixels."""

_MAX_NAME_LENGTH = 100
_WIDTHS = {
    **dict.fromkeys("iIjl.,:;'|! ", 0.32),
    **dict.fromkeys("ftr()[]-", 0.41),
    **dict.fromkeys("mwMW@%", 1.0),
    **dict.fromkeys("0123456789", 0.64),
}
"""The widths of characters in a wide font, relative to the text height."""
_ZERO_WIDTH = frozenset({"Mn", "Me"})


class Size(NamedTuple):
    """The size of a picture in pixels."""

    width: int
    height: int


Place = tuple[float, float]
"""The x and y of a point in a picture."""


class Box(NamedTuple):
    """A rectangle in a picture; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """The distance from left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """The distance from top to bottom."""
        return self.bottom - self.top


def create_picture(name: str, size: Size, title: str, sentences: Sequence[str]) -> Element:
    """Return an empty picture with a CSS class, a title and a description in words."""
    width, height = size
    attributes = {"class": f"picture {name}", "viewBox": f"0 0 {width} {height}", "role": "img"}
    picture = Element("svg", attributes)
    SubElement(picture, "title").text = escape_text(title)
    SubElement(picture, "desc").text = escape_text(" ".join(sentences))
    return picture


def create_picture_of(
    name: str, size: Size, subject: str, servers: Sequence[NamedServer], words: Iterable[str]
) -> tuple[Element, list[str]]:
    """Return an empty picture described by the words about each server, and the servers' names."""
    names = name_servers(servers)
    sentences = [f"{server}: {about}." for server, about in zip(names, words, strict=True)]
    return create_picture(name, size, f"{subject}: {', '.join(names)}", sentences), names


def add(parent: Element, tag: str, css: str = "", **attributes: float | str) -> Element:
    """Add an element with CSS classes and attributes. Numbers get at most one decimal."""
    texts = {
        name.replace("_", "-"): value if isinstance(value, str) else format_number(value)
        for name, value in attributes.items()
    }
    return SubElement(parent, tag, ({"class": css} if css else {}) | texts)


def add_line(parent: Element, css: str, start: Place, end: Place) -> None:
    """Add a straight line."""
    add(parent, "line", css, x1=start[0], y1=start[1], x2=end[0], y2=end[1])


def add_text(parent: Element, css: str, at: Place, text: str, anchor: str = "start") -> Element:
    """Add a line of escaped text. `at` is the left end of its baseline, or its `anchor`."""
    element = add(parent, "text", css, x=at[0], y=at[1])
    if anchor != "start":
        element.set("text-anchor", anchor)
    element.text = escape_text(text)
    return element


def add_notes(picture: Element, notes: Sequence[str], at: Place, width: float) -> float:
    """Draw notes in as few lines as possible, and return the y of the last baseline."""
    lines: list[str] = []
    for note in notes:
        longer = f"{lines[-1]} · {note}" if lines else note
        if lines and measure_text(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(note)
    for number, line in enumerate(lines):
        add_text(picture, "unit", (at[0], at[1] + number * LINE_HEIGHT), line)
    return at[1] + (len(lines) - 1) * LINE_HEIGHT


def add_rectangle(
    parent: Element, css: str, place: tuple[float, float, float, float], tooltip: str = ""
) -> None:
    """Add a rectangle, given its left, top, width and height.

    A browser shows the tooltip while the pointer is over it.
    """
    x, y, width, height = place
    element = add(parent, "rect", css, x=x, y=y, width=width, height=height)
    if tooltip:
        SubElement(element, "title").text = escape_text(tooltip)


def format_number(value: float) -> str:
    """Format a coordinate with at most one decimal."""
    return f"{value:z.1f}".removesuffix(".0")


def measure_text(text: str) -> float:
    """Estimate the width of text in pixels in common fonts, erring on the wide side."""
    return sum(map(_measure_character, text)) * FONT_SIZE


def _measure_character(character: str) -> float:
    if character in _WIDTHS:
        return _WIDTHS[character]
    if unicodedata.east_asian_width(character) in "WF":
        return 1
    if unicodedata.category(character) in _ZERO_WIDTH:
        return 0
    return 0.7 if character.isupper() else 0.6


def fit_text(text: str, width: float, scale: float = 1) -> str:
    """Return untrusted text, escaped, and cut with an ellipsis if it is wider than `width`.

    `scale` is the width of the font relative to plain text.
    """
    shown = escape_text(text, max_length=_MAX_NAME_LENGTH)
    if measure_text(shown) * scale <= width:
        return shown

    def measure(length: int) -> float:
        return measure_text(escape_text(text, max_length=length))

    fitting = bisect_right(range(1, _MAX_NAME_LENGTH), width / scale, key=measure)
    return escape_text(text, max_length=max(fitting, 1))


def wrap_text(text: str, width: float, scale: float, most: int) -> list[str]:
    """Return untrusted text, escaped, in at most `most` lines. The last line may be cut."""
    lines: list[str] = []
    for word in escape_text(text).split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and (measure_text(longer) * scale <= width or len(lines) == most):
            lines[-1] = longer
        else:
            lines.append(word)
    return [fit_text(line, width, scale) for line in lines]


def name_servers(servers: Sequence[NamedServer]) -> list[str]:
    """Return each server's hostname, with the identifier added if several servers share it."""
    hostnames = [remove_color_codes(server.hostname).strip() for server in servers]
    shared = {hostname for hostname in hostnames if hostname and hostnames.count(hostname) > 1}
    return [
        f"{hostname} ({server.server_id})"
        if hostname in shared
        else hostname or format_id(server.server_id)
        for hostname, server in zip(hostnames, servers, strict=True)
    ]


Theme = Literal["light", "dark", "auto"]
"""The colors of a picture. `auto` follows the reader's screen, and is light elsewhere."""

_BLOCK = re.compile(r":root \{(.*?)\}", re.DOTALL)
_VARIABLE = re.compile(r"(--[\w-]+): ([^;]+);")
_USE = re.compile(r"var\((--[\w-]+)\)")
_COMMENT = re.compile(r"/\*.*?\*/\s*", re.DOTALL)


def read_palette(theme: Theme) -> dict[str, str]:
    """Return the colors of a theme by variable name.

    The series use the colors of Okabe and Ito, darkened or lightened until their contrast with the
    paper is at least 3:1. With simulated color blindness, any two differ by at least 7 in the color
    space Oklab, on a scale of 100.
    """
    blocks = _BLOCK.findall(read_asset("palette.css"))
    light, dark = (dict(_VARIABLE.findall(block)) for block in blocks)
    return light | dark if theme == "dark" else light


def build_style(theme: Theme) -> str:
    """Return the style sheet of pictures with a theme's colors."""
    if theme == "auto":
        query = "@media screen and (prefers-color-scheme: dark)"
        return f"{build_style('light')}{query} {{\n{build_style('dark')}}}\n"
    palette = read_palette(theme)
    rules = _COMMENT.sub("", read_asset("pictures.css"))
    return _USE.sub(lambda use: palette[use[1]], rules)


def encode_svg(picture: Element, theme: Theme = "light", scale: int = 1) -> bytes:
    """Encode a picture as a self-contained SVG file. Equal pictures give equal bytes.

    The file is `scale` times as large as the picture, including its text.
    """
    root = deepcopy(picture)
    _, _, width, height = root.get("viewBox", "").split()
    root.attrib |= {
        "xmlns": "http://www.w3.org/2000/svg",
        "width": str(int(width) * scale),
        "height": str(int(height) * scale),
    }
    style = Element("style")
    style.text = build_style(theme)
    paper = Element("rect", {"class": "paper", "width": width, "height": height})
    # The title and the description of an element must come first.
    at = sum(child.tag in ("title", "desc") for child in root)
    root[at:at] = [style, paper]
    encoded: bytes = tostring(root, encoding="utf-8")
    return encoded + b"\n"


PIXELS = 2
"""The pixels of a PNG per pixel of the picture, in each direction."""


def encode_png(picture: Element, theme: Theme = "light", scale: int = 1) -> bytes:
    """Encode a picture as a PNG that looks like its SVG.

    Text is set in Noto Sans: a machine may have no font, and resvg then omits text silently.
    Characters that Noto Sans lacks, such as Chinese characters and emoji, use a system font or
    become boxes.

    Raises MissingLibraryError if the extra `png` is not installed.
    """
    try:
        import fontpkg_noto_sans  # noqa: PLC0415 - only a PNG needs it
        import resvg_py  # noqa: PLC0415 - only a PNG needs it
    except ModuleNotFoundError:
        raise MissingLibraryError(
            "a PNG needs resvg and a font; run pip install 'srvstat[png]', or write an SVG"
        ) from None
    encoded: bytes = resvg_py.svg_to_bytes(
        svg_string=encode_svg(picture, theme, scale).decode("utf-8"),
        zoom=PIXELS,
        font_dirs=[str(fontpkg_noto_sans.ROOT / "files")],
        font_family="Noto Sans",
        sans_serif_family="Noto Sans",
    )
    return encoded


MARGIN = 8
"""The space between a box and the right edge of a picture."""
BELOW = 26
"""The space between a box and the lower edge of a picture, for axis labels."""
_BELOW_NOTES = 14
_TICK_GAP = 6
"""The distance between a label and its axis."""
_LABEL_BELOW = 18
"""The distance from an axis down to the baseline of its labels."""
_TIME_LABEL_WIDTH = 76
"""The minimum distance between two times on an axis."""


class Scale(NamedTuple):
    """A linear scale: `low` is at pixel `start`, and `high` at pixel `end`."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return the pixel of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def draw_notes(picture: Element, notes: Sequence[str], size: Size) -> float:
    """Draw notes at the top of a picture, and return the y below them."""
    return add_notes(picture, notes, (0, FONT_SIZE), size.width) + _BELOW_NOTES


def measure_ticks(ticks: Sequence[float], unit: str = "") -> float:
    """Return the width of a vertical axis's labels, including the space beside them."""
    return max(map(measure_text, format_ticks(ticks))) + measure_text(unit) + _TICK_GAP


def choose_player_ticks(highest: float | None, height: float) -> list[float]:
    """Return the ticks of a player axis, from 0, for a height in pixels."""
    return choose_ticks(0, highest, max(int(height // 36), 4)) if highest else [0, 1]


def draw_value_axis(picture: Element, box: Box, ticks: Sequence[float], unit: str = "") -> Scale:
    """Draw a horizontal line for each tick, with a label on the left, and return the scale."""
    scale = Scale(ticks[0], ticks[-1], box.bottom, box.top)
    for tick, label in zip(ticks, format_ticks(ticks), strict=True):
        y = scale.place(tick)
        css = "axis" if tick == ticks[0] else "grid"
        add_line(picture, css, (box.left, y), (box.right, y))
        add_text(picture, "tick", (box.left - _TICK_GAP, y + FONT_SIZE / 3), label + unit, "end")
    return scale


def choose_time_labels(
    box: Box, ends: tuple[int, int], zone: ZoneInfo, least: int = 0
) -> list[TimeTick]:
    """Return the ticks of a time axis for the width of a box; see `choose_time_ticks`."""
    return choose_time_ticks(*ends, max(int(box.width // _TIME_LABEL_WIDTH), 2), zone, least)


def draw_tick(picture: Element, box: Box, x: float, label: str) -> None:
    """Draw a mark and a label below the box. The label is centered as far as space allows."""
    add_line(picture, "axis", (x, box.bottom), (x, box.bottom + 4))
    half = measure_text(label) / 2
    centered = min(max(x, half), max(x - half, box.right + MARGIN - half))
    add_text(picture, "tick", (centered, box.bottom + _LABEL_BELOW), label, "middle")


NO_OBSERVATIONS = "no observations"


def draw_words(picture: Element, box: Box, words: str) -> None:
    """Draw words in the middle of an otherwise empty box."""
    middle = (box.left + box.right) / 2, (box.top + box.bottom + FONT_SIZE) / 2
    add_text(picture, "unit", middle, words, "middle")


_BESIDE_MARK = 4


def draw_mark_labels(
    picture: Element, marks: Sequence[tuple[float, str]], place: Place, rows: int
) -> None:
    """Draw the labels of marks in rows, from the top down.

    - `marks`: the position and label of each mark, from left to right.
    - `place`: the right edge of the picture and the top of the rows.

    A label is to the right of its mark, or to the left if there is no room. It is in the highest
    row in which neither the label nor the line of its mark meets an earlier label, and is omitted
    if there is no such row.
    """
    top, right = place
    ends = [0.0] * rows
    for x, label in marks:
        shown = fit_text(label, right / 2)
        width = measure_text(shown) + _BESIDE_MARK
        start = x if x + width <= right else x - width
        free = (row for row in range(rows) if max(ends[row:]) <= start)
        row = next(free, None)
        if row is not None:
            ends[row] = start + width + _BESIDE_MARK
            y = top + row * LINE_HEIGHT
            add_text(picture, "label", (start + (_BESIDE_MARK if start == x else 0), y), shown)


HEADING = 25
_BETWEEN_ROWS = 10
_LEAST_NAME = 80
"""The minimum width of a name in pixels, and of the space after it."""


def divide_rows(area: Box, count: int) -> list[Box]:
    """Return the boxes of rows of equal height, from the top, with some space between them."""
    height = (area.height + _BETWEEN_ROWS) / max(count, 1) - _BETWEEN_ROWS
    tops = [area.top + number * (height + _BETWEEN_ROWS) for number in range(count)]
    return [Box(area.left, top, area.right, top + height) for top in tops]


def draw_heading(
    picture: Element, row: Box, name: str, figures: Sequence[str], css: str = ""
) -> Box:
    """Draw a server's name and texts above a row, and return the box below.

    Texts after the first are omitted if they leave too little room for the name. The CSS class, if
    any, applies to the first.
    """
    y = row.top + FONT_SIZE
    text = figures[0]
    for figure in figures[1:]:
        longer = f"{text}, {figure}"
        if row.right - measure_text(longer) >= _LEAST_NAME:
            text = longer
    add_text(picture, "heading", (0, y), fit_text(name, row.right - measure_text(text) - 12, BOLD))
    element = add_text(picture, "tick", (row.right, y), "" if css else text, "end")
    if css:
        first = add(element, "tspan", css)
        first.text, first.tail = figures[0], text.removeprefix(figures[0])
    return row._replace(top=row.top + HEADING)


KEY_HEIGHT = 17

_LINE_WIDTH = 18
_SPACE = 6
"""The space between a line and its name."""
_BETWEEN_KEYS = 16
"""The space between keys in a row."""


def measure_key(name: str) -> float:
    """Return the width of a key, rounded up."""
    return _LINE_WIDTH + _SPACE + measure_text(escape_text(name)) + 1


def flow_keys(names: Sequence[str], width: float) -> list[tuple[float, int]]:
    """Return the left end and the row of each key, using as few rows as possible."""
    places: list[tuple[float, int]] = []
    left, row = 0.0, 0
    for name in names:
        own = measure_key(name)
        if left and left + own > width:
            left, row = 0.0, row + 1
        places.append((left, row))
        left += own + _BETWEEN_KEYS
    return places


def draw_key(picture: Element, number: int, name: str, at: Place, width: float) -> None:
    """Draw the key of a series, cut to a width. `at` is its left middle. Series 0 has no line."""
    left, y = at
    group = add(picture, "g", f"key series-{number}")
    if number:
        add_line(group, "line", (left, y), (left + _LINE_WIDTH, y))
    text = left + _LINE_WIDTH + _SPACE
    add_text(
        group,
        "label" if number else "unit",
        (text, y + FONT_SIZE / 3),
        fit_text(name, left + width - text),
    )


def spread_keys(wanted: Sequence[float], box: Box) -> list[float]:
    """Return the vertical positions of keys, moved so that no keys overlap or leave the box."""
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    placed = list(wanted)
    floor = box.top
    for at in order:
        placed[at] = max(placed[at], floor)
        floor = placed[at] + KEY_HEIGHT
    ceiling = box.bottom
    for at in reversed(order):
        placed[at] = min(placed[at], ceiling)
        ceiling = placed[at] - KEY_HEIGHT
    return placed
