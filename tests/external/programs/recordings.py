"""Record requests in Chromium as HAR files, and play them; `make recordings` records the examples.

Arguments: the name of a program below, the path of Chromium, and the arguments of its function.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chromium_pages import FRONT_END, launch, open_front_end, serve
from playwright.sync_api import Browser

SEND = """([method, url, key, body]) => fetch(url, {
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
        page.evaluate(SEND, [method, f"{url}{target}", *others])
    context.close()  # writes the file


def record_requests(chromium: str, url: str, path: str, requests: str, content: str) -> None:
    """Send requests, given as JSON, from a page of the service, and write the HAR file.

    `content` says what happens to bodies: embed, attach or omit.
    """
    with launch(chromium) as browser:
        record(browser, url, path, json.loads(requests), record_har_content=content)


URL = "http://127.0.0.1:8000"
"""The address of the service in the files: its default."""
RECORDED_AT = "2026-03-01T12:00:00.000Z"
"""The as-of time of the demo, for which a replay answers."""
DATE = "Sun, 01 Mar 2026 12:00:00 GMT"
KEPT = {"accept", "content-type", "x-gateway-key"}
"""The headers of requests that are kept."""
OMITTED = {"access-control-allow-origin", "connection", "keep-alive", "vary"}
"""The headers of answers that are about the connection, or allow one page alone.

Playwright allows the page that gets a recorded answer.
"""

GET = ("GET", "/gateway/v1/servers/harbor-city")
COMPARE = ("POST", "/gateway/v1/compare")
Request = tuple[str, str, str, str | None]


def build_body(*servers: str) -> str:
    references = [{"identifier": server, "by": "id"} for server in servers]
    return json.dumps({"servers": references, "range": "7d"}, separators=(",", ":"))


def build_requests(key: str) -> list[Request]:
    """Return the valid requests, with a key."""
    body = build_body("harbor-city", "flaky-arena", "empty-plains")
    return [(*GET, key, None), (*COMPARE, key, body)]


def list_recordings() -> dict[int, list[Request]]:
    """Return the requests of each file, by the status of the answers."""
    key = "studio-key"
    return {
        200: build_requests(key),
        400: [
            ("GET", "/gateway/v1/servers/harbor_city", key, None),
            (*COMPARE, key, build_body("harbor-city")),
        ],
        401: build_requests("unknown-key"),
        403: build_requests("nothing-key"),
        404: [
            ("GET", "/gateway/v1/servers/nobody", key, None),
            (*COMPARE, key, build_body("harbor-city", "nobody")),
        ],
        405: [("DELETE", COMPARE[1], key, None)],
        # The first one is not over the limit, and so not of this status.
        429: [(*GET, "trickle-key", None), *build_requests("trickle-key")],
        500: build_requests(key),
    }


def normalize(har: Any, url: str, status: int) -> Any:
    """Return a HAR file with the answers of one status, and without what changes each time."""
    entries = [
        entry
        for entry in har["log"]["entries"]
        if "/gateway/" in entry["request"]["url"] and entry["response"]["status"] == status
    ]
    for number, entry in enumerate(entries, 1):
        request, response = entry["request"], entry["response"]
        request["url"] = request["url"].replace(url, URL)
        request["headers"] = [one for one in request["headers"] if one["name"].lower() in KEPT]
        changed = {"date": DATE, "x-request-id": f"recorded-{status}-{number}"}
        response["headers"] = [
            {"name": one["name"], "value": changed.get(one["name"], one["value"])}
            for one in response["headers"]
            if one["name"] not in OMITTED
        ]
        entry["startedDateTime"] = RECORDED_AT
        entry["time"] = 0
        entry["timings"] = {"send": 0, "wait": 0, "receive": 0}
        for name in [name for name in entry if name.startswith("_")]:
            del entry[name]
    har["log"]["entries"] = entries
    return har


def record_examples(chromium: str, command: str, path_of_folder: str) -> list[str]:
    """Record the HAR files of docs/examples/recordings, and return their names.

    The folder has their access file. Each file has the answers of one status. What differs from one
    recording to the next is replaced, or left out if it is about the browser or the connection, so
    that the files change only if the answers do.
    """
    srvstat, folder = Path(command).resolve(), Path(path_of_folder)
    always = ("--access", str(folder.resolve() / "access.toml"), "--cors", FRONT_END.rstrip("/"))
    with tempfile.TemporaryDirectory() as directory, launch(chromium) as browser:
        subprocess.run([srvstat, "demo"], cwd=directory, check=True, capture_output=True)
        for status, requests in list_recordings().items():
            path = Path(directory) / "raw.har"
            options = (*always, *(("--fail", "100%") if status == 500 else ()))
            with serve(srvstat, directory, *options) as url:
                settings = {"record_har_mode": "minimal", "permissions": ["local-network-access"]}
                record(browser, url, str(path), requests, is_foreign=True, **settings)
            har = normalize(json.loads(path.read_bytes()), url, status)
            text = json.dumps(har, indent=1, ensure_ascii=False)
            (folder / f"{status}.har").write_text(f"{text}\n", encoding="utf-8")
    return [f"{status}.har" for status in list_recordings()]


FETCH = """async ([url, method, headers, body]) => {
    const response = await fetch(url, {method, headers, body: body ?? undefined});
    return [response.status, await response.text(), response.headers.get("Retry-After")];
}"""


def play_recordings(chromium: str, *paths: str) -> list[Any]:
    """Send recorded requests from a page of another origin, answered from the HAR files.

    Return what the page could read of each answer: the status, the body and Retry-After.
    """
    answers = []
    with launch(chromium) as browser:
        for path in paths:
            page = browser.new_page()
            page.route_from_har(path, url="**/gateway/v1/**")
            open_front_end(page)
            for entry in json.loads(Path(path).read_bytes())["log"]["entries"]:
                request = entry["request"]
                headers = {one["name"]: one["value"] for one in request["headers"]}
                body = request.get("postData", {}).get("text")
                answers.append(
                    page.evaluate(FETCH, [request["url"], request["method"], headers, body])
                )
            page.close()
    return answers


PROGRAMS: dict[str, Callable[..., Any]] = {
    "requests": record_requests,
    "examples": record_examples,
    "play": play_recordings,
}

if __name__ == "__main__":
    json.dump(PROGRAMS[sys.argv[1]](*sys.argv[2:]), sys.stdout)
