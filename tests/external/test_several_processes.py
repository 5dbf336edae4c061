"""Two services behind a real nginx, with the file of docs/deployment.md and a shared limit."""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from asgi.small_service import COMPARED, SERVER_A, build_small, format_access
from support import load_client
from support.http import (
    COMPARE,
    ERRORS,
    HEALTH,
    HOST,
    JSON,
    TWO,
    A,
    Answer,
    Client,
    compare,
    get,
    request,
    request_target,
)
from support.load import Exchange, Load
from support.nginx_server import NEEDS_NGINX, run_nginx
from support.ports import find_free_ports
from support.process import Service, serve
from support.redis_server import NEEDS_REDIS, run_redis

pytestmark = [pytest.mark.external, NEEDS_NGINX, NEEDS_REDIS]

FIFTY = """
[plans.fifty]
operations = ["get-server"]
ranges = []
requests_per_minute = 50
"""
LIMITED = b"X-Gateway-Key: limited"
ID = b"X-Request-Id: request-1"
ARRIVES_AS_SENT = {
    "a server": get(b"a", ID),
    "its headers": get(b"a", ID, line=b"HEAD %b HTTP/1.1"),
    "an escape": get(b"%61", ID),
    "an escaped slash": get(b"a%2Fb", ID),
    "dots": get(b"../servers/a", ID),
    "two slashes": request_target("//gateway/v1/servers/a"),
    "a slash at the end": get(b"a/", ID),
    "a repeated parameter": get(b"a?by=id&by=id", ID),
    "an unknown server": get(b"zz", ID),
    "an unknown path": request_target("/nowhere"),
    "a wrong method": request_target("/gateway/v1/compare"),
    "another wrong method": request_target("/gateway/v1/servers/a", method="DELETE"),
    "a key that is not UTF-8": request(A, HOST, b"X-Gateway-Key: \xff", ID),
    "no key": request(A, HOST, ID),
    "two keys": get(b"a", b"X-Gateway-Key: k2", ID),
    "an absolute target": request(b"GET http://x/gateway/v1/servers/a HTTP/1.1", HOST, ID),
    "a body with GET": request(A, HOST, b"X-Gateway-Key: k", ID, body=b"{}"),
    "a comparison": compare(TWO, ID),
    "chunks": request(COMPARE, HOST, b"X-Gateway-Key: k", JSON, ID, b"Transfer-Encoding: chunked")
    + b"%x\r\n%b\r\n0\r\n\r\n" % (len(TWO), TWO),
    "invalid JSON": compare(b"{", ID),
    "an encoded body": compare(TWO, b"Content-Encoding: gzip", ID),
    "a body that is too long": compare(b" " * 16_385, ID),
    "a range": get(b"a", b"Range: bytes=0-3", ID),
    "a head of 16,000 bytes": get(b"a", b"A: " + b"a" * 15_800, ID),
    "the health check": HEALTH,
}
REFUSED_BY_NGINX = {
    "an incomplete escape": get(b"%2g"),
    "an escaped null": get(b"a%00"),
    "a lower-case method": request(b"get /gateway/v1/servers/a HTTP/1.1", HOST),
    "CONNECT": request(b"CONNECT x:80 HTTP/1.1", HOST),
    "an asterisk": request(b"OPTIONS * HTTP/1.1", HOST),
    "a folded header": get(b"a", b"A: a\r\n b"),
    "an invalid host": request(A, b"Host: a b"),
    "a repeated length": compare(TWO, b"Content-Length: %d" % len(TWO)),
    "both kinds of length": compare(TWO, b"Transfer-Encoding: chunked"),
    "an invalid chunk": request(COMPARE, HOST, b"Transfer-Encoding: chunked") + b"zz\r\n",
    "HTTP/2.0": request(b"GET / HTTP/2.0", HOST),
    "TLS": b"\x16\x03\x01\r\n\r\n",
    "a long target": get(b"a" * 20_000),
    "a long header": get(b"a", b"A: " + b"a" * 20_000),
    "a long body": compare(b" " * 70_000),
}
_OF_A_CONNECTION = {"connection", "date", "keep-alive", "server"}


class Cluster(NamedTuple):
    """Two services, and what they are started with; `front` is nginx."""

    services: list[Service]
    front: Service
    log: Path
    stack: ExitStack
    options: list[str]
    ports: list[int]

    def start(self, place: int) -> None:
        """Start a service again."""
        port = str(self.ports[place])
        self.services[place] = self.stack.enter_context(serve(*self.options, "--port", port))


