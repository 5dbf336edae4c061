"""Real clients, generated ones, the shell and a real Prometheus: they get the same answers.

`make external` installs them. Tests whose program is missing are skipped.
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from asgi.small_service import COMPARED, SERVER_A, format_access, serve_small
from conftest import AS_OF, DAY, ROOT, build_in, server, srvstat
from external.installed import INSTALLED, PROGRAMS, require
from sources.readings import read_rows
from srvstat.contract.errors import SourceError
from srvstat.sources.mapping import ColumnMapping
from support.http import ERRORS
from support.markdown import read_marked_block
from support.process import Service, serve

pytestmark = pytest.mark.external

HOUR = DAY // 24
ALTERED = AS_OF - 3 * DAY
"""The time of the observation that is altered: within 7d, not within 24h."""
SECONDS = 60
MODULES = INSTALLED.parent / "node_modules"


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
    snapshots: Path
    directory: Path

    def replay(
        self, recording: Path, *options: str, snapshot: str = "original", exit_code: int = 0
    ) -> Any:
        """Replay a recording, and return the document."""
        access = str(self.directory / "access.toml")
        path = str(self.snapshots / snapshot / "snapshot.db")
        arguments = ("--snapshot", path, "--access", access, "--json", *options)
        ran = srvstat("replay", str(recording), *arguments)
        assert ran.exit_code == exit_code, ran.stderr
        assert b"key-of-" not in ran.stdout
        return ran.json


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the snapshots `original` and `altered`, and return their directory."""
    directory = tmp_path_factory.mktemp("snapshots")
    build(directory / "original", ALTERED // HOUR % 24)
    build(directory / "altered", 500)
    return directory


@pytest.fixture
def recorded(snapshots: Path, tmp_path: Path) -> Iterator[Recorded]:
    keys = {"key-of-all": "all", "key-of-short": "short"}
    (tmp_path / "access.toml").write_text(format_access(keys))
    options = ("--access", str(tmp_path / "access.toml"), "--record", str(tmp_path / "own.ndjson"))
    with serve(snapshots / "original" / "snapshot.db", *options) as service:
        yield Recorded(service, snapshots, tmp_path)
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
    altered = list_exchanges(recorded.replay(recording, *options, snapshot="altered", exit_code=5))
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


@contextmanager
def run_proxy(directory: Path) -> Iterator[str]:
    """Run mitmproxy on a free port; it writes proxy.har and flows when the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    command = [str(INSTALLED / "mitmdump"), "--quiet", f"--listen-port={port}"]
    command += ["--save-stream-file", f"{directory}/flows"]
    for option in (f"hardump={directory}/proxy.har", f"confdir={directory}/mitmproxy"):
        command += ["--set", option]
    with subprocess.Popen(command) as process:
        try:
            wait_for_port(port)
            yield f"http://127.0.0.1:{port}"
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


def build_curl(service: Service, request: Request) -> list[str]:
    options = ["-X", request.method, "-H", f"X-Gateway-Key: {request.key}"]
    if request.body is not None:
        options += ["-H", "Content-Type: application/json", "-d", request.body]
    return ["curl", "-sSi", *options, f"{service.url}{request.path}"]


def format_powershell(service: Service, request: Request) -> str:
    """Return the text of Chromium's "Copy as PowerShell", which a program can't choose."""

    def quote(text: str) -> str:
        return '"' + re.sub(r'[`$"]', r"`\g<0>", text) + '"'

    options = [f"Invoke-WebRequest -UseBasicParsing -Uri {quote(service.url + request.path)}"]
    if request.method != "GET":
        options.append(f"-Method {quote(request.method)}")
    options.append("-WebSession $session")
    options.append(f'-Headers @{{\n"X-Gateway-Key"={quote(request.key)}\n}}')
    if request.body is not None:
        options += [f"-ContentType {quote('application/json')}", f"-Body {quote(request.body)}"]
    session = "$session = New-Object Microsoft.PowerShell.Commands.WebRequestSession\n"
    return session + " `\n".join(options)


def record_terminal(shell: str, recorded: Recorded) -> Path:
    """Run curl in bash, and record what a terminal shows: each command, and its output.

    For PowerShell, which the test can't install, its own commands replace those of curl.
    """
    require("curl", "bash")
    text = ""
    for request in REQUESTS:
        line = shlex.join(build_curl(recorded.service, request))
        shown = f"$ {line}" if shell == "bash" else format_powershell(recorded.service, request)
        text += f"{shown}\n{run('bash', '-c', line)}\n"
    path = recorded.directory / "terminal.txt"
    path.write_text(text)
    return path


def run_python_client(recorded: Recorded, client: str, kind: str, target: str | Path) -> None:
    program = (INSTALLED / "python", PROGRAMS / "python_recorders.py")
    run(*program, client, recorded.service.url, json.dumps(REQUESTS), kind, target)


def record_with_mitmproxy(client: str, name: str, recorded: Recorded) -> Path:
    """Send requests through mitmproxy, and return one of its files."""
    mitmdump = INSTALLED / "mitmdump"
    require("curl", mitmdump)
    with run_proxy(recorded.directory) as proxy:
        if client == "curl":
            for request in REQUESTS:
                run(*build_curl(recorded.service, request), "--noproxy", "", "--proxy", proxy)
        else:
            run_python_client(recorded, client, "proxy", proxy)
    if name == "customer.har":  # as the error about flows says
        run(mitmdump, "-nr", "flows", "--set", f"hardump={name}", cwd=recorded.directory)
    return recorded.directory / name


def record_flows(recorded: Recorded) -> Path:
    """Record flows, and let srvstat import mitmproxy, whose packages conflict with its own."""
    path = record_with_mitmproxy("httpx", "flows", recorded)
    program = "import mitmproxy; print(mitmproxy.__path__[0])"
    folder = os.path.dirname(run(INSTALLED / "python", "-c", program).strip())
    start = recorded.directory / "sitecustomize.py"
    start.write_text(f"import sys; sys.path.append({folder!r})")
    return path


def record_with_vcr(client: str, name: str, recorded: Recorded) -> Path:
    require(INSTALLED / "mitmdump")  # installed with VCR.py, which is no program
    path = recorded.directory / name
    run_python_client(recorded, client, "cassette", path)
    return path


def find_chromium() -> str:
    chromium = shutil.which("chromium") or "chromium"
    require(chromium)
    return chromium


def record_with_playwright(content: str, name: str, recorded: Recorded) -> Path:
    require(INSTALLED / "playwright")
    path = recorded.directory / name
    program = (INSTALLED / "python", PROGRAMS / "recordings.py", "requests", find_chromium())
    run(*program, recorded.service.url, path, json.dumps(REQUESTS), content)
    return path


def record_with_puppeteer(recorded: Recorded) -> Path:
    require("node", MODULES / ".bin" / "newman")  # puppeteer-har comes with it, and is no program
    path = recorded.directory / "page.har"
    # A module finds packages beside itself only.
    program = Path(shutil.copy(PROGRAMS / "record_with_puppeteer.mjs", recorded.directory))
    (recorded.directory / "node_modules").symlink_to(MODULES)
    run("node", program, find_chromium(), recorded.service.url, path, json.dumps(REQUESTS))
    return path


def record_with_newman(recorded: Recorded) -> Path:
    newman = MODULES / ".bin" / "newman"
    require("node", newman)
    items = []
    for method, target, key, body in REQUESTS:
        headers = {"X-Gateway-Key": key, **({"Content-Type": "application/json"} if body else {})}
        request = {
            "method": method,
            "url": f"{{{{base}}}}{target}",
            "header": [{"key": name, "value": value} for name, value in headers.items()],
            "body": {"mode": "raw", "raw": body or ""},
        }
        items.append({"name": target, "request": request})
    schema = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
    collection = recorded.directory / "collection.json"
    collection.write_text(json.dumps({"info": {"name": "a", "schema": schema}, "item": items}))
    path = recorded.directory / "run.json"
    options = ("--reporters", "json", "--reporter-json-export", path)
    run(newman, "run", collection, "--env-var", f"base={recorded.service.url}", *options)
    return path


RECORDERS: dict[str, Callable[[Recorded], Path]] = {
    "curl in bash": partial(record_terminal, "bash"),
    "PowerShell": partial(record_terminal, "PowerShell"),
    "curl through mitmproxy": partial(record_with_mitmproxy, "curl", "proxy.har"),
    "requests in converted flows": partial(record_with_mitmproxy, "requests", "customer.har"),
    "httpx in flows of mitmproxy": record_flows,
    "requests with VCR.py": partial(record_with_vcr, "requests", "cassette.yaml"),
    "httpx with VCR.py": partial(record_with_vcr, "httpx", "cassette.json"),
    "Playwright": partial(record_with_playwright, "embed", "page.har"),
    "Playwright, attached bodies": partial(record_with_playwright, "attach", "page.zip"),
    "puppeteer-har": record_with_puppeteer,
    "newman": record_with_newman,
}


@pytest.mark.parametrize("name", RECORDERS)
def test_a_recording_matches_until_an_observation_is_altered(
    name: str, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(recorded.directory))  # see record_flows
    path = RECORDERS[name](recorded)

    check_replay(recorded, path, "--at", "snapshot")
    check_replay(recorded, recorded.directory / "own.ndjson")


def test_a_recording_without_bodies_is_not_judged(recorded: Recorded) -> None:
    path = record_with_playwright("omit", "page.har", recorded)

    replayed = recorded.replay(path, "--at", "snapshot", exit_code=5)
    expected = {
        "unrecorded": "the body of the response was not recorded",
        "unreadable": "request.postData.text: missing; export the recording with bodies",
    }
    for request, found in zip(REQUESTS, list_exchanges(replayed), strict=True):
        assert found["class"] == ("unrecorded" if request.body is None else "unreadable")
        assert found["reason"].startswith(expected[found["class"]])


DOCUMENT = ROOT / "src" / "srvstat" / "contract" / "openapi.json"
PrepareExample = Callable[[str], list[str]]

DEADLINE = time.monotonic() + 20 * 60
"""The end of all tests together."""

MAX_SAFE_INTEGER = 2**53 - 1
"""Exact in JSON, but not in 32 bits."""


def build_result(
    name: str, current: int, statistics: list[float | None], count: int
) -> dict[str, Any]:
    average, median, peak, lowest, players, percentage = statistics
    return {
        "serverId": name,
        "cfxId": f"x-{name}",
        "range": "30d",
        "currentPlayers": current,
        "averagePlayers": average,
        "medianPlayers": median,
        "peakPlayers": peak,
        "lowestPlayers": lowest,
        "growth": {"players": players, "percentage": percentage},
        "uptime": None,
        "sampleCount": count,
    }


EXPECTED = {
    "range": "30d",
    "data": [
        build_result(
            "busy", MAX_SAFE_INTEGER, [5_000_000_011 / 3, 8, 5_000_000_000, 3, 5, 100 * 5 / 3], 3
        ),
        build_result("silent", 0, [None] * 6, 0),
    ],
}

EXAMPLES: dict[str, tuple[str | Path, ...]] = {
    "python": (),
    "typescript": ("node", "npm", MODULES / ".bin" / "tsc"),
    "go": ("go", "java", INSTALLED / "openapi-generator-cli"),
}
"""The folders of docs/examples/clients, and the programs that each needs."""
TABLE = """\
server               now       average  median        peak  growth %  name
busy    9007199254740991  1666666670.3     8.0  5000000000    +166.7  busy
silent                 0             -       -           -         -  silent
"""
SMALL_PLAN = """
[plans.small]
operations = ["get-server", "compare-servers"]
ranges = ["30d"]
requests_per_minute = 2
"""

RULES = """
[[rules]]
operation = "getServer"
server = "busy"
answers = ["500"]

[[rules]]
operation = "compareServers"
answers = ["cut", "reset", "ok"]
"""
SIMULATED = ["code=500", None, None, "cut", "reset", None]


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    """Run a program, check that it succeeds and return its standard output."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=max(1, DEADLINE - time.monotonic()),
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a snapshot with a busy and a silent server."""
    directory = tmp_path_factory.mktemp("service")
    players = {"current": MAX_SAFE_INTEGER, "max": MAX_SAFE_INTEGER}
    servers = [server("busy", players=players, iconUrl=None), server("silent")]
    rows = [("busy", AS_OF - DAY, 3), ("busy", AS_OF - 1, 5_000_000_000), ("busy", AS_OF, 8)]
    return build_in(directory, servers, rows)


@pytest.fixture(scope="module")
def url(snapshot: Path) -> Iterator[str]:
    """Serve the snapshot, and return the URL."""
    with serve(snapshot) as service:
        yield service.url


def test_the_generated_python_client(tmp_path: Path, url: str) -> None:
    generator = INSTALLED / "openapi-python-client"
    require(generator)
    client = tmp_path / "srvstat_client"
    options = ("--meta", "none", "--output-path", client)
    run(generator, "generate", "--path", DOCUMENT, *options, cwd=tmp_path)
    program = PROGRAMS / "openapi_python_client.py"

    received = run(
        INSTALLED / "python", program, url, "a-key", cwd=tmp_path, PYTHONPATH=str(tmp_path)
    )

    assert json.loads(received) == {
        "server": ["busy", MAX_SAFE_INTEGER, None],
        "comparison": EXPECTED,
        "error": [404, "SERVER_NOT_FOUND", "Server not found"],
    }


@pytest.fixture(scope="module")
def prepare(tmp_path_factory: pytest.TempPathFactory) -> PrepareExample:
    """Follow the steps of docs/examples/README.md for an example; return its command."""

    @cache
    def prepare(language: str) -> list[str]:
        require(*EXAMPLES[language])
        directory = tmp_path_factory.mktemp("examples") / language
        shutil.copytree(ROOT / "docs" / "examples" / "clients" / language, directory)
        (directory / "node_modules").symlink_to(MODULES)
        *steps, last = read_marked_block("examples/README.md", language)
        # `make external` has installed all of it.
        steps = [step for step in steps if not step.startswith(("pip ", "npm install"))]
        script = "\n".join(["set -e", *steps])
        programs = (ROOT / ".venv" / "bin", INSTALLED)
        path = os.pathsep.join([*map(str, programs), os.environ.get("PATH", os.defpath)])
        offline = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOCACHE": str(directory / "cache")}
        run("bash", "-c", script, cwd=directory, PATH=path, **offline)
        program, *arguments = shlex.split(last.partition(" http:")[0])
        # A program with a slash is relative to the folder.
        found = directory / program if "/" in program else shutil.which(program, path=path)
        return [str(found), *(str(directory / each) for each in arguments)]

    return prepare


def start(command: list[str], url: str, *servers: str, key: str = "any") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*command, url, "30d", *servers],
        env={**os.environ, "GATEWAY_KEY": key},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("language", EXAMPLES)
def test_an_example_prints_exact_figures_and_errors(
    language: str, prepare: PrepareExample, url: str
) -> None:
    command = prepare(language)

    assert start(command, url, "busy", "cfxId:x-silent").communicate() == (TABLE, "")
    assert start(command, url, "busy", "nobody").communicate() == (
        "",
        "error: 404 SERVER_NOT_FOUND: Server not found\n",
    )


@pytest.mark.parametrize("language", EXAMPLES)
def test_an_example_repeats_requests_that_fail(
    language: str, prepare: PrepareExample, snapshot: Path, tmp_path: Path
) -> None:
    command = prepare(language)
    rules = tmp_path / "faults.toml"
    rules.write_text(RULES, encoding="utf-8")
    with serve(snapshot, "--faults", str(rules)) as service:
        process = start(command, service.url, "busy", "cfxId:x-silent")

        assert process.communicate() == (TABLE, "")
        service.stop()  # the log is complete
        assert [entry.get("simulated") for entry in service.read_log()[:-1]] == SIMULATED


def test_the_examples_wait_after_a_rate_limit(
    prepare: PrepareExample, snapshot: Path, tmp_path: Path
) -> None:
    commands = {language: prepare(language) for language in EXAMPLES}
    access = tmp_path / "access.toml"
    access.write_text(format_access(dict.fromkeys(commands, "small")) + SMALL_PLAN)
    with serve(snapshot, "--access", str(access)) as service:
        started = [
            start(command, service.url, "busy", "cfxId:x-silent", key=language)
            for language, command in commands.items()
        ]
        printed = [each.communicate(timeout=90)[0] for each in started]
        assert service.stop() == 0  # the log is complete
        entries = service.read_log()

    assert printed == [TABLE] * len(EXAMPLES)
    for language in EXAMPLES:
        name = sha256(language.encode()).hexdigest()[:8]
        own = [entry["status"] for entry in entries if entry.get("caller") == name]
        assert own == [200, 200, 429, 200]


def test_the_example_has_the_versions_that_are_tested() -> None:
    example, tested = (
        json.loads(path.read_bytes())
        for path in (
            ROOT / "docs" / "examples" / "clients" / "typescript" / "package.json",
            ROOT / "tests" / "external" / "package.json",
        )
    )
    versions = example["dependencies"] | example["devDependencies"]

    assert versions.items() <= tested["dependencies"].items()


PROGRAM = ROOT / "tests" / "external" / "programs" / "explore_commands.mjs"
SCRIPT = files("srvstat.render.web") / "exchange.js"
HOSTILE = ["a'b", "'; exit 7; '", '"$(exit 7)"', "`exit 7`", "a\nb", "\\", "@/etc/passwd", "[1-3]"]


@pytest.mark.skipif(
    not (shutil.which("node") and shutil.which("curl")), reason="needs node and curl"
)
def test_a_command_asks_what_the_page_asked_however_hostile_the_identifiers() -> None:
    expected = {("a", "b"): COMPARED, ("a",): SERVER_A}
    expected |= {(one,): ERRORS["INVALID_REQUEST"] for one in HOSTILE}
    expected |= {("a", one): ERRORS["INVALID_REQUEST"] for one in HOSTILE}
    cases = [(ids, key) for ids in expected for key in ("any 'key'", None)]
    with serve_small() as service:
        printed = subprocess.run(
            ["node", str(PROGRAM), str(SCRIPT), service.url],
            input=json.dumps([(ids, "30d", key) for ids, key in cases]).encode(),
            capture_output=True,
            check=True,
        ).stdout
        commands = json.loads(printed)
        assert len(commands) == len(cases)
        for (ids, key), command in zip(cases, commands, strict=True):
            assert ('"X-Gateway-Key: $KEY"' in command) == (key is None)
            done = subprocess.run(
                ["sh", "-c", command],
                capture_output=True,
                env={**os.environ, "KEY": "k"},
                check=False,
            )
            assert (done.returncode, done.stdout) == (0, expected[ids]), command


needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="prometheus and promtool are not installed",
)
SAMPLES = [("lobby", 0, "5"), ("lobby", 61_123, "7"), ("lobby", 120_000, "NaN"), ("b:1", 1, "0")]
"""The server, the milliseconds after AS_OF, and the value of each sample."""


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Run Prometheus on a free port, with the samples as its data."""
    directory = tmp_path_factory.mktemp("prometheus")
    lines = [
        f'players{{job="games",server="{name}"}} {value} {(AS_OF + at) / 1000:.3f}\n'
        for name, at, value in SAMPLES
    ]
    (directory / "samples").write_text(f"# TYPE players gauge\n{''.join(lines)}# EOF\n")
    (directory / "none.yml").touch()
    write = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "samples", "data"]
    subprocess.run(write, cwd=directory, check=True, capture_output=True, timeout=SECONDS)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = [
        "--config.file=none.yml",
        "--storage.tsdb.path=data",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address={address}",
    ]
    with (
        (directory / "log").open("wb") as log,
        subprocess.Popen(["prometheus", *options], cwd=directory, stderr=log) as process,
        httpx.Client(base_url=f"http://{address}") as client,
    ):
        try:
            wait_until_ready(client)
            yield client
        finally:
            process.terminate()


