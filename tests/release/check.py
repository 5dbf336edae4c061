"""Build a release, check its metadata, and try the wheel with each Python: `make release-check`.

A Python is found on PATH or among those of pyenv, and each gets an empty environment.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

ROOT = Path(__file__).parents[2]
SECONDS = 60
BODY = json.dumps(
    {
        "servers": [
            {"identifier": "harbor-city", "by": "id"},
            {"identifier": "night-shift", "by": "id"},
        ]
    }
)


def main() -> None:
    """Run all checks; a failed command ends them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", help="also check that this is the tag of the version")
    parser.add_argument("--output", type=Path, help="copy the archives to this directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="srvstat-release-") as name:
        work = Path(name)
        run(sys.executable, "-m", "build", "--outdir", str(work / "dist"), cwd=ROOT)
        archives = sorted((work / "dist").iterdir())
        run(sys.executable, "-m", "twine", "check", "--strict", *map(str, archives), cwd=work)
        (wheel,) = (work / "dist").glob("*.whl")
        version = wheel.name.split("-")[1]
        if options.tag and options.tag != f"v{version}":
            sys.exit(f"error: the tag is {options.tag}, but the version is {version}")
        for python in find_pythons():
            try_wheel(python, wheel, work)
        if options.output:
            shutil.copytree(work / "dist", options.output, dirs_exist_ok=True)


def run(*command: str, cwd: Path) -> bytes:
    """Run a command in a directory and return its output."""
    return subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, check=True).stdout


def find_pythons() -> Iterator[str]:
    """Yield the path of a Python of each supported version that is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in re.findall(r":: (3\.\d+)", str(project["classifiers"])):
        paths = [f"python{version}", *map(str, pyenv.glob(f"{version}.*/bin/python"))]
        # A command of pyenv exists for versions that are installed but not chosen, and fails.
        found = [path for path in paths if shutil.which(path) and is_version(path, version)]
        if found:
            yield found[0]
        else:
            print(f"Python {version} is not installed here, so it was not tried")


def is_version(python: str, version: str) -> bool:
    """Return whether a Python runs and has a version."""
    ran = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
    return ran.stdout.startswith(f"Python {version}.")


def try_wheel(python: str, wheel: Path, work: Path) -> None:
    """Install a wheel; the command line and the service must give the same answer."""
    directory = Path(tempfile.mkdtemp(dir=work))
    run(python, "-m", "venv", "--clear", str(directory), cwd=work)
    own = str(directory / "bin" / "python")
    run(own, "-m", "pip", "install", "--quiet", f"{wheel}[serve]", cwd=work)
    srvstat = (own, "-I", "-W", "error", "-m", "srvstat")
    run(*srvstat, "demo", cwd=directory)
    options = ("--snapshot", "srvstat-demo/snapshot.db")
    compared = run(
        *srvstat, "compare", "harbor-city", "night-shift", "--json", *options, cwd=directory
    )
    with subprocess.Popen(
        [*srvstat, "serve", "--port", "0", *options],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout
        address = process.stdout.readline().decode().split()[-1]
        head = {"X-Gateway-Key": "any", "Content-Type": "application/json"}
        request = Request(f"{address}/gateway/v1/compare", BODY.encode(), head)  # noqa: S310 - our own service
        with urlopen(request, timeout=SECONDS) as response:  # noqa: S310 - likewise
            served = response.read()
        process.terminate()
    if served + b"\n" != compared or process.returncode:
        sys.exit(f"error: {python}: served {served!r}, compared {compared!r}")
    print(f"{python}: the wheel answers")


if __name__ == "__main__":
    main()
