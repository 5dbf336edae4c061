"""The service and the command line give the same bytes."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import quote

import pytest

from asgi.small_service import format_access
from campaigns.requests import draw_body
from conftest import AS_OF, DAY, Cli, build_in, server
from support import http
from support.http import COMPARE, HOST, JSON, Answer, Client
from support.process import Service, serve
from support.snapshots import write_shards

pytestmark = pytest.mark.slow

SEED = 20
BODIES = 100
IDENTIFIERS = 50
EXIT_CODES = {200: 0, 400: 40, 403: 43, 404: 44}

# Almost all drawn identifiers name a server, some of them two servers.
SERVERS = [
    server("a", cfxId="A"),
    server("A", cfxId="x-1"),
    server("b", cfxId="C"),
    server("C", cfxId="b"),
    server("-", cfxId="0", hostname="\u202e\x7f\u2028", projectName='"\\\n'),
    server("0", cfxId="-", tags=["\U0001f680", "\u00e9"]),
    server("id", cfxId="by"),
    server("by", cfxId="id"),
    server("srv-1", cfxId="srv-1"),
    server("--5", cfxId="null"),
    server("1e5", cfxId="x-2", publishable=False),
    server("x" * 128, cfxId="x-3"),
]
PLANS = [None, None, None, "all", "short", "compare", "get"]


class Question(NamedTuple):
    """A question for both: the arguments of the command and the bytes of the request."""

    arguments: list[str]
    sent: bytes


class Both(NamedTuple):
    """The command line's files and the service that uses them."""

    snapshot: str
    access: str
    service: Service


@pytest.fixture(scope="module", params=["one file", "shards"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    """Serve a snapshot of about a year with random numbers of players; the command reads a file."""
    directory = tmp_path_factory.mktemp("parity")
    random = Random(SEED)  # noqa: S311 - drawn again with each run
    rows = [
        (of["id"], AS_OF - at * DAY // 3, random.randrange(1_000) ** (1 + at % 2))
        for of in SERVERS[:9]
        for at in range(0, 1_200, random.randrange(1, 40))
    ]
    snapshot = build_in(directory, SERVERS, rows)
    access = directory / "access.toml"
    keys = {f"key-of-{plan}": plan for plan in PLANS if plan}
    access.write_text(format_access(keys), encoding="utf-8")
    served = snapshot
    if request.param == "shards":
        served = write_shards(snapshot, directory / "shards", 3)
    with serve(served, "--access", str(access)) as service:
        yield Both(str(snapshot), str(access), service)


def build_key_header(plan: str | None) -> bytes:
    return b"X-Gateway-Key: key-of-" + (plan or "all").encode()


def list_options(both: Both, plan: str | None) -> list[str]:
    with_plan = ["--plan", plan, "--access", both.access] if plan else []
    return ["--json", "--snapshot", both.snapshot, *with_plan]


def compare_both(
    questions: Iterator[Question], both: Both, cli: Cli
) -> Iterator[tuple[Question, Answer]]:
    """Ask both, check that they agree, and yield the answers."""
    with Client(both.service) as client:
        for question in questions:
            client.send(question.sent)
            answer = client.read_answer()
            ran = cli(*question.arguments)
            assert (ran.stdout, ran.exit_code) == (
                answer.body + b"\n",
                EXIT_CODES[answer.status],
            ), question
            yield question, answer


def draw_comparisons(both: Both, directory: Path) -> Iterator[Question]:
    random = Random(SEED)  # noqa: S311 - drawn again with each run
    path = directory / "body.json"
    for _ in range(BODIES):
        body, plan = draw_body(random), random.choice(PLANS)
        path.write_bytes(body)
        yield Question(
            ["compare", "--request", str(path), *list_options(both, plan)],
            http.request(COMPARE, HOST, build_key_header(plan), JSON, body=body),
        )


def draw_identifiers() -> Iterator[str]:
    """Draw identifiers: known ones, changed ones, and odd texts."""
    random = Random(SEED)  # noqa: S311 - drawn again with each run
    known = [of[name] for of in SERVERS for name in ("id", "cfxId")]
    yield from known
    odd = ["", "x" * 129, "a/b", "..", "a\n", "\x00", "%61", "a b", "+", "id:a", "\ufeffa", "a?b"]
    yield from odd
    for _ in range(IDENTIFIERS - len(known) - len(odd)):
        text = random.choice(known)
        at = random.randrange(len(text) + 1)
        new = random.choice(["", "", "-", "a", "7", "_", "/", "\u00e9", "\U0001f680", "\r"])
        yield text if random.random() < 0.4 else text[:at] + new + text[at + 1 :]


def draw_get_requests(both: Both) -> Iterator[Question]:
    random = Random(SEED)  # noqa: S311 - drawn again with each run
    for number, identifier in enumerate(draw_identifiers()):
        for by in ("id", "cfxId", *((None, "ID", "") if number % 10 == 0 else ())):
            plan = random.choice(PLANS)
            path = "/gateway/v1/servers/" + quote(identifier, safe="")
            query = "" if by is None else f"?by={by}"
            # The command line takes one namespace in front of an identifier.
            namespace = by if by in {"id", "cfxId"} else "id"
            of_by = [] if by in {"id", "cfxId", None} else ["--by", str(by)]
            yield Question(
                ["get", *of_by, *list_options(both, plan), "--", f"{namespace}:{identifier}"],
                http.request(f"GET {path}{query} HTTP/1.1".encode(), HOST, build_key_header(plan)),
            )


def test_compare_answers_as_the_command_line_does(both: Both, cli: Cli, tmp_path: Path) -> None:
    answered = list(compare_both(draw_comparisons(both, tmp_path), both, cli))

    statuses = Counter(answer.status for _, answer in answered)
    assert statuses.keys() == EXIT_CODES.keys()
    assert min(statuses.values()) >= 5, statuses

    # The service answers the same from its memory.
    with Client(both.service) as client:
        for question, answer in answered:
            client.send(question.sent)
            assert client.read_answer().stable_parts == answer.stable_parts


def test_get_server_answers_as_the_command_line_does(both: Both, cli: Cli) -> None:
    answered = compare_both(draw_get_requests(both), both, cli)

    statuses = Counter(answer.status for _, answer in answered)
    assert statuses.keys() == EXIT_CODES.keys()
    assert sum(statuses.values()) == 2 * IDENTIFIERS + 3 * IDENTIFIERS // 10
    assert min(statuses.values()) >= 5, statuses
