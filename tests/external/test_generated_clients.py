"""Generate clients from the OpenAPI document, compile them, and compare what they receive.

`make external` installs the generators. Tests whose generator is missing are skipped.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import AS_OF, DAY, ROOT, csv, ndjson, server, srvstat
from support.process import serve

pytestmark = pytest.mark.external

DOCUMENT = ROOT / "src" / "srvstat" / "contract" / "openapi.json"
PROGRAMS = ROOT / "tests" / "external" / "programs"
INSTALLED = ROOT / ".venv" / "external"
PYTHON = INSTALLED / "bin" / "python"
NODE_MODULES = INSTALLED / "node_modules"
CheckProgram = Callable[..., None]

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


def generate(kind: str, directory: Path, *options: str) -> Path:
    """Generate a client with openapi-generator and return its directory."""
    jar = next(INSTALLED.glob("lib/*/site-packages/openapi_generator_cli/*.jar"), None)
    if not jar:
        pytest.skip("needs openapi-generator; see `make external`")
    require("java")
    client = directory / "client"
    command = ("java", "-jar", jar, "generate", "-g", kind, "-i", DOCUMENT, "-o", client)
    run(*command, *options, cwd=directory)
    return client


def compile_typescript(program: str, directory: Path, module: str) -> Path:
    """Compile a program with its client and return the path of its JavaScript."""
    compiler = NODE_MODULES / ".bin" / "tsc"
    require("node", compiler)
    (directory / "node_modules").symlink_to(NODE_MODULES)
    shutil.copy(PROGRAMS / program, directory)
    options = ("--strict", "--target", "es2022", "--module", module, "--outDir", "out")
    run(compiler, *options, "--moduleResolution", module, program, cwd=directory)
    return (directory / "out" / program).with_suffix(".js")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a snapshot with a busy and a silent server, and return its URL."""
    directory = tmp_path_factory.mktemp("service")
    players = {"current": MAX_SAFE_INTEGER, "max": MAX_SAFE_INTEGER}
    servers = [server("busy", players=players, iconUrl=None), server("silent")]
    rows = [("busy", AS_OF - DAY, 3), ("busy", AS_OF - 1, 5_000_000_000), ("busy", AS_OF, 8)]
    (directory / "servers.ndjson").write_bytes(ndjson(servers))
    (directory / "rows.csv").write_bytes(csv(rows))
    sources = ("--servers", "servers.ndjson", "--observations", "rows.csv")
    ran = srvstat("snapshot", "build", "snapshot.db", *sources, cwd=directory)
    assert ran.exit_code == 0, ran.stderr
    with serve(directory / "snapshot.db") as service:
        yield service.url


@pytest.fixture
def check_program(url: str, tmp_path: Path) -> CheckProgram:
    """Run a program that calls the service, and check what it received."""

    def check(*command: str | Path, **environment: str) -> None:
        received = run(*command, url, "a-key", cwd=tmp_path, **environment)
        assert json.loads(received) == {
            "server": ["busy", MAX_SAFE_INTEGER, None],
            "comparison": EXPECTED,
            "error": [404, "SERVER_NOT_FOUND", "Server not found"],
        }

    return check


def test_the_python_client_of_openapi_generator(
    tmp_path: Path, check_program: CheckProgram
) -> None:
    client = generate("python", tmp_path)

    check_program(PYTHON, PROGRAMS / "openapi_generator.py", PYTHONPATH=str(client))


def test_the_python_client_of_openapi_python_client(
    tmp_path: Path, check_program: CheckProgram
) -> None:
    generator = INSTALLED / "bin" / "openapi-python-client"
    require(generator)
    client = tmp_path / "srvstat_client"
    options = ("--meta", "none", "--output-path", client)
    run(generator, "generate", "--path", DOCUMENT, *options, cwd=tmp_path)

    assert len(list(client.glob("models/[a-z]*.py"))) < 20
    check_program(PYTHON, PROGRAMS / "openapi_python_client.py", PYTHONPATH=str(tmp_path))


def test_the_typescript_client_of_openapi_typescript_and_openapi_fetch(
    tmp_path: Path, check_program: CheckProgram
) -> None:
    generator = NODE_MODULES / ".bin" / "openapi-typescript"
    require("node", generator)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    run(generator, DOCUMENT, "--output", "schema.d.ts", cwd=tmp_path)

    check_program("node", compile_typescript("openapi_typescript.ts", tmp_path, "nodenext"))


@pytest.mark.parametrize("kind", ["typescript-fetch", "typescript-axios"])
def test_the_typescript_clients_of_openapi_generator(
    kind: str, tmp_path: Path, check_program: CheckProgram
) -> None:
    generate(kind, tmp_path)

    check_program("node", compile_typescript(f"{kind.replace('-', '_')}.ts", tmp_path, "node16"))


def test_the_go_client_of_openapi_generator(tmp_path: Path, check_program: CheckProgram) -> None:
    require("go")
    names = ("--git-host", "example.org", "--git-user-id", "srvstat", "--git-repo-id", "client")
    client = generate("go", tmp_path, *names)
    shutil.rmtree(client / "test")  # needs a module outside the standard library
    (client / "call").mkdir()
    shutil.copy(PROGRAMS / "main.go", client / "call")
    (tmp_path / "cache").mkdir()
    offline = {
        "GOFLAGS": "-mod=mod",
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
        "GOCACHE": str(tmp_path / "cache"),
    }
    run("go", "mod", "edit", "-go=1.18", cwd=client, **offline)
    run("go", "build", "-o", tmp_path / "ask", "./call", cwd=client, **offline)

    check_program(tmp_path / "ask")
