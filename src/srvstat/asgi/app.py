"""The application: who asks, for what, and the answer. The checks come in the order of D11."""

import asyncio
import re
import secrets
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from srvstat.asgi.auth import Caller, Callers, TooManyRequestsError
from srvstat.asgi.connection import GONE
from srvstat.asgi.log import Log
from srvstat.asgi.questions import find_detail, find_missing
from srvstat.asgi.reading import read_body
from srvstat.asgi.redact import (
    HIDDEN,
    is_known,
    path_without_known,
    reason_without_known,
    without_keys,
)
from srvstat.asgi.room import Room
from srvstat.asgi.snapshots import NobodyAsksError, ServedSnapshot
from srvstat.contract.errors import (
    ApiError,
    GatewayUnauthorizedError,
    InternalError,
    InvalidRequestError,
    SnapshotError,
)
from srvstat.contract.http import (
    CACHE_CONTROL,
    GET_METHODS,
    HEALTH_PATH,
    JSON_TYPE,
    KEY_CHALLENGE,
    KEY_HEADER,
    REQUEST_ID_HEADER,
    REQUEST_ID_PATTERN,
    Head,
    WrongMethodError,
    check_compare_head,
    check_method,
    find_target,
    has_ambiguous_length,
    parse_get_server,
    strip_origin,
)
from srvstat.contract.requests import ServerReference, parse_compare_request
from srvstat.contract.responses import ErrorResponse, HealthResponse, encode_comparison

WORK_SECONDS = 10.0
"""From a whole request to its answer, other requests' included."""

_HEALTH = HEALTH_PATH.encode()
_REQUEST_ID = re.compile(REQUEST_ID_PATTERN)
_OK = 200
_MOST_TOLD = 1_000
"""So many characters of a path, a method or a reason are logged."""


class Service:
    """The ASGI application over one snapshot; `room` is for its connections (connections.py)."""

    def __init__(self, snapshot: ServedSnapshot, callers: Callers, log: Log, *, room: Room) -> None:
        self._snapshot = snapshot
        self._callers = callers
        self._log = log
        self.room = room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and log it."""
        started = time.perf_counter()
        request = Request(scope, receive)
        entry = _entry(request, self._callers)
        try:
            response = await self._response(request, entry)
        except (ClientDisconnect, NobodyAsksError):
            entry["reason"] = "the client left before it was answered"
        else:
            await response(scope, receive, send)
            sent = 0 if request.method == "HEAD" else len(response.body)
            entry |= {"status": response.status_code, "bytes": sent}
        entry["ms"] = round((time.perf_counter() - started) * 1000, 3)
        self._log.entry(_told(entry, request.headers, self._callers))

    def malformed(self, client: tuple[str, int] | None) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Return the headers and the body for what is no HTTP, and log it."""
        error = InvalidRequestError("not HTTP/1.1, or a head that is too long")
        new_id = _new_id()
        entry = {"id": new_id, "remote": _remote(client), "status": error.http_status}
        self._log.entry(entry | {"code": error.code, "reason": error.reason})
        response = _response_to(error, {**_headers(new_id), "connection": "close"})
        return response.raw_headers, bytes(response.body)

    async def _response(self, request: Request, entry: dict[str, Any]) -> Response:
        headers = _headers(entry["id"])
        if has_ambiguous_length(request.scope["headers"]):
            headers["connection"] = "close"  # RFC 9112, section 6.1: whatever the answer is
        try:
            return Response(await self._answer(request, entry), _OK, headers, JSON_TYPE)
        except ApiError as error:
            answered = error
        except SnapshotError as error:
            answered = InternalError(error.reason)
        except (ClientDisconnect, NobodyAsksError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever else comes here is a bug, and no client reads a traceback
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.name}, {place.filename} line {place.lineno}"
            answered = InternalError(f"a bug in srvstat: {type(error).__name__} in {where}")
        entry |= {"code": answered.code, "reason": answered.reason}
        return _response_to(answered, headers)

    async def _answer(self, request: Request, entry: dict[str, Any]) -> bytes:
        scope = request.scope
        head = Head(request.method, scope["raw_path"], scope["query_string"], scope["headers"])
        if strip_origin(head.path) == _HEALTH:
            check_method(head.method, GET_METHODS)
            return await self._health()
        caller = await self._callers.known(head.headers)
        entry["caller"] = caller.name
        self._callers.count(caller)
        target = find_target(head)
        if target.operation == "getServer":
            asked = parse_get_server(head, target.identifier)
            return await self._get_server(request, asked, caller)
        check_compare_head(head)
        return await self._compare(request, caller)

    async def _health(self) -> bytes:
        generation = await self._snapshot.current()
        return HealthResponse(asOf=generation.as_of, root=generation.root).to_json()

    async def _get_server(self, request: Request, asked: ServerReference, caller: Caller) -> bytes:
        if caller.plan:
            caller.plan.check_request(asked)
        generation = await self._snapshot.current()
        known = generation.details.known(asked)
        if known is not None:
            return known
        async with _deadline():
            return await find_detail(self._snapshot, generation, asked, _asker(request))

    async def _compare(self, request: Request, caller: Caller) -> bytes:
        asked = parse_compare_request(await read_body(request))
        if caller.plan:
            caller.plan.check_request(asked)
        generation = await self._snapshot.current()
        results = generation.results.known(asked)
        if None in results:
            async with _deadline():
                await find_missing(self._snapshot, generation, asked, results, _asker(request))
        return encode_comparison(asked.range, [result for result in results if result])


