"""Send requests with a Python client, through a proxy or recorded by VCR.py.

Arguments: the client (requests or httpx), the URL of a service, the requests as JSON, each a
method, path, key and body, and `proxy` with the URL of a proxy, or `cassette` with a path.
"""

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import httpx
import requests
import vcr

Send = Callable[..., Any]


def open_client(name: str, proxy: str | None) -> Any:
    """Return a client with the methods of both libraries."""
    if name == "httpx":
        return httpx.Client(proxy=proxy, trust_env=False)
    session = requests.Session()
    session.trust_env = False  # it would not use a proxy for a loopback address
    session.proxies = {"http": proxy} if proxy else {}
    return session


def main(name: str, url: str, text: str, kind: str, target: str) -> None:
    """Send the requests."""
    is_recorded = kind == "cassette"
    serializer = "json" if target.endswith(".json") else "yaml"
    recorder: AbstractContextManager[Any] = nullcontext()
    if is_recorded:  # any other mode answers the second comparison from the first one
        options = {"record_mode": "all", "serializer": serializer}
        recorder = vcr.VCR(**options).use_cassette(target)
    with recorder, open_client(name, None if is_recorded else target) as client:
        for method, path, key, body in json.loads(text):
            headers = {
                "X-Gateway-Key": key,
                **({"Content-Type": "application/json"} if body else {}),
            }
            client.request(method, url + path, headers=headers, **({"data": body} if body else {}))


if __name__ == "__main__":
    main(*sys.argv[1:])
