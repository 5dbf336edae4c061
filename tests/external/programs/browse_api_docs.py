"""Use the page `/docs` in Chromium as a developer does, and print what it shows as JSON.

Arguments: the path of Chromium, the address of the service.
"""

import json
import sys
from typing import Any

from chromium_pages import Notes, find_barriers, is_too_wide, launch, open_page
from playwright.sync_api import Browser, Page

SIZES = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 390, "height": 844}}


def main() -> None:
    chromium, url = sys.argv[1:]
    notes = Notes()
    seen: dict[str, Any] = {}
    with launch(chromium) as browser:
        for name, size in SIZES.items():
            seen[name] = look(browser, url, notes, size)
    json.dump(seen | vars(notes), sys.stdout)


def look(browser: Browser, url: str, notes: Notes, size: dict[str, int]) -> dict[str, Any]:
    """Open everything on the page, send two of the requests it offers, and note what it shows."""
    with open_page(browser, f"{url}/docs", notes, viewport=size) as page:
        page.wait_for_selector(".opblock")
        enter_key(page)
        for control in page.locator(".opblock-summary-control").all():
            control.click()
        page.locator(".opblock .opblock-body").last.wait_for()
        return {
            "operations": page.locator(".opblock").evaluate_all("all => all.map(one => one.id)"),
            "schemas": page.locator(".json-schema-2020-12__title").all_inner_texts(),
            "server": execute(page, "#operations-Servers-getServer"),
            "comparison": execute(page, "#operations-Comparison-compareServers"),
            "too_wide": is_too_wide(page),
            "barriers": find_barriers(page),
        }


def enter_key(page: Page) -> None:
    """Give the page a key for its requests."""
    page.click(".btn.authorize")
    page.fill(".auth-container input", "any")
    page.click(".auth-btn-wrapper .authorize")
    page.click(".auth-btn-wrapper .btn-done")


def execute(page: Page, operation: str) -> dict[str, str]:
    """Send the request that an operation offers, and return the status and the body shown."""
    page.click(f"{operation} .execute")
    answer = page.locator(f"{operation} .live-responses-table")
    return {
        "status": answer.locator("tbody .response-col_status").inner_text().split()[0],
        "body": answer.locator(".highlight-code pre").first.inner_text(),
    }


if __name__ == "__main__":
    main()
