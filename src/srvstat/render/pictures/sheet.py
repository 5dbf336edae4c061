"""Arrange pictures on a sheet with a title and their source, for a file of its own."""

from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

from srvstat.documents.analysis import (
    Distribution,
    GrowthDocument,
    PeakHours,
    ServerPeakHours,
    Timeline,
)
from srvstat.documents.document import WindowPart
from srvstat.render.local_time import format_local_time, format_zoned_time
from srvstat.render.pictures import svg
from srvstat.render.pictures.bars import draw_distribution, draw_growth, draw_heat_map
from srvstat.render.pictures.timeline import draw_timeline


def choose_size(
    document: Timeline | ServerPeakHours | Distribution | GrowthDocument, width: int
) -> svg.Size:
    """Return the size that suits a picture of a document."""
    if isinstance(document, Timeline):
        keys = svg.KEY_HEIGHT * len(document.servers)
        return svg.Size(width, min(max(width // 3, 220 + keys), 480))
    if isinstance(document, ServerPeakHours):
        row = min(max(width // 36, 20), 34)
        return svg.Size(width, 7 * row + 72)
    count = len(document.servers)
    rows = count * (96 if isinstance(document, Distribution) else 132)
    return svg.Size(width, max(rows, 180) + 72)


_PADDING = 20
_TITLE_SIZE = 18
_HEADING_HEIGHT = 24
_BETWEEN = 12

PictureDocument = Timeline | PeakHours | Distribution | GrowthDocument


class _Panel(NamedTuple):
    """A picture of a sheet, with the name above it, if any."""

    name: str
    picture: Element


def draw_sheet(document: PictureDocument, width: int, zone: ZoneInfo) -> Element:
    """Draw a document with a title, its window on the clock of `zone`, and its source.

    Heat maps of several servers are one below the other.
    """
    inner = width - 2 * _PADDING
    panels = _draw_panels(document, inner, zone)
    title = f"Players of {_join_names(document.servers)}"
    notes = [_describe_window(document.window, zone), zone.key]
    if isinstance(document, PeakHours):
        notes.insert(0, "by hour of the week")
    descriptions = (
        (f"{one.name}: " if one.name else "") + one.picture.findtext("desc", "") for one in panels
    )
    as_of = format_zoned_time(document.as_of, zone, "minutes")
    source = ["srvstat", f"as of {as_of}", f"root {document.root[:8]}"]
    sentences = [", ".join(notes) + ".", *descriptions, ", ".join(source) + "."]
    sheet = svg.create_picture("sheet", svg.Size(width, 0), title, sentences)
    shown = svg.fit_text(title, inner, svg.BOLD * _TITLE_SIZE / svg.FONT_SIZE)
    svg.add_text(sheet, "title", (_PADDING, _PADDING + svg.FONT_SIZE), shown)
    top = svg.add_notes(sheet, notes, (_PADDING, _PADDING + 2.5 * svg.FONT_SIZE + 4), inner) + 20
    for panel in panels:
        top = _place_panel(sheet, panel, top)
    bottom = svg.add_notes(sheet, source, (_PADDING, top + 20), inner)
    sheet.set("viewBox", f"0 0 {width} {bottom + _PADDING - 4:.0f}")
    return sheet


def _draw_panels(document: PictureDocument, width: int, zone: ZoneInfo) -> list[_Panel]:
    if isinstance(document, PeakHours):
        names = svg.name_servers(document.servers) if len(document.servers) > 1 else [""]
        return [
            _Panel(
                svg.fit_text(name, width, svg.BOLD),
                draw_heat_map(server, choose_size(server, width)),
            )
            for name, server in zip(names, document.servers, strict=True)
        ]
    size = choose_size(document, width)
    if isinstance(document, Timeline):
        return [_Panel("", draw_timeline(document, size, zone))]
    if isinstance(document, Distribution):
        return [_Panel("", draw_distribution(document, size))]
    return [_Panel("", draw_growth(document, size))]


def _place_panel(sheet: Element, panel: _Panel, top: float) -> float:
    """Add a panel below `top`, and return the height below it."""
    if panel.name:
        svg.add_text(sheet, "heading", (_PADDING, top + svg.FONT_SIZE), panel.name)
        top += _HEADING_HEIGHT
    picture = deepcopy(panel.picture)
    _, _, width, height = picture.get("viewBox", "").split()
    place = {"x": str(_PADDING), "y": svg.format_number(top), "width": width, "height": height}
    picture.attrib |= place
    # The sheet is one image, with the descriptions of all panels.
    del picture.attrib["role"]
    for child in [one for one in picture if one.tag in ("title", "desc")]:
        picture.remove(child)
    sheet.append(picture)
    return top + float(height) + (_BETWEEN if panel.name else 0)


def _join_names(servers: Sequence[svg.NamedServer]) -> str:
    """Return the names of one or two servers, else their number."""
    if len(servers) > 2:  # noqa: PLR2004 - the picture has all names
        return f"{len(servers)} servers"
    return " and ".join(svg.name_servers(servers))


def _describe_window(window: WindowPart, zone: ZoneInfo) -> str:
    end = format_local_time(window.to, zone)
    if window.from_ is None:
        return f"all observations to {end}"
    return f"{format_local_time(window.from_, zone)} to {end}"