@contextmanager
def run_cluster(directory: Path) -> Iterator[Cluster]:
    access = directory / "access.toml"
    keys = {"k": "all", "limited": "fifty"}
    access.write_text(FIFTY + format_access(keys), encoding="utf-8")
    front, *ports = find_free_ports(3)
    with ExitStack() as stack:
        redis = stack.enter_context(run_redis(directory))
        options = [str(build_small(directory)), "--access", str(access)]
        options += ["--limits-storage", redis.url]
        services = [stack.enter_context(serve(*options, "--port", str(port))) for port in ports]
        log = stack.enter_context(run_nginx(directory, front, ports))
        yield Cluster(services, services[0]._replace(port=front), log, stack, options, ports)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with run_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def ask(service: Service, sent: bytes) -> Answer:
    with Client(service) as client:
        client.send(sent)
        return client.read_any_answer(to_head=sent.startswith(b"HEAD"))


def list_stable_parts(answer: Answer, sent: bytes) -> tuple[int, bytes, dict[str, str]]:
    hidden = _OF_A_CONNECTION if ID in sent else _OF_A_CONNECTION | {"x-request-id"}
    headers = {name: value for name, value in answer.headers.items() if name not in hidden}
    return answer.status, answer.body, headers


@pytest.mark.parametrize("name", ARRIVES_AS_SENT)
def test_nginx_changes_no_request_and_no_answer(name: str, cluster: Cluster) -> None:
    sent = ARRIVES_AS_SENT[name]

    directly, behind = (ask(service, sent) for service in (cluster.services[0], cluster.front))

    assert list_stable_parts(behind, sent) == list_stable_parts(directly, sent)


@pytest.mark.parametrize("name", REFUSED_BY_NGINX)
def test_nginx_refuses_malformed_requests_as_the_service_does(name: str, cluster: Cluster) -> None:
    answer = ask(cluster.front, REFUSED_BY_NGINX[name])

    assert (answer.status, answer.body) == (400, ERRORS["INVALID_REQUEST"])
    assert answer.closes
    assert answer.headers["cache-control"] == "private, no-store"
    assert len(answer.headers["x-request-id"]) == 32


def test_a_request_has_one_id_everywhere(cluster: Cluster) -> None:
    number = ask(cluster.front, get(b"a")).headers["x-request-id"]
    logs = [cluster.log, *(service.log_path for service in cluster.services)]
    for _ in range(100):  # they are written after the answer
        counts = [log.read_text(encoding="utf-8").count(number) for log in logs]
        if sum(counts) == 2:
            break
        time.sleep(0.05)

    assert counts[0] == 1
    assert sorted(counts[1:]) == [0, 1]


def test_the_limit_is_shared_and_a_restart_keeps_the_count(cluster: Cluster) -> None:
    limited = request(A, HOST, LIMITED)
    first = [ask(cluster.front, limited).status for _ in range(30)]
    assert cluster.services[0].stop() == 0
    while_one_runs = [ask(cluster.front, limited).status for _ in range(10)]
    cluster.start(0)
    then = [ask(cluster.front, limited) for _ in range(20)]

    assert Counter([*first, *while_one_runs, *(answer.status for answer in then)]) == {
        200: 50,
        429: 10,
    }
    assert then[-1].headers["ratelimit"] == f'"fifty";r=0;t={then[-1].headers["retry-after"]}'


def test_no_request_fails_while_a_process_restarts_or_is_killed(cluster: Cluster) -> None:
    exchanges = [
        Exchange(get(b"a"), bodies=(SERVER_A,)),
        Exchange(compare(TWO), bodies=(COMPARED,)),
    ]
    load = Load(cluster.front.port, [exchanges] * 16, seconds=6)
    with load_client.start_client() as client:
        running = client(load)
        for turn, number in enumerate([signal.SIGTERM] * 2 + [signal.SIGKILL] * 4):
            cluster.services[turn % 2].stop(number)
            cluster.start(turn % 2)
        outcome = running.result()

    assert outcome.list_failures() == []
    assert outcome.answers > 1_000
    assert set(outcome.statuses) == {200}


def test_without_any_process_requests_get_an_error_of_the_api(
    cluster: Cluster, tmp_path: Path
) -> None:
    front, *ports = find_free_ports(3)
    with run_nginx(tmp_path, front, ports):
        answer = ask(cluster.front._replace(port=front), get(b"a"))

    assert (answer.status, answer.body) == (500, ERRORS["INTERNAL_ERROR"])
    assert answer.headers["content-type"] == "application/json"
