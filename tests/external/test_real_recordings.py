"""Record requests with real clients, and replay what they recorded.

`make external` installs the clients. Tests whose client is missing are skipped.
"""

import json
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from asgi.small_service import format_access
from conftest import AS_OF, DAY, ROOT, build_in, server, srvstat
from support.process import Service, serve

pytestmark = pytest.mark.external

INSTALLED = ROOT / ".venv" / "external" / "bin"
PROGRAMS = ROOT / "tests" / "external" / "programs"
HOUR = DAY // 24
ALTERED = AS_OF - 3 * DAY
"""The time of the observation that is altered: within 7d, not within 24h."""
SECONDS = 60


class Request(NamedTuple):
    """A request as a client sends it."""

    method: str
    path: str
    key: str
    body: str | None = None


def get(path: str, key: str = "key-of-all") -> Request:
    return Request("GET", f"/gateway/v1/servers/{path}", key)


def compare(*identifiers: str, range: str, key: str = "key-of-all") -> Request:
    servers = [{"identifier": each, "by": "id"} for each in identifiers]
    body = json.dumps({"servers": servers, "range": range})
    return Request("POST", "/gateway/v1/compare", key, body)


REQUESTS = (
    get("a"),
    get("x-b?by=cfxId"),
    compare("a", "b", range="7d"),
    compare("c", "a", range="7d"),
    compare("b", "c", "a", range="30d"),
    compare("a", "b", range="24h"),
    compare("b", "a", range="7d", key="key-of-short"),
    compare("a", range="7d"),
    compare("a", "b", range="1y", key="key-of-short"),
    get("nobody"),
    get("a", key="wrong"),
)
AFFECTED = {2: 1, 4: 0, 6: 0}
"""The requests whose answers have the altered observation of `b`, and the places of `b`."""


def build(directory: Path, altered: int) -> Path:
    """Build a snapshot of three servers with eight days; `b` has one altered observation."""
    times = range(AS_OF - 8 * DAY, AS_OF + 1, HOUR)
    rows = [(name, at, at // HOUR % 24) for name in "abc" for at in times]
    at = rows.index(("b", ALTERED, ALTERED // HOUR % 24))
    rows[at] = ("b", ALTERED, altered)
    directory.mkdir()
    return build_in(directory, [server(name, players={"current": 1}) for name in "abc"], rows)


class Recorded(NamedTuple):
    """A service that records, and the files of a test."""

    service: Service
    directory: Path

    def replay(self, recording: Path, *options: str, snapshot: str = "original") -> Any:
        """Replay a recording, and return the document."""
        access = str(self.directory / "access.toml")
        path = str(self.directory / snapshot / "snapshot.db")
        arguments = ("--snapshot", path, "--access", access, "--json", *options)
        ran = srvstat("replay", str(recording), *arguments)
        assert ran.exit_code == (5 if snapshot == "altered" else 0), ran.stderr
        assert b"key-of-" not in ran.stdout
        return ran.json


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    keys = {"key-of-all": "all", "key-of-short": "short"}
    (tmp_path / "access.toml").write_text(format_access(keys))
    original = build(tmp_path / "original", ALTERED // HOUR % 24)
    build(tmp_path / "altered", 500)
    options = ("--access", str(tmp_path / "access.toml"), "--record", str(tmp_path / "own.ndjson"))
    with serve(original, *options) as service:
        yield Recorded(service, tmp_path)
        assert service.stop() == 0


def list_exchanges(replayed: Any) -> list[Any]:
    """Return the exchanges of the API: a page may request others, such as an icon."""
    return [each for each in replayed["exchanges"] if each["class"] != "foreign"]


def check_replay(recorded: Recorded, recording: Path, *options: str) -> None:
    """Check that all exchanges match, and that those with an altered observation differ."""
    exchanges = list_exchanges(recorded.replay(recording, *options))
    assert [(each["class"], each["path"]) for each in exchanges] == [
        ("match", request.path) for request in REQUESTS
    ]
    assert not any(each["differences"] for each in exchanges)
    altered = list_exchanges(recorded.replay(recording, *options, snapshot="altered"))
    differences = {
        number: {each["pointer"]: (each["recorded"], each["recomputed"]) for each in differing}
        for number, exchange in enumerate(altered)
        if (differing := exchange["differences"])
    }
    assert {number: list(found) for number, found in differences.items()} == {
        number: [f"/data/{place}/averagePlayers", f"/data/{place}/peakPlayers"]
        for number, place in AFFECTED.items()
    }
    for number, place in AFFECTED.items():
        assert altered[number]["class"] == "differs"
        assert differences[number][f"/data/{place}/peakPlayers"] == (23, 500)


def require(*programs: str | Path) -> None:
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"needs {program}; see `make external`")


@contextmanager
def run_proxy(directory: Path) -> Iterator[int]:
    """Run mitmproxy on a free port; it writes proxy.har when the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    command = [str(INSTALLED / "mitmdump"), "--quiet", f"--listen-port={port}"]
    for option in (f"hardump={directory}/proxy.har", f"confdir={directory}/mitmproxy"):
        command += ["--set", option]
    with subprocess.Popen(command) as process:
        try:
            wait_for_port(port)
            yield port
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


def send_with_curl(service: Service, request: Request, *options: str) -> None:
    if request.body is not None:
        options = (*options, "-H", "Content-Type: application/json", "-d", request.body)
    key = f"X-Gateway-Key: {request.key}"
    url = f"{service.url}{request.path}"
    command = ["curl", "-sS", "-X", request.method, "-H", key, *options, url]
    subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)


def test_curl_through_mitmproxy(recorded: Recorded) -> None:
    require("curl", INSTALLED / "mitmdump")
    with run_proxy(recorded.directory) as port:
        for request in REQUESTS:
            options = ("--noproxy", "", "--proxy", f"http://127.0.0.1:{port}")
            send_with_curl(recorded.service, request, *options)

    check_replay(recorded, recorded.directory / "proxy.har", "--at", "snapshot")
    check_replay(recorded, recorded.directory / "own.ndjson")


def test_chromium_through_playwright(recorded: Recorded) -> None:
    chromium = shutil.which("chromium") or "chromium"
    require(chromium, INSTALLED / "playwright")
    path = recorded.directory / "page.har"
    program = PROGRAMS / "record_har.py"
    arguments = (chromium, recorded.service.url, path, json.dumps(REQUESTS))
    subprocess.run((INSTALLED / "python", program, *arguments), check=True, timeout=3 * SECONDS)

    check_replay(recorded, path, "--at", "snapshot")
    check_replay(recorded, recorded.directory / "own.ndjson")
