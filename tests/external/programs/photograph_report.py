"""Photograph the first sections of a report of the demo for docs/pictures.md: `make photo`.

Arguments: Chromium, srvstat, and the PNG to write. No test compares its pixels, which depend on the
fonts of the machine.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from chromium_pages import Notes, launch, open_page
from PIL import Image
from playwright.sync_api import Browser

REPORT = (
    *("report", "harbor-city", "old-guard", "new-frontier", "--range", "60d"),
    *("--tz", "Europe/Berlin", "--snapshot", "srvstat-demo/snapshot.db", "-o", "report.html"),
)
WIDTH = 1024
LAST_SECTION = "#players"
COLORS = 128
"""Nobody sees that there are not more, and the file is a third as large."""


def photograph(browser: Browser, url: str, path: str) -> None:
    """Write a PNG of a page in light colors, down to the end of LAST_SECTION."""
    settings = {"viewport": {"width": WIDTH, "height": 900}, "color_scheme": "light"}
    with open_page(browser, url, Notes(), **settings) as page:
        box = page.locator(LAST_SECTION).bounding_box()
        assert box
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": box["y"] + box["height"] + 24}
        page.screenshot(path=path, full_page=True, clip=clip)
    with Image.open(path) as picture:
        picture.quantize(COLORS).save(path, optimize=True)


def main() -> None:
    chromium, srvstat, path = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory, launch(chromium) as browser:
        for words in (("demo",), REPORT):
            command = [Path(srvstat).resolve(), *words]
            subprocess.run(command, cwd=directory, check=True, capture_output=True)
        photograph(browser, (Path(directory) / "report.html").as_uri(), path)


main()
