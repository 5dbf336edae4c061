"""Use the interactive chart and the report in Chromium, and print what a test must know as JSON.

Arguments: `chart` or `report`, the path of Chromium, and the address or the path of the page.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chromium_pages import Notes, find_barriers, is_too_wide, launch, open_page
from playwright.sync_api import Browser, Page

READ_CHART = """root => ({
    from: root.dataset.from,
    caption: (root.querySelector('caption') ?? document.querySelector('caption')).textContent,
    announced: root.querySelector('[aria-live]').textContent,
    label: root.querySelector('.cursor-label').textContent,
    notes: root.querySelector('.unit').textContent,
    ticks: [...root.querySelectorAll('line.grid, line.axis')]
        .filter((line) => line.getAttribute('y1') === line.getAttribute('y2'))
        .map((line) => [Number(line.getAttribute('y1')), line.nextSibling.textContent]),
    rows: [...document.querySelectorAll('tr[data-server]')].map((row) => ({
        average: row.dataset.average,
        observations: row.dataset.observations,
        texts: ['.part', '[data-figure=average]'].map((name) => (
            row.querySelector(name)?.innerText.trim() ?? '')),
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


def browse_chart(chromium: str, url: str) -> Any:
    """Move the cursor through the chart of a page, whole and zoomed, and return what it shows."""
    notes = Notes()
    with launch(chromium) as browser, open_page(browser, url, notes) as page:
        page.locator(".chart-plot").focus()
        views = [walk(page)]
        for key in ("Escape", "+", "+", "+"):
            page.keyboard.press(key)
        views.append(walk(page))
    return {"views": views, "console": notes.console, "errors": notes.errors}


WIDTHS = (390, 1024, 1600)
PAPER = {"width": 687, "height": 900}
"""A4 between the margins of report.css: what is wider makes Chromium shrink all pages."""
MOST_STOPS = 200
READ_FOCUS = """() => {
    const element = document.activeElement;
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    const hasOutline = style.outlineStyle !== 'none';
    return [element.outerHTML.slice(0, 80), hasOutline, box.width * box.height > 0];
}"""
READ_FIGURES = """rows => rows.map((row) => ({...row.dataset}))"""
READ_DATA = """elements => elements.map((element) => [element.value, element.textContent])"""
LIST_SHOWN = "all => all.filter((one) => one.checkVisibility()).map((one) => one.textContent)"
COUNT_PICTURES = (
    """pictures => pictures.filter((one) => one.getBoundingClientRect().height > 50).length"""
)


def look_at_sizes(browser: Browser, url: str, notes: Notes) -> dict[str, Any]:
    """Return what is wrong at each width and in each color scheme."""
    found = {}
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            settings = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
            with open_page(browser, url, notes, **settings) as page:
                found[f"{width} {scheme}"] = {
                    "barriers": find_barriers(page),
                    "tooWide": is_too_wide(page),
                    "background": page.evaluate("getComputedStyle(document.body).backgroundColor"),
                }
    return found


def read_chart(page: Page) -> dict[str, Any]:
    chart = page.locator(".chart")
    return {
        "from": chart.get_attribute("data-from"),
        "to": chart.get_attribute("data-to"),
        "rows": page.eval_on_selector_all("tr[data-server]", READ_FIGURES),
        "announced": page.locator(".chart [aria-live]").inner_text(),
    }


def use_keys(page: Page) -> dict[str, Any]:
    """Go through a page with the Tab key, and through the chart with its keys."""
    stops = []
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        stop = page.evaluate(READ_FOCUS)
        if stop[0].startswith("<body"):
            break
        stops.append(stop)
    page.locator(".chart-plot").focus()
    charts = {"all": read_chart(page)}
    for name, key in (
        ("first", "Home"),
        ("second", "ArrowRight"),
        ("zoomed", "+"),
        ("back", "Escape"),
    ):
        page.keyboard.press(key)
        charts[name] = read_chart(page)
    page.locator("tr[data-server] button").first.press("Enter")
    pressed = page.locator("tr[data-server] button").first.get_attribute("aria-pressed")
    page.locator("summary").first.press("Enter")
    is_open = page.locator("details").first.evaluate("element => element.open")
    return {"stops": stops, "charts": charts, "pressed": pressed, "isOpen": is_open}


def hover(page: Page) -> dict[str, Any]:
    """Point at the chart, then select a part of it, which ends before the names."""
    page.locator(".chart-plot").scroll_into_view_if_needed()
    box = page.locator(".chart-plot").bounding_box()
    assert box
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    pointed = read_chart(page)
    page.mouse.move(box["x"] + box["width"] / 4, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 5 / 8, middle, steps=4)
    page.mouse.up()
    page.mouse.move(0, 0)
    return {"pointed": pointed, "selected": read_chart(page)}


def print_page(page: Page) -> dict[str, Any]:
    """Return what a printed page looks like, and its PDF's first bytes."""
    page.emulate_media(media="print", color_scheme="dark")
    return {
        "background": page.evaluate("getComputedStyle(document.body).backgroundColor"),
        "tooWide": is_too_wide(page),
        "tables": page.eval_on_selector_all("caption", LIST_SHOWN),
        "pictures": page.eval_on_selector_all("svg.picture", COUNT_PICTURES),
        "pdf": page.pdf(format="A4")[:5].decode(),
    }


def browse_report(chromium: str, path: str) -> Any:
    """Look at a report at several sizes, with keys, mouse and on paper, and return what is seen."""
    url = Path(path).as_uri()
    notes = Notes()
    with launch(chromium) as browser:
        found: dict[str, Any] = {"sizes": look_at_sizes(browser, url, notes)}
        with open_page(browser, url, notes) as page:
            found["data"] = page.eval_on_selector_all("main td data", READ_DATA)
            found["text"] = page.locator("body").inner_text()
            found["elements"] = page.evaluate(
                "[...new Set([...document.all].map((e) => e.localName))]"
            )
            found["hacked"] = page.evaluate("globalThis.hacked ?? null")
            found["mouse"] = hover(page)
        with open_page(browser, url, notes) as page:
            found["keyboard"] = use_keys(page)
        with open_page(browser, url, notes, viewport=PAPER) as page:
            found["print"] = print_page(page)
        with open_page(browser, url, notes, java_script_enabled=False) as page:
            found["withoutScripts"] = page.eval_on_selector_all("svg.picture", COUNT_PICTURES)
    found |= {"console": notes.console, "errors": notes.errors, "requests": notes.requests}
    return found


PROGRAMS: dict[str, Callable[..., Any]] = {"chart": browse_chart, "report": browse_report}

if __name__ == "__main__":
    json.dump(PROGRAMS[sys.argv[1]](*sys.argv[2:]), sys.stdout)