def wait_until_ready(client: httpx.Client) -> None:
    for _ in range(10 * SECONDS):
        with suppress(httpx.TransportError):
            if client.get("/-/ready").status_code == httpx.codes.OK:
                return
        time.sleep(0.1)
    pytest.fail(f"Prometheus is not ready after {SECONDS} s")


@needs_prometheus
def test_answers_to_both_kinds_of_queries_are_read(
    prometheus: httpx.Client, tmp_path: Path
) -> None:
    start = AS_OF // 1000
    raw: dict[str, str | int] = {"query": "players[1h]", "time": start + 600}
    steps: dict[str, str | int] = {
        "query": "players",
        "start": start,
        "end": start + 120,
        "step": 60,
    }
    for name, path, parameters in (("raw", "query", raw), ("steps", "query_range", steps)):
        answer = prometheus.get(f"/api/v1/{path}", params=parameters)
        (tmp_path / name).write_bytes(answer.content)
    mapping = ColumnMapping(id="server")

    found = read_rows(tmp_path / "raw", "prometheus", mapping)
    counts = {(name, AS_OF + at, int(value)) for name, at, value in SAMPLES if value != "NaN"}
    assert set(found.rows.values()) == counts
    assert (found.reasons, found.skipped) == ({}, {"not a number (NaN)": 1})

    found = read_rows(tmp_path / "steps", "prometheus", mapping)
    of_lobby = {at - AS_OF: count for name, at, count in found.rows.values() if name == "lobby"}
    assert of_lobby == {0: 5, 60_000: 5}


@needs_prometheus
def test_an_error_is_reported(prometheus: httpx.Client, tmp_path: Path) -> None:
    answer = prometheus.get("/api/v1/query", params={"query": "players["})
    (tmp_path / "error").write_bytes(answer.content)

    with pytest.raises(SourceError, match="error: an error of Prometheus: invalid parameter"):
        read_rows(tmp_path / "error", "prometheus")
