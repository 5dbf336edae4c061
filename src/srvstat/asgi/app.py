"""The ASGI application: authenticate, validate, answer and log a request, in the order of D11.

Starlette's routes would see the decoded path, in which `%2F` is `/`, and would redirect before the
key is checked. So `contract.http` finds the operation in the path as sent.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from srvstat.asgi import Settings
from srvstat.asgi.auth import Authenticator
from srvstat.asgi.control import Control
from srvstat.asgi.faults import Faults
from srvstat.asgi.headers import Cors, build_error_response, build_reason_header, check_host
from srvstat.asgi.log import Exchange, Log, Recorder, store_request
from srvstat.asgi.pages import ApiDocs
from srvstat.asgi.snapshots import ServedSnapshot, Work
from srvstat.contract import errors, http, requests, responses
from srvstat.contract.time import format_instant
from srvstat.documents.support import Recording, StoredResponse
from srvstat.operations.faults import BREAKS, Call
from srvstat.operations.redaction import HIDDEN, KeyFilter
from srvstat.snapshot.read.verify import SpotCheck

if TYPE_CHECKING:
    from srvstat.asgi.explore import Explorer

READY_SECONDS = 2.0
"""The timeout of a readiness check, in seconds."""

SECONDS_BETWEEN_CHECKS = 1.0
"""How long a readiness result is cached, in seconds from the start of its check."""

_RECORDED = frozenset({"getServer", "compareServers"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""The methods that the log names. Any other method is logged as `other`."""
_REQUEST_ID = re.compile(http.REQUEST_ID_PATTERN)
_STOPPING = "the service is stopping"
_OPERATIONS: Mapping[bytes, str] = {
    http.HEALTH_PATH.encode(): "getHealth",
    http.READY_PATH.encode(): "getReadiness",
    b"/openapi.json": "getOpenApi",
}
"""The operational paths, with their names in the log."""


Site: TypeAlias = "Control | OperationalPaths | ApiDocs | Explorer"


