"""Documents as charts for a terminal, one file for each kind of chart."""

from collections.abc import Callable, Mapping
from typing import Any

from srvstat.documents.history import StepTable
from srvstat.documents.timeline import Timeline
from srvstat.render.charts.line_chart import render_step_chart, render_timeline
from srvstat.render.screen import Screen

ChartDocument = StepTable | Timeline

_RENDERERS: Mapping[type, Callable[[Any, Screen], str]] = {
    StepTable: render_step_chart,
    Timeline: render_timeline,
}


def render_chart(document: ChartDocument, screen: Screen) -> str:
    """Render a document as a chart for a screen. Figures are rounded."""
    return _RENDERERS[type(document)](document, screen)
