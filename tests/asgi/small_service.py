"""A small snapshot, a service that serves it, and its expected answers."""

import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import httpx

from conftest import AS_OF, DAY, build_in, server
from srvstat.asgi import Settings, app
from srvstat.asgi.log import Log
from srvstat.asgi.snapshots import WORKERS, Work
from support.http import ERRORS, Answer, Client, Expected, request, send_request
from support.process import Service, serve


def build_small(directory: Path, name: str = "small.db", *, players: int = 6) -> Path:
    """Build a snapshot of the servers `a` and `b`; the server `hidden` is not publishable.

    `players` is the last observation of `a`.
    """
    path = directory / name
    path.write_bytes(_build(players))
    return path


@cache
def _build(players: int) -> bytes:
    servers = [server("a"), server("b"), server("hidden", publishable=False)]
    rows = [("a", AS_OF - DAY, 5), ("a", AS_OF, players), ("b", AS_OF, 7)]
    with TemporaryDirectory() as name:
        directory = Path(name)
        return build_in(directory, servers, rows).read_bytes()


PLANS = """
[plans.all]
operations = ["get-server", "compare-servers"]
ranges = ["24h", "7d", "30d", "90d", "1y"]

[plans.short]
operations = ["get-server", "compare-servers"]
ranges = ["24h", "7d"]

[plans.get]
operations = ["get-server"]
ranges = []

[plans.compare]
operations = ["compare-servers"]
ranges = ["30d"]

[plans.three]
operations = ["get-server"]
ranges = []
requests_per_minute = 3
"""


def format_access(keys: Mapping[str, str]) -> str:
    """Return the text of an access file with these keys; their plans are among PLANS."""
    tables = (
        f'[[keys]]\nsha256 = "{sha256(key.encode()).hexdigest()}"\nplan = "{plan}"\n'
        for key, plan in keys.items()
    )
    return PLANS + "".join(tables)


@contextmanager
def serve_small(*options: str) -> Iterator[Service]:
    """Serve the small snapshot until the block ends."""
    with (
        TemporaryDirectory() as directory,
        serve(build_small(Path(directory)), *options) as service,
    ):
        yield service


SERVER_A = (
    b'{"data":{"id":"a","game":"game_a","cfxId":"x-a","hostname":"a","projectName":"",'
    b'"projectDescription":"","region":"","players":{"current":6,"max":0},"tags":[],"flags":[],'
    b'"chatUrl":"","iconUrl":null,"offline":false,"firstSeenAt":"2026-02-28T12:00:00.000Z",'
    b'"updatedAt":"2026-03-01T12:00:00.000Z"}}'
)
COMPARED = (
    b'{"range":"30d","data":[{"serverId":"a","cfxId":"x-a","range":"30d","currentPlayers":6,'
    b'"averagePlayers":5.5,"medianPlayers":5.5,"peakPlayers":6,"lowestPlayers":5,'
    b'"growth":{"players":1,"percentage":20},"uptime":null,"sampleCount":2},'
    b'{"serverId":"b","cfxId":"x-b","range":"30d","currentPlayers":7,"averagePlayers":7,'
    b'"medianPlayers":7,"peakPlayers":7,"lowestPlayers":7,'
    b'"growth":{"players":null,"percentage":null},"uptime":null,"sampleCount":1}]}'
)

SERVER_FOUND = Expected(200, SERVER_A)
COMPARISON = Expected(200, COMPARED)
INVALID_REQUEST = Expected(400, ERRORS["INVALID_REQUEST"])
"""An invalid request; the connection stays open."""
MALFORMED = INVALID_REQUEST._replace(stays=False)
"""Malformed HTTP; the connection is closed, because the next request can't be found."""
UNAUTHORIZED = Expected(
    401,
    ERRORS["GATEWAY_UNAUTHORIZED"],
    headers={"www-authenticate": 'ApiKey header="x-gateway-key"'},
)
NOT_FOUND = Expected(404, ERRORS["SERVER_NOT_FOUND"])
UNKNOWN_PATH = Expected(404, ERRORS["INVALID_REQUEST"])
GET_ONLY = Expected(405, ERRORS["INVALID_REQUEST"], headers={"allow": "GET, HEAD"})
POST_ONLY = Expected(405, ERRORS["INVALID_REQUEST"], headers={"allow": "POST"})


SERVERS = "/explore/data/servers"
RANKING = "/explore/data/ranking"
NETWORK = "/explore/data/network"
OVERVIEW = "/explore/data/overview"
CSV = "/explore/data/csv"
PICTURE = "/explore/data/picture"


