"""The limit of the caller's plan in the headers of answers."""

from pathlib import Path

from asgi.small_service import TIMELINE, ask_page, build_small, format_access
from support.http import HOST, JSON, TWO, Answer, request, send_request
from support.process import Service, serve
from support.snapshots import change

KEY = b"X-Gateway-Key: "
TWELVE = """
[plans.twelve]
operations = ["get-server", "compare-servers"]
ranges = ["7d"]
requests_per_minute = 12
"""


def ask(
    service: Service, line: bytes, *headers: bytes, body: bytes | None = None, key: bytes = b"a"
) -> Answer:
    more = [JSON, *headers] if body else headers
    sent = request(line + b" HTTP/1.1", HOST, KEY + key, *more, body=body)
    return send_request(service, sent, to_head=line.startswith(b"HEAD"))


def test_every_answer_to_a_caller_with_a_limit_says_what_remains(tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    access.write_text(TWELVE + format_access({"a": "twelve", "b": "all"}), encoding="utf-8")
    path = build_small(tmp_path)
    get, compare = b"GET /gateway/v1/servers/", b"POST /gateway/v1/compare"
    with serve(path, "--explore", "--access", str(access)) as service:
        change(str(path), "UPDATE servers SET hostname = 'x' WHERE id = 'b'")
        answers = [
            ask(service, get + b"a"),
            ask(service, b"HEAD /gateway/v1/servers/a"),
            ask(service, compare, body=TWO[:-1] + b',"range":"7d"}'),
            ask(service, get + b"_"),
            ask(service, compare, body=TWO),
            ask(service, get + b"zz"),
            ask(service, b"GET /nowhere"),
            ask(service, b"DELETE /gateway/v1/compare"),
            ask_page(service, f"{TIMELINE}?id=!", key="a"),
            ask_page(service, f"{TIMELINE}?id=a", key="a", method="HEAD"),
        ]
        others = [
            ask(service, get + b"a", key=b"b"),
            ask(service, get + b"a", key=b"unknown"),
            ask(service, b"GET /healthz"),
            ask_page(service, "/", key="a"),
        ]
        answers += [ask(service, get + b"b") for _ in range(3)]

    statuses = [200, 200, 500, 400, 403, 404, 404, 405, 400, 403, 500, 500, 429]
    assert [answer.status for answer in answers] == statuses
    assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"twelve";q=12;w=60'}
    remaining = [answer.headers["ratelimit"].partition(";t=")[0] for answer in answers]
    assert remaining == [f'"twelve";r={max(number, 0)}' for number in range(11, -2, -1)]
    assert not any("ratelimit" in name for answer in others for name in answer.headers)


def test_a_rehearsed_error_has_headers_that_agree_with_it(tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    access.write_text(TWELVE + format_access({"a": "twelve"}), encoding="utf-8")
    with serve(build_small(tmp_path), "--allow-prefer", "--access", str(access)) as service:
        limited, unauthorized, failed = (
            ask(service, b"GET /gateway/v1/servers/a", b"Prefer: code=%d" % code).headers
            for code in (429, 401, 500)
        )

    assert limited["ratelimit-policy"] == '"twelve";q=12;w=60'
    assert limited["ratelimit"] == f'"twelve";r=0;t={limited["retry-after"]}'
    assert not {"ratelimit", "ratelimit-policy"} & set(unauthorized)
    assert failed["ratelimit"].startswith('"twelve";r=9;t=')
