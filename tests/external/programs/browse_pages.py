"""Use the pages of the service in Chromium, and print what a test must know as JSON.

Arguments: the name of a function below without `browse_`, the path of Chromium, and addresses.
"""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from chromium_pages import Notes, find_barriers, is_too_wide, launch, open_page
from playwright.sync_api import Page

SIZES = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 390, "height": 844}}


def browse_docs(chromium: str, url: str) -> Any:
    """Use the page `/docs` as a developer does, and return what it shows."""
    notes = Notes()
    seen: dict[str, Any] = {}
    with launch(chromium) as browser:
        for (name, size), scheme in zip(SIZES.items(), ("light", "dark"), strict=True):
            settings = {"viewport": size, "color_scheme": scheme}
            with open_page(browser, f"{url}/docs", notes, **settings) as page:
                page.wait_for_load_state("networkidle")
                seen[name] = look_at_docs(page)
    return seen | vars(notes)


def look_at_docs(page: Page) -> dict[str, Any]:
    """Send each request that the page offers, and note what it shows."""
    for button in page.get_by_role("button", name="Send").all():
        button.click()
    answers = page.locator(".response")
    page.wait_for_function("document.querySelectorAll('.response:empty').length === 0")
    shown = [text.partition("\n\n") for text in answers.all_inner_texts()]
    return {
        "operations": page.locator(".operation").evaluate_all(
            "all => all.map(one => [one.id, one.querySelector('h2').textContent])"
        ),
        "schemas": page.locator(".schema h3").all_inner_texts(),
        "codes": [head.splitlines()[0] for head, _, _ in shown],
        "server": shown[0][2],
        "comparison": shown[1][2],
        "too_wide": is_too_wide(page),
        "barriers": find_barriers(page),
    }


CALL = """
async ([url, options]) => {
    try {
        const answer = await fetch(url, options);
        const headers = Object.fromEntries(answer.headers);
        return {status: answer.status, headers, body: await answer.text()};
    } catch (error) {
        return {error: error.message};
    }
}
"""
KEY = {"X-Gateway-Key": "key-of-the-page"}
SERVERS = "/gateway/v1/servers"
REFERENCES = [{"identifier": name, "by": "id"} for name in "ab"]
COMPARISON = {
    "method": "POST",
    "headers": {**KEY, "Content-Type": "application/json"},
    "body": json.dumps({"servers": REFERENCES}),
}
LIMITED = {"headers": {"X-Gateway-Key": "key-of-plan-three"}}

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "server": (f"{SERVERS}/a", {"headers": {**KEY, "X-Request-Id": "of-the-page"}}),
    "comparison": ("/gateway/v1/compare", COMPARISON),
    "unknown server": (f"{SERVERS}/nobody", {"headers": KEY}),
    "unknown path": ("/gateway/v2", {"headers": KEY}),
    "no key": (f"{SERVERS}/a", {}),
    "wrong method": (f"{SERVERS}/a", {"headers": KEY, "method": "DELETE"}),
    "other header": (f"{SERVERS}/a", {"headers": {**KEY, "X-Other": "1"}}),
    **{f"limited {number}": (f"{SERVERS}/a", LIMITED) for number in range(4)},
    "health": ("/healthz", {}),
    "explore": ("/", {}),
    "explored": ("/explore/data/servers", {"headers": KEY}),
}


def browse_other_origins(chromium: str, *addresses: str) -> Any:
    """Call the API from pages of other origins, and return what they could read, and their texts.

    Each pair of addresses is a page and a service.
    """
    pairs = zip(addresses[::2], addresses[1::2], strict=True)
    found = []
    with launch(chromium) as browser:
        for page_url, service_url in pairs:
            notes = Notes()
            with open_page(browser, page_url, notes) as page:
                page.wait_for_load_state("networkidle")
                answers = {
                    name: page.evaluate(CALL, [service_url + path, options])
                    for name, (path, options) in CALLS.items()
                }
                text = page.inner_text("body")
            found.append({"answers": answers, "console": notes.console, "text": text})
    return found


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


def choose_by_keyboard(page: Page, ids: Sequence[str]) -> None:
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


def browse_explore(chromium: str, url: str, *ids: str) -> Any:
    """Use the page of `serve --explore`, and return what it shows."""
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
    return found


PROGRAMS: dict[str, Callable[..., Any]] = {
    "docs": browse_docs,
    "other_origins": browse_other_origins,
    "explore": browse_explore,
}

if __name__ == "__main__":
    json.dump(PROGRAMS[sys.argv[1]](*sys.argv[2:]), sys.stdout)
