"""Run `srvstat serve` for a program that has Playwright but not srvstat."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serve(srvstat: Path, directory: str, *options: str) -> Iterator[str]:
    """Serve the snapshot of the demo in a directory for a block, and yield the URL."""
    command = ("serve", "--snapshot", "srvstat-demo/snapshot.db", "--port", "0", *options)
    with subprocess.Popen(
        [srvstat, *command], cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as service:
        assert service.stdout
        yield re.findall(r"http://\S+", service.stdout.readline().decode())[0]
        service.terminate()
