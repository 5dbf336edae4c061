"""A client against the API's answers, its errors and its limit.

The API is srvstat on a free port, with the demo's snapshot and two plans.
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


@pytest.fixture
def client(api: str, studio_key: str) -> Iterator[FleetClient]:
    with FleetClient(api, studio_key) as client:
        yield client


def test_a_server_is_found_in_either_namespace(client: FleetClient) -> None:
    detail = client.server("night-shift")

    assert detail["cfxId"] == "ns6r0b"
    assert client.server("ns6r0b", by="cfxId") == detail


def test_medians_come_from_one_comparison(client: FleetClient) -> None:
    assert client.medians("harbor-city", "new-frontier", range="90d") == {
        "harbor-city": 113,
        "new-frontier": 35,
    }


def test_an_unknown_server_is_an_error_with_its_code(client: FleetClient) -> None:
    with pytest.raises(ApiError) as caught:
        client.server("nobody")

    assert (caught.value.status, caught.value.code) == (404, "SERVER_NOT_FOUND")


def test_one_server_is_no_comparison(client: FleetClient) -> None:
    with pytest.raises(ApiError, match="400 INVALID_REQUEST: Invalid request"):
        client.medians("harbor-city")


def test_a_wrong_key_is_refused(api: str) -> None:
    with (
        FleetClient(api, "made-up") as client,
        pytest.raises(ApiError, match="401 GATEWAY_UNAUTHORIZED"),
    ):
        client.server("harbor-city")


def test_a_plan_without_comparisons_has_none(api: str, tiny_key: str) -> None:
    with (
        FleetClient(api, tiny_key) as client,
        pytest.raises(ApiError, match="403 FEATURE_NOT_AVAILABLE"),
    ):
        client.medians("harbor-city", "night-shift")


def test_the_client_waits_where_it_asked_too_often(api: str, tiny_key: str) -> None:
    waited: list[float] = []
    # The fourth request within a minute is one too many. The test does not wait, so it stays so.
    with FleetClient(api, tiny_key, sleep=waited.append) as client:
        for _ in range(3):
            client.server("harbor-city")

        with pytest.raises(ApiError, match="429 RATE_LIMITED: Rate limit exceeded"):
            client.server("harbor-city")

    assert len(waited) == 2
    assert all(0 < seconds <= 60 for seconds in waited)
