"""The ASGI application: authenticate, validate, answer and log a request, in the order of D11."""

import asyncio
import time
import traceback
from collections.abc import Callable, Mapping
from types import MappingProxyType

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from srvstat.asgi import Settings
from srvstat.asgi.auth import Authenticator
from srvstat.asgi.headers import (
    Cors,
    Progress,
    Site,
    SiteAnswer,
    build_error_response,
    build_reason_header,
    format_references,
    start_progress,
)
from srvstat.asgi.log import Log, Recorder, ServedExchange
from srvstat.asgi.rehearsal import DroppedError, Rehearsal
from srvstat.asgi.snapshots import ServedSnapshot, Work, answer_comparison, answer_get_server
from srvstat.contract import http
from srvstat.contract.errors import (
    ApiError,
    InternalError,
    InvalidRequestError,
    SnapshotError,
    SrvstatError,
)
from srvstat.contract.http import read_openapi
from srvstat.contract.requests import (
    MAX_BODY_BYTES,
    CompareRequest,
    ServerReference,
    parse_compare_request,
)
from srvstat.contract.responses import HealthResponse, UnavailableResponse, encode_comparison
from srvstat.contract.time import format_instant
from srvstat.render.web import DOCS_ASSETS, find_asset
from srvstat.snapshot.read.verify import SpotCheck

BODY_SECONDS = 5.0
"""From the end of a request's head to the end of its body."""

_RECORDED = frozenset({"getServer", "compareServers"})


