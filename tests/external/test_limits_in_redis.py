"""Count requests in a real Redis, which several services share."""

import asyncio
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from asgi.small_service import build_small, format_access
from conftest import Cli
from srvstat.asgi.limits import Quota, RateLimiter
from srvstat.asgi.log import Log
from srvstat.asgi.redis_limits import ANSWER_SECONDS, RedisLimiter, open_limiter
from srvstat.contract.errors import SourceError
from support.http import Answer, Client, get
from support.ports import find_free_port
from support.process import Service, serve
from support.redis_server import NEEDS_REDIS, RedisServer, run_redis

pytestmark = [pytest.mark.external, NEEDS_REDIS]

MICROSECOND, MINUTE = 1_000, 60_000_000
LIMIT = 50
PLAN = f"""
[plans.fifty]
operations = ["get-server"]
ranges = []
requests_per_minute = {LIMIT}
"""
PASSWORD = "p@ss/word#1"  # noqa: S105 - of a Redis that the test starts
QUOTED = "p%40ss%2Fword%231"


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with run_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


STEP = st.tuples(
    st.integers(0, MINUTE) | st.sampled_from([0, 1, 1_000_000, MINUTE]),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 4)), max_size=6),
)
numbers = count()


@given(steps=st.lists(STEP, max_size=10))
def test_redis_counts_as_one_process_does(
    steps: list[tuple[int, list[tuple[str, int]]]], redis: RedisServer
) -> None:
    """Each step waits, in microseconds, then sends requests at once, of callers with limits."""
    now = 0
    local = RateLimiter(lambda: now)
    example = f"example-{next(numbers)}-"
    counted: list[Quota] = []
    expected: list[Quota] = []

    async def take_steps() -> None:
        nonlocal now
        shared = RedisLimiter(redis.url, Log(), lambda: now)
        for wait, requests in steps:
            now += wait * MICROSECOND
            questions = (shared.count(example + caller, limit) for caller, limit in requests)
            counted.extend(await asyncio.gather(*questions))
            expected.extend(local.count(caller, limit) for caller, limit in requests)
        await shared.close()

    asyncio.run(take_steps())

    assert counted == expected


def test_setting_back_the_clock_of_redis_does_not_block_a_caller(redis: RedisServer) -> None:
    hour = 3_600_000_000_000

    async def set_clock_back() -> list[Quota]:
        now = hour
        limiter = RedisLimiter(redis.url, Log(), lambda: now)
        quotas = [await limiter.count("clock", 2)]
        now = 0
        quotas += [await limiter.count("clock", 2) for _ in range(3)]
        await limiter.close()
        return quotas

    quotas = asyncio.run(set_clock_back())

    assert quotas == [(True, 1, 60), (True, 1, 60), (True, 0, 60), (False, 0, 60)]


def serve_two(stack: ExitStack, directory: Path, url: str, keys: list[str]) -> list[Service]:
    """Start two services on one snapshot, one access file and one Redis."""
    access = directory / "access.toml"
    access.write_text(PLAN + format_access(dict.fromkeys(keys, "fifty")), encoding="utf-8")
    options = ["--access", str(access), "--limits-storage", url]
    snapshot = build_small(directory)
    return [stack.enter_context(serve(snapshot, *options)) for _ in range(2)]


def ask_often(service: Service, key: str, times: int) -> list[Answer]:
    sent = get(b"a").replace(b"X-Gateway-Key: k", b"X-Gateway-Key: " + key.encode())
    with Client(service) as client:
        client.send(sent * times)
        return [client.read_answer() for _ in range(times)]


def ask_both(services: list[Service], key: str) -> list[Answer]:
    """Send 240 requests at once, by eight connections to each service."""
    with ThreadPoolExecutor(16) as threads:
        parts = threads.map(lambda place: ask_often(services[place % 2], key, 15), range(16))
        return [answer for part in parts for answer in part]


def test_two_services_share_a_limit_exactly(redis: RedisServer, tmp_path: Path) -> None:
    with ExitStack() as stack:
        services = serve_two(stack, tmp_path, redis.url, ["a", "b"])
        answers = ask_both(services, "a")
        others = ask_often(services[0], "b", 1) + ask_often(services[1], "b", 1)
        with Redis.from_url(redis.url) as client:
            lifetimes = {key: client.pttl(key) for key in client.scan_iter("srvstat:limits:*")}

    assert Counter(answer.status for answer in answers) == {200: LIMIT, 429: 240 - LIMIT}
    accepted = [answer.headers["ratelimit"] for answer in answers if answer.status == 200]
    remaining = sorted(int(text.partition(";r=")[2].partition(";")[0]) for text in accepted)
    assert remaining == list(range(LIMIT))
    for key in ("a", "b"):
        digest = sha256(key.encode()).hexdigest()
        assert 0 < lifetimes[f"srvstat:limits:{digest}".encode()] <= MINUTE // 1_000
    assert [answer.headers["ratelimit"] for answer in others] == [
        '"fifty";r=49;t=60',
        '"fifty";r=48;t=60',
    ]


