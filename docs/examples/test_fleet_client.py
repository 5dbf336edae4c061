"""Test a client against the API's answers, errors and rate limit.

srvstat serves the API on a free port, with the demo's snapshot and two plans.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet_client import ApiError, FleetClient

PLANS = """
[plans.studio]
operations = ["get-server", "compare-servers"]
ranges = ["24h", "7d", "30d", "90d", "1y"]

[plans.tiny]
operations = ["get-server"]
ranges = []
requests_per_minute = 3
"""


def _run_srvstat(directory: Path, *arguments: str) -> str:
    return subprocess.run(
        ["srvstat", *arguments], cwd=directory, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the snapshot and the access file; return their directory."""
    directory = tmp_path_factory.mktemp("api")
    _run_srvstat(directory, "demo", ".")
    (directory / "access.toml").write_text(PLANS, encoding="utf-8")
    return directory


@pytest.fixture(scope="session")
def api(directory: Path) -> Iterator[str]:
    """Serve the snapshot; yield the URL."""
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
    """Return a new key of a plan without limits."""
    return _run_srvstat(directory, "access", "new-key", "--plan", "studio")


@pytest.fixture
def tiny_key(directory: Path) -> str:
    """Return a new key of a plan with three requests a minute."""
    return _run_srvstat(directory, "access", "new-key", "--plan", "tiny")


@pytest.fixture
def client(api: str, studio_key: str) -> Iterator[FleetClient]:
    with FleetClient(api, studio_key) as client:
        yield client


def test_get_server_accepts_id_and_cfx_id(client: FleetClient) -> None:
    detail = client.get_server("night-shift")

    assert detail["cfxId"] == "ns6r0b"
    assert client.get_server("ns6r0b", by="cfxId") == detail


def test_compare_medians_returns_one_median_per_server(client: FleetClient) -> None:
    assert client.compare_medians("harbor-city", "new-frontier", range="90d") == {
        "harbor-city": 113,
        "new-frontier": 35,
    }


def test_unknown_server_raises_server_not_found(client: FleetClient) -> None:
    with pytest.raises(ApiError) as error:
        client.get_server("nobody")

    assert (error.value.status, error.value.code) == (404, "SERVER_NOT_FOUND")


def test_comparing_one_server_raises_invalid_request(client: FleetClient) -> None:
    with pytest.raises(ApiError, match="400 INVALID_REQUEST: Invalid request"):
        client.compare_medians("harbor-city")


def test_unknown_key_raises_unauthorized(api: str) -> None:
    with (
        FleetClient(api, "made-up") as client,
        pytest.raises(ApiError, match="401 GATEWAY_UNAUTHORIZED"),
    ):
        client.get_server("harbor-city")


def test_comparing_on_a_plan_without_comparisons_raises_feature_not_available(
    api: str, tiny_key: str
) -> None:
    with (
        FleetClient(api, tiny_key) as client,
        pytest.raises(ApiError, match="403 FEATURE_NOT_AVAILABLE"),
    ):
        client.compare_medians("harbor-city", "night-shift")


def test_client_waits_after_a_rate_limit(api: str, tiny_key: str) -> None:
    waited: list[float] = []
    # The plan allows three requests a minute, so the fourth fails. Its repetitions fail too:
    # the test does not really wait.
    with FleetClient(api, tiny_key, sleep=waited.append) as client:
        for _ in range(3):
            client.get_server("harbor-city")

        with pytest.raises(ApiError, match="429 RATE_LIMITED: Rate limit exceeded"):
            client.get_server("harbor-city")

    assert len(waited) == 2
    assert all(0 < seconds <= 60 for seconds in waited)