class Service:
    """The ASGI application. Create it before the event loop starts.

    Raises SourceError for the access file, SnapshotError, and what Recorder raises.
    """

    drop: Callable[[Scope], None]
    """Closes the connection of a request; the server sets it."""

    def __init__(self, settings: Settings, log: Log) -> None:
        self.log = log
        self.authenticator = Authenticator(settings.access, log)
        self.snapshot = ServedSnapshot(settings.snapshot, log)
        self.operational = OperationalPaths(self.snapshot)
        # They answer paths outside the contract.
        self.sites: tuple[Site, ...] = (self.operational, ApiDocs())
        if settings.explore:
            # The page needs the analyzer, which the API does not.
            from srvstat.asgi.explore import Explorer  # noqa: PLC0415

            self.sites += (Explorer(self.snapshot, self.authenticator),)
        try:
            self.recorder = None if settings.record is None else Recorder(settings.record, log)
        except SrvstatError:
            self.snapshot.close()
            raise
        self.cors = Cors(settings.cors) if settings.cors else None
        self.rehearsal = Rehearsal(settings.rehearsal) if settings.rehearsal else None
        self.explains_errors = settings.explains_errors
        self.drop = lambda _: None
        self._is_stopping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, log it, and record it."""
        started = time.perf_counter()
        request = Request(scope, receive)
        progress = start_progress(request, self.authenticator.is_registered)
        entry = progress.entry
        try:
            response = await self._respond(request, progress)
            await self._hold(progress)
        except ClientDisconnect:
            entry["reason"] = "the client closed the connection"
        except DroppedError:
            await self._hold(progress)
            self.drop(scope)
            # If the application returned earlier, uvicorn would answer with a 500.
            while (await receive())["type"] != "http.disconnect":
                pass
        else:
            if self._is_stopping:
                response.headers["connection"] = "close"
            await response(scope, receive, send)
            self._note(progress, response)
        entry["ms"] = round((time.perf_counter() - started) * 1000, 3)
        self.log.add(entry)

    async def _hold(self, progress: Progress) -> None:
        if self.rehearsal:
            await self.rehearsal.hold(progress)

    def _note(self, progress: Progress, response: Response) -> None:
        """Note an answer in the log and in the recording."""
        entry = progress.entry
        is_head = progress.head.method == "HEAD"
        entry |= {
            "status": response.status_code,
            "bytes": 0 if is_head else len(response.body),
        }
        if not self.recorder or "rehearsed" in entry or entry.get("operation") not in _RECORDED:
            return
        generation = progress.generation or self.snapshot.current
        exchange = ServedExchange(
            head=progress.head,
            body=progress.body,
            status=response.status_code,
            answer=None if is_head else bytes(response.body),
            requested_at=progress.requested_at,
            plan=progress.plan,
            as_of=generation.as_of,
            root=generation.root,
        )
        self.recorder.add(exchange, progress.key_filter)

    def begin_stop(self) -> None:
        """Close connections after their next answer, send delayed answers, and be not ready."""
        self._is_stopping = True
        self.operational.stop()
        if self.rehearsal:
            self.rehearsal.stop()

    def close(self) -> None:
        """Write what remains of the recording and the log."""
        if self.recorder:
            self.recorder.close()
        self.log.add_event("stopped")
        self.log.close()

    async def _respond(self, request: Request, progress: Progress) -> Response:
        """Return the response to a request. Raises ClientDisconnect, DroppedError."""
        head, headers = progress.head, progress.headers
        if http.has_ambiguous_length(request.scope["headers"]):
            headers["connection"] = "close"  # RFC 9112, section 6.1; also after an error
        site = next((site for site in self.sites if site.has_path(head.path)), None)
        if self.cors and (site is None or site.allows_cors):
            headers |= self.cors.build_headers(head)
            if self.cors.is_preflight(head):
                return self.cors.answer_preflight(progress)
        try:
            if site:
                headers |= site.headers
                answer = await site.answer(progress)
                headers |= self._note_reason(progress, answer.reason)
                return Response(answer.body, answer.status, headers, answer.media_type)
            body = await self._answer(request, progress)
            return Response(body, headers=headers, media_type=http.JSON_TYPE)
        except ApiError as error:
            answered = error
        except SnapshotError as error:
            answered = InternalError(error.reason)
        except (ClientDisconnect, DroppedError):
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
        return build_reason_header(redacted) if self.explains_errors else {}

    async def _answer(self, request: Request, progress: Progress) -> bytes:
        head, entry = progress.head, progress.entry
        target = http.find_target(head.path)
        if target:
            entry["operation"] = target.operation
        caller = await self.authenticator.authenticate(head.headers)
        entry["caller"] = caller.name
        progress.plan = caller.plan.name if caller.plan else None
        self.authenticator.count_request(caller, progress.headers)
        if target and self.rehearsal:
            self.rehearsal.rehearse(progress)
        target = http.check_method(head.method, target)
        question: ServerReference | CompareRequest
        if target.operation == "getServer":
            question = http.parse_get_server(head, target.identifier)
            entry["servers"] = format_references((question,), progress.key_filter)
        else:
            http.check_compare_head(head)
            progress.body = await _read_body(request, progress)
            question = parse_compare_request(progress.body)
            entry["servers"] = format_references(question.servers, progress.key_filter)
            entry["range"] = question.range
        if caller.plan:
            caller.plan.check_request(question)
        progress.generation = generation = await self.snapshot.get_generation()
        if isinstance(question, ServerReference):
            return await answer_get_server(self.snapshot, generation, question)
        results = await answer_comparison(self.snapshot, generation, question)
        return encode_comparison(question.range, results)


async def _read_body(request: Request, progress: Progress) -> bytes:
    """Read the body of a request; stop at the first chunk that exceeds the limit.

    Raises InvalidRequestError for a late body, ClientDisconnect if the connection was closed.
    """
    body = b""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    break
    except TimeoutError:
        progress.headers["connection"] = "close"
        raise InvalidRequestError(f"body: not complete within {BODY_SECONDS:g} s") from None
    return body


READY_SECONDS = 2.0
"""Seconds from the start of a check until the service counts as not ready."""

SECONDS_BETWEEN_CHECKS = 1.0
"""A result holds this long, from the start of its check, so that many requests cost no more."""

_STOPPING = "the service is stopping"
_OPERATIONS: Mapping[bytes, str] = {
    http.HEALTH_PATH.encode(): "getHealth",
    http.READY_PATH.encode(): "getReadiness",
    b"/openapi.json": "getOpenApi",
}
"""What the log calls the paths."""
_DOCS_PATH = b"/docs"
_MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "html": "text/html"}
_NO_DOCS = (
    b"This installation of srvstat lacks the files of Swagger UI, which a wheel has.\n"
    b"In a clone, run `make api-page`, and start the service again.\n"
    b"/openapi.json has the documentation for programs.\n"
)


class OperationalPaths(Site):
    """Operational paths, except for that of the page. Create it before the event loop starts.

    At most one check of the snapshot runs, so a disk that does not answer blocks one worker only.
    """

    headers = MappingProxyType({})
    allows_cors = True

    def __init__(self, snapshot: ServedSnapshot) -> None:
        self._snapshot = snapshot
        self._spot_check = SpotCheck()
        self._check: asyncio.Task[str | None] | None = None
        self._started_at = 0.0
        self._is_stopping = False
        self._openapi = read_openapi()

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, is one of them."""
        return http.strip_origin(path) in _OPERATIONS

    async def answer(self, progress: Progress) -> SiteAnswer:
        """Return the answer; add to its headers and its log entry.

        Raises WrongMethodError.
        """
        head = progress.head
        operation = progress.entry["operation"] = _OPERATIONS[http.strip_origin(head.path)]
        http.check_allowed(head.method, http.GET_METHODS)
        if operation == "getOpenApi":
            return SiteAnswer(self._openapi, http.JSON_TYPE)
        if operation == "getReadiness" and (problem := await self._find_problem()):
            return SiteAnswer(UnavailableResponse().to_json(), http.JSON_TYPE, 503, problem)
        generation = await self._snapshot.get_generation()
        health = HealthResponse(asOf=format_instant(generation.as_of), root=generation.root)
        return SiteAnswer(health.to_json(), http.JSON_TYPE)

    def stop(self) -> None:
        """Report a problem from now on, because the service stops."""
        self._is_stopping = True
        if self._check:
            self._check.cancel()

    async def _find_problem(self) -> str | None:
        """Return why the service is not ready, within READY_SECONDS; None if it is."""
        if self._is_stopping:
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
        except SnapshotError as error:
            return error.reason
        return None


