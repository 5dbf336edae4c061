"""Check the systemd units of docs/deploy, and start the service as their socket would."""

import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asgi.small_service import SERVER_A, build_small, format_access
from conftest import ROOT
from support.http import HOST, A, find_free_port, request, split_answer

pytestmark = pytest.mark.external

UNITS = ROOT / "docs" / "deploy"
INSTALLED = "/opt/srvstat/bin/srvstat"
"""The program in the unit."""
PROGRAM = f"{Path(sys.executable).parent}/srvstat"
MAX_EXPOSURE = 10
"""Ten times the figure of `systemd-analyze security`, from 0 to 10; less is safer."""
SECONDS = 60


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
