"""Send requests from a page in Chromium, and export them as a HAR file with Playwright.

Arguments: Chromium, the URL of the service, the HAR file, and the requests as JSON.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from chromium_pages import launch
from playwright.sync_api import Browser

FETCH = """([method, path, key, body]) => fetch(path, {
    method,
    headers: {"X-Gateway-Key": key, ...(body && {"Content-Type": "application/json"})},
    body: body ?? undefined,
}).then((response) => response.text())"""


def record(
    browser: Browser, url: str, path: str, requests: Sequence[Sequence[str | None]], **options: Any
) -> None:
    """Send requests, each a method, path, key and body, and write the HAR file.

    `options` are those of `Browser.new_context`.
    """
    context = browser.new_context(record_har_path=path, **options)
    page = context.new_page()
    # The service allows no other origin, so the page must be one of its own.
    page.goto(f"{url}/healthz")
    for request in requests:
        page.evaluate(FETCH, request)
    context.close()  # writes the file


def main() -> None:
    chromium, url, path, requests = sys.argv[1:]
    with launch(chromium) as browser:
        record(browser, url, path, json.loads(requests))


if __name__ == "__main__":
    main()
