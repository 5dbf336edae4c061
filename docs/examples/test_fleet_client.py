"""The client against the API's answers, its errors and its limit."""

from collections.abc import Iterator

import pytest

from fleet_client import ApiError, FleetClient


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
