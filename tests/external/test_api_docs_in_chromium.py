"""Use the page `/docs` in headless Chromium. Without Chromium or Swagger UI, tests are skipped."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from external.chromium import browse
from srvstat.contract.http import read_openapi
from srvstat.render.web import DOCS_ASSETS, find_asset
from support.process import Service, serve

DOCUMENT = json.loads(read_openapi())

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(
        not all(find_asset(name).is_file() for name in DOCS_ASSETS.values()),
        reason="needs Swagger UI; see `make api-page`",
    ),
]


@pytest.fixture(scope="module")
def service(demo_snapshot: str) -> Iterator[Service]:
    with serve(demo_snapshot) as service:
        yield service


@pytest.fixture(scope="module")
def seen(service: Service) -> Any:
    return browse("browse_api_docs.py", service.url)


def test_no_request_leaves_the_service_and_the_console_is_clean(
    seen: Any, service: Service
) -> None:
    assert {url[: len(service.url) + 1] for url in seen["requests"]} == {f"{service.url}/"}
    assert (seen["console"], seen["errors"]) == ([], [])


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_every_operation_and_schema_is_shown(seen: Any, size: str) -> None:
    operations = [
        f"operations-{operation['tags'][0]}-{operation['operationId']}"
        for path in DOCUMENT["paths"].values()
        for name, operation in path.items()
        if name != "parameters"
    ]

    assert seen[size]["operations"] == operations
    assert set(seen[size]["schemas"]) >= set(DOCUMENT["components"]["schemas"])


def test_the_requests_that_it_offers_are_answered_by_this_service(seen: Any) -> None:
    for answer in (seen["wide"]["server"], seen["wide"]["comparison"]):
        assert answer["status"] == "200"
        assert "data" in json.loads(answer["body"])


def test_it_fits_a_narrow_window_and_its_text_has_contrast(seen: Any) -> None:
    assert not seen["narrow"]["too_wide"]
    for size in ("wide", "narrow"):
        found = {barrier.partition(":")[0] for barrier in seen[size]["barriers"]}
        # Swagger UI itself has these.
        assert found <= {
            "label",
            "nested-interactive",
            "scrollable-region-focusable",
            "select-name",
        }
