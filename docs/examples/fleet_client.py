"""A small client of the API: one question a method, one exception a code."""

import time
from collections.abc import Callable
from typing import Any, Self

import httpx

TOO_MANY = 429
_MOST_ATTEMPTS = 3


class ApiError(Exception):
    """An answer of the API that is an error, with its `code` and `message`."""

    def __init__(self, response: httpx.Response) -> None:
        error = response.json()["error"]
        super().__init__(f"{response.status_code} {error['code']}: {error['message']}")
        self.status: int = response.status_code
        self.code: str = error["code"]


class FleetClient:
    """Asks the API; a context manager.

    Where it asked too often it waits as long as the API says, and asks again. `sleep` does the
    waiting.
    """

    def __init__(
        self, base_url: str, key: str, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._http = httpx.Client(base_url=base_url, headers={"X-Gateway-Key": key})
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def server(self, identifier: str, *, by: str = "id") -> dict[str, Any]:
        """Return one server's public detail.

        Raises ApiError.
        """
        response = self._asked("GET", f"/gateway/v1/servers/{identifier}", params={"by": by})
        detail: dict[str, Any] = response.json()["data"]
        return detail

    def medians(self, *identifiers: str, range: str = "30d") -> dict[str, float | None]:
        """Return the median number of players of 2 to 5 servers.

        Raises ApiError.
        """
        servers = [{"identifier": one, "by": "id"} for one in identifiers]
        body = {"servers": servers, "range": range}
        response = self._asked("POST", "/gateway/v1/compare", json=body)
        return {one["serverId"]: one["medianPlayers"] for one in response.json()["data"]}

    def _asked(self, method: str, path: str, **what: Any) -> httpx.Response:
        response = self._http.request(method, path, **what)
        for _ in range(_MOST_ATTEMPTS - 1):
            if response.status_code != TOO_MANY:
                break
            self._sleep(float(response.headers["Retry-After"]))
            response = self._http.request(method, path, **what)
        if response.is_error:
            raise ApiError(response)
        return response