def ask_page(
    service: Service,
    target: str,
    *headers: bytes,
    method: str = "GET",
    host: str | None = None,
    key: str | None = "k",
) -> Answer:
    """Send a request as a browser does and return the answer; None leaves the key out."""
    keys = [] if key is None else [b"X-Gateway-Key: " + key.encode()]
    host = host or f"127.0.0.1:{service.port}"
    sent = request(
        f"{method} {target} HTTP/1.1".encode(), f"Host: {host}".encode(), *keys, *headers
    )
    with Client(service) as client:
        client.send(sent)
        return client.read_any_answer(to_head=method == "HEAD")


def search(text: str) -> str:
    """Return the target of a search."""
    return f"{SERVERS}?text={quote(text, safe='')}"


class InProcess:
    """A service in this process, and its workers."""

    def __init__(self, path: Path, *, explore: bool = False) -> None:
        self.app = app.Service(Settings(os.fspath(path), explore=explore), Log())
        self.snapshot = self.app.snapshot
        self.occupying: list[asyncio.Future[Any]] = []

    @asynccontextmanager
    async def client(
        self, base: str = "http://localhost/gateway/v1"
    ) -> AsyncIterator[httpx.AsyncClient]:
        """Return a client that uses no sockets."""
        headers = {"X-Gateway-Key": "k", "Content-Type": "application/json"}
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url=base, headers=headers) as client:
            yield client

    async def ask(self, question: Callable[[Any], Any], work: Work = Work.GET_SERVER) -> Any:
        """Call a function in a worker."""
        return await self.snapshot.ask(await self.snapshot.get_generation(), question, work)

    async def occupy(self, release: threading.Event) -> None:
        """Occupy all workers until an event."""
        self.occupying = [
            asyncio.ensure_future(self.ask(lambda _: release.wait())) for _ in range(WORKERS)
        ]
        await asyncio.sleep(0.05)

    def run(self, work: Coroutine[Any, Any, None], *, closes: bool = False) -> None:
        """Run a coroutine for at most a minute; `closes` tells whether it closes the service."""

        async def run() -> None:
            async with asyncio.timeout(60):
                await work
            self.snapshot.close()
            if not closes:
                self.app.close()

        asyncio.run(run())


def wait_for(read: Callable[[], list[dict[str, Any]]], number: int) -> list[dict[str, Any]]:
    """Wait until a list has a number of members, check that no more come, and return it."""
    deadline = time.monotonic() + 5
    while len(read()) < number and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.05)
    found = read()
    assert len(found) == number, found
    return found


def wait_for_entries(service: Service, number: int, after: int = 0) -> list[dict[str, Any]]:
    """Wait for a number of entries in the log."""
    return wait_for(lambda: service.read_log()[after:], number)


def wait_for_events(service: Service, number: int) -> list[dict[str, Any]]:
    """Wait for a number of entries about something other than requests."""
    return wait_for(lambda: list_events(service), number)


def wait_for_records(path: Path, number: int, after: int = 0) -> list[dict[str, Any]]:
    """Wait for a number of lines in a recording."""
    return wait_for(lambda: read_records(path)[after:], number)


def list_events(service: Service) -> list[dict[str, Any]]:
    """Return the entries so far about something other than requests."""
    return [entry for entry in service.read_log() if "event" in entry]


def empty_log(service: Service, sent: bytes) -> None:
    """Send a request, wait for its entry, which follows all earlier ones, and empty the log."""
    log_request(service, sent)
    os.truncate(service.log_path, 0)


def log_request(service: Service, sent: bytes) -> dict[str, Any]:
    """Send a request, and return its only entry; an answer with a reason has the same one."""
    answer = send_request(service, sent, to_head=sent.startswith(b"HEAD"))
    deadline = time.monotonic() + 5
    while not (found := _find_entries(service, answer.headers["x-request-id"])):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (entry,) = found
    assert entry["status"] == answer.status
    assert entry["bytes"] == len(answer.body)
    explained = answer.headers.get("x-srvstat-reason")
    assert explained in (None, entry.get("reason", "").replace("…", "..."))
    return entry


def _find_entries(service: Service, request_id: str) -> list[dict[str, Any]]:
    return [entry for entry in service.read_log() if entry.get("id") == request_id]


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the lines so far, which must be whole."""
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    return [json.loads(line) for line in lines]
