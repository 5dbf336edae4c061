"""The ASGI application: authenticate, validate, answer and log a request, in the order of D11."""

import asyncio
import re
import secrets
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from srvstat.asgi.auth import Authenticator, Caller, TooManyRequestsError
from srvstat.asgi.connection import BODY_ERROR, IS_GONE
from srvstat.asgi.log import Log
from srvstat.asgi.recorder import Recorder
from srvstat.asgi.snapshots import (
    ClientGoneError,
    Generation,
    ServedSnapshot,
    answer_get_server,
    complete_results,
)
from srvstat.contract.errors import (
    ApiError,
    GatewayUnauthorizedError,
    InternalError,
    InvalidRequestError,
    SnapshotError,
)
from srvstat.contract.http import (
    CACHE_CONTROL,
    JSON_TYPE,
    KEY_CHALLENGE,
    KEY_HEADER,
    REQUEST_ID_HEADER,
    REQUEST_ID_PATTERN,
    Head,
    OperationId,
    WrongMethodError,
    check_compare_head,
    check_method,
    find_target,
    find_values,
    has_ambiguous_length,
    parse_get_server,
)
from srvstat.contract.instants import format_instant
from srvstat.contract.key_filter import HIDDEN, KeyFilter
from srvstat.contract.requests import (
    MAX_BODY_BYTES,
    CompareRequest,
    ServerReference,
    parse_compare_request,
)
from srvstat.contract.responses import ErrorResponse, HealthResponse, encode_comparison
from srvstat.support.recordings.writing import ServedExchange

if TYPE_CHECKING:
    from srvstat.asgi.explore import Explorer

WORK_SECONDS = 10.0
"""Seconds from a validated request to its answer, including the wait for a worker."""

