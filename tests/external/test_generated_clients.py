"""Clients generated from the OpenAPI document compile, and read the service's answers exactly.

`make external` installs the generators. What is missing is skipped.
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
Ask = Callable[..., None]

END = time.monotonic() + 20 * 60
"""When all of the tests must be through."""

GREATEST = 2**53 - 1
"""More than a 32-bit integer or float holds, and as much as JSON numbers do."""


def result_of(
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
        result_of("busy", GREATEST, [5_000_000_011 / 3, 8, 5_000_000_000, 3, 5, 100 * 5 / 3], 3),
        result_of("silent", 0, [None] * 6, 0),
    ],
}


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a program and return its standard output; one that fails fails the test."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=max(1, END - time.monotonic()),
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def need(*programs: str | Path) -> None:
    """Skip the test where a program is missing, or is there and does not run."""
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
    need("java")
    made = directory / "client"
    command = ("java", "-jar", jar, "generate", "-g", kind, "-i", DOCUMENT, "-o", made)
    run(*command, *options, cwd=directory)
    return made


def compile_typescript(program: str, directory: Path, module: str) -> Path:
    """Compile a program and the client beside it, and return the program in JavaScript."""
    compiler = NODE_MODULES / ".bin" / "tsc"
    need("node", compiler)
    (directory / "node_modules").symlink_to(NODE_MODULES)
    shutil.copy(PROGRAMS / program, directory)
    options = ("--strict", "--target", "es2022", "--module", module, "--outDir", "out")
    run(compiler, *options, "--moduleResolution", module, program, cwd=directory)
    return (directory / "out" / program).with_suffix(".js")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a busy server and a silent one, and return where."""
    directory = tmp_path_factory.mktemp("service")
    players = {"current": GREATEST, "max": GREATEST}
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
def ask(url: str, tmp_path: Path) -> Ask:
    """Have a program ask the service, and compare what it read with what must be answered."""

    def run_it(*command: str | Path, **environment: str) -> None:
        read = run(*command, url, "a-key", cwd=tmp_path, **environment)
        assert json.loads(read) == {
            "server": ["busy", GREATEST, None],
            "comparison": EXPECTED,
            "refused": [404, "SERVER_NOT_FOUND", "Server not found"],
        }

    return run_it


def test_a_python_client_of_openapi_generator(tmp_path: Path, ask: Ask) -> None:
    made = generate("python", tmp_path)

    ask(PYTHON, PROGRAMS / "openapi_generator.py", PYTHONPATH=str(made))


def test_a_python_client_of_openapi_python_client(tmp_path: Path, ask: Ask) -> None:
    generator = INSTALLED / "bin" / "openapi-python-client"
    need(generator)
    made = tmp_path / "srvstat_client"
    options = ("--meta", "none", "--output-path", made)
    run(generator, "generate", "--path", DOCUMENT, *options, cwd=tmp_path)

    assert len(list(made.glob("models/[a-z]*.py"))) < 20
    ask(PYTHON, PROGRAMS / "openapi_python_client.py", PYTHONPATH=str(tmp_path))


def test_a_typescript_client_of_openapi_typescript_and_openapi_fetch(
    tmp_path: Path, ask: Ask
) -> None:
    generator = NODE_MODULES / ".bin" / "openapi-typescript"
    need("node", generator)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    run(generator, DOCUMENT, "--output", "schema.d.ts", cwd=tmp_path)

    ask("node", compile_typescript("openapi_typescript.ts", tmp_path, "nodenext"))


@pytest.mark.parametrize("kind", ["typescript-fetch", "typescript-axios"])
def test_a_typescript_client_of_openapi_generator(kind: str, tmp_path: Path, ask: Ask) -> None:
    generate(kind, tmp_path)

    ask("node", compile_typescript(f"{kind.replace('-', '_')}.ts", tmp_path, "node16"))


def test_a_go_client_of_openapi_generator(tmp_path: Path, ask: Ask) -> None:
    need("go")
    names = ("--git-host", "example.org", "--git-user-id", "srvstat", "--git-repo-id", "client")
    made = generate("go", tmp_path, *names)
    shutil.rmtree(made / "test")  # it needs a module that is not in the standard library
    (made / "call").mkdir()
    shutil.copy(PROGRAMS / "main.go", made / "call")
    (tmp_path / "cache").mkdir()
    alone = {
        "GOFLAGS": "-mod=mod",
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
        "GOCACHE": str(tmp_path / "cache"),
    }
    run("go", "mod", "edit", "-go=1.18", cwd=made, **alone)
    run("go", "build", "-o", tmp_path / "ask", "./call", cwd=made, **alone)

    ask(tmp_path / "ask")
