"""The pages, style sheets and scripts for browsers: files beside this one, without dependencies."""

from importlib.resources import files
from importlib.resources.abc import Traversable

CHART_SCRIPTS = ("timeline.js", "picture.js", "chart.js")
"""The scripts of the interactive chart, in the order in which a page must load them.

They define `srvstatChart.mount(container, timeline)`; its style is in `chart.css`. They draw SVG,
as `render/timeline.py` does: a canvas is a bitmap in print, ignores a dark theme, and hides its
text from screen readers. The figures at the cursor are in a table below the chart, which covers no
line, fits a phone and can be printed.
"""


DOCS_ASSETS = {
    "docs.css": "docs.css",
    "docs.js": "docs.js",
    "swagger-ui.css": "swagger-ui/swagger-ui.css",
    "swagger-ui-bundle.js": "swagger-ui/swagger-ui-bundle.js",
}
"""The files that `docs.html` names, by those names. `make api-page` adds those in swagger-ui."""


def find_asset(name: str) -> Traversable:
    """Return a file of this package, which may be missing if `make api-page` adds it."""
    return files(__name__).joinpath(name)


def read_asset(name: str) -> str:
    """Return the text of a file of this package, such as `chart.js`."""
    return find_asset(name).read_text(encoding="utf-8")