class ApiDocs(Site):
    """The page and its files. Create it before the event loop starts, because it reads them."""

    def __init__(self) -> None:
        self._files = _read_files()

    def has_path(self, path: bytes) -> bool:
        """Return whether a path, as sent, belongs to the page."""
        path = http.strip_origin(path)
        return path == _DOCS_PATH or path.startswith(_DOCS_PATH + b"/")

    async def answer(self, progress: Progress) -> SiteAnswer:
        """Return the answer; add to its log entry. It is a hint if Swagger UI is missing.

        Raises UnknownPathError, WrongMethodError.
        """
        head = progress.head
        path = http.strip_origin(head.path)
        progress.entry["operation"] = "getDocs" if path == _DOCS_PATH else "getDocsAsset"
        http.check_allowed(head.method, http.GET_METHODS)
        if not self._files:
            return SiteAnswer(_NO_DOCS, "text/plain", 404, "the page has not been built")
        if path not in self._files:
            raise http.UnknownPathError("path: not a file of the page")
        return self._files[path]


def _read_files() -> Mapping[bytes, SiteAnswer]:
    """Return the answers with the page and its files by their paths; none if some are missing."""
    files = {_DOCS_PATH + b"/" + name.encode(): file for name, file in DOCS_ASSETS.items()}
    files[_DOCS_PATH] = "docs.html"
    try:
        return {
            path: SiteAnswer(find_asset(name).read_bytes(), _MEDIA_TYPES[name.rpartition(".")[2]])
            for path, name in files.items()
        }
    except FileNotFoundError:
        return {}
