"""Compare game servers and print a table.

Usage: GATEWAY_KEY=… python compare_servers.py URL RANGE SERVER SERVER…
A server is an id such as harbor-city, or cfxId:ns6r0b.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import quote

import httpx

ATTEMPTS = 3
REPEATED = {429, 500}
"""The statuses after which a request is repeated."""
TIMEOUT_SECONDS = 15
HEAD = ["server", "now", "average", "median", "peak", "growth %", "name"]


class ApiError(Exception):
    """An error of the API, with its HTTP status, its code and the id of the request."""

    def __init__(self, response: httpx.Response) -> None:
        error = response.json()["error"]
        super().__init__(f"{response.status_code} {error['code']}: {error['message']}")
        self.status: int = response.status_code
        self.code: str = error["code"]
        self.request_id: str = response.headers["X-Request-Id"]


class Client:
    """A client of the API; a context manager.

    Repeats a request after 429, 500 or no answer, at most twice: both operations only read.
    """

    def __init__(self, url: str, key: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._http = httpx.Client(
            base_url=f"{url}/gateway/v1", headers={"X-Gateway-Key": key}, timeout=TIMEOUT_SECONDS
        )
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get_server(self, server: str) -> dict[str, Any]:
        """Return the public details of a server.

        Raises ApiError, httpx.HTTPError.
        """
        reference = build_reference(server)
        path = f"/servers/{quote(reference['identifier'], safe='')}"
        detail: dict[str, Any] = self._ask("GET", path, params={"by": reference["by"]})["data"]
        return detail

    def compare(self, *servers: str, range: str = "30d") -> list[dict[str, Any]]:
        """Return the statistics of 2 to 5 servers, in their order.

        A figure without observations is None, not 0; `uptime` is always None.

        Raises ApiError, httpx.HTTPError.
        """
        body = {"servers": [build_reference(server) for server in servers], "range": range}
        results: list[dict[str, Any]] = self._ask("POST", "/compare", json=body)["data"]
        return results

    def _ask(self, method: str, path: str, **options: Any) -> Any:
        attempt = 0
        while True:
            attempt += 1
            seconds = float(attempt)
            try:
                response = self._http.request(method, path, **options)
            except httpx.TransportError:
                if attempt == ATTEMPTS:
                    raise
            else:
                if response.is_success:
                    return response.json()
                if response.headers.get("Content-Type") != "application/json":
                    response.raise_for_status()  # an error of a proxy, not of the API
                error = ApiError(response)
                if attempt == ATTEMPTS or error.status not in REPEATED:
                    raise error
                seconds = float(response.headers.get("Retry-After", attempt))
            self._sleep(seconds)


def build_reference(server: str) -> dict[str, str]:
    """Return the reference of a server: an id, or a cfxId after `cfxId:`."""
    if server.startswith("cfxId:"):
        return {"identifier": server.removeprefix("cfxId:"), "by": "cfxId"}
    return {"identifier": server, "by": "id"}


def build_row(detail: dict[str, Any], result: dict[str, Any]) -> list[str]:
    """Return the cells of a server: who it is, and its statistics."""
    # A hostname is a stranger's text: it must not control the terminal.
    hostname = "".join(one if one.isprintable() else "?" for one in detail["hostname"])
    return [
        result["serverId"],
        str(result["currentPlayers"]),
        format_figure(result["averagePlayers"], ".1f"),
        format_figure(result["medianPlayers"], ".1f"),
        format_figure(result["peakPlayers"], ".0f"),
        format_figure(result["growth"]["percentage"], "+.1f"),
        hostname,
    ]


def format_figure(figure: float | None, form: str) -> str:
    """Format a figure; without observations it is unknown, not 0."""
    return "-" if figure is None else format(figure, form)


def print_table(rows: list[list[str]]) -> None:
    """Print rows in columns; all but the first and the last one are numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *numbers, last in rows:
        cells = [one.rjust(width) for one, width in zip(numbers, widths[1:-1], strict=True)]
        print("  ".join([first.ljust(widths[0]), *cells, last]))


def main() -> None:
    """Run the program."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    url, window, *servers = sys.argv[1:]
    with Client(url, os.environ.get("GATEWAY_KEY", "any")) as client:
        try:
            details = [client.get_server(server) for server in servers]
            results = client.compare(*servers, range=window)
        except (ApiError, httpx.HTTPError) as error:
            sys.exit(f"error: {error}")
    rows = [build_row(*pair) for pair in zip(details, results, strict=True)]
    print_table([HEAD, *rows])


if __name__ == "__main__":
    main()
