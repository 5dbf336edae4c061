"""Compare tables with the stored ones in tests/gold."""

import os

from conftest import ROOT

GOLD = ROOT / "tests" / "gold"


def check_gold(name: str, text: str) -> None:
    """Compare with a stored table; GOLD=write replaces it, so that git shows the difference."""
    path = GOLD / f"{name}.txt"
    if os.environ.get("GOLD") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
