"""Choose the size of a picture for its width and contents."""

from srvstat.documents.analysis import Distribution, GrowthDocument, ServerPeakHours, Timeline
from srvstat.render.pictures.keys import KEY_HEIGHT
from srvstat.render.pictures.svg import Size


def choose_size(
    document: Timeline | ServerPeakHours | Distribution | GrowthDocument, width: int
) -> Size:
    """Return the size that suits a picture of a document."""
    if isinstance(document, Timeline):
        keys = KEY_HEIGHT * len(document.servers)
        return Size(width, min(max(width // 3, 220 + keys), 480))
    if isinstance(document, ServerPeakHours):
        row = min(max(width // 36, 20), 34)
        return Size(width, 7 * row + 72)
    count = len(document.servers)
    rows = count * (96 if isinstance(document, Distribution) else 132)
    return Size(width, max(rows, 180) + 72)
