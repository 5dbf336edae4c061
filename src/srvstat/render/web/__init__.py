"""The pages, style sheets and scripts for browsers: files beside this one, without dependencies."""

from importlib.resources import files

CHART_SCRIPTS = ("timeline.js", "picture.js", "chart.js")
"""The scripts of the interactive chart, in the order in which a page must load them.

They define `srvstatChart.mount(container, timeline)`; its style is in `chart.css`. They draw SVG,
as `render/timeline.py` does: a canvas is a bitmap in print, ignores a dark theme, and hides its
text from screen readers. The figures at the cursor are in a table below the chart, which covers no
line, fits a phone and can be printed.
"""


def read_asset(name: str) -> str:
    """Return the text of a file of this package, such as `chart.js`."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
