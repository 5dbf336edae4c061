"""Use the page of `serve --explore` in headless Chromium. Without Chromium, tests are skipped."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

import srvstat
from conftest import AS_OF, DAY, build_in, server
from external.chromium import HOSTILE_NAMES, browse
from srvstat.render.figures import explain_missing_change, format_change, format_first_last
from support.process import Service, serve

pytestmark = pytest.mark.external

HOUR = DAY // 24
COMPARE = {
    "servers": [{"identifier": name, "by": "id"} for name in ("a", "c", "d")],
    "range": "7d",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    times = range(AS_OF - 100 * DAY, AS_OF + 1, HOUR)
    # Server `a` gains players, `c` loses some, and `d` stays as it is.
    trend = {"a": 0.02, "b": 0, "c": -0.01, "d": 0}
    rows = [
        (name, at, 50 + at // HOUR % 24 + int((at - AS_OF) / HOUR * trend[name]))
        for name in "abcd"
        for at in times
    ]
    servers = [
        server(name, hostname=hostname, tags=[f"tag-{name}"], players={"current": 1})
        for name, hostname in zip("abcd", HOSTILE_NAMES, strict=True)
    ]
    return build_in(tmp_path_factory.mktemp("explore"), servers, rows)


@pytest.fixture(scope="module")
def service(path: Path) -> Iterator[Service]:
    with serve(path, "--explore") as service:
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


def test_the_change_leads_and_is_the_only_figure_with_color(seen: Any, path: Path) -> None:
    with srvstat.open_snapshot(path) as snapshot:
        document = snapshot.stats(["a", "c", "d"], range="7d")
    expected = [
        (" ".join(format_change(one.change, one.average_players)), one) for one in document.servers
    ]

    assert [text[0] for text, _ in expected] == ["+", "-", "0"]
    assert [cells[3] for cells in seen["week"]["rows"]] == [text for text, _ in expected]
    assert [cells[7] for cells in seen["week"]["rows"]] == [
        format_first_last(one.first_players, one.growth.players) for _, one in expected
    ]
    assert seen["week"]["colored"] == [["rise", expected[0][0]], ["fall", expected[1][0]]]
    assert seen["week"]["changes"] == "Change: the average against the 7 days before."
    assert seen["single"]["rows"][0] == ["change", expected[0][0]]


def test_a_missing_change_has_a_reason(seen: Any, path: Path) -> None:
    with srvstat.open_snapshot(path) as snapshot:
        document = snapshot.stats(["a"], range="90d")
    [one] = document.servers
    reason = explain_missing_change(document.window, one.coverage, one.previous_coverage)

    assert reason == "the 90 days before were observed for 11.1% only"
    assert [cells[3] for cells in seen["quarter"]["rows"]] == ["–"] * 3  # noqa: RUF001 - the dash
    assert seen["quarter"]["colored"] == []
    assert seen["quarter"]["changes"] == f"No change: {reason}."


def test_hostile_names_are_text(seen: Any) -> None:
    assert (seen["hacked"], seen["images"]) == (None, 0)
    assert HOSTILE_NAMES[0] in seen["week"]["table"]


def test_an_error_of_the_api_is_shown_as_it_is(seen: Any) -> None:
    assert "SERVER_NOT_FOUND" in seen["unknown"]["table"]
    assert "404" in seen["unknown"]["response"]


def test_every_size_and_color_scheme_is_free_of_serious_barriers(seen: Any) -> None:
    assert seen["sizes"] == {size: [] for size in seen["sizes"]}
