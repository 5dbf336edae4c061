"""Build the image of docs/deploy/Containerfile, and start the service as systemd does."""

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from asgi.small_service import SERVER_A, build_small, format_access
from conftest import ROOT
from support.http import HOST, A, find_free_port, request, split_answer

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


UNITS = ROOT / "docs" / "deploy"
INSTALLED = "/opt/srvstat/bin/srvstat"
"""The program in the unit."""
PROGRAM = f"{Path(sys.executable).parent}/srvstat"
MAX_EXPOSURE = 10
"""Ten times the figure of `systemd-analyze security`, from 0 to 10; less is safer."""


def require(program: str) -> None:
    if not shutil.which(program):
        pytest.skip(f"needs {program}")


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Copy the units, with the path of the program that is tested."""
    directory = tmp_path_factory.mktemp("units")
    copies = []
    for name in ("srvstat.service", "srvstat.socket"):
        text = (UNITS / name).read_text(encoding="utf-8").replace(INSTALLED, PROGRAM)
        copies.append(directory / name)
        copies[-1].write_text(text, encoding="utf-8")
    return copies


def test_systemd_finds_nothing_wrong_with_the_units(units: list[Path]) -> None:
    require("systemd-analyze")
    done = subprocess.run(
        ["systemd-analyze", "verify", *units],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_the_service_is_confined(units: list[Path]) -> None:
    require("systemd-analyze")
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={MAX_EXPOSURE}", units[0]],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_service_starts_at_the_first_connection(units: list[Path], tmp_path: Path) -> None:
    require("systemd-socket-activate")
    access = tmp_path / "access.toml"
    access.write_text(format_access({"the-key": "all"}), encoding="utf-8")
    unit = units[0].read_text(encoding="utf-8")
    environment = dict(re.findall(r"^Environment=(\w+)=(.*)$", unit, re.MULTILINE))
    assert set(environment) == {"SRVSTAT_SNAPSHOT", "SRVSTAT_ACCESS"}
    settings = [f"SRVSTAT_SNAPSHOT={build_small(tmp_path)}", f"SRVSTAT_ACCESS={access}"]
    (command,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    port = find_free_port()
    with subprocess.Popen(
        [
            *("systemd-socket-activate", f"--listen=127.0.0.1:{port}"),
            *(f"--setenv={setting}" for setting in settings),
            *enter_private_network(),
            *command.split(),
        ],
        stderr=subprocess.PIPE,
    ) as process:
        try:
            answer = ask(port, request(A, HOST, b"X-Gateway-Key: the-key", b"Connection: close"))
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()
        assert process.stderr
        assert b'"event": "stopped"' in process.stderr.read()
    found = split_answer(answer, is_head=False)
    assert found
    assert found[0].body == SERVER_A


def enter_private_network() -> list[str]:
    """Return the command that gives a process the network of `PrivateNetwork=yes`, if permitted."""
    command = ["unshare", "--net"]
    if not shutil.which("unshare"):
        return []
    done = subprocess.run([*command, "true"], capture_output=True, check=False)
    return [] if done.returncode else command


def ask(port: int, sent: bytes) -> bytes:
    """Send a request as soon as the socket listens, and return everything that is received."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
                connection.sendall(sent)
                return connection.makefile("rb").read()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.02)
