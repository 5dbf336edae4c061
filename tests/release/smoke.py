"""Use srvstat, and write what it answers to the current directory, which must be empty.

A program for each Python that srvstat is installed for: `python -I smoke.py [serve]`. With
`serve`, it also asks the service.
"""

import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

SECONDS = 60
COMMANDS = {
    "version.txt": ["--version"],
    "get.json": ["get", "harbor-city", "--json"],
    "compare.json": ["compare", "harbor-city", "night-shift", "--range", "7d", "--json"],
    "table.txt": ["compare", "harbor-city", "night-shift", "--range", "7d", "--table"],
    "_srvstat": ["completion", "zsh"],
    "srvstat.bash": ["completion", "bash"],
    "srvstat.fish": ["completion", "fish"],
}
PYTHON_API = """
import srvstat
with srvstat.open_snapshot("srvstat-demo/snapshot.db") as snapshot:
    answer = snapshot.compare(["harbor-city", "night-shift"], range="7d")
    print(answer.to_json().decode(), end="")
"""
REQUEST = b"""{"range": "7d", "servers": [{"identifier": "harbor-city", "by": "id"},
    {"identifier": "night-shift", "by": "id"}]}"""

PATHS = {
    "gateway/v1/servers/harbor-city": None,
    "gateway/v1/compare": REQUEST,
    "docs": None,
    "docs/swagger-ui.css": None,
}
"""The paths of the service and the bodies to send; None for GET."""


def run(*arguments: str) -> bytes:
    """Run this Python with warnings as errors and return its output."""
    command = [sys.executable, "-I", "-W", "error", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, timeout=SECONDS, check=True).stdout


def ask_service() -> None:
    """Start the service, write its answers, and stop it."""
    serve = [sys.executable, "-I", "-m", "srvstat", "serve", "--port", "0"]
    with subprocess.Popen(
        [*serve, "--snapshot", "srvstat-demo/snapshot.db"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            assert process.stdout
            address = process.stdout.readline().decode().split()[-1]
            # Without an access file, any key is accepted.
            head = {"X-Gateway-Key": "smoke", "Content-Type": "application/json"}
            for path, body in PATHS.items():
                request = Request(f"{address}/{path}", body, head)  # noqa: S310 - our own service
                with urlopen(request, timeout=SECONDS) as response:  # noqa: S310 - likewise
                    Path(f"served-{path.replace('/', '-')}").write_bytes(response.read())
            process.terminate()
            if code := process.wait(SECONDS):
                raise SystemExit(f"the service ended with exit code {code} after SIGTERM")
        finally:
            process.kill()


def main() -> None:
    """Write all answers."""
    run("-m", "srvstat", "demo")
    for name, arguments in COMMANDS.items():
        words = [*arguments, "--snapshot", "srvstat-demo/snapshot.db"]
        is_question = arguments[0] in {"get", "compare"}
        Path(name).write_bytes(run("-m", "srvstat", *(words if is_question else arguments)))
    Path("api.json").write_bytes(run("-c", PYTHON_API))
    if sys.argv[1:] == ["serve"]:
        ask_service()


if __name__ == "__main__":
    main()
