"""Use the page of `serve --explore` in headless Chromium. Without Chromium, tests are skipped."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import pytest

from conftest import AS_OF, DAY, build_in, server
from external.chromium import HOSTILE_NAMES, browse
from support.process import Service, serve

pytestmark = pytest.mark.external

HOUR = DAY // 24
COMPARE = {
    "servers": [{"identifier": name, "by": "id"} for name in ("a", "c", "d")],
    "range": "7d",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    times = range(AS_OF - 40 * DAY, AS_OF + 1, HOUR)
    rows = [(name, at, at // HOUR % 24) for name in "abcd" for at in times]
    servers = [
        server(name, hostname=hostname, tags=[f"tag-{name}"], players={"current": 1})
        for name, hostname in zip("abcd", HOSTILE_NAMES, strict=True)
    ]
    with serve(build_in(tmp_path_factory.mktemp("explore"), servers, rows), "--explore") as service:
        yield service


@pytest.fixture(scope="module")
def seen(service: Service) -> Any:
    return browse("browse_explore.py", service.url, *"acd")


@pytest.fixture(scope="module")
def answer(service: Service) -> bytes:
    """Return what a client gets for the comparison that the page shows."""
    headers = {"Content-Type": "application/json", "X-Gateway-Key": "any"}
    url = f"{service.url}/gateway/v1/compare"
    with urlopen(Request(url, json.dumps(COMPARE).encode(), headers)) as response:  # noqa: S310 - a loopback address
        body: bytes = response.read()
    return body


def test_no_request_leaves_the_service_and_the_console_is_clean(
    seen: Any, service: Service
) -> None:
    assert {url[: len(service.url) + 1] for url in seen["requests"]} == {f"{service.url}/"}
    assert (seen["console"], seen["errors"]) == ([], [])


def test_the_keyboard_suffices_to_choose_servers_and_a_range(seen: Any) -> None:
    assert seen["chosen"]["address"].endswith("#id=a&id=c&id=d&range=30d")
    assert seen["week"]["address"].endswith("#id=a&id=c&id=d&range=7d")


def test_the_response_shown_is_the_one_that_a_client_gets(seen: Any, answer: bytes) -> None:
    assert seen["week"]["response"].endswith(answer.decode())
    assert json.dumps(COMPARE, separators=(",", ":")) in seen["week"]["request"]


def test_the_command_shown_gets_the_same_answer(seen: Any, answer: bytes) -> None:
    ran = subprocess.run(["bash", "-c", seen["week"]["curl"]], capture_output=True, check=True)

    assert ran.stdout == answer


def test_the_table_and_the_chart_have_the_figures_of_the_response(seen: Any, answer: bytes) -> None:
    results = json.loads(answer)["data"]

    assert [row["server"] for row in seen["week"]["chart"]] == ["a", "c", "d"]
    for result, cells, row in zip(
        results, seen["week"]["rows"], seen["week"]["chart"], strict=True
    ):
        assert float(row["average"]) == result["averagePlayers"]
        assert int(row["observations"]) == result["sampleCount"]
        assert str(result["peakPlayers"]) in cells


def test_hostile_names_are_text(seen: Any) -> None:
    assert (seen["hacked"], seen["images"]) == (None, 0)
    assert HOSTILE_NAMES[0] in seen["week"]["table"]


def test_an_error_of_the_api_is_shown_as_it_is(seen: Any) -> None:
    assert "SERVER_NOT_FOUND" in seen["unknown"]["table"]
    assert "404" in seen["unknown"]["response"]


def test_every_size_and_color_scheme_is_free_of_serious_barriers(seen: Any) -> None:
    assert seen["sizes"] == {size: [] for size in seen["sizes"]}
