"""`serve --explore` adds the explore page, and leaves the API as it is."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from asgi.small_service import (
    COMPARED,
    CSV,
    NETWORK,
    OVERVIEW,
    PICTURE,
    RANKING,
    SERVER_A,
    SERVERS,
    InProcess,
    ask_page,
    build_small,
    format_access,
    search,
    serve_small,
    wait_for_entries,
)
from srvstat.analysis.pictures import compute_timeline
from srvstat.analysis.questions import find_zone
from srvstat.analysis.selection import FilterOptions, MatchingServers, Question
from srvstat.analysis.series import Total
from srvstat.analysis.servers import list_servers
from srvstat.analysis.statistics import compute_stats, rank_servers
from srvstat.asgi import explore, snapshots
from srvstat.contract.requests import parse_server_reference
from srvstat.contract.windows import find_window
from srvstat.contract.wire import format_number
from srvstat.documents.analysis import ServerStatistics
from srvstat.documents.rows import encode_rows
from srvstat.operations.answers import resolve_servers
from srvstat.snapshot.read.file import open_file
from support.http import ERRORS, TWO
from support.markdown import Page
from support.process import Service, serve
from support.snapshots import change

INVALID = (400, ERRORS["INVALID_REQUEST"])
UNKNOWN_PATH = (404, ERRORS["INVALID_REQUEST"])
POLICY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-store",
}
HOSTILE = "<script>alert(1)</script> \u202e \x7f"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_small(tmp_path_factory.mktemp("explore"))


@pytest.fixture(scope="module")
def service(snapshot: Path) -> Iterator[Service]:
    with serve(snapshot, "--explore") as started:
        yield started


class Links(HTMLParser):
    """The forms of a page, and what it loads from the service."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.paths: list[str] = []
        self.forms = 0
        self.feed(page.decode("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag refers to; no tag may have a style or a handler."""
        self.forms += tag == "form"
        assert not [name for name, _ in attrs if name == "style" or name.startswith("on")]
        names = () if tag == "a" else ("src", "href")
        links = [value or "" for name, value in attrs if name in names]
        self.paths += [link for link in links if not link.startswith("data:")]


def test_the_page_and_its_files_are_served_with_types_and_a_strict_policy(service: Service) -> None:
    page = ask_page(service, "/", key=None)
    links = Links(page.body)
    types = {"/": "text/html; charset=utf-8"}
    for path in links.paths:
        kind = "css" if path.endswith(".css") else "javascript"
        types[path] = f"text/{kind}; charset=utf-8"

    assert page.body.startswith(b"<!doctype html>\n<html ")
    assert not links.forms
    assert len(types) > 6
    for path, media_type in types.items():
        answer = ask_page(service, path, key=None)
        assert answer.status == 200
        assert answer.body
        assert POLICY.items() <= answer.headers.items()
        assert answer.headers["content-type"] == media_type
        assert not [name for name in answer.headers if name.startswith("access-control")]
        head = ask_page(service, path, key=None, method="HEAD")
        assert (head.status, head.body) == (200, b"")
        assert head.stable_parts[2] == answer.stable_parts[2]


@pytest.mark.parametrize(
    ("target", "method", "expected"),
    [
        ("/explore/__init__.py", "GET", UNKNOWN_PATH),
        ("/explore/../", "GET", UNKNOWN_PATH),
        ("/explore/%2e%2e/__init__.py", "GET", UNKNOWN_PATH),
        ("/explore/../gateway/v1/servers/a", "GET", UNKNOWN_PATH),
        ("/", "POST", (405, ERRORS["INVALID_REQUEST"])),
        (SERVERS, "OPTIONS", (405, ERRORS["INVALID_REQUEST"])),
        (f"{SERVERS}?text={'x' * 201}", "GET", INVALID),
        (f"{SERVERS}?text=%ff", "GET", INVALID),
        (f"{SERVERS}?limit=101", "GET", INVALID),
        (f"{SERVERS}?limit=%2b5", "GET", INVALID),
        (f"{OVERVIEW}?id=a&id=%61", "GET", INVALID),
        (f"{OVERVIEW}?id=a&range=8d", "GET", INVALID),
        (f"{OVERVIEW}?id=a&range=7d&range=7d", "GET", INVALID),
        (f"{OVERVIEW}?{'&'.join(f'id={n}' for n in range(6))}", "GET", INVALID),
        (f"{OVERVIEW}?id=a&tz=Mars", "GET", INVALID),
        (f"{NETWORK}?tz=UTC&tz=UTC", "GET", INVALID),
        (f"{RANKING}?range=8d", "GET", INVALID),
        (f"{OVERVIEW}?id=hidden&id=x-a", "GET", (404, ERRORS["SERVER_NOT_FOUND"])),
    ],
)
def test_other_requests_get_an_error_of_the_api(
    service: Service, target: str, method: str, expected: tuple[int, bytes]
) -> None:
    answer = ask_page(service, target, method=method)

    assert (answer.status, answer.body) == expected
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers.get("allow") == ("GET, HEAD" if answer.status == 405 else None)
    assert POLICY.items() <= answer.headers.items()


def test_a_request_must_name_this_machine_as_its_host(service: Service) -> None:
    port = service.port
    allowed = [f"localhost:{port}", f"LOCALHOST:{port}", f"127.3.2.1:{port}", f"[::1]:{port}"]
    allowed += ["localhost", f"localhost:{port + 1}"]
    refused = [
        *("evil.example", f"evil.example:{port}", f"localhost.evil.example:{port}"),
        *(f"192.0.2.1:{port}", f"[::2]:{port}", f"[::1]x:{port}"),
        *(f"127.0.0.1.:{port}", f"1.2.3:{port}", f"a@localhost:{port}", f"localhost:{port}, x"),
    ]
    for target in ("/", "/explore/explore.js", search("a")):
        assert {ask_page(service, target, host=host).status for host in allowed} == {200}
        for host in refused:
            answer = ask_page(service, target, host=host)
            assert (answer.status, answer.body) == INVALID, host
    api = "/gateway/v1/servers/a"
    assert ask_page(service, api, host="evil.example").status == 400
    assert ask_page(service, "/healthz", host="evil.example").status == 200
    with serve_small("--allow-host", "Proxy.example:8080") as allowing:
        assert ask_page(allowing, api, host="proxy.example:443").body == SERVER_A


def test_a_search_is_a_document_of_the_analyzer(service: Service, snapshot: Path) -> None:
    with closing(open_file(str(snapshot))) as file:
        for text, limit in (("", 20), ("", 1), ("X-B", 20), ("hidden", 20), (HOSTILE, 20)):
            found = list_servers(file, FilterOptions([text]), sort="current", limit=limit)
            answer = ask_page(service, f"{search(text)}&limit={limit}")
            assert (answer.status, answer.body) == (200, found.to_json())
    assert [one["id"] for one in ask_page(service, SERVERS).json["servers"]] == ["b", "a"]
    assert ask_page(service, search("hidden")).json["matched"] == 0


def read_figures(fragment: str) -> dict[str, list[str]]:
    """Return the exact figures of each server in a table, in the order of its columns."""
    rows = Page.parse(fragment.encode()).root.find_all("tr")
    return {
        row.attributes["data-server"]: [one.attributes["value"] for one in row.find_all("data")]
        for row in rows
        if "data-server" in row.attributes
    }


def list_figures(server: ServerStatistics, *names: str) -> list[str]:
    values = [getattr(server, f"{name}_players") for name in names]
    return [format_number(value) for value in values]


def test_a_ranking_and_the_total_have_the_figures_of_the_analyzer(
    service: Service, snapshot: Path
) -> None:
    zone = find_zone("Europe/Berlin")
    with closing(open_file(str(snapshot))) as file:
        window = find_window("30d", file.as_of)
        every = Question(file, MatchingServers(file, FilterOptions()), window, zone)
        top = rank_servers(every, "average", 50)
        total = compute_stats(every._replace(servers=[Total(file, [*every.iter_rows()])]))

    answer = ask_page(service, f"{RANKING}?limit=50&tz=Europe/Berlin").json
    assert (answer["root"], answer["asOf"]) == (top.root, "2026-03-01T12:00:00.000Z")
    figures = read_figures(answer["html"])
    assert [*figures] == [one.server_id for one in top.servers]
    assert [own[:1] for own in figures.values()] == [
        list_figures(one, "average") for one in top.servers
    ]
    assert 'href="#id=b&amp;range=30d&amp;tz=Europe%2FBerlin"' in answer["html"]
    assert [*read_figures(ask_page(service, f"{RANKING}?text=x-b").json["html"])] == ["b"]
    network = Page.parse(ask_page(service, f"{NETWORK}?tz=Europe/Berlin").body).root
    assert [one.attributes["value"] for one in network.find_all("data")] == list_figures(
        total.servers[0], "current", "average", "peak"
    )


def test_a_total_of_too_many_observations_is_left_out(
    snapshot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explore, "MOST_SUMMED", 1)
    service = InProcess(snapshot, explore=True)

    async def ask() -> None:
        async with service.client("http://localhost:8000") as client:
            assert (await client.get(NETWORK)).content == b""

    service.run(ask())


def test_an_overview_leaves_out_unknown_servers(service: Service) -> None:
    answer = ask_page(service, f"{OVERVIEW}?id=zz&id=b").json

    assert [one["serverId"] for one in answer["timeline"]["servers"]] == ["b"]
    assert [*read_figures(answer["html"])] == ["b"]


def test_an_overview_and_its_files_have_the_figures_of_the_analyzer(
    service: Service, snapshot: Path
) -> None:
    with closing(open_file(str(snapshot))) as file:
        for ids in ("a", "b", "ba"):
            references = [parse_server_reference(one) for one in ids]
            window = find_window("7d", file.as_of)
            question = Question(file, resolve_servers(file, references), window)
            timeline, stats = compute_timeline(question, 3_000), compute_stats(question)
            target = f"?{''.join(f'id={one}&' for one in ids)}range=7d"
            answer = ask_page(service, OVERVIEW + target)
            assert answer.body.endswith(b'"timeline":%b}' % timeline.to_json())
            figures = read_figures(answer.json["html"])
            assert [*figures] == [*ids]
            for server in stats.servers:
                own = figures[server.server_id or ""]
                assert own[:2] == list_figures(server, "current", "average")
                assert own[-4:-1] == list_figures(server, "median", "lowest", "peak")
                assert own[-1] == str(server.sample_count)
            csv = ask_page(service, CSV + target)
            assert csv.body == b"".join(encode_rows(timeline, "csv"))
            picture = ask_page(service, PICTURE + target)
            assert picture.headers["content-type"] == "image/svg+xml"
            assert picture.body.count(b'class="series ') >= len(ids)
            for path, got in ((CSV, csv), (PICTURE, picture)):
                head = ask_page(service, path + target, method="HEAD")
                assert head.headers["content-length"] == str(len(got.body))


WITH_HISTORY = """
[plans.history]
operations = []
ranges = ["7d", "90d"]
raw_history_days = 30
requests_per_minute = 7

[plans.month]
operations = []
ranges = ["30d"]
raw_history_days = 59
"""


def test_a_plan_limits_what_the_page_shows(tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    names = ("all", "history", "month", "three")
    keys = {f"key-of-{name}": name for name in names}
    access.write_text(WITH_HISTORY + format_access(keys), encoding="utf-8")
    forbidden, found = (403, ERRORS["FEATURE_NOT_AVAILABLE"]), 200
    with serve(build_small(tmp_path), "--explore", "--access", str(access)) as service:
        page = ask_page(service, "/", key=None, host="stats.example")
        assert (page.status, page.body.count(b"<form ")) == (200, 1)
        assert ask_page(service, "/explore/explore.js", key=None).status == 200
        for target in (search("a"), f"{OVERVIEW}?id=a"):
            assert (
                ask_page(service, target).status
                == ask_page(service, target, key=None).status
                == 401
            )

        # Short steps are as good as observations, so they need raw history.
        answer = ask_page(service, f"{OVERVIEW}?id=a&range=7d", key="key-of-all")
        assert (answer.status, answer.body) == forbidden
        for span, expected in (("7d", found), ("30d", 403), ("90d", 403)):
            target = f"{OVERVIEW}?id=a&range={span}"
            assert ask_page(service, target, key="key-of-history").status == expected
        # A change also tells the average of the time before.
        assert ask_page(service, f"{OVERVIEW}?id=a&range=30d", key="key-of-month").status == 403
        # A ranking and a total tell averages of the range, and of the time before.
        for path in (RANKING, NETWORK):
            for key, expected in (("all", 403), ("history", found)):
                target = f"{path}?range=7d"
                assert ask_page(service, target, key=f"key-of-{key}").status == expected
        # An invalid question comes before the plan, and an unknown server after it.
        assert ask_page(service, f"{OVERVIEW}?id=!&range=30d", key="key-of-all").status == 400
        assert ask_page(service, f"{OVERVIEW}?id=nobody", key="key-of-all").status == 403
        answer = ask_page(service, OVERVIEW, key="key-of-all", method="POST")
        assert answer.headers["allow"] == "GET, HEAD"

        statuses = [ask_page(service, search("a"), key="key-of-three").status for _ in range(2)]
        statuses += [ask_page(service, "/gateway/v1/servers/a", key="key-of-three").status]
        refused = ask_page(service, search("a"), key="key-of-three")
        assert [*statuses, refused.status] == [200, 200, 200, 429]
        assert 1 <= int(refused.headers["retry-after"]) <= 60


def test_the_log_names_the_question_but_neither_the_key_nor_the_text(tmp_path: Path) -> None:
    key, path = "srvstat_secret", tmp_path / "recording.ndjson"
    targets = ["/", "/explore/explore.js", search(key), f"{OVERVIEW}?id={key}", f"{SERVERS}?{key}"]
    with serve(build_small(tmp_path), "--explore", "--record", str(path)) as service:
        for target in targets:
            ask_page(service, target, key=key)
        ask_page(service, "/gateway/v1/servers/a", key=key)
        entries = wait_for_entries(service, 6)
        service.stop()
        assert "secret" not in service.log_path.read_text(encoding="utf-8")
    assert [(entry["operation"], entry["status"]) for entry in entries] == [
        ("explore", 200),
        ("exploreAsset", 200),
        ("exploreServers", 200),
        ("exploreOverview", 400),
        ("exploreServers", 400),
        ("getServer", 200),
    ]
    assert "caller" not in entries[1]
    assert entries[2]["caller"] == entries[5]["caller"]
    assert path.read_bytes().count(b"\n") == 1


def test_the_data_report_damage_and_follow_the_snapshot(tmp_path: Path) -> None:
    path = build_small(tmp_path)
    change(str(path), "UPDATE servers SET players_current = 8 WHERE id = 'a'")
    overview = f"{OVERVIEW}?id=a&range=7d"
    with serve(path, "--explore") as service:
        for target in (SERVERS, overview):
            answer = ask_page(service, target)
            assert (answer.status, answer.body) == (500, ERRORS["INTERNAL_ERROR"])
        assert ask_page(service, "/").status == 200

        os.replace(build_small(tmp_path, "new.db", players=9), path)
        found = ask_page(service, SERVERS).json
        assert [one["currentPlayers"] for one in found["servers"]] == [9, 7]
        assert ask_page(service, overview).json["root"] == found["root"]


def test_searches_leave_the_workers_to_the_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, release = InProcess(build_small(tmp_path), explore=True), threading.Event()

    def search_slowly(*asked: Any, **options: Any) -> Any:
        release.wait()
        return list_servers(*asked, **options)

    monkeypatch.setattr(explore, "list_servers", search_slowly)

    async def ask_in_parallel() -> None:
        async with service.client("http://localhost:8000") as client:
            with monkeypatch.context() as patched:
                patched.setattr(snapshots, "WORK_SECONDS", 0.02)
                late = [(await client.get(SERVERS)).status_code for _ in range(2)]
            assert late == [500, 500]  # the second waited for the first, which still runs
            searches = [asyncio.ensure_future(client.get(SERVERS)) for _ in range(9)]
            await asyncio.sleep(0.05)
            compared, one = await asyncio.gather(
                client.post("/gateway/v1/compare", content=TWO), client.get("/gateway/v1/servers/a")
            )
            assert (compared.content, one.content) == (COMPARED, SERVER_A)
            assert not any(waiting.done() for waiting in searches)
            release.set()
            answers = await asyncio.gather(*searches)
            assert {answer.status_code for answer in answers} == {200}

    try:
        service.run(ask_in_parallel())
    finally:
        release.set()
