"""Measure the page of a report in headless Chromium: its size, and how long it blocks the page."""

import os
import shutil
from importlib.util import find_spec
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import fleet
from benchmarks.data import FleetFiles
from benchmarks.measure import find_program, print_progress, run
from benchmarks.questions import SERVERS_PER_REQUEST

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ABSENT = "needs Chromium and Playwright"

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
_OPENINGS = 5
_IDLE_MS = 500

# Chromium reports tasks of 50 ms and more.
_OBSERVE = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.longTasks.push(entry.duration);
}).observe({ type: 'longtask', buffered: true });
"""
_ZOOMS = ("+", "+", "+", "-", "ArrowRight", "Shift+ArrowRight", "Escape")


class PageCost(NamedTuple):
    """The page of a report about five servers over a year."""

    megabytes: float
    longest_task: float | None
    """Milliseconds, while the page opens and is zoomed; 0 below 50, and None without a browser."""


def measure_page(files: FleetFiles, directory: str) -> PageCost:
    """Write a report about five servers of a fleet, open it, and zoom its chart with keys.

    Raises FailedError.
    """
    print_progress("opening a report in Chromium")
    path = os.path.join(directory, "report.html")
    servers = [fleet.build_server_id(at) for at in range(SERVERS_PER_REQUEST)]
    options = ["--snapshot", files.snapshot, "--range", "1y", "--output", path, "--overwrite"]
    run([find_program("srvstat"), "report", *servers, *options])
    return PageCost(os.path.getsize(path) / 1_000_000, _measure_longest_task(path))


def _measure_longest_task(path: str) -> float | None:
    """Return the median, over several openings, of the longest task."""
    program = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if program is None or find_spec("playwright") is None:
        return None
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - an optional library

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_OPTIONS))
        times = [_open_page(browser, path) for _ in range(_OPENINGS)]
        browser.close()
    return median(times)


def _open_page(browser: "Browser", path: str) -> float:
    """Open a page, zoom its chart, and return the longest task in milliseconds."""
    page = browser.new_page()
    page.add_init_script(_OBSERVE)
    page.goto(f"file://{os.path.abspath(path)}")
    page.locator(".chart-plot").focus()
    for key in _ZOOMS:
        page.keyboard.press(key)
    page.wait_for_timeout(_IDLE_MS)
    longest = float(page.evaluate("Math.max(0, ...window.longTasks)"))
    page.close()
    return longest
