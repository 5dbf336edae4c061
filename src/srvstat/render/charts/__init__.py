"""Documents as charts for a terminal, one file for each kind of chart."""

from collections.abc import Callable, Mapping
from typing import Any

from srvstat.documents.distribution import Distribution
from srvstat.documents.growth import GrowthDocument
from srvstat.documents.history import StepTable
from srvstat.documents.peak_hours import PeakHours
from srvstat.render.charts.distribution import render_distribution
from srvstat.render.charts.growth import render_growth
from srvstat.render.charts.peak_hours import render_peak_hours
from srvstat.render.charts.step_chart import render_step_chart
from srvstat.render.screen import Screen

ChartDocument = Distribution | GrowthDocument | PeakHours | StepTable

_RENDERERS: Mapping[type, Callable[[Any, Screen], str]] = {
    Distribution: render_distribution,
    GrowthDocument: render_growth,
    PeakHours: render_peak_hours,
    StepTable: render_step_chart,
}


def render_chart(document: ChartDocument, screen: Screen) -> str:
    """Render a document as a chart for a screen. Figures are rounded."""
    return _RENDERERS[type(document)](document, screen)
