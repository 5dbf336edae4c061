"""Test the client against the API's answers, errors and rate limit."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from compare_servers import ApiError, Client, main
from srvstat.testing import SrvstatService

# In a project with several files of tests, this line and the fixtures belong in conftest.py.
pytest_plugins = ["srvstat.testing"]


@pytest.fixture(scope="session")
def access(srvstat_snapshot: Path) -> Path:
    """Return the access file beside the snapshot of the demo, which has several plans."""
    return srvstat_snapshot.with_name("access.toml")


@pytest.fixture(scope="session")
def srvstat_options(access: Path) -> Sequence[str]:
    """Return the options of `srvstat serve`."""
    return ("--access", str(access))


@cache
def create_key(access: Path, plan: str) -> str:
    srvstat = [sys.executable, "-m", "srvstat"]
    command = [*srvstat, "access", "new-key", "--plan", plan, "--access", str(access)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def client(srvstat_service: SrvstatService, access: Path) -> Iterator[Client]:
    """Return a client whose plan has no limits."""
    with Client(srvstat_service.url, create_key(access, "studio")) as client:
        yield client


def test_get_server_accepts_id_and_cfx_id(client: Client) -> None:
    detail = client.get_server("night-shift")

    assert detail["cfxId"] == "ns6r0b"
    assert client.get_server("cfxId:ns6r0b") == detail


def test_compare_returns_the_servers_in_their_order(client: Client) -> None:
    results = client.compare("new-frontier", "cfxId:hc4x2k", range="90d")

    assert [one["serverId"] for one in results] == ["new-frontier", "harbor-city"]


def test_unknown_server_raises_server_not_found(client: Client) -> None:
    with pytest.raises(ApiError) as error:
        client.get_server("nobody")

    assert (error.value.status, error.value.code) == (404, "SERVER_NOT_FOUND")


def test_the_log_has_the_reason_of_an_error(
    client: Client, srvstat_service: SrvstatService
) -> None:
    with pytest.raises(ApiError, match="400 INVALID_REQUEST: Invalid request") as error:
        client.compare("harbor-city")

    entry = srvstat_service.find_entry(error.value.request_id)
    assert entry["reason"] == "servers: 1 given; 2 to 5 required"


def test_unknown_key_raises_unauthorized(srvstat_service: SrvstatService) -> None:
    with (
        Client(srvstat_service.url, "made-up") as client,
        pytest.raises(ApiError, match="401 GATEWAY_UNAUTHORIZED"),
    ):
        client.get_server("harbor-city")


def test_comparing_on_a_plan_without_comparisons_raises_feature_not_available(
    srvstat_service: SrvstatService, access: Path
) -> None:
    with (
        Client(srvstat_service.url, create_key(access, "badge")) as client,
        pytest.raises(ApiError, match="403 FEATURE_NOT_AVAILABLE"),
    ):
        client.compare("harbor-city", "night-shift")


def test_client_waits_after_a_rate_limit(srvstat_service: SrvstatService, access: Path) -> None:
    waited: list[float] = []
    # The plan allows two requests a minute, so the third one fails. Its repetitions fail too: the
    # test does not really wait.
    key = create_key(access, "trickle")
    with Client(srvstat_service.url, key, sleep=waited.append) as client:
        for _ in range(2):
            client.get_server("harbor-city")

        with pytest.raises(ApiError, match="429 RATE_LIMITED: Rate limit exceeded"):
            client.get_server("harbor-city")

    assert len(waited) == 2
    assert all(0 < seconds <= 60 for seconds in waited)


@pytest.mark.parametrize("answers", [["500", "429", "ok"], ["drop", "reset"], ["cut", "500"]])
def test_client_repeats_a_request_that_fails_twice(
    answers: list[str], srvstat_service: SrvstatService, access: Path
) -> None:
    waited: list[float] = []
    key = create_key(access, "studio")
    srvstat_service.reset()
    with (
        Client(srvstat_service.url, key, sleep=waited.append) as client,
        srvstat_service.fail("getServer", answers, server="harbor-city", key=key),
    ):
        assert client.get_server("harbor-city")["id"] == "harbor-city"
        assert client.get_server("night-shift")["id"] == "night-shift"

    assert len(waited) == 2
    sent = [one["request"]["path"] for one in srvstat_service.requests()]
    assert sent == ["/gateway/v1/servers/harbor-city?by=id"] * 3 + [
        "/gateway/v1/servers/night-shift?by=id"
    ]


def test_client_gives_up_after_three_failures(
    srvstat_service: SrvstatService, access: Path
) -> None:
    key = create_key(access, "studio")
    with (
        Client(srvstat_service.url, key, sleep=lambda _: None) as client,
        srvstat_service.fail("compareServers", ["500", "500", "500"]),
        pytest.raises(ApiError, match="500 INTERNAL_ERROR"),
    ):
        client.compare("harbor-city", "night-shift")


def test_the_program_prints_a_table(
    srvstat_service: SrvstatService,
    access: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", create_key(access, "studio"))
    arguments = [srvstat_service.url, "30d", "empty-plains", "cfxId:hc4x2k"]
    monkeypatch.setattr("sys.argv", ["compare_servers.py", *arguments])

    main()

    head, empty, city = capsys.readouterr().out.splitlines()
    assert head.split() == ["server", "now", "average", "median", "peak", "growth", "%", "name"]
    assert empty.split() == ["empty-plains", "0", "-", "-", "-", "-", "Empty", "Plains"]
    assert city.startswith("harbor-city ")
