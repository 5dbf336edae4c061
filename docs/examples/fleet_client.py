"""A small client of the API: one method per operation."""

import time
from collections.abc import Callable
from typing import Any, Self

import httpx

TOO_MANY_REQUESTS = 429
_MAX_ATTEMPTS = 3


class ApiError(Exception):
    """An error of the API, with its HTTP status and its code."""

    def __init__(self, response: httpx.Response) -> None:
        error = response.json()["error"]
        super().__init__(f"{response.status_code} {error['code']}: {error['message']}")
        self.status: int = response.status_code
        self.code: str = error["code"]


class FleetClient:
    """A client of the API; a context manager.

    After 429, calls `sleep` with the seconds of the Retry-After header, then repeats the request.
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

    def get_server(self, identifier: str, *, by: str = "id") -> dict[str, Any]:
        """Return the public details of a server.

        Raises ApiError.
        """
        response = self._request("GET", f"/gateway/v1/servers/{identifier}", params={"by": by})
        detail: dict[str, Any] = response.json()["data"]
        return detail

    def compare_medians(self, *identifiers: str, range: str = "30d") -> dict[str, float | None]:
        """Return the median player counts of 2 to 5 servers by id; None without observations.

        Raises ApiError.
        """
        servers = [{"identifier": one, "by": "id"} for one in identifiers]
        body = {"servers": servers, "range": range}
        response = self._request("POST", "/gateway/v1/compare", json=body)
        return {one["serverId"]: one["medianPlayers"] for one in response.json()["data"]}

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        response = self._http.request(method, path, **options)
        for _ in range(_MAX_ATTEMPTS - 1):
            if response.status_code != TOO_MANY_REQUESTS:
                break
            self._sleep(float(response.headers["Retry-After"]))
            response = self._http.request(method, path, **options)
        if response.is_error:
            raise ApiError(response)
        return response
