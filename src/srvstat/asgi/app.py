"""The ASGI application: authenticate, validate, answer and log a request, in the order of D11.

Starlette's routes would see the decoded path, in which `%2F` is `/`, and would redirect before the
key is checked. So `contract.http` finds the operation in the path as sent.
"""

import asyncio
import re
import secrets
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from srvstat.asgi import Settings
from srvstat.asgi.auth import Authenticator
from srvstat.asgi.headers import Cors, build_error_response, build_headers, build_reason_header
from srvstat.asgi.log import Log, Recorder, hide_keys, store_request
from srvstat.asgi.pages import ApiDocs
from srvstat.asgi.rehearsal import DroppedError, Rehearsal
from srvstat.asgi.snapshots import Generation, ServedSnapshot, Work
from srvstat.contract import errors, http, requests
from srvstat.contract.responses import HealthResponse, UnavailableResponse, encode_comparison
from srvstat.contract.time import format_instant
from srvstat.documents.support import Recording, StoredResponse
from srvstat.operations.redaction import HIDDEN, KeyFilter
from srvstat.snapshot.read.verify import SpotCheck

if TYPE_CHECKING:
    from srvstat.asgi.explore import Explorer

BODY_SECONDS = 5.0
"""From the end of a request's head to the end of its body."""

READY_SECONDS = 2.0
"""Seconds from the start of a check until the service counts as not ready."""

SECONDS_BETWEEN_CHECKS = 1.0
"""A result holds this long, from the start of its check, so that many requests cost no more."""

