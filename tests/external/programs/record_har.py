"""Send requests from a page in Chromium, and export them as a HAR file with Playwright.

Arguments: Chromium, the URL of the service, the HAR file, and the requests as JSON.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from chromium_pages import launch, open_front_end
from playwright.sync_api import Browser

FETCH = """([method, url, key, body]) => fetch(url, {
    method,
    headers: {"X-Gateway-Key": key, ...(body && {"Content-Type": "application/json"})},
    body: body ?? undefined,
    signal: AbortSignal.timeout(10_000), // such as while Chromium asks for a permission
}).then((response) => response.text())"""


def record(
    browser: Browser,
    url: str,
    path: str,
    requests: Sequence[Sequence[str | None]],
    *,
    is_foreign: bool = False,
    **options: Any,
) -> None:
    """Send requests, each a method, path, key and body, and write the HAR file.

    The page is one of the service, or of the front end, which the service must allow. `options` are
    those of `Browser.new_context`.
    """
    context = browser.new_context(record_har_path=path, **options)
    page = context.new_page()
    if is_foreign:
        open_front_end(page)
    else:
        page.goto(f"{url}/healthz")
    for method, target, *others in requests:
        page.evaluate(FETCH, [method, f"{url}{target}", *others])
    context.close()  # writes the file


def main() -> None:
    chromium, url, path, requests = sys.argv[1:]
    with launch(chromium) as browser:
        record(browser, url, path, json.loads(requests))


if __name__ == "__main__":
    main()
