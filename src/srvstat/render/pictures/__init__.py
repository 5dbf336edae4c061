"""Static pictures of documents as SVG, drawn without any library."""

from srvstat.render.pictures.style import Theme, encode_svg
from srvstat.render.pictures.svg import Size
from srvstat.render.pictures.timeline import draw_timeline

__all__ = ["Size", "Theme", "draw_timeline", "encode_svg"]
