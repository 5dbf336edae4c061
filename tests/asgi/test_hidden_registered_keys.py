"""A key of the access file never appears in the log, wherever a request carries it.

The service explains errors, and `log_request` checks that an answer has the reason of the log.
"""

import json
from collections.abc import Iterator

import pytest

from asgi.log_entries import log_request
from asgi.small_service import format_access, serve_small
from support.http import COMPARE, HOST, JSON, TWO, A, request, send_request
from support.process import Service

REGISTERED = "correct-horse-battery-staple"
"""A key that a person has chosen; the access file has its digest."""
QUOTED = 'gr\u00fcn "und" blau\\rot'
"""Another one, which JSON writes with escapes."""
OTHER = b"X-Gateway-Key: another-key-of-the-file"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    access = tmp_path_factory.mktemp("access") / "access.toml"
    keys = {REGISTERED: "all", QUOTED: "all", "another-key-of-the-file": "all", "servers": "all"}
    access.write_text(format_access(keys), encoding="utf-8")
    with serve_small("--access", str(access), "--explain-errors") as running:
        yield running


@pytest.mark.parametrize(
    ("line", "operation"),
    [
        (b"GET /gateway/v1/servers/%b HTTP/1.1", "getServer"),
        (b"GET /gateway/v1/servers/%b?by=%b HTTP/1.1", "getServer"),
        (b"GET /%b/%b HTTP/1.1", None),
        (b"GET http://x/%b/ HTTP/1.1", None),
        (b"%b /gateway/v1/servers/a HTTP/1.1", "getServer"),
        (b"%b /healthz HTTP/1.1", "getHealth"),
    ],
)
@pytest.mark.parametrize("headers", [[], [OTHER], [b"X-Gateway-Key: wrong"]])
def test_a_registered_key_in_the_request_line_is_hidden(
    line: bytes, operation: str | None, headers: list[bytes], service: Service
) -> None:
    sent = line.replace(b"%b", REGISTERED.encode())

    entry = log_request(service, request(sent, HOST, *headers))

    assert REGISTERED not in str(entry)
    assert entry.get("operation") == operation


@pytest.mark.parametrize("key", [REGISTERED, QUOTED])
def test_a_percent_encoded_registered_key_is_hidden(key: str, service: Service) -> None:
    encoded = "".join(f"%{byte:02x}" for byte in key.encode())
    line = f"GET /gateway/v1/servers/{encoded} HTTP/1.1".encode()

    entry = log_request(service, request(line, HOST, OTHER))

    assert encoded not in str(entry)
    assert "horse" not in str(entry)
    assert "blau" not in str(entry)


def test_a_registered_key_as_the_request_id_is_replaced(service: Service) -> None:
    answer = send_request(service, request(A, HOST, b"X-Request-Id: " + REGISTERED.encode()))

    assert answer.headers["x-request-id"] != REGISTERED
    assert REGISTERED not in str(service.read_log())


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
def test_a_registered_key_in_a_body_is_hidden(key: str, body: bytes, service: Service) -> None:
    sent = body % json.dumps(key).encode()

    entry = log_request(service, request(COMPARE, HOST, OTHER, JSON, body=sent))

    assert "[key]" in entry["reason"] or '"…"' in entry["reason"]
    assert "horse" not in str(entry)
    assert "blau" not in str(entry)


def test_a_registered_key_as_a_valid_identifier_is_hidden(service: Service) -> None:
    body = TWO.replace(b'"a"', json.dumps(REGISTERED).encode())

    entry = log_request(service, request(COMPARE, HOST, OTHER, JSON, body=body))

    assert entry["servers"] == ["id:[key]", "id:b"]
    assert entry["reason"] == "servers[0]: no id [key]"


def test_a_short_registered_key_is_not_hidden(service: Service) -> None:
    line = b"GET /gateway/v1/servers/servers HTTP/1.1"

    assert log_request(service, request(line, HOST, OTHER))["servers"] == ["id:servers"]


def test_other_identifiers_and_request_ids_are_logged(service: Service) -> None:
    line = b"GET /gateway/v1/servers/%63orrect-horse HTTP/1.1"

    entry = log_request(service, request(line, HOST, OTHER, b"X-Request-Id: correct-horse-battery"))

    assert entry["servers"] == ["id:correct-horse"]
    assert entry["reason"] == "no id correct-horse"
    assert entry["id"] == "correct-horse-battery"
