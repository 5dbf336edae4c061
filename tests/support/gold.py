"""Compare tables with the stored ones in tests/gold."""

import os

from conftest import ROOT
from srvstat.version import __version__

GOLD = ROOT / "tests" / "gold"


def check_gold(name: str, text: str) -> None:
    """Compare with a stored table; GOLD=write replaces it, so that git shows the difference.

    The stored table has VERSION in place of the version of srvstat.
    """
    text = text.replace(f"srvstat {__version__}", "srvstat VERSION")
    path = GOLD / f"{name}.txt"
    if os.environ.get("GOLD") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
