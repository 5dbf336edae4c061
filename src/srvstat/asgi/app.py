"""The ASGI application: authenticate, validate, answer and log a request, in the order of D11."""

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from srvstat.asgi.answers import (
    build_error_response,
    build_headers,
    build_reason_header,
    create_request_id,
)
from srvstat.asgi.auth import Authenticator, Caller
from srvstat.asgi.connection import BODY_ERROR, CLOSE, IS_GONE
from srvstat.asgi.cors import Cors
from srvstat.asgi.log import Log
from srvstat.asgi.progress import Progress, format_address, format_references, start_progress
from srvstat.asgi.readiness import Readiness
from srvstat.asgi.recorder import Recorder
from srvstat.asgi.rehearsal import DroppedError, Rehearsal
from srvstat.asgi.sites import Site, SiteAnswer
from srvstat.asgi.snapshots import (
    ClientGoneError,
    ServedSnapshot,
    answer_get_server,
    complete_results,
)
from srvstat.contract.errors import ApiError, InternalError, InvalidRequestError, SnapshotError
from srvstat.contract.http import (
    JSON_TYPE,
    OperationId,
    check_compare_head,
    check_method,
    find_target,
    has_ambiguous_length,
    parse_get_server,
)
from srvstat.contract.requests import (
    MAX_BODY_BYTES,
    CompareRequest,
    ServerReference,
    parse_compare_request,
)
from srvstat.contract.responses import encode_comparison
from srvstat.support.recordings import ServedExchange

WORK_SECONDS = 10.0
"""Seconds from a validated request to its answer, including the wait for a worker."""

_OK = 200
_RECORDED: frozenset[OperationId] = frozenset({"getServer", "compareServers"})


@dataclass(frozen=True, slots=True)
class Parts:
    """What a service consists of; None stands for a part that is turned off."""

    snapshot: ServedSnapshot
    authenticator: Authenticator
    log: Log
    recorder: Recorder | None = None
    sites: tuple[Site, ...] = ()
    """They answer paths outside the contract."""
    cors: Cors | None = None
    rehearsal: Rehearsal | None = None
    readiness: Readiness | None = None
    explains_errors: bool = False


