"""Move the cursor through the interactive chart of a page in Chromium: whole, and zoomed.

Arguments: Chromium, and the address of the page. Prints what the chart shows at each step as JSON.
"""

import json
import sys
from typing import Any

from chromium_pages import Notes, launch, open_page
from playwright.sync_api import Page

READ_CHART = """root => ({
    from: root.dataset.from,
    caption: root.querySelector('caption').textContent,
    announced: root.querySelector('[aria-live]').textContent,
    label: root.querySelector('.cursor-label').textContent,
    notes: root.querySelector('.unit').textContent,
    ticks: [...root.querySelectorAll('line.grid, line.axis')]
        .filter((line) => line.getAttribute('y1') === line.getAttribute('y2'))
        .map((line) => [Number(line.getAttribute('y1')), line.nextSibling.textContent]),
    rows: [...root.querySelectorAll('tr[data-server]')].map((row) => ({
        average: row.dataset.average,
        observations: row.dataset.observations,
        texts: [...row.cells].map((cell) => cell.innerText.trim()),
    })),
    lines: [...root.querySelectorAll('.picture > .series')].map((series) => Object.fromEntries(
        [...series.querySelectorAll('.line')].map((line) => [
            line.getAttribute('class'), line.getAttribute('d')]))),
    dots: Object.fromEntries([...root.querySelectorAll('.cursor ~ .series circle')].map((dot) => [
        dot.parentNode.getAttribute('class'), {
            name: dot.getAttribute('class'),
            x: Number(dot.getAttribute('cx')),
            y: Number(dot.getAttribute('cy')),
        }])),
})"""


def walk(page: Page) -> list[dict[str, Any]]:
    """Move the cursor through the steps in the picture."""
    chart = page.locator(".chart")
    page.keyboard.press("Home")
    shown = [chart.evaluate(READ_CHART)]
    while True:
        page.keyboard.press("ArrowRight")
        found = chart.evaluate(READ_CHART)
        # It scrolls after the last step of the picture, and stays at the last one of the window.
        if found["lines"] != shown[-1]["lines"] or found["from"] == shown[-1]["from"]:
            return shown
        shown.append(found)


def main() -> None:
    chromium, url = sys.argv[1:]
    notes = Notes()
    with launch(chromium) as browser, open_page(browser, url, notes) as page:
        page.locator(".chart-plot").focus()
        views = [walk(page)]
        for key in ("Escape", "+", "+", "+"):
            page.keyboard.press(key)
        views.append(walk(page))
    sys.stdout.write(json.dumps({"views": views, "console": notes.console, "errors": notes.errors}))


main()
