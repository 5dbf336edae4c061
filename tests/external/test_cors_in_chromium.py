"""Call the service from pages of other origins in Chromium. Without Chromium, tests are skipped."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from asgi.small_service import COMPARED, SERVER_A, format_access, serve_small
from external.chromium import browse
from support.markdown import read_command, read_marked_block
from support.process import serve

pytestmark = pytest.mark.external

KEYS = {"key-of-the-page": "all", "key-of-plan-three": "three"}


class QuietHandler(SimpleHTTPRequestHandler):
    """Serve files without a log."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serve_pages(directory: Path) -> Iterator[str]:
    """Serve a directory as `python3 -m http.server` does, and return the origin of its pages."""
    handler = partial(QuietHandler, directory=str(directory))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield f"http://localhost:{server.server_port}"
        finally:
            server.shutdown()  # otherwise its thread would keep pytest running


def read_documented_options(origin: str) -> list[str]:
    """Return the options of the command that the documentation starts with, for another origin."""
    *_, line = read_marked_block("service.md", "get-started")
    serve_word, _, _, *options = read_command(line.replace("http://localhost:5173", origin))
    assert serve_word == "serve"
    return options


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, demo_snapshot: str) -> Any:
    """Return what pages see: one of an allowed origin, one of another, and one of any origin."""
    pages = tmp_path_factory.mktemp("pages")
    access = tmp_path_factory.mktemp("access") / "access.toml"
    access.write_text(format_access(KEYS), encoding="utf-8")
    options = ("--access", str(access), "--explore", "--explain-errors")
    with (
        serve_pages(pages) as page,
        serve_pages(pages) as other,
        serve_small(*options, "--cors", "http://example.org", "--cors", page) as service,
        serve_small(*options) as closed,
        serve(demo_snapshot, "--cors", "*") as public,
        serve(demo_snapshot, *read_documented_options(page)) as documented,
    ):
        example = "\n".join(read_marked_block("service.md", "index.html"))
        (pages / "index.html").write_text(example.replace("http://127.0.0.1:8000", documented.url))
        pairs = [(page, service), (other, service), (page, closed), (other, public)]
        found = browse(
            "browse_cors.py", *(part for each in pairs for part in (each[0], each[1].url))
        )
    names = ("allowed origin", "other origin", "without the option", "every origin")
    return dict(zip(names, found, strict=True))


def test_a_page_reads_the_answers_of_the_api(seen: Any) -> None:
    answers = seen["allowed origin"]["answers"]

    assert answers["server"]["body"] == SERVER_A.decode()
    assert answers["server"]["headers"]["x-request-id"] == "of-the-page"
    assert answers["comparison"]["body"] == COMPARED.decode()
    assert json.loads(answers["health"]["body"])["status"] == "ok"


def test_a_page_reads_errors_with_their_headers(seen: Any) -> None:
    answers = seen["allowed origin"]["answers"]

    assert read_error(answers["unknown server"]) == (404, "SERVER_NOT_FOUND", "no id nobody")
    assert read_error(answers["unknown path"]) == (
        404,
        "INVALID_REQUEST",
        "path: not in the contract",
    )
    assert read_error(answers["no key"]) == (
        401,
        "GATEWAY_UNAUTHORIZED",
        "X-Gateway-Key: missing or empty",
    )
    assert "www-authenticate" in answers["no key"]["headers"]
    assert answers["wrong method"]["headers"]["allow"] == "GET, HEAD"


def test_a_page_reads_its_limit_and_when_to_retry(seen: Any) -> None:
    answers = seen["allowed origin"]["answers"]

    assert [answers[f"limited {number}"]["status"] for number in range(4)] == [200, 200, 200, 429]
    assert answers["limited 2"]["headers"]["ratelimit"].startswith('"three";r=0;t=')
    assert answers["limited 2"]["headers"]["ratelimit-policy"] == '"three";q=3;w=60'
    assert 0 < int(answers["limited 3"]["headers"]["retry-after"]) <= 60


@pytest.mark.parametrize("case", ["other origin", "without the option"])
def test_other_pages_read_nothing(seen: Any, case: str) -> None:
    assert all(set(answer) == {"error"} for answer in seen[case]["answers"].values())
    assert any("blocked by CORS policy" in line for line in seen[case]["console"])


def test_no_page_of_another_origin_reads_the_explore_page(seen: Any) -> None:
    for name in ("explore", "explored"):
        assert "error" in seen["allowed origin"]["answers"][name]


def test_a_header_that_is_not_allowed_is_named_in_the_console(seen: Any) -> None:
    assert "error" in seen["allowed origin"]["answers"]["other header"]
    assert any("header field x-other is not" in line for line in seen["allowed origin"]["console"])


def test_every_page_reads_a_service_that_allows_every_origin(seen: Any) -> None:
    answers = seen["every origin"]["answers"]

    assert answers["unknown server"]["status"] == 404
    assert json.loads(answers["health"]["body"])["status"] == "ok"


def test_the_page_of_the_documentation_shows_the_documented_comparison(seen: Any) -> None:
    shown = "\n".join(read_marked_block("service.md", "page"))

    assert seen["allowed origin"]["text"].split() == shown.split()


def read_error(answer: Any) -> tuple[int, str, str]:
    code = json.loads(answer["body"])["error"]["code"]
    return answer["status"], code, answer["headers"]["x-srvstat-reason"]
