"""Call the API from pages of other origins in Chromium, and print what they could read as JSON.

Also print the text of each page. Each pair of arguments is the address of a page and that of a
service.
"""

import json
import sys
from typing import Any

from chromium_pages import Notes, launch, open_page

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


def main() -> None:
    chromium, *addresses = sys.argv[1:]
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
    sys.stdout.write(json.dumps(found))


main()
