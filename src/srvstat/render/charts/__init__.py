"""Documents as charts for a terminal, one file for each kind of chart."""

from collections.abc import Callable, Mapping
from typing import Any

from srvstat.documents.history import StepTable
from srvstat.render.charts.line_chart import render_step_chart
from srvstat.render.screen import Screen

ChartDocument = StepTable

_RENDERERS: Mapping[type, Callable[[Any, Screen], str]] = {
    StepTable: render_step_chart,
}


def render_chart(document: ChartDocument, screen: Screen) -> str:
    """Render a document as a chart for a screen. Figures are rounded."""
    return _RENDERERS[type(document)](document, screen)