@asynccontextmanager
async def _deadline() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(WORK_SECONDS):
            yield
    except TimeoutError:
        raise InternalError(f"no answer within {WORK_SECONDS:g} s") from None


def _asker(request: Request) -> Callable[[], bool]:
    """Return what says whether the client of a request is still there."""
    return lambda: GONE not in request.scope.get("state", ())


def _response_to(error: ApiError, headers: dict[str, str]) -> Response:
    more: dict[str, str] = {}
    if isinstance(error, WrongMethodError):
        more = {"allow": error.allowed}
    elif isinstance(error, GatewayUnauthorizedError):
        more = {"www-authenticate": KEY_CHALLENGE}
    elif isinstance(error, TooManyRequestsError):
        more = {"retry-after": str(error.retry_after)}
    return Response(
        ErrorResponse.from_error(error).to_json(), error.http_status, headers | more, JSON_TYPE
    )


def _headers(request_id: str) -> dict[str, str]:
    return {"cache-control": CACHE_CONTROL, REQUEST_ID_HEADER.lower(): request_id}


def _entry(request: Request, callers: Callers) -> dict[str, Any]:
    """Begin the log's entry: what is known of any request. The query is not part of it."""
    return {
        "id": _request_id(request.headers, callers),
        "remote": _remote(request.client),
        "method": request.method,
        "path": request.scope["raw_path"].decode("latin-1"),
    }


def _remote(client: tuple[str, int] | None) -> str:
    """Write whose connection it is: `127.0.0.1:5000`, `[::1]:5000`."""
    if client is None:
        return ""
    host, port = client
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _request_id(headers: Headers, callers: Callers) -> str:
    """Return the client's own name for its request, where that is harmless, or a new one."""
    given = headers.getlist(REQUEST_ID_HEADER)
    if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]):
        (name,) = given
        own_keys = headers.getlist(KEY_HEADER)
        if without_keys(name, own_keys) == name and not is_known(name, callers.is_key):
            return name
    return _new_id()


def _new_id() -> str:
    return secrets.token_hex(8)


def _told(entry: dict[str, Any], headers: Headers, callers: Callers) -> dict[str, Any]:
    """Take the keys out of an entry, and then cut what is long: no beginning of a key is left."""
    if is_known(entry["method"], callers.is_key):
        entry["method"] = HIDDEN
    entry["path"] = path_without_known(entry["path"], callers.is_key)
    if "reason" in entry:
        entry["reason"] = reason_without_known(entry["reason"], callers.is_key)
    for field in ("method", "path", "reason"):
        if field in entry:
            text = without_keys(entry[field], headers.getlist(KEY_HEADER))
            entry[field] = text if len(text) <= _MOST_TOLD else f"{text[: _MOST_TOLD - 1]}…"
    return entry
