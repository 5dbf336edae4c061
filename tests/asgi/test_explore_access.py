"""The page of `serve --explore` with an access file, in the log, and while the snapshot changes."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from asgi.small_service import (
    COMPARED,
    SERVER_A,
    SERVERS,
    STATS,
    TIMELINE,
    InProcess,
    ask_page,
    build_small,
    format_access,
    search,
    wait_for_entries,
)
from srvstat.asgi import snapshots
from support.http import ERRORS, TWO
from support.process import serve
from support.snapshots import change

WITH_HISTORY = """
[plans.history]
operations = []
ranges = ["7d", "90d"]
raw_history_days = 30
requests_per_minute = 5

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
        for target in (search("a"), f"{TIMELINE}?id=a"):
            assert (
                ask_page(service, target).status
                == ask_page(service, target, key=None).status
                == 401
            )

        # Short steps are as good as observations, so they need raw history.
        answer = ask_page(service, f"{TIMELINE}?id=a&range=7d", key="key-of-all")
        assert (answer.status, answer.body) == forbidden
        for span, expected in (("7d", found), ("30d", 403), ("90d", 403)):
            target = f"{TIMELINE}?id=a&range={span}"
            assert ask_page(service, target, key="key-of-history").status == expected
        # A change also tells the average of the time before.
        for key, span, expected in (
            ("key-of-history", "7d", found),
            ("key-of-history", "90d", 403),
            ("key-of-month", "30d", 403),
            ("key-of-all", "7d", 403),
        ):
            assert ask_page(service, f"{STATS}?id=a&range={span}", key=key).status == expected
        assert ask_page(service, f"{TIMELINE}?id=a&range=30d", key="key-of-month").status == found
        # An invalid question comes before the plan, and an unknown server after it.
        assert ask_page(service, f"{TIMELINE}?id=!&range=30d", key="key-of-all").status == 400
        assert ask_page(service, f"{TIMELINE}?id=nobody", key="key-of-all").status == 403
        answer = ask_page(service, TIMELINE, key="key-of-all", method="POST")
        assert answer.headers["allow"] == "GET, HEAD"

        statuses = [ask_page(service, search("a"), key="key-of-three").status for _ in range(2)]
        statuses += [ask_page(service, "/gateway/v1/servers/a", key="key-of-three").status]
        refused = ask_page(service, search("a"), key="key-of-three")
        assert [*statuses, refused.status] == [200, 200, 200, 429]
        assert 1 <= int(refused.headers["retry-after"]) <= 60


def test_the_log_names_the_question_but_neither_the_key_nor_the_text(tmp_path: Path) -> None:
    key, path = "srvstat_secret", tmp_path / "recording.ndjson"
    targets = ["/", "/explore/explore.js", search(key), f"{TIMELINE}?id={key}", f"{SERVERS}?{key}"]
    targets += [f"{STATS}?id={key}"]
    with serve(build_small(tmp_path), "--explore", "--record", str(path)) as service:
        for target in targets:
            ask_page(service, target, key=key)
        ask_page(service, "/gateway/v1/servers/a", key=key)
        entries = wait_for_entries(service, 7)
        service.stop()
        assert "secret" not in service.log_path.read_text(encoding="utf-8")
    assert [(entry["operation"], entry["status"]) for entry in entries] == [
        ("explore", 200),
        ("exploreAsset", 200),
        ("exploreServers", 200),
        ("exploreTimeline", 400),
        ("exploreServers", 400),
        ("exploreStats", 400),
        ("getServer", 200),
    ]
    assert "caller" not in entries[1]
    assert entries[2]["caller"] == entries[6]["caller"]
    assert path.read_bytes().count(b"\n") == 1


def test_the_data_report_damage_and_follow_the_snapshot(tmp_path: Path) -> None:
    path = build_small(tmp_path)
    change(str(path), "UPDATE servers SET players_current = 8 WHERE id = 'a'")
    timeline, stats = (f"{target}?id=a&range=7d" for target in (TIMELINE, STATS))
    with serve(path, "--explore") as service:
        for target in (SERVERS, timeline, stats):
            answer = ask_page(service, target)
            assert (answer.status, answer.body) == (500, ERRORS["INTERNAL_ERROR"])
        assert ask_page(service, "/").status == 200

        os.replace(build_small(tmp_path, "new.db", players=9), path)
        found = ask_page(service, SERVERS).json
        assert [one["currentPlayers"] for one in found["servers"]] == [9, 7]
        assert ask_page(service, timeline).json["root"] == found["root"]


def test_searches_leave_the_workers_to_the_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, release = InProcess(build_small(tmp_path), explore=True), threading.Event()

    async def ask_in_parallel() -> None:
        files = (await service.snapshot.get_generation()).files
        async with service.client("http://localhost:8000") as client:
            [*files][-1].submit(release.wait)  # the worker that is taken first
            with monkeypatch.context() as patched:
                patched.setattr(snapshots, "WORK_SECONDS", 0.02)
                late = [(await client.get(SERVERS)).status_code for _ in range(2)]
            assert late == [500, 500]  # the second waited for the first, which still runs
            searches = [asyncio.ensure_future(client.get(SERVERS)) for _ in range(9)]
            await asyncio.sleep(0.05)
            compared, one = await asyncio.gather(
                client.post("/gateway/v1/compare", content=TWO),
                client.get("/gateway/v1/servers/a"),
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
