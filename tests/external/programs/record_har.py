"""Send requests from a page in Chromium, and export them as a HAR file with Playwright."""

import json
import sys

from chromium_pages import launch

chromium, url, path, requests = sys.argv[1:]
FETCH = """([method, path, key, body]) => fetch(path, {
    method,
    headers: {"X-Gateway-Key": key, ...(body && {"Content-Type": "application/json"})},
    body: body ?? undefined,
}).then((response) => response.text())"""

with launch(chromium) as browser:
    context = browser.new_context(record_har_path=path)
    page = context.new_page()
    # The service allows no other origin, so the page must be one of its own.
    page.goto(f"{url}/healthz")
    for request in json.loads(requests):
        page.evaluate(FETCH, request)
    context.close()  # writes the file
