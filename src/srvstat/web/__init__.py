"""The pages, style sheets and scripts for browsers: files beside this one, without dependencies."""

from importlib.resources import files

CHART_SCRIPTS = ("timeline.js", "picture.js", "chart.js")
"""The scripts of the interactive chart, in the order in which a page must load them.

They define `srvstatChart.mount(container, timeline, {timeZone})`; its style is in `chart.css`.
"""


def read_asset(name: str) -> str:
    """Return the text of a file of this package, such as `chart.js`."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
