"""Send recorded requests from a page of another origin in Chromium, answered from the HAR files.

Arguments: Chromium, and HAR files. Prints what the page could read of each answer as JSON: the
status, the body and Retry-After.
"""

import json
import sys
from pathlib import Path

from chromium_pages import launch, open_front_end

FETCH = """async ([url, method, headers, body]) => {
    const response = await fetch(url, {method, headers, body: body ?? undefined});
    return [response.status, await response.text(), response.headers.get("Retry-After")];
}"""

chromium, *paths = sys.argv[1:]
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
            answers.append(page.evaluate(FETCH, [request["url"], request["method"], headers, body]))
        page.close()
json.dump(answers, sys.stdout)
