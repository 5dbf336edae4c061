"""Use the page of `serve --explore` in Chromium, and print what a test must know as JSON."""

import json
import sys
from typing import Any

from chromium_pages import Notes, find_barriers, is_too_wide, launch, open_page
from playwright.sync_api import Page

WIDTHS = (390, 1024, 1600)
TEXTS = {
    "table": "#table .content",
    "changes": "#changes",
    "request": "#request",
    "response": "#response",
    "curl": "#curl",
}
READ_ROWS = """rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"""
READ_COLORED = """spans => spans.map((span) => [span.className, span.textContent])"""
READ_FIGURES = """rows => rows.map((row) => ({...row.dataset}))"""


def wait_for_answer(page: Page) -> None:
    page.locator("#table .content[aria-busy]").wait_for(state="detached")
    page.locator("#chart .content[aria-busy]").wait_for(state="detached")
    page.locator("#changes[aria-busy]").wait_for(state="detached")


def choose_by_keyboard(page: Page, ids: list[str]) -> None:
    """Search for the tag of each server, and choose the only one found, with keys only.

    The keys do not wait for the results.
    """
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "text":
            break
    for server_id in ids:
        page.keyboard.press("Control+a")
        page.keyboard.type(f"tag-{server_id}")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.locator(f"#chosen [data-id='{server_id}']").wait_for()
    page.keyboard.press("Escape")


def read_answer(page: Page) -> dict[str, Any]:
    wait_for_answer(page)
    return {
        "address": page.url,
        "rows": page.eval_on_selector_all("#table tbody tr", READ_ROWS),
        "colored": page.eval_on_selector_all(
            "#table [class=rise], #table [class=fall]", READ_COLORED
        ),
        "chart": page.eval_on_selector_all(".chart tr[data-server]", READ_FIGURES),
        **{name: page.locator(selector).inner_text() for name, selector in TEXTS.items()},
    }


def main() -> None:
    chromium, url, *ids = sys.argv[1:]
    notes, found = Notes(), dict[str, Any]()
    with launch(chromium) as browser:
        with open_page(browser, f"{url}/", notes) as page:
            choose_by_keyboard(page, ids)
            found["chosen"] = read_answer(page)
            page.locator("#ranges input[value='7d']").check(force=True)
            found["week"] = read_answer(page)
            found["hacked"] = page.evaluate("globalThis.hacked ?? null")
            found["images"] = page.locator("img, iframe, object").count()
            address = page.url
            page.locator("#ranges input[value='90d']").check(force=True)
            found["quarter"] = read_answer(page)
            page.goto(f"{url}/#id=a&range=7d")
            found["single"] = read_answer(page)
        found["sizes"] = {}
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                settings = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
                with open_page(browser, address, notes, **settings) as page:
                    wait_for_answer(page)
                    barriers, too_wide = find_barriers(page), is_too_wide(page)
                found["sizes"][f"{width} {scheme}"] = [*barriers, *["too wide"] * too_wide]
        found |= {"console": list(notes.console), "errors": list(notes.errors)}
        with open_page(browser, f"{url}/#id=nobody&range=30d", notes) as page:
            found["unknown"] = read_answer(page)
    found["requests"] = notes.requests
    sys.stdout.write(json.dumps(found))


main()