_RECORDED = frozenset({"getServer", "compareServers"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that the log names; any other is `other`."""
_REQUEST_ID = re.compile(http.REQUEST_ID_PATTERN)
_STOPPING = "the service is stopping"
_OPERATIONS: Mapping[bytes, str] = {
    http.HEALTH_PATH.encode(): "getHealth",
    http.READY_PATH.encode(): "getReadiness",
    b"/openapi.json": "getOpenApi",
}
"""What the log calls the operational paths."""


@dataclass
class Exchange:
    """A request, and what has been found out about it so far."""

    requested_at: int
    """In Unix milliseconds."""
    head: http.Head
    key_filter: KeyFilter
    entry: dict[str, Any]
    """The entry in the log; `rehearsed` if the answer is a rehearsed failure, not the API's."""
    headers: dict[str, str]
    """The headers of the answer so far."""
    plan: str | None = None
    body: bytes = b""
    """Empty until it is read completely."""
    generation: Generation | None = None
    """The one that answers; None until it is selected."""


class Service:
    """The ASGI application. Create it before the event loop starts.

    Raises SourceError for the access file, SnapshotError, and what Recorder raises.
    """

    def __init__(self, settings: Settings, log: Log) -> None:
        self.log = log
        self.authenticator = Authenticator(settings.access, log)
        self.snapshot = ServedSnapshot(settings.snapshot, log)
        self.operational = OperationalPaths(self.snapshot)
        # They answer paths outside the contract and the order of D11 (D21): the first that has one.
        docs = ApiDocs(self.snapshot, self.authenticator, has_explore=settings.explore)
        self.sites: list[OperationalPaths | ApiDocs | Explorer] = [self.operational, docs]
        if settings.explore:
            # The page needs the analyzer, which the API does not.
            from srvstat.asgi import explore  # noqa: PLC0415

            self.sites.insert(0, explore.Explorer(self.snapshot, self.authenticator))
        try:
            self.recorder = None if settings.record is None else Recorder(settings.record, log)
        except errors.SrvstatError:
            self.snapshot.close()
            raise
        self.cors = Cors(settings.cors) if settings.cors else None
        self.rehearsal = Rehearsal(settings.rehearsal)
        self.explains_errors = settings.explains_errors
        self.drop: Callable[[Scope], None] = lambda _: None
        """Closes the connection of a request; the server sets it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, log it, and record it."""
        started = time.perf_counter()
        request = Request(scope, receive)
        exchange = self._begin(request)
        entry = exchange.entry
        try:
            response = await self._respond(request, exchange)
            await self.rehearsal.hold(entry, started)
        except ClientDisconnect:
            entry["reason"] = "the client closed the connection"
        except DroppedError:
            await self.rehearsal.hold(entry, started)
            self.drop(scope)
            # If the application returned earlier, uvicorn would answer with a 500.
            while (await receive())["type"] != "http.disconnect":
                pass
        else:
            if self.operational.is_stopping:
                response.headers["connection"] = "close"
            await response(scope, receive, send)
            self._record(exchange, response)
        entry["ms"] = round((time.perf_counter() - started) * 1000, 3)
        self.log.add(entry)

    def begin_stop(self) -> None:
        """Close connections after their next answer, send delayed answers, and be not ready."""
        self.operational.stop()
        self.rehearsal.stop()

    def close(self) -> None:
        """Write what remains of the recording and the log."""
        if self.recorder:
            self.recorder.close()
        self.log.add_event("stopped")
        self.log.close()

    def _begin(self, request: Request) -> Exchange:
        """Return what the head of a request says.

        The log entry has neither its path nor its headers: a client can put a key there, in any
        encoding.
        """
        scope = request.scope
        head = http.Head(request.method, scope["raw_path"], scope["query_string"], scope["headers"])
        keys = [key.decode("latin-1") for key in http.find_values(head.headers, http.KEY_NAME)]
        key_filter = KeyFilter(keys, self.authenticator.is_registered)
        ids = request.headers.getlist(http.REQUEST_ID_HEADER)
        request_id = ids[0] if len(ids) == 1 else ""
        if not _REQUEST_ID.fullmatch(request_id) or key_filter.has_key(request_id):
            request_id = secrets.token_hex(8)
        entry = {
            "id": request_id,
            "remote": format_address(*request.client) if request.client else "",
            "method": request.method if request.method in _METHODS else "other",
        }
        now = time.time_ns() // 1_000_000
        return Exchange(now, head, key_filter, entry, build_headers(request_id))

    def _record(self, exchange: Exchange, response: Response) -> None:
        """Note an answer in the log entry and in the recording."""
        entry, head = exchange.entry, exchange.head
        body = b"" if head.method == "HEAD" else bytes(response.body)
        entry |= {"status": response.status_code, "bytes": len(body)}
        if not self.recorder or "rehearsed" in entry or entry.get("operation") not in _RECORDED:
            return
        generation = exchange.generation or self.snapshot.current
        answer = None if head.method == "HEAD" else hide_keys(body, exchange.key_filter)
        self.recorder.add(
            Recording(
                as_of=generation.as_of,
                root=generation.root,
                requested_at=exchange.requested_at,
                request_id=entry["id"],
                plan=exchange.plan,
                request=store_request(head, exchange.body, exchange.key_filter),
                response=StoredResponse(status=response.status_code, body=answer),
            )
        )

    async def _respond(self, request: Request, exchange: Exchange) -> Response:
        """Return the response to a request. Raises ClientDisconnect, DroppedError."""
        head, entry, headers = exchange.head, exchange.entry, exchange.headers
        if http.has_ambiguous_length(head.headers):
            headers["connection"] = "close"  # RFC 9112, section 6.1; also after an error
        site = next((site for site in self.sites if site.has_path(head.path)), None)
        if self.cors and (site is None or site.allows_cors):
            headers |= self.cors.build_headers(head)
            if self.cors.is_preflight(head):
                return self.cors.answer_preflight(head, entry, headers)
        try:
            if site:
                headers |= site.headers
                response = await site.answer(head, entry, headers)
                if "reason" in entry:
                    response.headers.update(self._note_reason(exchange, entry["reason"]))
                return response
            body = await self._answer(request, exchange)
            return Response(body, headers=headers, media_type=http.JSON_TYPE)
        except errors.ApiError as error:
            answered = error
        except errors.SnapshotError as error:
            answered = errors.InternalError(error.reason)
        except (ClientDisconnect, DroppedError):
            raise
        except Exception as error:  # noqa: BLE001 - a bug; no client may see a traceback
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.name}, {place.filename} line {place.lineno}"
            answered = errors.InternalError(f"a bug in srvstat: {type(error).__name__} in {where}")
        entry["code"] = answered.code
        headers |= self._note_reason(exchange, answered.reason)
        return build_error_response(answered, headers)

    def _note_reason(self, exchange: Exchange, reason: str) -> dict[str, str]:
        """Note the reason of an error in the log, and return the headers with it."""
        exchange.entry["reason"] = redacted = exchange.key_filter.redact(reason)
        return build_reason_header(redacted) if self.explains_errors else {}

    async def _answer(self, request: Request, exchange: Exchange) -> bytes:
        head, entry, headers = exchange.head, exchange.entry, exchange.headers
        endpoint = http.find_endpoint(head.path)
        if endpoint:
            entry["operation"] = endpoint.operation
        caller = await self.authenticator.authenticate(head.headers)
        entry["caller"] = caller.name
        exchange.plan = caller.plan.name if caller.plan else None
        self.authenticator.count_request(caller, headers)
        if endpoint:
            self.rehearsal.rehearse(head.headers, entry, headers)
        endpoint = http.check_method(head.method, endpoint)
        question: requests.ServerReference | requests.CompareRequest
        if endpoint.operation == "getServer":
            question = http.parse_get_server(head, endpoint.identifier)
            entry["servers"] = _format_references((question,), exchange.key_filter)
        else:
            http.check_compare_head(head)
            exchange.body = await _read_body(request, headers)
            question = requests.parse_compare_request(exchange.body)
            entry["servers"] = _format_references(question.servers, exchange.key_filter)
            entry["range"] = question.range
        if caller.plan:
            caller.plan.check_request(question)
        exchange.generation = generation = await self.snapshot.get_generation()
        if isinstance(question, requests.ServerReference):
            return await self.snapshot.answer_get_server(generation, question)
        results = await self.snapshot.answer_comparison(generation, question)
        return encode_comparison(question.range, results)


def format_address(host: str, port: int) -> str:
    """Return an address as text: `127.0.0.1:5000`, `[::1]:5000`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _format_references(
    references: tuple[requests.ServerReference, ...], key_filter: KeyFilter
) -> list[str]:
    """Format references for the log: `cfxId:abc123`."""
    return [
        f"{each.by}:{HIDDEN if key_filter.has_key(each.identifier) else each.identifier}"
        for each in references
    ]


async def _read_body(request: Request, headers: dict[str, str]) -> bytes:
    """Read the body of a request; stop at the first chunk that exceeds the limit.

    Raises InvalidRequestError for a late body, ClientDisconnect if the connection was closed.
    """
    body = b""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > requests.MAX_BODY_BYTES:
                    break
    except TimeoutError:
        headers["connection"] = "close"
        raise errors.InvalidRequestError(f"body: not complete within {BODY_SECONDS:g} s") from None
    return body


class OperationalPaths:
    """Health, readiness and the OpenAPI document. Create it before the event loop starts.

    A check of readiness reads through the connections that answer: a check that opened the file at
    the path would call a service unready whose removed file is still open. It computes every range
    of one server, without SQLite's cache, which would hide a damaged disk.

    At most one check of the snapshot runs, so a disk that does not answer blocks one worker only.
    """

    headers: Mapping[str, str] = MappingProxyType({})
    allows_cors = True

    def __init__(self, snapshot: ServedSnapshot) -> None:
        self._snapshot = snapshot
        self._spot_check = SpotCheck()
        self._check: asyncio.Task[str | None] | None = None
        self._started_at = 0.0
        self.is_stopping = False
        self._openapi = http.read_openapi()

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, is one of them."""
        return http.strip_origin(path) in _OPERATIONS

    async def answer(
        self, head: http.Head, entry: dict[str, Any], headers: dict[str, str]
    ) -> Response:
        """Return the answer; add to its log entry. Raises WrongMethodError."""
        operation = entry["operation"] = _OPERATIONS[http.strip_origin(head.path)]
        http.check_allowed(head.method, http.GET_METHODS)
        if operation == "getOpenApi":
            return Response(self._openapi, headers=headers, media_type=http.JSON_TYPE)
        if operation == "getReadiness" and (problem := await self._find_problem()):
            entry["reason"] = problem
            return Response(UnavailableResponse().to_json(), 503, headers, http.JSON_TYPE)
        generation = await self._snapshot.get_generation()
        health = HealthResponse(as_of=format_instant(generation.as_of), root=generation.root)
        return Response(health.to_json(), headers=headers, media_type=http.JSON_TYPE)

    def stop(self) -> None:
        """Report a problem from now on, because the service stops."""
        self.is_stopping = True
        if self._check:
            self._check.cancel()

    async def _find_problem(self) -> str | None:
        """Return why the service is not ready, within READY_SECONDS; None if it is."""
        if self.is_stopping:
            return _STOPPING
        now = asyncio.get_running_loop().time()
        is_outdated = now >= self._started_at + SECONDS_BETWEEN_CHECKS
        if self._check is None or (self._check.done() and is_outdated):
            self._started_at = now
            self._check = asyncio.create_task(self._read())
        check = self._check  # another request may start the next one during the wait
        await asyncio.wait({check}, timeout=max(self._started_at + READY_SECONDS - now, 0))
        if not check.done():
            return f"nothing was read from the snapshot within {READY_SECONDS:g} s"
        return _STOPPING if check.cancelled() else check.result()

    async def _read(self) -> str | None:
        """Read from the current snapshot in a worker; return the problem, if there is one."""
        generation = await self._snapshot.get_generation()
        try:
            await self._snapshot.ask(generation, self._spot_check.check_next, Work.GET_SERVER)
        except errors.SnapshotError as error:
            return error.reason
        return None
