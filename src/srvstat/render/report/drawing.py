"""Put pictures on a page, in a version for wide pages and one for narrow pages."""

from collections.abc import Callable
from xml.etree.ElementTree import Element

from srvstat.render.pictures import Size
from srvstat.render.report.elements import build


def build_drawing(draw: Callable[[Size], Element], wide: Size, narrow: Size) -> Element:
    """Build a picture for wide pages, and one for narrow pages."""
    return build(
        "div",
        build("div", draw(wide), class_="wide"),
        build("div", draw(narrow), class_="narrow"),
        class_="drawing",
    )
