"""Pages, style sheets and scripts for browsers: files beside this module, without dependencies."""

from importlib.resources import files

CHART_SCRIPTS = ("timeline.js", "picture.js", "chart.js")
"""The scripts of the interactive chart, in the order in which a page must load them.

They define `srvstatChart.mount(container, timeline)`, styled by `chart.css`. Like
`render/timeline.py`, they draw SVG, because a canvas is a bitmap in print, ignores dark themes, and
hides its text from screen readers. The values at the cursor are in a table below the chart, where
they cover no line, fit on a phone and can be printed.
"""


def read_asset(name: str) -> str:
    """Return the text of a file in this package, such as `chart.js`."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
