"""Build the image of docs/deploy/Containerfile with Buildah, and run it.

Its base is made from the Python and the libraries of this machine, so that no registry of images is
needed.
"""

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from asgi.small_service import SERVER_A, build_small, format_access
from conftest import ROOT
from support.http import find_free_port

pytestmark = pytest.mark.external

CONTAINERFILE = ROOT / "docs" / "deploy" / "Containerfile"
SECONDS = 300


def list_shared() -> list[str]:
    """Return the folders of this machine that are in the base: libraries and Python."""
    return ["/usr", *(path for path in (sys.base_prefix,) if not f"{path}/".startswith("/usr/"))]


class Container(NamedTuple):
    """A container of the built image, which runs the service."""

    run: Callable[..., list[str]]
    """Returns the command that runs a command in the container."""
    config: dict[str, Any]
    port: int

    def get(self, path: str, key: str) -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, headers={"X-Gateway-Key": key})
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - http
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    """Build the image, and run its command with a folder at /data."""
    if not shutil.which("buildah"):
        pytest.skip("needs buildah")
    with TemporaryDirectory() as name:
        directory = Path(name)
        _make_wheels(directory)
        _make_base(directory)
        volumes = [f"--volume={path}:{path}:ro" for path in list_shared()]
        _run_buildah(
            directory,
            *("bud", "--isolation=chroot", "--format=docker", "--build-arg=BASE=localhost/base"),
            *volumes,
            f"--volume={directory}/wheels:/wheels:ro",
            *("--tag=localhost/srvstat", f"--file={CONTAINERFILE}", f"{directory}/context"),
        )
        inspected = _run_buildah(directory, "inspect", "--type=image", "localhost/srvstat")
        config = json.loads(inspected)["Docker"]["config"]
        made = _run_buildah(directory, "from", "--pull-never", "localhost/srvstat")
        data = directory / "data"
        data.mkdir()
        directory.chmod(0o755)
        build_small(data, "snapshot.db")
        (data / "access.toml").write_text(format_access({"the-key": "all"}), encoding="utf-8")
        port = find_free_port()
        options = [*volumes, f"--volume={data}:/data:ro", f"--env=SRVSTAT_PORT={port}"]

        def run(*command: str) -> list[str]:
            start = _build_command(directory, "run", "--isolation=chroot", *options, made, "--")
            return [*start, *command]

        with subprocess.Popen(
            run(*config["Entrypoint"], *config["Cmd"]), stdout=subprocess.PIPE
        ) as process:
            try:
                assert process.stdout
                line = process.stdout.readline().decode()
                assert line == f"serving /data/snapshot.db at http://0.0.0.0:{port}\n"
                yield Container(run, config, port)
            finally:
                process.terminate()


def _make_wheels(directory: Path) -> None:
    """Make a build context with a wheel, and a folder with the wheels that it needs."""
    pip = [sys.executable, "-m", "pip", "--quiet"]
    context, wheels = directory / "context", directory / "wheels"
    _run([*pip, "wheel", "--no-deps", f"--wheel-dir={context}", str(ROOT)])
    (wheel,) = context.iterdir()
    _run([*pip, "download", f"--dest={wheels}", f"{wheel}[serve]"])


def _make_base(directory: Path) -> None:
    """Make an image of an empty file system; what is shared is mounted on it."""
    container = _run_buildah(directory, "from", "scratch")
    root = Path(_run_buildah(directory, "mount", container))
    for folder in (*list_shared(), "/etc", "/tmp", "/proc", "/sys", "/dev", "/data", "/wheels"):  # noqa: S108 - in the image
        (root / folder[1:]).mkdir(parents=True, exist_ok=True)
    for link in ("bin", "sbin", "lib", "lib64"):
        (root / link).symlink_to(f"usr/{link}")
    variables = (f"PATH={sys.base_prefix}/bin:/usr/bin:/bin", "PIP_NO_INDEX=1")
    settings = [f"--env={each}" for each in (*variables, "PIP_FIND_LINKS=/wheels")]
    _run_buildah(directory, "config", *settings, container)
    _run_buildah(directory, "commit", "--quiet", container, "localhost/base")


def _build_command(directory: Path, *arguments: str) -> list[str]:
    store = [f"--root={directory}/store", f"--runroot={directory}/run", "--storage-driver=vfs"]
    return ["buildah", *store, *arguments]


def _run_buildah(directory: Path, *arguments: str) -> str:
    return _run(_build_command(directory, *arguments))


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_container_answers_as_a_user_without_rights(container: Container) -> None:
    path = "/gateway/v1/servers/a"

    assert container.get(path, "the-key") == (200, SERVER_A)
    assert container.get(path, "another")[0] == 401
    assert (
        _run(container.run("/usr/bin/id", "-u"))
        == container.config["User"].split(":")[0]
        == "65532"
    )


def test_the_health_check_asks_the_service(container: Container) -> None:
    kind, *command = container.config["Healthcheck"]["Test"]

    assert kind == "CMD"
    _run(container.run(*command))
    other = container.run("/usr/bin/env", "SRVSTAT_PORT=1", *command)
    assert subprocess.run(other, capture_output=True, check=False).returncode == 1
