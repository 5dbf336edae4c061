"""Encode pictures as PNG. Only this module imports these libraries."""

from xml.etree.ElementTree import Element

from srvstat.contract.errors import MissingLibraryError
from srvstat.render.pictures.style import Theme, encode_svg

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
