"""Build the image of docs/deploy/Containerfile with Buildah, and run it.

Its base is made from the Python and the libraries of this machine, so that no registry of images is
needed. The container is made with `unshare`: its own mounts and processes, a read-only file system
and the user of the image.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from asgi.small_service import SERVER_A, build_small, format_access
from conftest import ROOT
from support.ports import find_free_port

pytestmark = pytest.mark.external

CONTAINERFILE = ROOT / "docs" / "deploy" / "Containerfile"
PROGRAMS = ("buildah", "unshare", "nsenter")
SECONDS = 300

START = """
root=$1 data=$2 user=$3
shift 3
mount --bind "$root" "$root"
mount --bind -o ro "$data" "$root/data"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
for shared in $SHARED; do mount --bind "$shared" "$root$shared"; done
mount -o remount,bind,ro "$root/data"
mount -o remount,bind,ro "$root"
exec chroot --userspec="$user" "$root" "$@"
"""
"""Make a container of a file system and run a command in it, as the process 1."""


def list_shared() -> list[str]:
    """Return the folders of this machine that are in the base: libraries and Python."""
    return [path for path in ("/usr", sys.base_prefix) if path == "/usr" or path[:5] != "/usr/"]


class Image(NamedTuple):
    """A built image."""

    root: Path
    """Its file system."""
    config: dict[str, Any]

    @property
    def environment(self) -> list[str]:
        """The variables of its processes, as `NAME=value`."""
        return [*self.config["Env"]]


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    if missing := [program for program in PROGRAMS if not shutil.which(program)]:
        pytest.skip(f"needs {', '.join(missing)}")
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], check=False).returncode:
        pytest.skip("needs permission to mount")
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
        container = _run_buildah(directory, "from", "--pull-never", "localhost/srvstat")
        root = _run_buildah(directory, "mount", container)
        yield Image(Path(root), json.loads(inspected)["Docker"]["config"])


def _make_wheels(directory: Path) -> None:
    """Make a build context with a wheel, and a folder with the wheels that it needs."""
    pip = [sys.executable, "-m", "pip", "--quiet"]
    context, wheels = directory / "context", directory / "wheels"
    _run([*pip, "wheel", "--no-deps", f"--wheel-dir={context}", str(ROOT)])
    (wheel,) = context.iterdir()
    _run([*pip, "download", f"--dest={wheels}", f"{wheel}[serve,limits]"])


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


def _run_buildah(directory: Path, *arguments: str) -> str:
    store = [f"--root={directory}/store", f"--runroot={directory}/run", "--storage-driver=vfs"]
    return _run(["buildah", *store, *arguments])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Container(NamedTuple):
    """A running container."""

    process: subprocess.Popen[bytes]
    image: Image
    environment: list[str]
    port: int

    @property
    def first_process(self) -> int:
        """The process 1 of the container, as a process of this machine."""
        parent = self.process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
        return int(children)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run another command in the container, as its user."""
        user, group = self.image.config["User"].split(":")
        enter = ["nsenter", f"--target={self.first_process}", "--mount", "--pid", "--root"]
        enter += [f"--setuid={user}", f"--setgid={group}", "env", "-i", *self.environment]
        return subprocess.run([*enter, *command], capture_output=True, text=True, check=False)

    def get(self, path: str, key: str) -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, headers={"X-Gateway-Key": key})
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - http
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


@contextmanager
def run_container(image: Image, data: Path) -> Iterator[Container]:
    """Run the image with a folder at /data, until the block ends."""
    port = find_free_port()
    environment = [*image.environment, f"SRVSTAT_PORT={port}"]
    isolate = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    command = ["env", "-i", *environment, *image.config["Entrypoint"], *image.config["Cmd"]]
    with subprocess.Popen(
        [*isolate, "sh", "-ec", START, "sh", image.root, data, image.config["User"], *command],
        stdout=subprocess.PIPE,
        env={**os.environ, "SHARED": " ".join(list_shared())},
    ) as process:
        try:
            assert process.stdout
            assert (
                process.stdout.readline()
                == f"serving /data/snapshot.db at http://0.0.0.0:{port}\n".encode()
            )
            yield Container(process, image, environment, port)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def container(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    data = tmp_path_factory.mktemp("data")
    data.chmod(0o755)
    build_small(data, "snapshot.db")
    access = format_access({"the-key": "all"})
    (data / "access.toml").write_text(access, encoding="utf-8")
    with run_container(image, data) as running:
        yield running


def test_the_container_answers(container: Container) -> None:
    path = "/gateway/v1/servers/a"

    assert container.get(path, "the-key") == (200, SERVER_A)
    assert container.get(path, "another")[0] == 401


def test_the_service_is_the_first_process_and_has_no_rights(container: Container) -> None:
    status = Path(f"/proc/{container.first_process}/status").read_text(encoding="ascii")

    assert re.findall(r"^(?:Uid|Gid):\t(\d+)", status, re.MULTILINE) == ["65532", "65532"]
    assert re.findall(r"^NSpid:.*\t(\d+)$", status, re.MULTILINE) == ["1"]
    for path in ("/new", "/data/new", "/opt/srvstat/new", "/tmp/new"):  # noqa: S108 - in the container
        assert "Read-only file system" in container.run("touch", path).stderr


def test_the_health_check_asks_the_service(container: Container) -> None:
    kind, *command = container.image.config["Healthcheck"]["Test"]
    healthy, other = container.run(*command), container.run("env", "SRVSTAT_PORT=1", *command)

    assert kind == "CMD"
    assert (healthy.returncode, healthy.stderr) == (0, "")
    assert other.returncode == 1


def test_a_signal_ends_the_container_with_zero(container: Container) -> None:
    os.kill(container.first_process, signal.Signals[container.image.config["StopSignal"]])

    assert container.process.wait(30) == 0