_OK = 200
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that the log names; any other is `other`."""

_RECORDED: frozenset[OperationId] = frozenset({"getServer", "compareServers"})

_REQUEST_ID = re.compile(REQUEST_ID_PATTERN)
_REQUEST_ID_NAME = REQUEST_ID_HEADER.lower()
_KEY_NAME = KEY_HEADER.lower().encode()


@dataclass
class _Progress:
    """What is known of a request while it is answered, for the log and the recording."""

    requested_at: int
    head: Head
    key_filter: KeyFilter
    entry: dict[str, Any]
    """The entry in the log."""
    plan: str | None = None
    body: bytes = b""
    """Empty until it is read completely."""
    generation: Generation | None = None
    """The one that answers; None until it is selected."""


class Service:
    """The ASGI application; it answers from the snapshot at one path."""

    def __init__(
        self,
        snapshot: ServedSnapshot,
        authenticator: Authenticator,
        log: Log,
        recorder: Recorder | None = None,
        explorer: "Explorer | None" = None,
    ) -> None:
        self._snapshot = snapshot
        self._authenticator = authenticator
        self._log = log
        self._recorder = recorder
        self._explorer = explorer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, log it, and record it."""
        started = time.perf_counter()
        request = Request(scope, receive)
        progress = self._start_progress(request)
        entry = progress.entry
        try:
            response = await self._respond(request, progress)
        except (ClientDisconnect, ClientGoneError):
            entry["reason"] = "the client closed the connection"
        else:
            await response(scope, receive, send)
            sent = 0 if request.method == "HEAD" else len(response.body)
            entry |= {"status": response.status_code, "bytes": sent}
            if self._recorder and entry.get("operation") in _RECORDED:
                self._record(self._recorder, progress, response)
        entry["ms"] = round((time.perf_counter() - started) * 1000, 3)
        self._log.add(entry)

    def _start_progress(self, request: Request) -> _Progress:
        scope = request.scope
        keys = [key.decode("latin-1") for key in find_values(scope["headers"], _KEY_NAME)]
        key_filter = KeyFilter(keys, self._authenticator.is_registered)
        entry = {
            "id": _choose_request_id(request, key_filter),
            "remote": _format_address(request.client),
            "method": request.method if request.method in _METHODS else "other",
        }
        head = Head(request.method, scope["raw_path"], scope["query_string"], scope["headers"])
        return _Progress(time.time_ns() // 1_000_000, head, key_filter, entry)

    def _record(self, recorder: Recorder, progress: _Progress, response: Response) -> None:
        generation = progress.generation or self._snapshot.current
        exchange = ServedExchange(
            head=progress.head,
            body=progress.body,
            status=response.status_code,
            answer=None if progress.head.method == "HEAD" else bytes(response.body),
            requested_at=progress.requested_at,
            plan=progress.plan,
            as_of=generation.as_of,
            root=generation.root,
        )
        recorder.add(exchange, progress.key_filter)

    def close(self) -> None:
        """Write what remains of the recording and the log."""
        if self._recorder:
            self._recorder.close()
        self._log.add_event("stopped")
        self._log.close()

    def answer_malformed(
        self, client: tuple[str, int] | None
    ) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Return the headers and body of the answer to malformed HTTP, and log it."""
        error = InvalidRequestError("not HTTP/1.1, or a head that is too long")
        new_id = _create_request_id()
        entry = {"id": new_id, "remote": _format_address(client), "status": error.http_status}
        self._log.add(entry | {"code": error.code, "reason": error.reason})
        response = _build_error_response(error, {**_build_headers(new_id), "connection": "close"})
        return response.raw_headers, bytes(response.body)

    async def _respond(self, request: Request, progress: _Progress) -> Response:
        headers = _build_headers(progress.entry["id"])
        if has_ambiguous_length(request.scope["headers"]):
            headers["connection"] = "close"  # RFC 9112, section 6.1; also after an error
        try:
            if self._explorer and self._explorer.has_path(progress.head.path):
                headers |= self._explorer.headers
                body, media_type = await self._explore(request, progress, self._explorer)
                return Response(body, _OK, headers, media_type)
            body = await self._answer(request, progress)
            return Response(body, _OK, headers, JSON_TYPE)
        except ApiError as error:
            answered = error
        except SnapshotError as error:
            answered = InternalError(error.reason)
        except (ClientDisconnect, ClientGoneError):
            raise
        except Exception as error:  # noqa: BLE001 - a bug; no client may see a traceback
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.name}, {place.filename} line {place.lineno}"
            answered = InternalError(f"a bug in srvstat: {type(error).__name__} in {where}")
        reason = progress.key_filter.redact(answered.reason)
        progress.entry |= {"code": answered.code, "reason": reason}
        return _build_error_response(answered, headers)

    async def _answer(self, request: Request, progress: _Progress) -> bytes:
        head, entry = progress.head, progress.entry
        target = find_target(head.path)
        if target:
            entry["operation"] = target.operation
            if target.operation == "getHealth":
                check_method(head.method, target)
                return await self._check_health()
        caller = await self._authenticator.authenticate(head.headers)
        entry["caller"] = caller.name
        progress.plan = caller.plan.name if caller.plan else None
        self._authenticator.count_request(caller)
        target = check_method(head.method, target)
        if target.operation == "getServer":
            reference = parse_get_server(head, target.identifier)
            entry["servers"] = _format_references((reference,), progress.key_filter)
            return await self._get_server(request, reference, caller, progress)
        check_compare_head(head)
        progress.body = await _read_body(request)
        comparison = parse_compare_request(progress.body)
        entry["servers"] = _format_references(comparison.servers, progress.key_filter)
        entry["range"] = comparison.range
        return await self._compare(request, comparison, caller, progress)

    async def _explore(
        self, request: Request, progress: _Progress, explorer: "Explorer"
    ) -> tuple[bytes, str]:
        async with _enforce_deadline():
            return await explorer.answer(progress.head, progress.entry, _track_client(request))

    async def _check_health(self) -> bytes:
        generation = await self._snapshot.get_generation()
        as_of = format_instant(generation.as_of)
        return HealthResponse(asOf=as_of, root=generation.root).to_json()

    async def _get_server(
        self, request: Request, reference: ServerReference, caller: Caller, progress: _Progress
    ) -> bytes:
        if caller.plan:
            caller.plan.check_request(reference)
        progress.generation = generation = await self._snapshot.get_generation()
        answer = generation.details.look_up(reference)
        if answer is not None:
            return answer
        async with _enforce_deadline():
            return await answer_get_server(
                self._snapshot, generation, reference, _track_client(request)
            )

    async def _compare(
        self, request: Request, comparison: CompareRequest, caller: Caller, progress: _Progress
    ) -> bytes:
        if caller.plan:
            caller.plan.check_request(comparison)
        progress.generation = generation = await self._snapshot.get_generation()
        results = generation.results.look_up(comparison)
        if None in results:
            async with _enforce_deadline():
                await complete_results(
                    self._snapshot, generation, comparison, results, _track_client(request)
                )
        return encode_comparison(comparison.range, [result for result in results if result])


async def _read_body(request: Request) -> bytes:
    """Read the body of a request; stop at the first chunk that exceeds the limit.

    Raises InvalidRequestError for a late or incomplete body, ClientDisconnect if the client closed
    the connection.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            break
    reason = request.scope.get("state", {}).get(BODY_ERROR)
    if reason:
        raise InvalidRequestError(reason)
    return body


@asynccontextmanager
async def _enforce_deadline() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(WORK_SECONDS):
            yield
    except TimeoutError:
        raise InternalError(f"no answer within {WORK_SECONDS:g} s") from None


def _track_client(request: Request) -> Callable[[], bool]:
    """Return a function that checks whether the client of a request is still connected."""
    return lambda: IS_GONE not in request.scope.get("state", ())


def _build_error_response(error: ApiError, headers: dict[str, str]) -> Response:
    extra: dict[str, str] = {}
    if isinstance(error, WrongMethodError):
        extra = {"allow": error.allowed}
    elif isinstance(error, GatewayUnauthorizedError):
        extra = {"www-authenticate": KEY_CHALLENGE}
    elif isinstance(error, TooManyRequestsError):
        extra = {"retry-after": str(error.retry_after)}
    body = ErrorResponse.from_error(error).to_json()
    return Response(body, error.http_status, headers | extra, JSON_TYPE)


def _build_headers(request_id: str) -> dict[str, str]:
    return {"cache-control": CACHE_CONTROL, _REQUEST_ID_NAME: request_id}


def _format_address(client: tuple[str, int] | None) -> str:
    """Format a client's address: `127.0.0.1:5000`, `[::1]:5000`."""
    if client is None:
        return ""
    host, port = client
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _format_references(references: tuple[ServerReference, ...], key_filter: KeyFilter) -> list[str]:
    """Format references for the log: `cfxId:abc123`."""
    return [
        f"{each.by}:{HIDDEN if key_filter.has_key(each.identifier) else each.identifier}"
        for each in references
    ]


def _choose_request_id(request: Request, key_filter: KeyFilter) -> str:
    """Return the request id that the client sent if it is harmless, else a new one."""
    sent = request.headers.getlist(_REQUEST_ID_NAME)
    if len(sent) == 1 and _REQUEST_ID.fullmatch(sent[0]) and not key_filter.has_key(sent[0]):
        return sent[0]
    return _create_request_id()


def _create_request_id() -> str:
    return secrets.token_hex(8)
