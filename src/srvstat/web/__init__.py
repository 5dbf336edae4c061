"""Style sheets and scripts for browsers: files beside this one, without any dependency."""

from importlib.resources import files


def read_asset(name: str) -> str:
    """Return the text of a file of this package, such as `chart.js`."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
