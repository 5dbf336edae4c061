"""The page that documents the API. Without Swagger UI, which `make api-page` adds, it is a hint."""

import re
from collections.abc import Iterator

import pytest

from asgi.small_service import log_request, serve_small
from srvstat.render.web import DOCS_ASSETS, find_asset, read_asset
from support.http import HEALTH, HOST, Client, request
from support.process import Service

IS_BUILT = all(find_asset(name).is_file() for name in DOCS_ASSETS.values())


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serve_small() as running:
        yield running


def test_the_page_names_its_files_and_nothing_elsewhere() -> None:
    names = re.findall(r'(?:src|href)="(?!data:)([^"]+)"', read_asset("docs.html"))

    assert sorted(names) == sorted([*(f"docs/{name}" for name in DOCS_ASSETS), "openapi.json"])


def test_the_page_and_its_files_need_no_key_and_run_no_foreign_code(service: Service) -> None:
    with Client(service) as client:
        for path, media_type in {
            b"/docs": "text/html",
            b"http://x/docs?x": "text/html",
            b"/docs/docs.js": "text/javascript",
            b"/docs/swagger-ui-bundle.js": "text/javascript",
            b"/docs/swagger-ui.css": "text/css",
        }.items():
            client.send(request(b"GET %b HTTP/1.1" % path, HOST))
            answer = client.read_any_answer()
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self';")
            assert "unsafe" not in policy
            expected = media_type if IS_BUILT else "text/plain"
            assert answer.headers["content-type"] == f"{expected}; charset=utf-8"
            assert answer.status == (200 if IS_BUILT else 404)
            assert IS_BUILT or b"run `make api-page`" in answer.body


def test_other_paths_and_methods_have_errors_and_the_log_names_them(service: Service) -> None:
    sent = {
        request(b"GET /docs/ HTTP/1.1", HOST, b"X-Request-Id: 1"): (404, "getDocsAsset"),
        request(b"POST /docs HTTP/1.1", HOST, b"X-Request-Id: 2", body=b""): (405, "getDocs"),
    }
    with Client(service) as client:
        for number, (one, (status, operation)) in enumerate(sent.items(), 1):
            client.send(one)
            assert client.read_any_answer().status == status
            log_request(service, HEALTH)  # its entry follows all earlier ones
            (entry,) = (each for each in service.read_log() if each["id"] == str(number))
            assert (entry["operation"], entry["status"]) == (operation, status)
