"""`serve --control` shows what a client sent, and gives the answers that a test chooses."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from asgi.small_service import (
    SERVER_A,
    build_small,
    format_access,
    serve_small,
    wait_for_entries,
    wait_for_records,
)
from conftest import AS_OF, DAY, Cli, build_in, server
from srvstat.asgi import Settings, SimulationSettings, app
from srvstat.asgi.log import Log
from srvstat.contract.time import format_instant, parse_instant
from srvstat.testing import SrvstatService
from support.http import (
    ERRORS,
    HEALTH,
    KEY,
    READY,
    TWO,
    Answer,
    Client,
    compare,
    get,
    request,
    send_request,
)
from support.process import Service, serve

pytestmark = pytest.mark.slow

HOUR = DAY // 24
LOCAL = b"Host: localhost"
RULES = """
[[rules]]
operation = "compareServers"
server = "b"
answers = [503, "429, delay=50", "ok"]

[[rules]]
server = "x-a"
answers = ["cut"]
repeat = true
"""


def control(service: Service, method: str, name: str, body: str = "", *more: bytes) -> Answer:
    line = f"{method} /__srvstat/{name} HTTP/1.1".encode()
    length = b"Content-Length: %d" % len(body)
    with Client(service) as client:
        client.send(request(line, LOCAL, length, *more) + body.encode())
        return client.read_any_answer()


def read_journal(service: Service) -> list[dict[str, object]]:
    found: list[dict[str, object]] = control(service, "GET", "requests").json["requests"]
    return found


@pytest.fixture(scope="module")
def shared() -> Iterator[Service]:
    with serve_small("--control", "--explain-errors", "--fail", "50%", "--seed", "3") as running:
        yield running


@pytest.fixture
def service(shared: Service) -> Service:
    control(shared, "PUT", "faults", "")
    control(shared, "POST", "reset")
    return shared


def test_rules_answer_in_order_until_they_are_used_up(tmp_path: Path) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(RULES, encoding="utf-8")
    with serve_small("--faults", str(path)) as small:
        statuses = [send_request(small, compare(TWO)).status for _ in range(5)]
        others = [send_request(small, get(b"b")).status for _ in range(2)]
        entries = wait_for_entries(small, 7)

    assert (statuses, others) == ([503, 429, 200, 200, 200], [200, 200])
    assert [entry.get("simulated") for entry in entries] == ["code=503", "code=429", *[None] * 5]
    assert [entry.get("delay") for entry in entries] == [None, 50, *[None] * 5]


def test_the_nth_of_concurrent_requests_gets_the_nth_answer(service: Service) -> None:
    answers = [*range(400, 440), *range(500, 540)]
    assert control(service, "PUT", "faults", f"[[rules]]\nanswers = {answers}").status == 200

    def ask(_: int) -> int:
        with Client(service) as client:
            client.send(get(b"a"))
            return client.read_any_answer().status

    with ThreadPoolExecutor(8) as threads:
        given = list(threads.map(ask, answers))

    assert sorted(given) == answers
    assert [one["status"] for one in read_journal(service)] == answers


def test_a_rule_is_about_a_key_or_a_plan(tmp_path: Path) -> None:
    access, rules = tmp_path / "access.toml", tmp_path / "faults.toml"
    keys = {"one": "all", "two": "all", "three": "get"}
    access.write_text(format_access(keys), encoding="utf-8")
    digest = sha256(b"two").hexdigest()
    rules.write_text(
        f'[[rules]]\nsha256 = "{digest}"\nanswers = ["502"]\n'
        '[[rules]]\nplan = "get"\nanswers = ["504"]\nrepeat = true\n',
        encoding="utf-8",
    )
    options = ("--access", str(access), "--faults", str(rules))
    with serve(build_small(tmp_path), *options) as small:
        found = {
            key: [
                send_request(
                    small,
                    request(
                        b"GET /gateway/v1/servers/a HTTP/1.1", LOCAL, b"X-Gateway-Key: " + name
                    ),
                ).status
                for _ in range(2)
            ]
            for key, name in ((key, key.encode()) for key in keys)
        }

    assert found == {"one": [200, 200], "two": [502, 200], "three": [504, 504]}


NO_ANSWER = (
    " is not an answer; use ok, a status from 400 to 599, drop, cut, reset or delay=200, or a"
    " delay with one of the others: 503, delay=200"
)
TOO_LONG = " is longer than 15,000 milliseconds; write a shorter delay"
NO_OPERATION = "is not one of getServer, compareServers"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[rules]]\nanswers = []", "line 2: rules[0].answers: empty"),
        ("[[rules]]\nanswers = [302]", f"line 2: rules[0].answers[0]: 302{NO_ANSWER}"),
        (
            "[[rules]]\nanswers = [\n'ok',\n'sorry']",
            f'line 2: rules[0].answers[1]: "sorry"{NO_ANSWER}',
        ),
        ("[[rules]]\nanswers = ['503;a']", f'line 2: rules[0].answers[0]: "503;a"{NO_ANSWER}'),
        (
            "[[rules]]\nanswers = ['503, Delay = 15001']",
            f'line 2: rules[0].answers[0]: "503, Delay = 15001"{TOO_LONG}',
        ),
        (
            "[[rules]]\nanswers = ['drop,cut']",
            f'line 2: rules[0].answers[0]: "drop,cut"{NO_ANSWER}',
        ),
        (
            "[[rules]]\noperation = 'get'\nanswers = ['ok']",
            f'line 2: rules[0].operation: "get" {NO_OPERATION}',
        ),
        (
            "[[rules]]\nrepeat = 1\nanswers = ['ok']",
            "line 2: rules[0].repeat: must be true or false",
        ),
        ("[[rule]]", "line 1: rule: unknown property"),
        ("rules", "line 1: not TOML at its end: Expected '=' after a key in a key/value pair"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(
    text: str, problem: str, tmp_path: Path, cli: Cli, service: Service
) -> None:
    path, snapshot = tmp_path / "faults.toml", build_small(tmp_path)
    path.write_text(text, encoding="utf-8")

    done = cli("serve", "-s", str(snapshot), "--port", "0", "--faults", str(path))
    refused = control(service, "PUT", "faults", text)

    assert (done.exit_code, done.stderr) == (6, f"error: {path}, {problem}\n")
    assert (refused.status, refused.body) == (400, ERRORS["INVALID_REQUEST"])
    assert refused.headers["x-srvstat-reason"].startswith("rules, line ")


def test_a_file_that_is_too_long_is_refused(tmp_path: Path, cli: Cli) -> None:
    path, snapshot = tmp_path / "faults.toml", build_small(tmp_path)
    path.write_bytes(b"#" * ((1 << 20) + 1))

    done = cli("serve", "-s", str(snapshot), "--port", "0", "--faults", str(path))

    problem = "more than 1,048,576 bytes; name a file of rules"
    assert (done.exit_code, done.stderr) == (6, f"error: {path}: {problem}\n")


def test_the_journal_has_what_a_client_sent(service: Service) -> None:
    control(service, "PUT", "faults", "[[rules]]\nanswers = ['503', 'ok', 'drop']")
    before = time.time_ns() // 1_000_000
    extra = [b"traceparent: 00-1", b"X-Request-Id: 7", b"Cookie: secret", b"X-Api-Key: secret"]
    extra += [b"X-Auth-Token: secret", b"Proxy-Authorization: secret", b"X-Amz-Signature: secret"]
    send_request(service, compare(TWO, *extra))
    send_request(service, get(b"a"))
    with service.open_connection() as one:
        one.sendall(get(b"b"))
        assert one.recv(1) == b""
    send_request(service, request(b"GET /healthz HTTP/1.1", LOCAL))

    first, second, dropped, last = read_journal(service)
    assert before <= parse_instant(str(first.pop("time"))) <= time.time_ns() // 1_000_000
    assert str(first.pop("remote")).startswith("127.0.0.1:")
    assert first == {
        "id": "7",
        "method": "POST",
        "operation": "compareServers",
        "caller": sha256(b"k").hexdigest()[:8],
        "range": "30d",
        "servers": ["id:a", "id:b"],
        "simulated": "code=503",
        "code": "INTERNAL_ERROR",
        "reason": "simulated by a rule",
        "status": 503,
        "bytes": len(ERRORS["INTERNAL_ERROR"]),
        "request": {
            "method": "POST",
            "path": "/gateway/v1/compare",
            "headers": {
                "host": "localhost",
                "content-type": "application/json",
                "content-length": str(len(TWO)),
                "traceparent": "00-1",
                "x-request-id": "7",
            },
            "body": TWO.decode(),
            "bodyBase64": None,
        },
    }
    assert (second["status"], second["bytes"]) == (200, len(SERVER_A))
    assert (dropped["simulated"], "status" in dropped) == ("drop", False)
    assert last["operation"] == "getHealth"


def test_the_journal_ends_with_the_last_thousand_requests(service: Service) -> None:
    with httpx.Client(base_url=service.url, trust_env=False) as client:
        for number in range(1_005):
            client.get("/healthz", headers={"X-Request-Id": f"n{number}"})

    assert [one["id"] for one in read_journal(service)] == [f"n{at}" for at in range(5, 1_005)]


def test_a_client_that_leaves_is_in_the_journal(service: Service) -> None:
    with service.open_connection() as one:
        one.sendall(compare(TWO)[:-1])
        time.sleep(0.1)
    time.sleep(0.1)

    (left,) = read_journal(service)
    assert left["reason"] == "the client closed the connection"
    assert "status" not in left


def test_a_reset_begins_again(service: Service) -> None:
    def ask() -> list[int]:
        return [send_request(service, get(b"a")).status for _ in range(12)]

    drawn = ask()
    assert set(drawn) == {200, 500}
    control(service, "PUT", "faults", "[[rules]]\nanswers = [401, 403]")
    ruled = ask()
    assert ruled == [401, 403, *drawn[2:]]
    control(service, "POST", "reset")
    assert read_journal(service) == []
    assert ask() == ruled


def test_the_paths_are_only_for_this_machine_and_for_no_page(tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    access.write_text(format_access({"k": "all"}), encoding="utf-8")
    path = b"GET /__srvstat/requests HTTP/1.1"
    cors = ("--cors", "http://x.example")
    with serve_small() as without:
        plain = send_request(without, request(path, LOCAL))
        keyed = send_request(without, request(path, LOCAL, KEY))
    options = ("--control", *cors, "--access", str(access))
    with serve(build_small(tmp_path), *options) as service:
        origin = b"Origin: http://x.example"
        read = send_request(service, request(path, LOCAL, origin))
        asks = (origin, b"Access-Control-Request-Method: PUT")
        preflight = send_request(
            service, request(b"OPTIONS /__srvstat/faults HTTP/1.1", LOCAL, *asks)
        )
        rebound = send_request(service, request(path, b"Host: x.example"))
        unknown = control(service, "GET", "other")
        wrong = control(service, "GET", "reset")
        large = control(service, "PUT", "faults", "#" * 16_385)

    assert (plain.status, keyed.status) == (401, 404)
    assert (read.status, read.json) == (200, {"requests": []})
    assert not any("access-control" in name for name in (*read.headers, *preflight.headers))
    assert (preflight.status, preflight.headers["allow"]) == (405, "PUT")
    assert (rebound.status, unknown.status, wrong.status, large.status) == (400, 404, 405, 400)


@pytest.mark.parametrize(
    ("client", "header", "status"),
    [
        (("192.0.2.1", 5), "accept", 404),
        (("2001:db8::1", 5), "accept", 404),
        (("127.0.0.2", 5), "accept", 200),
        (("::1", 5), "accept", 200),
        (("::1", 5), "forwarded", 404),
        (("127.0.0.1", 5), "x-forwarded-for", 404),
        (("127.0.0.1", 5), "x-real-ip", 404),
    ],
)
def test_only_clients_on_this_machine_can_control_and_through_no_proxy(
    client: tuple[str, int], header: str, status: int, tmp_path: Path
) -> None:
    settings = Settings(str(build_small(tmp_path)), simulation=SimulationSettings(control=True))
    application = app.Service(settings, Log())

    async def ask() -> int:
        transport = httpx.ASGITransport(application, client=client)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as asking:
            answer = await asking.get("/__srvstat/requests", headers={header: "192.0.2.1"})
            return answer.status_code

    assert asyncio.run(ask()) == status
    application.snapshot.close()
    application.close()


def compare_at(service: Service) -> tuple[int | None, int]:
    """Compare over a day; return the peak of `a`, and how many observations it has."""
    body = TWO[:-1] + b',"range":"24h"}'
    first = send_request(service, compare(body)).json["data"][0]
    return first["peakPlayers"], first["sampleCount"]


@pytest.fixture
def daily(tmp_path: Path) -> Path:
    """Return a snapshot of a server `a` with one more player each hour, for three days."""
    rows = [("a", AS_OF - 3 * DAY + hour * HOUR, hour) for hour in range(73)]
    return build_in(tmp_path, [server("a"), server("b")], [*rows, ("b", AS_OF, 7)])


def test_answers_are_as_of_a_chosen_time(daily: Path, tmp_path: Path) -> None:
    path, at = tmp_path / "exchanges.ndjson", format_instant(AS_OF - DAY)
    with serve(daily, "--at", at, "--record", str(path)) as service:
        found = [compare_at(service) for _ in range(2)]
        health = [send_request(service, sent).json["asOf"] for sent in (HEALTH, READY)]
        refused = send_request(service, compare(b"{}")).status
        logged = wait_for_entries(service, 5)
        records = wait_for_records(path, 3)
    with serve(daily) as service:
        latest = compare_at(service)
        send_request(service, compare(b"{}"))
        plain = wait_for_entries(service, 2)

    assert (found, latest, refused) == ([(48, 24)] * 2, (72, 24), 400)
    assert health == [at, at]
    assert [entry.get("asOf") for entry in logged] == [at, at, None, None, None]
    assert [record["asOf"] for record in records] == [at] * 3
    assert not any("asOf" in entry for entry in plain)


def test_the_time_passes_at_a_speed_and_begins_again(daily: Path, tmp_path: Path) -> None:
    path, start = tmp_path / "exchanges.ndjson", AS_OF - 2 * DAY
    options = ("--at", str(start), "--speed", "7200", "--record", str(path), "--control")
    with serve(daily, *options) as service:
        found, health = [], []
        for _ in range(12):
            health.append(send_request(service, HEALTH).json["asOf"])
            found.append(compare_at(service))
            time.sleep(0.1)
        logged = [entry for entry in wait_for_entries(service, 24) if "asOf" in entry]
        records = wait_for_records(path, 12)
        before = send_request(service, HEALTH).json["asOf"]
        control(service, "POST", "reset")
        after = send_request(service, HEALTH).json["asOf"]

    used = [record["asOf"] for record in records]
    assert used == [entry["asOf"] for entry in logged]
    assert sorted({*health, *used}) == sorted(health + used)
    assert [one for pair in zip(health, used, strict=True) for one in pair] == sorted(health + used)
    hours = [(parse_instant(at) - (AS_OF - 3 * DAY)) // HOUR for at in used]
    assert found == [(hour, 24) for hour in hours]
    assert hours[-1] > hours[0] >= 24
    assert after < before


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--speed", "60"), "--speed requires --at TIME"),
        (
            ("--at", "2026-01-01T00:00Z", "--explore"),
            "--at can't be combined with --explore, which shows all data",
        ),
        (("--at", "soon"), '--at: "soon" is not a time'),
    ],
)
def test_a_time_that_makes_no_sense_is_refused(
    options: tuple[str, ...], problem: str, tmp_path: Path, cli: Cli
) -> None:
    done = cli("serve", "-s", str(build_small(tmp_path)), "--port", "0", *options)

    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {problem}")


def test_the_service_says_what_it_simulates(tmp_path: Path) -> None:
    rules = tmp_path / "faults.toml"
    rules.write_text("")
    options = ("--at", "2027-01-01T00:00Z", "--speed", "60", "--control", "--faults", str(rules))
    with serve(build_small(tmp_path), *options) as service:
        assert service.process.stdout
        text = [service.process.stdout.readline().decode().rstrip() for _ in range(5)]
        assert text == [
            "without --access, any key is valid, and only this machine can connect",
            f"--at is after the end of the snapshot, {format_instant(AS_OF)}",
            "answers as of 2027-01-01T00:00:00.000Z, and 60 times as fast as real time",
            "--control: any program on this machine can read requests and set responses",
            f"simulating failures (not for production): --faults {rules}",
        ]


def test_the_service_says_that_its_time_is_before_all_data(tmp_path: Path) -> None:
    with serve(build_small(tmp_path), "--at", "2020-01-01T00:00Z") as service:
        assert service.process.stdout
        text = [service.process.stdout.readline().decode().rstrip() for _ in range(2)]
        assert text[1].startswith("--at is before the first observation, 20")


def test_the_time_ends_with_the_latest_timestamp(daily: Path) -> None:
    with serve(daily, "--at", "9999-12-31T23:59:59Z", "--speed", "86400") as service:
        time.sleep(0.1)
        assert compare_at(service) == (None, 0)


def test_a_game_can_be_set_and_messages_name_the_snapshot_of_the_user(tmp_path: Path) -> None:
    servers = [server("a") | {"game": None}, server("b")]
    path = build_in(tmp_path, servers, [("a", AS_OF, 6)])
    with serve(path, "--set", "a.game=game_b") as service:
        assert send_request(service, get(b"a")).json["data"]["game"] == "game_b"
    with serve(path, "--set", "a.region=EU") as service:
        assert send_request(service, get(b"a")).status == 500
        assert service.process.stdout
        told = [service.process.stdout.readline().decode() for _ in range(2)]
        assert f"srvstat snapshot update {path} --game" in told[1]


def test_a_service_can_have_other_fields_than_its_snapshot() -> None:
    wanted = SERVER_A.replace(b'"offline":false', b'"offline":true')
    wanted = wanted.replace(b'"current":6', b'"current":2').replace(
        b'"region":""', b'"region":"EU"'
    )
    changes = ("--set", "a.offline=true", "--set", "a.players.current=2", "--set", "a.region=EU")

    with serve_small(*changes) as service:
        response = httpx.get(
            f"{service.url}/gateway/v1/servers/a", headers={"X-Gateway-Key": "any"}
        )

        assert response.content == wanted


@pytest.mark.parametrize("answers", ["503", 503, ["503"]])
def test_one_answer_of_a_fixture_needs_no_list(answers: Any) -> None:
    with serve_small("--control") as running:
        service = SrvstatService(running.url, running.log_path)
        with service.fail("getServer", answers):
            assert [send_request(running, get(b"a")).status for _ in range(2)] == [503, 200]


@pytest.mark.parametrize("name", ["reset", "faults"])
def test_a_web_page_can_change_nothing(name: str) -> None:
    method = {"reset": "POST", "faults": "PUT"}[name]
    with serve_small("--control") as service:
        answer = control(service, method, name, "", b"Origin: https://evil.example")

        assert answer.status == 400