class Service:
    """The ASGI application. Create it before the event loop starts.

    Raises SourceError for an invalid access file, SnapshotError for an unusable snapshot, and the
    errors of Recorder.
    """

    def __init__(self, settings: Settings, log: Log) -> None:
        self.log = log
        self.faults = Faults(settings.simulation)
        self.authenticator = Authenticator(settings.access, log)
        self.snapshot = ServedSnapshot(settings.snapshot, log, settings.simulation.at)
        self.operational = OperationalPaths(self.snapshot)
        # Sites serve paths outside the API and the order of D11 (D21). The first site with a path
        # wins.
        docs = ApiDocs(self.snapshot, self.authenticator, has_explore=settings.explore)
        self.control = Control(self.faults, self.snapshot) if settings.simulation.control else None
        self.sites: list[Site] = [self.operational, docs]
        self.sites += [self.control] if self.control else []
        if settings.explore:
            # Imported here, because only this page needs the analyzer.
            from srvstat.asgi import explore  # noqa: PLC0415

            self.sites.insert(0, explore.Explorer(self.snapshot, self.authenticator))
        try:
            self.recorder = None if settings.record is None else Recorder(settings.record, log)
        except errors.SrvstatError:
            self.snapshot.close()
            raise
        self.cors = Cors(settings.cors) if settings.cors else None
        self.hosts = settings.hosts
        self.explains_errors = settings.explains_errors
        self.disconnect: Callable[[Scope, str], None] = lambda *_: None
        """Breaks the connection of a request, for a simulated fault. The server sets it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request, log it, and record it."""
        started = time.perf_counter()
        request = Request(scope, receive)
        exchange = self._begin(request)
        entry = exchange.entry
        try:
            response = await self._respond(exchange)
        except ClientDisconnect:
            entry["reason"] = "the client closed the connection"
            self._note(exchange)
        else:
            self._note(exchange, response)
            await self.faults.hold(entry, started)
            if entry.get("simulated") in BREAKS:
                await self._break(exchange, response, send)
            else:
                if self.operational.is_stopping:
                    response.headers["connection"] = "close"
                await response(scope, receive, send)
                self._record(exchange, response)
        entry["ms"] = round((time.perf_counter() - started) * 1000, 3)
        self.log.add(entry)

    def begin_stop(self) -> None:
        """Begin to stop: report not ready, send delayed responses, and close connections."""
        self.operational.stop()
        self.faults.stop()

    def close(self) -> None:
        """Write the rest of the recording and of the log."""
        if self.recorder:
            self.recorder.close()
        self.log.add_event("stopped")
        self.log.close()

    def _begin(self, request: Request) -> Exchange:
        """Create an exchange from the head of a request.

        The log entry contains neither the path nor the headers, because a client can put a key
        there, in any encoding.
        """
        scope = request.scope
        head = http.Head(request.method, scope["raw_path"], scope["query_string"], scope["headers"])
        key_filter = KeyFilter.for_headers(head.headers, self.authenticator.is_registered)
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
        headers = {"cache-control": http.CACHE_CONTROL, http.REQUEST_ID_HEADER.lower(): request_id}
        current = self.snapshot.current
        as_of = self.snapshot.find_time(current)
        return Exchange(request, now, head, key_filter, entry, headers, as_of, current.root)

    def _note(self, exchange: Exchange, response: Response | None = None) -> None:
        """Add a request to the journal, and its response, if any, to the log entry."""
        entry, head = exchange.entry, exchange.head
        fault = entry.get("simulated")
        if response and fault not in {"drop", "reset"}:
            sent = 0 if head.method == "HEAD" else len(response.body)
            entry |= {"status": response.status_code, "bytes": sent // (1 + (fault == "cut"))}
        if self.control and entry.get("operation") != "control":
            self.control.add(exchange)

    async def _break(self, exchange: Exchange, response: Response, send: Send) -> None:
        """Break the connection. A `cut` first sends half of the body."""
        request, fault = exchange.request, exchange.entry["simulated"]
        if fault == "cut":
            start = {"status": response.status_code, "headers": response.raw_headers}
            await send({"type": "http.response.start", **start})
            half = bytes(response.body[: len(response.body) // 2])
            await send({"type": "http.response.body", "body": half, "more_body": True})
        self.disconnect(request.scope, fault)
        # If the application returned earlier, uvicorn would respond with a 500.
        while (await request.receive())["type"] != "http.disconnect":
            pass

    def _record(self, exchange: Exchange, response: Response) -> None:
        """Add a response to the recording."""
        entry, head = exchange.entry, exchange.head
        if not self.recorder or "simulated" in entry or entry.get("operation") not in _RECORDED:
            return
        body = bytes(response.body)
        answer = None if head.method == "HEAD" else exchange.key_filter.hide_data(body)
        self.recorder.add(
            Recording(
                as_of=exchange.as_of,
                root=exchange.root,
                requested_at=exchange.requested_at,
                request_id=entry["id"],
                plan=exchange.plan,
                request=store_request(head, exchange.body, exchange.key_filter),
                response=StoredResponse(status=response.status_code, body=answer),
            )
        )

    async def _respond(self, exchange: Exchange) -> Response:
        """Return the response to a request. Raises ClientDisconnect if the client has left."""
        head, entry, headers = exchange.head, exchange.entry, exchange.headers
        if http.has_ambiguous_length(head.headers):
            headers["connection"] = "close"  # RFC 9112, section 6.1; also after an error
        site = next((site for site in self.sites if site.has_path(head.path)), None)
        if self.cors and site in {None, self.operational}:
            headers |= self.cors.build_headers(head)
            if self.cors.is_preflight(head):
                return self.cors.answer_preflight(head, entry, headers)
        try:
            return await self._answer_site(exchange, site)
        except errors.ApiError as error:
            answered = error
        except errors.SnapshotError as error:
            answered = errors.InternalError(error.reason)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001 - a bug; clients must not see a traceback
            answered = errors.InternalError(errors.describe_unexpected(error))
        entry["code"] = answered.code
        headers |= self._note_reason(exchange, answered.reason)
        return build_error_response(answered, headers)

    async def _answer_site(self, exchange: Exchange, site: "Site | None") -> Response:
        """Return the response of a site, or of the API if there is no site. Raises their errors."""
        headers = exchange.headers
        # Health needs no host check: it is not secret, and probes use any address.
        if self.hosts is not None and self.authenticator.is_open and site != self.operational:
            check_host(exchange.head.headers, self.hosts)
        if not site:
            body = await self._answer(exchange)
            return Response(body, headers=headers, media_type=http.JSON_TYPE)
        response = await site.answer(exchange)
        if "reason" in exchange.entry:
            response.headers.update(self._note_reason(exchange, exchange.entry["reason"]))
        return response

    def _note_reason(self, exchange: Exchange, reason: str) -> dict[str, str]:
        """Add an error's reason to the log entry, and return the headers that contain it."""
        exchange.entry["reason"] = redacted = exchange.key_filter.redact(reason)
        return build_reason_header(redacted) if self.explains_errors else {}

    async def _answer(self, exchange: Exchange) -> bytes:
        head, entry = exchange.head, exchange.entry
        endpoint = http.find_endpoint(head.path)
        if endpoint:
            entry["operation"] = endpoint.operation
        caller = await self.authenticator.admit(exchange)
        endpoint = http.check_method(head.method, endpoint)
        question: requests.ServerReference | requests.CompareRequest
        asked: tuple[requests.ServerReference, ...]
        if endpoint.operation == "getServer":
            question = http.parse_get_server(head, endpoint.identifier)
            asked = (question,)
        else:
            http.check_compare_head(head)
            await exchange.read_body()
            question = requests.parse_compare_request(exchange.body)
            asked, entry["range"] = question.servers, question.range
        entry["servers"] = _format_references(asked, exchange.key_filter)
        call = Call(endpoint.operation, asked, caller.digest, exchange.plan)
        self.faults.simulate(call, exchange)
        if caller.plan:
            caller.plan.check_request(question)
        generation = await self.snapshot.get_generation()
        exchange.as_of, exchange.root = self.snapshot.find_time(generation), generation.root
        if exchange.as_of != generation.as_of:
            entry["asOf"] = format_instant(exchange.as_of)
        if isinstance(question, requests.ServerReference):
            return await self.snapshot.answer_get_server(generation, question)
        results = await self.snapshot.answer_comparison(generation, question, exchange.as_of)
        return responses.encode_comparison(question.range, results)


def format_address(host: str, port: int) -> str:
    """Format an address as text: `127.0.0.1:5000`, `[::1]:5000`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _format_references(
    references: tuple[requests.ServerReference, ...], key_filter: KeyFilter
) -> list[str]:
    """Format references for the log: `cfxId:abc123`."""
    return [
        f"{each.by}:{HIDDEN if key_filter.has_key(each.identifier) else each.identifier}"
        for each in references
    ]


class OperationalPaths:
    """Health, readiness and the OpenAPI document. Create it before the event loop starts.

    The readiness check:

    - reads through the connections that respond to requests: opening the path instead would report
      a service as not ready although its deleted file still works;
    - computes every range of one server, without SQLite's cache, which would hide a damaged disk;
    - runs at most once at a time, so that an unresponsive disk blocks only one worker.
    """

    def __init__(self, snapshot: ServedSnapshot) -> None:
        self._snapshot = snapshot
        self._spot_check = SpotCheck()
        self._check: asyncio.Task[str | None] | None = None
        self._started_at = 0.0
        self.is_stopping = False
        self._openapi = http.read_openapi()

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, is an operational path."""
        return http.strip_origin(path) in _OPERATIONS

    async def answer(self, exchange: Exchange) -> Response:
        """Return the response, and complete the log entry. Raises WrongMethodError."""
        head, entry, headers = exchange.head, exchange.entry, exchange.headers
        operation = entry["operation"] = _OPERATIONS[http.strip_origin(head.path)]
        http.check_allowed(head.method, http.GET_METHODS)
        if operation == "getOpenApi":
            return Response(self._openapi, headers=headers, media_type=http.JSON_TYPE)
        if operation == "getReadiness" and (problem := await self._find_problem()):
            entry["reason"] = problem
            return Response(responses.UnavailableResponse().to_json(), 503, headers, http.JSON_TYPE)
        generation = await self._snapshot.get_generation()
        as_of = format_instant(self._snapshot.find_time(generation))
        is_outdated = operation == "getReadiness" and self._snapshot.has_rejected
        status: responses.HealthStatus = "outdated" if is_outdated else "ok"
        health = responses.HealthResponse(status=status, as_of=as_of, root=generation.root)
        return Response(health.to_json(), headers=headers, media_type=http.JSON_TYPE)

    def stop(self) -> None:
        """Report a problem from now on, because the service stops."""
        self.is_stopping = True
        if self._check:
            self._check.cancel()

    async def _find_problem(self) -> str | None:
        """Return why the service is not ready, or None if it is, within READY_SECONDS."""
        if self.is_stopping:
            return _STOPPING
        now = asyncio.get_running_loop().time()
        is_outdated = now >= self._started_at + SECONDS_BETWEEN_CHECKS
        if self._check is None or (self._check.done() and is_outdated):
            self._started_at = now
            self._check = asyncio.create_task(self._read())
        check = self._check  # another request may start the next check during the wait
        await asyncio.wait({check}, timeout=max(self._started_at + READY_SECONDS - now, 0))
        if not check.done():
            return f"nothing was read from the snapshot within {READY_SECONDS:g} s"
        return _STOPPING if check.cancelled() else check.result()

    async def _read(self) -> str | None:
        """Read from the current snapshot in a worker. Return the problem, or None."""
        generation = await self._snapshot.get_generation()
        try:
            await self._snapshot.ask(generation, self._spot_check.check_next, Work.GET_SERVER)
        except errors.SnapshotError as error:
            return error.reason
        return None
