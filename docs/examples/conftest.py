"""The API for tests: srvstat on a free port, from the demo's snapshot, with a key for each plan."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PLANS = """
[plans.studio]
operations = ["get-server", "compare-servers"]
ranges = ["24h", "7d", "30d", "90d", "1y"]

[plans.tiny]
operations = ["get-server"]
ranges = []
requests_per_minute = 3
"""


def _srvstat(directory: Path, *arguments: str) -> str:
    return subprocess.run(
        ["srvstat", *arguments], cwd=directory, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the snapshot and the access file are."""
    directory = tmp_path_factory.mktemp("api")
    _srvstat(directory, "demo", ".")
    (directory / "access.toml").write_text(PLANS, encoding="utf-8")
    return directory


@pytest.fixture(scope="session")
def api(directory: Path) -> Iterator[str]:
    """Serve the snapshot and return where."""
    command = ["srvstat", "serve", "--snapshot", "snapshot.db", "--access", "access.toml"]
    with (
        open(directory / "log.ndjson", "wb") as log,
        subprocess.Popen(
            [*command, "--port", "0"], cwd=directory, stdout=subprocess.PIPE, stderr=log, text=True
        ) as service,
    ):
        assert service.stdout
        _, _, url = service.stdout.readline().strip().rpartition(" at ")
        yield url
        service.terminate()


@pytest.fixture
def studio_key(directory: Path) -> str:
    """Return a new key of a plan that may ask everything."""
    return _srvstat(directory, "access", "new-key", "--plan", "studio")


@pytest.fixture
def tiny_key(directory: Path) -> str:
    """Return a new key of a plan with three requests a minute."""
    return _srvstat(directory, "access", "new-key", "--plan", "tiny")
