"""Use `/docs`, the explore page and pages of other origins in headless Chromium."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

import pytest

import srvstat
from asgi.small_service import COMPARED, SERVER_A, format_access, serve_small
from conftest import AS_OF, DAY, ROOT, build_in, server
from conftest import srvstat as run_srvstat
from external.installed import HOSTILE_NAMES, browse
from srvstat.contract.http import read_openapi
from srvstat.render.figures import explain_missing_change, format_change
from support.markdown import read_command, read_marked_block
from support.process import Service, serve

DOCUMENT = json.loads(read_openapi())

pytestmark = pytest.mark.external


@pytest.fixture(scope="module")
def demo_service(demo_snapshot: str) -> Iterator[Service]:
    with serve(demo_snapshot) as service:
        yield service


@pytest.fixture(scope="module")
def api_docs(demo_service: Service) -> Any:
    return browse("browse_pages.py", "docs", demo_service.url)


def test_no_request_of_the_documentation_leaves_the_service_and_the_console_is_clean(
    api_docs: Any, demo_service: Service
) -> None:
    assert {url[: len(demo_service.url) + 1] for url in api_docs["requests"]} == {
        f"{demo_service.url}/"
    }
    assert (api_docs["console"], api_docs["errors"]) == ([], [])


def test_every_operation_and_schema_is_shown(api_docs: Any) -> None:
    operations = [
        (operation["operationId"], f"{operation['summary']}{method.upper()} {path}")
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
        if method in {"get", "post"}
    ]

    for size in ("wide", "narrow"):
        assert [tuple(one) for one in api_docs[size]["operations"]] == operations
        assert api_docs[size]["schemas"] == [*DOCUMENT["components"]["schemas"]]


def test_the_requests_that_it_offers_are_about_servers_of_the_snapshot(
    api_docs: Any, demo_snapshot: str
) -> None:
    with srvstat.open_snapshot(demo_snapshot) as snapshot:
        known = {one.id for one in snapshot.servers().servers}
    server, comparison = (api_docs["wide"][name] for name in ("server", "comparison"))

    assert json.loads(server)["data"]["id"] in known
    assert {one["serverId"] for one in json.loads(comparison)["data"]} < known
    assert api_docs["wide"]["codes"] == ["200 OK"] * 4


def test_it_fits_a_narrow_window_and_has_no_serious_barriers(api_docs: Any) -> None:
    for size in ("wide", "narrow"):
        assert (api_docs[size]["too_wide"], api_docs[size]["barriers"]) == (False, [])


HOUR = DAY // 24
COMPARE = {"servers": [{"identifier": name, "by": "id"} for name in ("a", "c", "d")], "range": "7d"}


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
def explored(service: Service) -> Any:
    return browse("browse_pages.py", "explore", service.url, *"acd")


@pytest.fixture(scope="module")
def answer(service: Service) -> bytes:
    """Return what a client gets for the comparison that the page shows."""
    headers = {"Content-Type": "application/json", "X-Gateway-Key": "any"}
    url = f"{service.url}/gateway/v1/compare"
    with urlopen(Request(url, json.dumps(COMPARE).encode(), headers)) as response:  # noqa: S310 - a loopback address
        body: bytes = response.read()
    return body


def test_no_request_leaves_the_service_and_the_console_is_clean(
    explored: Any, service: Service
) -> None:
    assert {url[: len(service.url) + 1] for url in explored["requests"]} == {f"{service.url}/"}
    assert (explored["console"], explored["errors"]) == ([], [])


def test_it_opens_with_the_servers_by_average(explored: Any, path: Path) -> None:
    with srvstat.open_snapshot(path) as snapshot:
        ranked = snapshot.top().servers

    assert [row[1] for row in explored["ranked"]] == [
        f"{one.average_players:,.2f}" for one in ranked
    ]
    assert f"#id={ranked[0].server_id}&range=30d" in explored["followed"]


def test_the_keyboard_suffices_to_choose_servers(explored: Any) -> None:
    assert explored["chosen"]["address"].endswith("#id=a&id=c&id=d&range=30d&tz=Asia%2FTokyo")
    assert "in Asia/Tokyo" in explored["chosen"]["overview"]
    assert explored["week"]["address"].endswith("#id=a&id=c&id=d&range=7d&tz=UTC")
    assert explored["removed"].endswith("#id=c&id=d&range=90d&tz=UTC")


def test_an_address_has_what_is_zoomed(explored: Any) -> None:
    zoomed, again = explored["zoomed"], explored["again"]

    assert "&from=2026-02-2" in zoomed["address"]
    assert again["chart"] == zoomed["chart"] != explored["week"]["chart"]


def test_the_response_shown_is_the_one_that_a_client_gets(explored: Any, answer: bytes) -> None:
    week = explored["week"]

    assert explored["sent"].endswith(answer.decode())
    assert json.loads(week["response"].partition("\n\n")[2]) == json.loads(answer)
    assert json.dumps(COMPARE, separators=(",", ":")) in week["request"]


def test_the_commands_shown_get_the_same_answer(explored: Any, answer: bytes, path: Path) -> None:
    ran = subprocess.run(["bash", "-c", explored["week"]["curl"]], capture_output=True, check=True)
    assert ran.stdout == answer

    assert explored["week"]["command"] == "srvstat compare --range 7d a c d"
    _, *arguments = explored["week"]["command"].split()
    assert run_srvstat(*arguments, "--json", "--snapshot", str(path)).stdout == answer + b"\n"


def test_the_table_and_the_chart_have_the_figures_of_the_response(
    explored: Any, answer: bytes
) -> None:
    results = json.loads(answer)["data"]

    assert [row["server"] for row in explored["week"]["chart"]] == ["a", "c", "d"]
    for result, cells, row in zip(
        results, explored["week"]["rows"], explored["week"]["chart"], strict=True
    ):
        assert float(row["average"]) == result["averagePlayers"]
        assert int(row["observations"]) == result["sampleCount"]
        assert str(result["peakPlayers"]) in cells


def test_the_change_is_the_only_figure_with_color(explored: Any, path: Path) -> None:
    with srvstat.open_snapshot(path) as snapshot:
        document = snapshot.stats(["a", "c", "d"], range="7d")
    expected = [
        " ".join(format_change(one.change, one.average_players)) for one in document.servers
    ]

    assert [text[0] for text in expected] == ["+", "-", "0"]
    assert [cells[3] for cells in explored["week"]["rows"]] == expected
    assert explored["week"]["colored"] == [["rise", expected[0]], ["fall", expected[1]]]


def test_a_missing_change_has_a_reason(explored: Any, path: Path) -> None:
    with srvstat.open_snapshot(path) as snapshot:
        document = snapshot.stats(["a"], range="90d")
    [one] = document.servers
    reason = explain_missing_change(document.window, one)

    assert reason == "the 90 days before were observed for 11.1% only"
    assert [cells[3] for cells in explored["quarter"]["rows"]] == ["–"] * 3  # noqa: RUF001 - the dash
    assert explored["quarter"]["colored"] == []
    assert f"No change: {reason}." in explored["quarter"]["overview"]


def test_the_buttons_save_files(explored: Any) -> None:
    begins = {name: bytes(start) for name, start in explored["saved"].items()}

    assert begins["CSV"] == b"serverId,from,to,sampleCo"[:24]
    assert begins["SVG"].startswith(b"<svg ")
    assert begins["PNG"].startswith(b"\x89PNG")


def test_the_chart_is_above_the_fold_and_nothing_moves(explored: Any) -> None:
    assert explored["bottom"] <= 768
    assert explored["shift"] < 0.05


def test_hostile_names_are_text(explored: Any) -> None:
    assert (explored["hacked"], explored["images"]) == (None, 0)
    assert HOSTILE_NAMES[0] in explored["week"]["overview"]


def test_an_error_names_the_server_and_the_way_out_once(explored: Any) -> None:
    unknown = explored["unknown"]

    assert unknown["status"].startswith("404 SERVER_NOT_FOUND: ")
    assert "Not in this snapshot: nobody. Remove" in unknown["status"]
    assert "404" in unknown["response"]
    assert "SERVER_NOT_FOUND" not in unknown["overview"]
    assert [row["server"] for row in explored["known"]["chart"]] == ["a"]


def test_every_size_and_color_scheme_is_free_of_serious_barriers(explored: Any) -> None:
    assert explored["sizes"] == {size: [] for size in explored["sizes"]}


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
    *_, line = read_marked_block("tutorials/client.md", "get-started")
    serve_word, _, _, *options = read_command(line.replace("http://localhost:5173", origin))
    assert serve_word == "serve"
    return options


FAILURES = ("--fail", "60%", "--seed", "3")
"""The first request fails, so the page repeats it."""


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory, demo_snapshot: str) -> Any:
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
        serve(demo_snapshot, *read_documented_options(page), *FAILURES) as documented,
    ):
        example = "\n".join(read_marked_block("tutorials/client.md", "index.html"))
        (pages / "index.html").write_text(example.replace("http://127.0.0.1:8000", documented.url))
        pairs = [(page, service), (other, service), (page, closed), (other, public)]
        found = browse(
            "browse_pages.py",
            "other_origins",
            *(part for each in pairs for part in (each[0], each[1].url)),
        )
    names = ("allowed origin", "other origin", "without the option", "every origin")
    return dict(zip(names, found, strict=True))


def test_a_page_reads_the_answers_of_the_api(read: Any) -> None:
    answers = read["allowed origin"]["answers"]

    assert answers["server"]["body"] == SERVER_A.decode()
    assert answers["server"]["headers"]["x-request-id"] == "of-the-page"
    assert answers["comparison"]["body"] == COMPARED.decode()
    assert json.loads(answers["health"]["body"])["status"] == "ok"


def test_a_page_reads_errors_with_their_headers(read: Any) -> None:
    answers = read["allowed origin"]["answers"]

    assert read_error(answers["unknown server"]) == (
        404,
        "SERVER_NOT_FOUND",
        "no server with id nobody",
    )
    assert read_error(answers["unknown path"]) == (404, "INVALID_REQUEST", "path: not in the API")
    assert read_error(answers["no key"]) == (
        401,
        "GATEWAY_UNAUTHORIZED",
        "X-Gateway-Key: missing or empty",
    )
    assert "www-authenticate" in answers["no key"]["headers"]
    assert answers["wrong method"]["headers"]["allow"] == "GET, HEAD"


def test_a_page_reads_its_limit_and_when_to_retry(read: Any) -> None:
    answers = read["allowed origin"]["answers"]

    assert [answers[f"limited {number}"]["status"] for number in range(4)] == [200, 200, 200, 429]
    assert answers["limited 2"]["headers"]["ratelimit"].startswith('"three";r=0;t=')
    assert answers["limited 2"]["headers"]["ratelimit-policy"] == '"three";q=3;w=60'
    assert 0 < int(answers["limited 3"]["headers"]["retry-after"]) <= 60


@pytest.mark.parametrize("case", ["other origin", "without the option"])
def test_other_pages_read_nothing(read: Any, case: str) -> None:
    assert all(set(answer) == {"error"} for answer in read[case]["answers"].values())
    assert any("blocked by CORS policy" in line for line in read[case]["console"])


def test_no_page_of_another_origin_reads_the_explore_page(read: Any) -> None:
    for name in ("explore", "explored"):
        assert "error" in read["allowed origin"]["answers"][name]


def test_a_page_may_send_the_headers_of_monitoring(read: Any) -> None:
    assert read["allowed origin"]["answers"]["monitoring"]["status"] == 200


def test_every_page_reads_a_service_that_allows_every_origin(read: Any) -> None:
    answers = read["every origin"]["answers"]

    assert answers["unknown server"]["status"] == 404
    assert json.loads(answers["health"]["body"])["status"] == "ok"


def test_the_page_of_the_documentation_shows_the_documented_comparison(read: Any) -> None:
    shown = "\n".join(read_marked_block("tutorials/client.md", "page"))

    assert read["allowed origin"]["text"].split() == shown.split()


def read_error(answer: Any) -> tuple[int, str, str]:
    code = json.loads(answer["body"])["error"]["code"]
    return answer["status"], code, answer["headers"]["x-srvstat-reason"]


RECORDINGS = ROOT / "docs" / "examples" / "recordings"


def read_entries(path: Path) -> list[Any]:
    entries: list[Any] = json.loads(path.read_bytes())["log"]["entries"]
    return entries


def test_another_recording_has_the_same_requests_and_answers(tmp_path: Path) -> None:
    shutil.copy(RECORDINGS / "access.toml", tmp_path)

    names = browse("recordings.py", "examples", ROOT / ".venv" / "bin" / "srvstat", tmp_path)

    assert sorted(names) == sorted(path.name for path in RECORDINGS.glob("*.har"))
    for name in names:
        assert read_entries(tmp_path / name) == read_entries(RECORDINGS / name), "make recordings"


def test_a_page_of_another_origin_gets_the_recorded_answers() -> None:
    paths = sorted(RECORDINGS.glob("*.har"))

    answers = browse("recordings.py", "play", *paths)

    recorded = [entry["response"] for path in paths for entry in read_entries(path)]
    assert answers == [
        [each["status"], each["content"]["text"], "60" if each["status"] == 429 else None]
        for each in recorded
    ]
