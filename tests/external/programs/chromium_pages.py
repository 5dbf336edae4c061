"""Open pages in headless Chromium, and note what a test must know: errors, requests, contrast."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FRONT_END = "http://localhost:5173/"
"""The address of a page during its development."""
SERIOUS = {"serious", "critical"}
"""The impacts of axe-core's findings that no page may have."""


@dataclass
class Notes:
    """What happened in pages: lines of the console, uncaught errors, and the URLs requested."""

    console: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Note what happens in a page from now on."""
        page.on("console", lambda line: self.console.append(f"{line.type}: {line.text}"))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))


@contextmanager
def launch(chromium: str) -> Iterator[Browser]:
    """Start Chromium for a block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def open_page(browser: Browser, url: str, notes: Notes, **settings: Any) -> Iterator[Page]:
    """Open a page in a context of its own; `settings` are those of `Browser.new_context`."""
    context = browser.new_context(**settings)
    page = context.new_page()
    notes.watch(page)
    page.goto(url)
    yield page
    context.close()


def find_barriers(page: Page) -> list[str]:
    """Return the serious findings of axe-core about a page."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {', '.join(str(node['target']) for node in one['nodes'])}"
        for one in found
        if one["impact"] in SERIOUS
    ]


def is_too_wide(page: Page) -> bool:
    """Check whether a page can be scrolled sideways."""
    return bool(
        page.evaluate(
            "document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth"
        )
    )


def open_front_end(page: Page) -> None:
    """Open an empty page of another origin than the service's."""
    page.route(FRONT_END, lambda route: route.fulfill(body="", content_type="text/html"))
    page.goto(FRONT_END)


@contextmanager
def serve(srvstat: Path, directory: str, *options: str) -> Iterator[str]:
    """Serve the snapshot of the demo in a directory for a block, and yield the URL."""
    command = ("serve", "--snapshot", "srvstat-demo/snapshot.db", "--port", "0", *options)
    with subprocess.Popen(
        [srvstat, *command], cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as service:
        assert service.stdout
        yield re.findall(r"http://\S+", service.stdout.readline().decode())[0]
        service.terminate()
