"""Send requests from a page in Chromium, and export them as a HAR file with Playwright."""

import json
import sys

from playwright.sync_api import sync_playwright

chromium, url, path, requests = sys.argv[1:]
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FETCH = """([method, path, key, body]) => fetch(path, {
    method,
    headers: {"X-Gateway-Key": key, ...(body && {"Content-Type": "application/json"})},
    body: body ?? undefined,
}).then((response) => response.text())"""

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
    context = browser.new_context(record_har_path=path)
    page = context.new_page()
    # The service allows no other origin, so the page must be one of its own.
    page.goto(f"{url}/healthz")
    for request in json.loads(requests):
        page.evaluate(FETCH, request)
    context.close()  # writes the file
    browser.close()
