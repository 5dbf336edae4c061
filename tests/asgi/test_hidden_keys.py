"""No key appears in the log or in the reason of an error, wherever a request carries it.

The service explains errors, and `log_request` checks that an answer has the reason of the log.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from asgi.small_service import format_access, log_request, serve_small
from support.http import COMPARE, HOST, JSON, TWO, A, get, request, send_request
from support.process import Service

GENERATED = "srvstat_" + "Ab3_-cD4" * 5 + "xyz"
"""A key as `srvstat access new-key` generates it."""
REGISTERED = "correct-horse-battery-staple"
"""A key that a person has chosen; the access file has its digest."""
QUOTED = 'gr\u00fcn "und" blau\\rot'
"""Another one, which JSON writes with escapes."""
OWN = "plain-secret-of-a-request"
KEYS = [GENERATED, REGISTERED, QUOTED, OWN]
SECRET_WORDS = [GENERATED[:8], "Ab3_", "horse", "blau", "plain-secret"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    access = tmp_path_factory.mktemp("access") / "access.toml"
    keys = dict.fromkeys((REGISTERED, QUOTED, OWN, "servers"), "all")
    access.write_text(format_access(keys), encoding="utf-8")
    with serve_small("--access", str(access), "--explain-errors") as running:
        yield running


def with_own(line: bytes, *headers: bytes, body: bytes | None = None) -> bytes:
    return request(line, HOST, b"X-Gateway-Key: " + OWN.encode(), *headers, body=body)


LINES = [
    b"GET /gateway/v1/servers/%b HTTP/1.1",
    b"GET /gateway/v1/servers/x-%b HTTP/1.1",
    b"GET /gateway/v1/servers/a?by=%b HTTP/1.1",
    b"GET /gateway/v1/servers/a?" + b"x" * 42 + b"%b HTTP/1.1",
    b"GET /%b/%b HTTP/1.1",
    b"GET http://x/%b/ HTTP/1.1",
]
BODIES = [
    TWO[:-1] + b',"range":%b}',
    TWO[:-1] + b",%b:1}",
    TWO.replace(b'"a"', b"%b"),
    TWO.replace(b'"id"', b"%b", 1),
]


@pytest.mark.parametrize("line", LINES)
def test_a_key_in_the_request_line_is_hidden(line: bytes, service: Service) -> None:
    for key in KEYS:
        encoded = "".join(f"%{byte:02x}" for byte in key.encode()).encode()
        for written in (encoded, *([key.encode()] if key != QUOTED else ())):
            if b"x-%b" in line and key == REGISTERED:
                continue  # only a part of a word
            sent = line.replace(b"%b", written)
            entries = [
                log_request(service, with_own(sent)),
                log_request(service, request(sent, HOST)) if key != OWN else {},
            ]
            for word in (*SECRET_WORDS, encoded.decode()):
                assert word not in str(entries), sent


@pytest.mark.parametrize("body", BODIES)
def test_a_key_in_a_body_is_hidden(body: bytes, service: Service) -> None:
    for key in KEYS:
        sent = body.replace(b"%b", json.dumps(key).encode())
        entry = log_request(service, with_own(COMPARE, JSON, body=sent))

        assert not [word for word in SECRET_WORDS if word in str(entry)]
        assert "[key]" in entry["reason"] or '"…"' in entry["reason"]


def test_a_key_in_another_header_is_hidden(service: Service) -> None:
    for key in (GENERATED, REGISTERED, OWN):
        answer = send_request(service, with_own(A, b"X-Request-Id: " + key.encode()))
        type_ = b"Content-Type: " + key.encode()
        entry = log_request(service, with_own(COMPARE, type_, body=TWO))

        assert key not in str(answer.headers)
        assert key not in str(entry)
        assert key not in str(service.read_log())


def test_what_is_no_key_is_not_hidden(service: Service) -> None:
    entry = log_request(
        service,
        with_own(
            b"GET /gateway/v1/servers/%63orrect-horse HTTP/1.1", b"X-Request-Id: correct-horse"
        ),
    )
    short = log_request(service, with_own(b"GET /gateway/v1/servers/servers HTTP/1.1"))

    assert (entry["servers"], entry["reason"]) == (["id:correct-horse"], "no id correct-horse")
    assert entry["id"] == "correct-horse"
    assert short["servers"] == ["id:servers"]  # a registered key of few letters


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs Linux's /proc")
def test_a_key_is_not_in_the_status_of_the_process(service: Service) -> None:
    send_request(service, get(b"a", b"X-Request-Id: 1").replace(b"Key: k", b"Key: " + OWN.encode()))

    for name in ("cmdline", "environ", "comm"):
        assert OWN.encode() not in Path(f"/proc/{service.process.pid}/{name}").read_bytes()
