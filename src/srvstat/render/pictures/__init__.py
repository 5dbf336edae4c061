"""Static pictures of documents as SVG, drawn without any library."""

from srvstat.render.pictures.distribution import draw_distribution
from srvstat.render.pictures.growth import draw_growth
from srvstat.render.pictures.heat_map import draw_heat_map, find_busiest
from srvstat.render.pictures.sheet import PictureDocument, draw_sheet
from srvstat.render.pictures.sizes import choose_size
from srvstat.render.pictures.style import Theme, encode_svg
from srvstat.render.pictures.svg import Size
from srvstat.render.pictures.timeline import draw_timeline

__all__ = [
    "PictureDocument",
    "Size",
    "Theme",
    "choose_size",
    "draw_distribution",
    "draw_growth",
    "draw_heat_map",
    "draw_sheet",
    "draw_timeline",
    "encode_svg",
    "find_busiest",
]
