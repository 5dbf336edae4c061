"""Take the screenshots of docs/pictures.md, with the data of the demo: `make screenshots`.

Arguments: Chromium, srvstat, and the directory for the PNGs. No test compares their pixels, which
depend on the fonts of the machine.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chromium_pages import Notes, launch, open_page
from PIL import Image
from playwright.sync_api import Browser

REPORT = (
    *("report", "harbor-city", "old-guard", "new-frontier", "--range", "60d"),
    *("--tz", "Europe/Berlin", "--snapshot", "srvstat-demo/snapshot.db", "-o", "report.html"),
)
SERVICE = ("serve", "--snapshot", "srvstat-demo/snapshot.db", "--explore", "--port", "0")
SERVERS = "#id=harbor-city&id=old-guard&id=new-frontier&range=30d"
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


@contextmanager
def serve(srvstat: Path, directory: str) -> Iterator[str]:
    """Serve the explore page for a block, and yield its address."""
    with subprocess.Popen(
        [srvstat, *SERVICE], cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as service:
        assert service.stdout
        # The second line of the output has the address of the page.
        lines = service.stdout.readline(), service.stdout.readline()
        yield re.findall(r"http://\S+", lines[1].decode())[0]
        service.terminate()


def main() -> None:
    chromium, srvstat, pictures = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as directory, launch(chromium) as browser:
        for words in (("demo",), REPORT):
            subprocess.run([srvstat, *words], cwd=directory, check=True, capture_output=True)
        report = (Path(directory) / "report.html").as_uri()
        take_screenshot(browser, report, "#players", pictures / "report.png")
        with serve(srvstat, directory) as address:
            take_screenshot(browser, address + SERVERS, "#chart", pictures / "explore.png")


main()
