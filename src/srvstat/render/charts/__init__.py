"""Documents as charts for a terminal, one file for each kind of chart."""

from srvstat.documents.analysis import Distribution, GrowthDocument, PeakHours, StepTable
from srvstat.render.screen import Screen

ChartDocument = Distribution | GrowthDocument | PeakHours | StepTable


def render_chart(document: ChartDocument, screen: Screen) -> str:
    """Render a document as a chart for a screen. Figures are rounded."""
    # Importing all kinds of charts would take 8 ms, a quarter of the time that one may take.
    if isinstance(document, StepTable):
        from srvstat.render.charts.step_chart import render_step_chart  # noqa: PLC0415 - see above

        return render_step_chart(document, screen)
    if isinstance(document, Distribution):
        from srvstat.render.charts.distribution import render_distribution  # noqa: PLC0415 - see above

        return render_distribution(document, screen)
    if isinstance(document, GrowthDocument):
        from srvstat.render.charts.growth import render_growth  # noqa: PLC0415 - see above

        return render_growth(document, screen)
    from srvstat.render.charts.peak_hours import render_peak_hours  # noqa: PLC0415 - see above

    return render_peak_hours(document, screen)