class Service:
    """The ASGI application; it answers from the snapshot at one path."""

    def __init__(self, parts: Parts) -> None:
        self._snapshot = parts.snapshot
        self._authenticator = parts.authenticator
        self._log = parts.log
        self._recorder = parts.recorder
        self._sites = parts.sites
        self._cors = parts.cors
        self._rehearsal = parts.rehearsal
        self._readiness = parts.readiness
        self._explains_errors = parts.explains_errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, log it, and record it."""
        started = time.perf_counter()
        request = Request(scope, receive)
        progress = start_progress(request, self._authenticator.is_registered)
        entry = progress.entry
        try:
            response = await self._respond(request, progress)
            if self._rehearsal:
                await self._rehearsal.hold(progress, scope["state"])
        except (ClientDisconnect, ClientGoneError):
            entry["reason"] = "the client closed the connection"
        else:
            if response is None:
                await _close_connection(scope, receive)
            else:
                await response(scope, receive, send)
                self._note(progress, response)
        entry["ms"] = round((time.perf_counter() - started) * 1000, 3)
        self._log.add(entry)

    def _note(self, progress: Progress, response: Response) -> None:
        """Note an answer in the log and in the recording."""
        entry = progress.entry
        sent = 0 if progress.head.method == "HEAD" else len(response.body)
        entry |= {"status": response.status_code, "bytes": sent}
        if self._recorder and entry.get("operation") in _RECORDED and not progress.is_rehearsed:
            self._record(self._recorder, progress, response)

    def _record(self, recorder: Recorder, progress: Progress, response: Response) -> None:
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

    def begin_stop(self) -> None:
        """Prepare for the stop: send delayed answers at once, and report that it is not ready."""
        if self._rehearsal:
            self._rehearsal.stop()
        if self._readiness:
            self._readiness.stop()

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
        new_id = create_request_id()
        entry = {"id": new_id, "remote": format_address(client), "status": error.http_status}
        self._log.add(entry | {"code": error.code, "reason": error.reason})
        headers = build_headers(new_id) | {"connection": "close"} | self._explain(error.reason)
        response = build_error_response(error, headers)
        return response.raw_headers, bytes(response.body)

    def _explain(self, reason: str) -> dict[str, str]:
        return build_reason_header(reason) if self._explains_errors else {}

    async def _respond(self, request: Request, progress: Progress) -> Response | None:
        """Return the response to a request; None if its connection is to be closed instead."""
        head, headers = progress.head, progress.headers
        if has_ambiguous_length(request.scope["headers"]):
            headers["connection"] = "close"  # RFC 9112, section 6.1; also after an error
        site = next((site for site in self._sites if site.has_path(head.path)), None)
        if self._cors and (site is None or site.allows_cors):
            headers |= self._cors.build_headers(head)
            if self._cors.is_preflight(head):
                return self._cors.answer_preflight(progress)
        try:
            if site:
                headers |= site.headers
                answer = await self._ask_site(site, request, progress)
                headers |= self._note_reason(progress, answer.reason)
                return Response(answer.body, answer.status, headers, answer.media_type)
            body = await self._answer(request, progress)
            return Response(body, _OK, headers, JSON_TYPE)
        except ApiError as error:
            answered = error
        except SnapshotError as error:
            answered = InternalError(error.reason)
        except DroppedError:
            return None
        except (ClientDisconnect, ClientGoneError):
            raise
        except Exception as error:  # noqa: BLE001 - a bug; no client may see a traceback
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.name}, {place.filename} line {place.lineno}"
            answered = InternalError(f"a bug in srvstat: {type(error).__name__} in {where}")
        progress.entry["code"] = answered.code
        headers |= self._note_reason(progress, answered.reason)
        return build_error_response(answered, headers)

    def _note_reason(self, progress: Progress, reason: str | None) -> dict[str, str]:
        """Note the reason of an error in the log, and return the headers with it."""
        if reason is None:
            return {}
        progress.entry["reason"] = redacted = progress.key_filter.redact(reason)
        return self._explain(redacted)

    async def _answer(self, request: Request, progress: Progress) -> bytes:
        head, entry = progress.head, progress.entry
        target = find_target(head.path)
        if target:
            entry["operation"] = target.operation
        caller = await self._authenticator.authenticate(head.headers)
        entry["caller"] = caller.name
        progress.plan = caller.plan.name if caller.plan else None
        self._authenticator.count_request(caller, progress.headers)
        if target and self._rehearsal:
            self._rehearsal.rehearse(progress)
        target = check_method(head.method, target)
        if target.operation == "getServer":
            reference = parse_get_server(head, target.identifier)
            entry["servers"] = format_references((reference,), progress.key_filter)
            return await self._get_server(request, reference, caller, progress)
        check_compare_head(head)
        progress.body = await _read_body(request)
        comparison = parse_compare_request(progress.body)
        entry["servers"] = format_references(comparison.servers, progress.key_filter)
        entry["range"] = comparison.range
        return await self._compare(request, comparison, caller, progress)

    async def _ask_site(self, site: Site, request: Request, progress: Progress) -> SiteAnswer:
        async with _enforce_deadline():
            return await site.answer(progress, _track_client(request))

    async def _get_server(
        self, request: Request, reference: ServerReference, caller: Caller, progress: Progress
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
        self, request: Request, comparison: CompareRequest, caller: Caller, progress: Progress
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


async def _close_connection(scope: Scope, receive: Receive) -> None:
    """Close the connection of a request, and wait until it is closed.

    If the application returned earlier, uvicorn would answer with a 500.
    """
    scope["state"][CLOSE]()
    while (await receive())["type"] != "http.disconnect":
        pass


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
