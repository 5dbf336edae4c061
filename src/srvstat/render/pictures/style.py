"""Encode pictures as files, with the looks of the style sheets in them."""

import re
from copy import deepcopy
from typing import Literal
from xml.etree.ElementTree import Element, tostring

from srvstat.web import read_asset

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