def list_events(service: Service) -> list[str]:
    return [entry["event"] for entry in service.read_log() if "event" in entry]


def wait_for_event(service: Service, event: str) -> None:
    """Send requests until the service has logged an event."""
    for _ in range(100):
        ask_often(service, "other", 1)
        if event in list_events(service):
            return
        time.sleep(0.1)
    pytest.fail(f"no event {event}")


FAILED = "limits storage failed; this process counts requests"
WORKS = "limits storage works again"


def test_each_service_counts_while_redis_is_gone(tmp_path: Path) -> None:
    with ExitStack() as stack:
        redis = stack.enter_context(run_redis(tmp_path))
        services = serve_two(stack, tmp_path, redis.url, ["a", "b", "c", "other"])
        assert {answer.status for answer in ask_both(services, "a")} == {200, 429}

        redis.stop()
        answers = ask_both(services, "b")
        assert Counter(answer.status for answer in answers)[200] == 2 * LIMIT

        redis.start()
        for service in services:
            wait_for_event(service, WORKS)
        answers = ask_both(services, "c")
        assert Counter(answer.status for answer in answers)[200] == LIMIT
        for service in services:
            assert list_events(service) == [FAILED, WORKS]
            (failure,) = (entry for entry in service.read_log() if entry.get("event") == FAILED)
            assert failure["reason"] == f"{redis.url}: No such file or directory"


def test_a_redis_that_hangs_delays_requests_once(tmp_path: Path) -> None:
    with ExitStack() as stack:
        redis = stack.enter_context(run_redis(tmp_path))
        (service, _) = serve_two(stack, tmp_path, redis.url, ["a", "other"])
        with redis.suspend():
            began = time.monotonic()
            assert ask_often(service, "a", 1)[0].status == 200
            first = time.monotonic() - began
            for _ in range(30):  # longer than a check takes
                began = time.monotonic()
                assert ask_often(service, "a", 1)[0].status == 200
                assert time.monotonic() - began < ANSWER_SECONDS / 2
                time.sleep(0.1)
        wait_for_event(service, WORKS)
        assert list_events(service) == [FAILED, WORKS]

    assert ANSWER_SECONDS <= first < 2 * ANSWER_SECONDS


def test_a_password_is_used_and_never_shown(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_redis(tmp_path, "--requirepass", PASSWORD) as redis, ExitStack() as stack:
        right, wrong = (redis.url.replace("//", f"//:{word}@") for word in (QUOTED, QUOTED[:-1]))
        services = serve_two(stack, tmp_path, right, ["a", "other"])
        assert [ask_often(service, "a", 1)[0].headers["ratelimit"] for service in services] == [
            '"fifty";r=49;t=60',
            '"fifty";r=48;t=60',
        ]
        redis.stop()
        ask_often(services[0], "a", 1)
        assert services[0].stop() == 0
        assert FAILED in list_events(services[0])
        logged = services[0].log_path.read_text(encoding="utf-8")

        redis.start()
        options = ["serve", "-s", str(tmp_path / "small.db"), "--access", f"{tmp_path}/access.toml"]
        by_option = cli(*options, "--port", "0", "--limits-storage", wrong)
        monkeypatch.setenv("SRVSTAT_LIMITS_STORAGE", wrong)
        by_variable = cli(*options, "--port", "0")

    problem = f"limits storage {redis.url}: the user or the password is wrong or missing; "
    for ran in (by_option, by_variable):
        assert ran.exit_code == 6
        assert ran.stderr.startswith(f"error: {problem}")
    for shown in (logged, by_option.stderr, by_variable.stderr):
        assert "p@" not in shown
        assert "p%40" not in shown


def test_an_error_of_redis_is_named_by_its_code(redis: RedisServer) -> None:
    with Redis.from_url(redis.url) as client:
        client.config_set("min-replicas-to-write", "1")
        with pytest.raises(SourceError, match=rf"^limits storage {redis.url}: failed \(NOREPLICAS"):
            open_limiter(redis.url, Log())
        client.config_set("min-replicas-to-write", "0")


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_rediss_checks_the_certificate(tmp_path: Path) -> None:
    port = find_free_port()
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out certificate -days 2"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command.split(), *subject], cwd=tmp_path, check=True, capture_output=True)
    options = f"--tls-port {port} --tls-cert-file {tmp_path}/certificate --tls-auth-clients no"
    more = f"--tls-key-file {tmp_path}/key --tls-ca-cert-file {tmp_path}/certificate"
    url = f"rediss://localhost:{port}/0"
    with run_redis(tmp_path, *options.split(), *more.split()):
        trusted = f"?ssl_ca_certs={tmp_path}/certificate"
        open_limiter(f"{url}{trusted}", Log())
        with pytest.raises(SourceError, match=f"^limits storage {url}: TLS: self.signed certif"):
            open_limiter(url, Log())
        with pytest.raises(SourceError, match="TLS: IP address mismatch"):
            open_limiter(f"rediss://127.0.0.1:{port}/0{trusted}", Log())
