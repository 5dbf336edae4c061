"""Build the elements of SVG pictures, and encode them as files.

Geometry is in attributes, looks are in CSS classes.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from copy import deepcopy
from typing import Literal, NamedTuple, Protocol
from xml.etree.ElementTree import Element, SubElement, tostring

from srvstat.contract.errors import MissingLibraryError
from srvstat.documents.document import remove_color_codes
from srvstat.render.text import escape_text
from srvstat.web import read_asset

FONT_SIZE = 12
"""The height of text in pixels, as in pictures.css."""

BOLD = 1.15
"""The width of bold text in widths of plain text."""
LINE_HEIGHT = 16
"""The distance of two lines of text."""

_MAX_NAME_LENGTH = 100
_WIDTHS = {
    **dict.fromkeys("iIjl.,:;'|! ", 0.32),
    **dict.fromkeys("ftr()[]-", 0.41),
    **dict.fromkeys("mwMW@%", 1.0),
    **dict.fromkeys("0123456789", 0.64),
}
"""The widths of characters in a wide font, in heights of the text."""
_ZERO_WIDTH = frozenset({"Mn", "Me"})


class Size(NamedTuple):
    """The size of a picture in pixels."""

    width: int
    height: int


class Box(NamedTuple):
    """A rectangle of a picture; y grows downwards."""

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


class NamedServer(Protocol):
    """A server of any document."""

    @property
    def server_id(self) -> str:
        """The identifier."""

    @property
    def hostname(self) -> str:
        """What its owner calls it; may be empty, and equal to that of another server."""


def create_picture(name: str, size: Size, title: str, sentences: Sequence[str]) -> Element:
    """Return an empty picture of a class, with its title and a description in words."""
    width, height = size
    attributes = {"class": f"picture {name}", "viewBox": f"0 0 {width} {height}", "role": "img"}
    picture = Element("svg", attributes)
    SubElement(picture, "title").text = escape_text(title)
    SubElement(picture, "desc").text = escape_text(" ".join(sentences))
    return picture


def add(parent: Element, tag: str, css: str = "", **attributes: float | str) -> Element:
    """Add an element with CSS classes and attributes. Numbers have at most one decimal."""
    texts = {
        name.replace("_", "-"): value if isinstance(value, str) else format_number(value)
        for name, value in attributes.items()
    }
    return SubElement(parent, tag, ({"class": css} if css else {}) | texts)


def add_line(
    parent: Element, css: str, start: tuple[float, float], end: tuple[float, float]
) -> None:
    """Add a straight line."""
    add(parent, "line", css, x1=start[0], y1=start[1], x2=end[0], y2=end[1])


def add_text(
    parent: Element, css: str, at: tuple[float, float], text: str, anchor: str = "start"
) -> Element:
    """Add a line of text, escaped, at the left end of its base line or at another `anchor`."""
    element = add(parent, "text", css, x=at[0], y=at[1])
    if anchor != "start":
        element.set("text-anchor", anchor)
    element.text = escape_text(text)
    return element


def add_notes(
    picture: Element, notes: Sequence[str], at: tuple[float, float], width: float
) -> float:
    """Draw notes in as few lines as fit, the first base line at `at`; return the last one."""
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


def add_tooltip(element: Element, text: str) -> None:
    """Add what a browser shows while the pointer is over an element."""
    SubElement(element, "title").text = escape_text(text)


def format_number(value: float) -> str:
    """Format a coordinate with at most one decimal."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def measure_text(text: str) -> float:
    """Estimate the width of text in pixels, in common fonts; rather too wide than too narrow."""
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
    """Return foreign text, escaped, and cut with an ellipsis if it is wider than `width`.

    `scale` is the width of its font in widths of plain text.
    """
    shown = escape_text(text, max_length=_MAX_NAME_LENGTH)
    if measure_text(shown) * scale <= width:
        return shown
    lengths = range(1, _MAX_NAME_LENGTH)
    fitting = bisect_right(
        lengths,
        width / scale,
        key=lambda length: measure_text(escape_text(text, max_length=length)),
    )
    return escape_text(text, max_length=max(fitting, 1))


def name_servers(servers: Sequence[NamedServer]) -> list[str]:
    """Return the hostname of each server, with the identifier if several share the hostname."""
    hostnames = [remove_color_codes(server.hostname).strip() for server in servers]
    return [
        hostname
        if hostname and hostnames.count(hostname) == 1
        else f"{hostname} ({server.server_id})".lstrip()
        if hostname
        else server.server_id
        for hostname, server in zip(hostnames, servers, strict=True)
    ]


Theme = Literal["light", "dark"]

_BLOCK = re.compile(r":root \{(.*?)\}", re.DOTALL)
_VARIABLE = re.compile(r"(--[\w-]+): ([^;]+);")
_USE = re.compile(r"var\((--[\w-]+)\)")
_COMMENT = re.compile(r"/\*.*?\*/\s*", re.DOTALL)


def read_palette(theme: Theme) -> dict[str, str]:
    """Return the colors of a theme by the names of their variables."""
    light, dark = (
        dict(_VARIABLE.findall(text)) for text in _BLOCK.findall(read_asset("palette.css"))
    )
    return light | dark if theme == "dark" else light


def build_style(theme: Theme) -> str:
    """Return the style sheet of pictures with the colors of a theme."""
    palette = read_palette(theme)
    rules = _COMMENT.sub("", read_asset("pictures.css"))
    return _USE.sub(lambda use: palette[use[1]], rules)


def encode_svg(picture: Element, theme: Theme = "light") -> bytes:
    """Return a picture as an SVG file that needs no other file. Equal pictures give equal bytes."""
    root = deepcopy(picture)
    _, _, width, height = root.get("viewBox", "").split()
    root.attrib |= {"xmlns": "http://www.w3.org/2000/svg", "width": width, "height": height}
    style = Element("style")
    style.text = build_style(theme)
    paper = Element("rect", {"class": "paper", "width": width, "height": height})
    # The title and the description of an element must come first.
    at = sum(child.tag in ("title", "desc") for child in root)
    root[at:at] = [style, paper]
    encoded: bytes = tostring(root, encoding="utf-8")
    return encoded + b"\n"


PIXELS = 2
"""The pixels of a PNG for each pixel of the picture, in each direction."""


def encode_png(picture: Element, theme: Theme = "light") -> bytes:
    """Return a picture as a PNG with the looks of its SVG.

    Text is in Noto Sans, so the same picture looks the same on all machines. Characters that this
    font lacks, such as Chinese ones and emoji, are in a font of the machine, or boxes without one.

    Raises MissingLibraryError.
    """
    try:
        import fontpkg_noto_sans  # noqa: PLC0415 - only a PNG needs it
        import resvg_py  # noqa: PLC0415 - only a PNG needs it
    except ModuleNotFoundError:
        raise MissingLibraryError(
            "a PNG needs resvg and a font; run pip install 'srvstat[png]', or write an SVG"
        ) from None
    encoded: bytes = resvg_py.svg_to_bytes(
        svg_string=encode_svg(picture, theme).decode("utf-8"),
        zoom=PIXELS,
        font_dirs=[str(fontpkg_noto_sans.ROOT / "files")],
        font_family="Noto Sans",
        sans_serif_family="Noto Sans",
    )
    return encoded
