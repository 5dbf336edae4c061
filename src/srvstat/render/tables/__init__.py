"""Answers and documents as tables, by subject. Figures are rounded; JSON is exact."""

from srvstat.render.screen import Renderers, Screen
from srvstat.render.tables import analysis, events, integrity, servers, support, today

_RENDERERS: Renderers = {
    **analysis.RENDERERS,
    **events.RENDERERS,
    **integrity.RENDERERS,
    **servers.RENDERERS,
    **support.RENDERERS,
    **today.RENDERERS,
}


def render_table(document: object, screen: Screen) -> str:
    """Render a document that has a table for a screen."""
    return _RENDERERS[type(document)](document, screen)
