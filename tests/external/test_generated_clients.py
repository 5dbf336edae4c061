"""Generate clients from the OpenAPI document, compile them, and compare what they receive.

`make external` installs the generators. Tests whose generator is missing are skipped.
"""

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from asgi.small_service import format_access
from conftest import AS_OF, DAY, ROOT, build_in, server
from support.markdown import read_marked_block
from support.process import serve

pytestmark = pytest.mark.external

DOCUMENT = ROOT / "src" / "srvstat" / "contract" / "openapi.json"
PROGRAMS = ROOT / "tests" / "external" / "programs"
INSTALLED = ROOT / ".venv" / "external"
PYTHON = INSTALLED / "bin" / "python"
NODE_MODULES = INSTALLED / "node_modules"
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
    "typescript": ("node", "npm", NODE_MODULES / ".bin" / "tsc"),
    "go": ("go", "java", INSTALLED / "bin" / "openapi-generator-cli"),
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

SEED = "377"
"""With it, the first request fails, and the first comparison is dropped."""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
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


def require(*programs: str | Path) -> None:
    """Skip the test if a program is missing or does not run."""
    for program in programs:
        found = shutil.which(program)
        version = "version" if program == "go" else "-version" if program == "java" else "--version"
        if (
            not found
            or subprocess.run([found, version], capture_output=True, check=False).returncode
        ):
            pytest.skip(f"needs {program}; see `make external`")


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
    generator = INSTALLED / "bin" / "openapi-python-client"
    require(generator)
    client = tmp_path / "srvstat_client"
    options = ("--meta", "none", "--output-path", client)
    run(generator, "generate", "--path", DOCUMENT, *options, cwd=tmp_path)
    program = PROGRAMS / "openapi_python_client.py"

    received = run(PYTHON, program, url, "a-key", cwd=tmp_path, PYTHONPATH=str(tmp_path))

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
        (directory / "node_modules").symlink_to(NODE_MODULES)
        *steps, last = read_marked_block("examples/README.md", language)
        # `make external` has installed all of it.
        steps = [step for step in steps if not step.startswith(("pip ", "npm install"))]
        script = "\n".join(["set -e", *steps])
        programs = (ROOT / ".venv" / "bin", INSTALLED / "bin")
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
    language: str, prepare: PrepareExample, snapshot: Path
) -> None:
    command = prepare(language)
    with serve(snapshot, "--fail", "30%", "--drop", "30%", "--seed", SEED) as service:
        process = start(command, service.url, "busy", "cfxId:x-silent")

        assert process.communicate() == (TABLE, "")
        service.stop()  # the log is complete
        rehearsed = [entry.get("rehearsed") for entry in service.read_log()[:5]]
    assert rehearsed == ["fail", None, None, "drop", None]


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
