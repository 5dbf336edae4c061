"""Requests for the page of `serve --explore`."""

from urllib.parse import quote

from support.http import Answer, Client, request
from support.process import Service

SERVERS = "/explore/data/servers"
STATS = "/explore/data/stats"
TIMELINE = "/explore/data/timeline"


def ask(
    service: Service,
    target: str,
    *headers: bytes,
    method: str = "GET",
    host: str | None = None,
    key: str | None = "k",
) -> Answer:
    """Send a request as a browser does and return the answer; None leaves the key out."""
    keys = [] if key is None else [b"X-Gateway-Key: " + key.encode()]
    host = host or f"127.0.0.1:{service.port}"
    sent = request(
        f"{method} {target} HTTP/1.1".encode(), f"Host: {host}".encode(), *keys, *headers
    )
    with Client(service) as client:
        client.send(sent)
        return client.read_any_answer(to_head=method == "HEAD")


def search(text: str) -> str:
    """Return the target of a search."""
    return f"{SERVERS}?text={quote(text, safe='')}"
