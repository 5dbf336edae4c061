"""Take the screenshots of docs/how-to/draw.md, with the data of the demo: `make screenshots`.

Arguments: Chromium, srvstat, and the directory for the PNGs. No test compares their pixels, which
depend on the fonts of the machine.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from chromium_pages import Notes, launch, open_page, serve
from PIL import Image
from playwright.sync_api import Browser

REPORT = (
    *("report", "harbor-city", "old-guard", "new-frontier", "--range", "60d"),
    *("--tz", "Europe/Berlin", "--snapshot", "srvstat-demo/snapshot.db", "-o", "report.html"),
)
SERVERS = "/#id=harbor-city&id=old-guard&id=new-frontier&range=30d"
WIDTH = 1024
COLORS = 128
"""More colors look the same, in a file three times as large."""


def take_screenshot(browser: Browser, url: str, last_section: str, path: Path) -> None:
    """Write a PNG of a page in light colors, down to the end of a section."""
    settings = {"viewport": {"width": WIDTH, "height": 900}, "color_scheme": "light"}
    with open_page(browser, url, Notes(), **settings) as page:
        page.locator(f"{last_section} svg").first.wait_for()
        box = page.locator(last_section).bounding_box()
        assert box
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": box["y"] + box["height"] + 24}
        page.screenshot(path=path, full_page=True, clip=clip)
    with Image.open(path) as picture:
        picture.quantize(COLORS).save(path, optimize=True)


def main() -> None:
    chromium, srvstat, pictures = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as directory, launch(chromium) as browser:
        for words in (("demo",), REPORT):
            subprocess.run([srvstat, *words], cwd=directory, check=True, capture_output=True)
        report = (Path(directory) / "report.html").as_uri()
        take_screenshot(browser, report, "#players", pictures / "report.png")
        with serve(srvstat, directory, "--explore") as url:
            take_screenshot(browser, url + SERVERS, "#chart", pictures / "explore.png")


main()
