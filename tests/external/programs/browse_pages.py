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
        "schemas": page.locator(".schema h2").all_inner_texts(),
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
    "monitoring": (
        f"{SERVERS}/a",
        {"headers": {**KEY, "sentry-trace": "1-2", "traceparent": "00-1-2-01", "baggage": "a=1"}},
    ),
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
                page.locator("td, p:not(:empty)").first.wait_for()
                answers = {
                    name: page.evaluate(CALL, [service_url + path, options])
                    for name, (path, options) in CALLS.items()
                }
                text = page.inner_text("body")
            found.append({"answers": answers, "console": notes.console, "text": text})
    return found


WIDTHS = (390, 1024, 1600)
TEXTS = {
    "status": "#status",
    "overview": "#overview",
    "request": "#request",
    "response": "#response",
    "command": "#command",
    "curl": "#curl",
}
READ_ROWS = """rows => rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"""
READ_COLORED = """spans => spans.map((span) => [span.className, span.textContent])"""
READ_FIGURES = """rows => rows.map((row) => ({...row.dataset}))"""
WATCH_SHIFTS = """
    globalThis.shift = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) shift += entry.value;
    }).observe({type: 'layout-shift', buffered: true});
"""
FOLD = {"width": 1366, "height": 768}


def wait_for_answer(page: Page, waits_for: str = "") -> None:
    page.locator(f"body:not([aria-busy]) #status:not(:empty){waits_for}").wait_for(state="attached")


def choose_by_keyboard(page: Page, ids: Sequence[str]) -> None:
    """Search for the tag of each server, and choose the only one found, with keys only.

    The search has the focus, and the keys do not wait for the results.
    """
    for server_id in ids:
        page.keyboard.press("Control+a")
        page.keyboard.type(f"tag-{server_id}")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.locator(f"#overview [data-server='{server_id}']").wait_for()
    page.keyboard.press("Escape")


def read_answer(page: Page) -> dict[str, Any]:
    wait_for_answer(page)
    return {
        "address": page.url,
        "rows": page.eval_on_selector_all("#overview tbody tr", READ_ROWS),
        "colored": page.eval_on_selector_all(
            "#overview [class=rise], #overview [class=fall]", READ_COLORED
        ),
        "chart": page.eval_on_selector_all("#overview tr[data-server]", READ_FIGURES),
        **{name: page.locator(selector).inner_text() for name, selector in TEXTS.items()},
    }


def save(page: Page, name: str) -> list[int]:
    """Press a button that saves a file, and return how the file begins."""
    with page.expect_download() as saved:
        page.get_by_role("button", name=name, exact=True).click()
    return [*saved.value.path().read_bytes()[:24]]


def use_explore(page: Page, url: str, ids: Sequence[str]) -> dict[str, Any]:
    """Choose servers, look closer, and save what is there."""
    found = dict[str, Any]()
    wait_for_answer(page)
    found["ranked"] = page.eval_on_selector_all("#ranked tbody tr", READ_ROWS)
    choose_by_keyboard(page, ids)
    found["chosen"] = read_answer(page)
    page.locator("#zone").select_option("UTC")
    page.locator("#ranges input[value='7d']").check(force=True)
    page.locator("caption", has_text="7 days").wait_for()
    found["week"] = read_answer(page)
    page.locator("#formatted").uncheck()
    found["sent"] = page.locator("#response").inner_text()
    found["saved"] = {name: save(page, name) for name in ("CSV", "SVG", "PNG")}
    found["hacked"] = page.evaluate("globalThis.hacked ?? null")
    found["images"] = page.locator("img, iframe, object").count()
    address = page.url
    page.get_by_role("button", name="Zoom in").click()
    found["zoomed"] = read_answer(page)
    page.reload()
    found["again"] = read_answer(page)
    page.goto(address.replace("range=7d", "range=90d"))
    page.locator("caption", has_text="90 days").wait_for()
    found["quarter"] = read_answer(page)
    page.get_by_role("button", name=f"Remove {ids[0]}").click()
    page.locator(f"#overview [data-server='{ids[0]}']").wait_for(state="detached")
    found["removed"] = page.url
    page.goto(f"{url}/")
    wait_for_answer(page)
    page.locator("#ranked a").first.click()
    page.locator("#overview table").wait_for()
    found["followed"] = page.url
    return found


def browse_explore(chromium: str, url: str, *ids: str) -> Any:
    """Use the page of `serve --explore`, and return what it shows."""
    notes, found = Notes(), dict[str, Any]()
    with launch(chromium) as browser:
        with open_page(browser, f"{url}/", notes, timezone_id="Asia/Tokyo") as page:
            found |= use_explore(page, url, ids)
        address = found["week"]["address"]
        found["sizes"] = {}
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                settings = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
                with open_page(browser, address, notes, **settings) as page:
                    wait_for_answer(page)
                    barriers, too_wide = find_barriers(page), is_too_wide(page)
                found["sizes"][f"{width} {scheme}"] = [*barriers, *["too wide"] * too_wide]
        with open_page(browser, "about:blank", notes, viewport=FOLD) as page:
            page.add_init_script(WATCH_SHIFTS)
            page.goto(address)
            wait_for_answer(page)
            found["bottom"] = page.evaluate(
                "document.querySelector('.picture').getBoundingClientRect().bottom"
            )
            found["shift"] = page.evaluate("shift")
        found |= {"console": list(notes.console), "errors": list(notes.errors)}
        with open_page(browser, f"{url}/#id=nobody&id={ids[0]}&range=30d", notes) as page:
            wait_for_answer(page, " button")
            found["unknown"] = read_answer(page)
            page.get_by_role("button", name="Remove", exact=True).click()
            wait_for_answer(page, ":not(:has(button))")
            found["known"] = read_answer(page)
    found["requests"] = notes.requests
    return found


PROGRAMS: dict[str, Callable[..., Any]] = {
    "docs": browse_docs,
    "other_origins": browse_other_origins,
    "explore": browse_explore,
}

if __name__ == "__main__":
    json.dump(PROGRAMS[sys.argv[1]](*sys.argv[2:]), sys.stdout)
