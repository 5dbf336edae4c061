"""Run a real nginx with docs/deploy/nginx.conf."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import ROOT
from support.signals import restore_signals

NEEDS_NGINX = pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")

_SECONDS = 20
_MAIN = """\
daemon off;
pid {directory}/pid;
error_log {directory}/error.log;
worker_processes 1;
events {{}}
http {{
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    include {directory}/site.conf;
}}
"""


@contextmanager
def run_nginx(directory: Path, port: int, upstreams: Sequence[int]) -> Iterator[Path]:
    """Run nginx with the file of the documentation on other ports; yield its log of requests."""
    site = (ROOT / "docs" / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    replaced = {
        "listen 80;": f"listen 127.0.0.1:{port};",
        "/var/log/nginx/": f"{directory}/",
        **{f":800{n}": f":{upstream}" for n, upstream in enumerate(upstreams, start=1)},
    }
    for old, new in replaced.items():
        assert site.count(old) == 1, old
        site = site.replace(old, new)
    (directory / "site.conf").write_text(site, encoding="utf-8")
    (directory / "nginx.conf").write_text(_MAIN.format(directory=directory), encoding="utf-8")
    command = ["nginx", "-c", f"{directory}/nginx.conf", "-e", f"{directory}/error.log"]
    with restore_signals():
        process = subprocess.Popen(command)
    try:
        _wait_until_ready(port)
        yield directory / "srvstat.log"
    finally:
        process.terminate()
        process.wait(timeout=_SECONDS)


def _wait_until_ready(port: int) -> None:
    for _ in range(_SECONDS * 50):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail(f"nginx is not ready after {_SECONDS} s")
