"""Send recorded requests from a page of another origin in Chromium, answered from the HAR files.

Arguments: Chromium, and HAR files. Prints the status and the body of each answer as JSON.
"""

import json
import sys
from pathlib import Path

from chromium_pages import launch

APP = "http://localhost:5173/"
"""The address of a front end during its development."""
FETCH = """([url, method, headers, body]) => fetch(url, {method, headers, body: body ?? undefined})
    .then(async (response) => [response.status, await response.text()])"""

chromium, *paths = sys.argv[1:]
answers = []
with launch(chromium) as browser:
    for path in paths:
        page = browser.new_page()
        page.route(APP, lambda route: route.fulfill(body="", content_type="text/html"))
        page.route_from_har(path, url="**/gateway/v1/**")
        page.goto(APP)
        for entry in json.loads(Path(path).read_bytes())["log"]["entries"]:
            request = entry["request"]
            headers = {one["name"]: one["value"] for one in request["headers"]}
            body = request.get("postData", {}).get("text")
            answers.append(page.evaluate(FETCH, [request["url"], request["method"], headers, body]))
        page.close()
json.dump(answers, sys.stdout)
