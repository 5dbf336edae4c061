"""A key of the access file stands nowhere in the log, whoever sends it, and in whatever place."""

import json
from collections.abc import Iterator

import pytest

from asgi.log_entries import logged
from asgi.small_service import access_text, serving_small
from support.http import COMPARE, HOST, JSON, TWO, A, request, send_request
from support.process import Service

REGISTERED = "correct-horse-battery-staple"
"""A key that a person has thought of; the access file has its digest."""
QUOTED = 'gr\u00fcn "und" blau\\rot'
"""Another one, which JSON writes with escapes."""
OTHER = b"X-Gateway-Key: another-key-of-the-file"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    access = tmp_path_factory.mktemp("access") / "access.toml"
    keys = {REGISTERED: "all", QUOTED: "all", "another-key-of-the-file": "all", "servers": "all"}
    access.write_text(access_text(keys), encoding="utf-8")
    with serving_small("--access", str(access)) as under_way:
        yield under_way


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (b"GET /gateway/v1/servers/%b HTTP/1.1", "/gateway/v1/servers/[key]"),
        (b"GET /gateway/v1/servers/%b?by=%b HTTP/1.1", "/gateway/v1/servers/[key]"),
        (b"GET /%b/%b HTTP/1.1", "/[key]/[key]"),
        (b"GET http://x/%b/ HTTP/1.1", "http://x/[key]/"),
        (b"%b /gateway/v1/servers/a HTTP/1.1", "/gateway/v1/servers/a"),
        (b"%b /healthz HTTP/1.1", "/healthz"),
    ],
)
@pytest.mark.parametrize("headers", [[], [OTHER], [b"X-Gateway-Key: wrong"]])
def test_in_the_first_line(line: bytes, path: str, headers: list[bytes], service: Service) -> None:
    sent = line.replace(b"%b", REGISTERED.encode())

    entry = logged(service, request(sent, HOST, *headers))

    assert REGISTERED not in str(entry)
    assert entry["path"] == path


def test_percent_encoded(service: Service) -> None:
    for key in (REGISTERED, QUOTED):
        encoded = "".join(f"%{byte:02x}" for byte in key.encode())
        line = f"GET /gateway/v1/servers/{encoded} HTTP/1.1".encode()

        assert logged(service, request(line, HOST))["path"] == "/gateway/v1/servers/[key]"


def test_as_the_name_of_a_request(service: Service) -> None:
    answer = send_request(service, request(A, HOST, b"X-Request-Id: " + REGISTERED.encode()))

    assert answer.headers["x-request-id"] != REGISTERED
    assert REGISTERED not in str(service.log())


@pytest.mark.parametrize("key", [REGISTERED, QUOTED])
@pytest.mark.parametrize(
    "body",
    [
        TWO[:-1] + b',"range":%b}',
        TWO[:-1] + b",%b:1}",
        TWO.replace(b'"a"', b"%b"),
        TWO.replace(b'"id"', b"%b", 1),
    ],
)
def test_in_a_body(key: str, body: bytes, service: Service) -> None:
    sent = body % json.dumps(key).encode()

    entry = logged(service, request(COMPARE, HOST, OTHER, JSON, body=sent))

    assert "[key]" in entry["reason"]
    assert "horse" not in str(entry)
    assert "blau" not in str(entry)


def test_a_short_key_is_no_secret(service: Service) -> None:
    assert logged(service, request(A, HOST))["path"] == "/gateway/v1/servers/a"


def test_what_is_no_key_stays(service: Service) -> None:
    line = b"GET /gateway/v1/servers/%63orrect-horse HTTP/1.1"

    entry = logged(service, request(line, HOST, OTHER, b"X-Request-Id: correct-horse-battery"))

    assert entry["path"] == "/gateway/v1/servers/%63orrect-horse"
    assert entry["reason"] == "no id correct-horse"
    assert entry["id"] == "correct-horse-battery"
