"""Control the service from a test: read a client's requests, and choose the responses."""

import ipaddress
from collections import deque
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from srvstat.asgi.faults import Faults
from srvstat.asgi.headers import check_host
from srvstat.asgi.log import Exchange, store_request
from srvstat.asgi.snapshots import ServedSnapshot
from srvstat.contract import http, wire
from srvstat.contract.errors import InvalidRequestError, SourceError
from srvstat.contract.requests import check_body_size
from srvstat.contract.time import format_instant
from srvstat.operations.faults import parse_rules

_MAX_REQUESTS = 1_000
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-real-ip")
_METHODS: Mapping[bytes, str] = {
    b"/__srvstat/requests": http.GET_METHODS,
    b"/__srvstat/reset": "POST",
    b"/__srvstat/faults": "PUT",
}


class Control:
    """The paths below `/__srvstat/`, for clients on this machine, and the journal of requests."""

    def __init__(self, faults: Faults, snapshot: ServedSnapshot) -> None:
        self._faults, self._snapshot = faults, snapshot
        self._journal: deque[dict[str, Any]] = deque(maxlen=_MAX_REQUESTS)

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, is below `/__srvstat/`."""
        return http.strip_origin(path).startswith(b"/__srvstat/")

    def add(self, exchange: Exchange) -> None:
        """Add a request without keys, and its log entry, to the journal."""
        head, body, keys = exchange.head, exchange.body, exchange.key_filter
        request = store_request(head, body, keys, has_all_headers=True)
        entry = {"time": format_instant(exchange.requested_at), **exchange.entry}
        self._journal.append({**entry, "request": request.model_dump()})

    async def answer(self, exchange: Exchange) -> Response:
        """Return the response, and complete the log entry.

        Web pages have no access: without CORS, a page of another origin can't read responses, and a
        page of another name that resolves to this machine (DNS rebinding) is refused by its `Host`.

        Raises InvalidRequestError if the request is invalid or from a page.
        """
        head, entry, headers = exchange.head, exchange.entry, exchange.headers
        path, client = http.strip_origin(head.path), exchange.request.client
        if client:  # no page can reach a UNIX socket
            address = ipaddress.ip_address(client.host)
            is_near = (getattr(address, "ipv4_mapped", None) or address).is_loopback
            # A proxy on this machine forwards the requests of others.
            if not is_near or any(http.find_values(head.headers, one) for one in _FORWARDED):
                raise http.UnknownPathError("path: only for clients on the machine of the service")
            check_host(head.headers)
        if path not in _METHODS:
            raise http.UnknownPathError(
                f"path: not one of {', '.join(map(bytes.decode, _METHODS))}"
            )
        entry["operation"] = "control"
        http.check_allowed(head.method, _METHODS[path])
        # A page can send a POST without a preflight, although it can't read the response.
        if _METHODS[path] != http.GET_METHODS and http.find_values(head.headers, b"origin"):
            raise InvalidRequestError("origin: not for web pages")
        if path.endswith(b"requests"):
            return Response(
                wire.encode({"requests": [*self._journal]}), 200, headers, http.JSON_TYPE
            )
        if path.endswith(b"faults"):
            await exchange.read_body()
            check_body_size(len(exchange.body))
            unused = wire.encode({"unused": self._faults.count_unused()})
            try:
                self._faults.use(parse_rules("rules", exchange.body))
            except SourceError as error:
                raise InvalidRequestError(error.reason) from None
            return Response(unused, 200, headers, http.JSON_TYPE)
        self._faults.reset()
        self._snapshot.restart_clock()
        self._journal.clear()
        return Response(None, 204, headers)
