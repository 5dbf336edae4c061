"""`serve --record` writes each exchange of the API, without keys."""

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgi.small_service import (
    COMPARED,
    SERVER_A,
    build_small,
    format_access,
    read_records,
    wait_for_records,
)
from conftest import AS_OF, Cli
from srvstat.contract.time import format_instant
from support.http import COMPARE, ERRORS, HEALTH, HOST, JSON, TWO, Client, request, send_request
from support.process import Service, serve

pytestmark = pytest.mark.slow

REGISTERED = "correct-horse-battery-staple"
GENERATED = "srvstat_" + "Ab3_-cD4" * 5 + "xyz"
KEYS = {"key-of-all": "all", "key-of-short": "short", "key-of-three": "three", REGISTERED: "all"}
ALL = b"X-Gateway-Key: key-of-all"
SHORT = b"X-Gateway-Key: key-of-short"
CHUNKED = b"Transfer-Encoding: chunked"


class Recorded(NamedTuple):
    """A service that records, and the file."""

    service: Service
    path: Path
    options: tuple[str, ...] = ()
    """Those of a command that answers as the service does."""

    def send(self, sent: bytes) -> dict[str, Any]:
        """Send a request, and return the line that records it."""
        before = len(read_records(self.path))
        send_request(self.service, sent, to_head=sent.startswith(b"HEAD "))
        deadline = time.monotonic() + 5
        while len(found := read_records(self.path)) == before:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        (record,) = found[before:]
        return record


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    directory = tmp_path_factory.mktemp("small")
    access = directory / "access.toml"
    access.write_text(format_access(KEYS), encoding="utf-8")
    path = directory / "exchanges.ndjson"
    snapshot = build_small(directory)
    options = ("--access", str(access))
    with serve(snapshot, *options, "--record", str(path)) as service:
        yield Recorded(service, path, (*options, "--snapshot", str(snapshot)))


def get(path: str, *headers: bytes, method: str = "GET") -> bytes:
    return request(f"{method} /gateway/v1/{path} HTTP/1.1".encode(), HOST, *headers)


def compare(body: bytes, *headers: bytes) -> bytes:
    return request(COMPARE, HOST, JSON, *headers, body=body)


def describe(method: str, path: str, *, body: bytes | None = None, **headers: str) -> Any:
    """Return the expected request of a record; a body adds the headers of `compare`."""
    found = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        found = {"content-type": "application/json", "content-length": str(len(body)), **found}
    is_text = body is None or b"\xff" not in body
    return {
        "method": method,
        "path": f"/gateway/v1/{path}",
        "headers": found,
        "body": body.decode() if body and is_text else None,
        "bodyBase64": None if body is None or is_text else b64encode(body).decode(),
    }


UNKNOWN = TWO.replace(b'"b"', b'"zz"')
EXCHANGES = {
    "head": (get("servers/a", ALL, method="HEAD"), describe("HEAD", "servers/a"), 200, None),
    "compare": (compare(TWO, ALL), describe("POST", "compare", body=TWO), 200, COMPARED),
    "a password in an absolute URL": (
        request(b"GET http://user:secret@x/gateway/v1/servers/a HTTP/1.1", HOST, ALL),
        {**describe("GET", ""), "path": "http://…@x/gateway/v1/servers/a"},
        200,
        SERVER_A,
    ),
    "an invalid body": (
        compare(b"\xff{", ALL, b"Content-Encoding: br"),
        {**describe("POST", "compare", body=b"\xff{", content_encoding="br"), "bodyBase64": None},
        400,
        ERRORS["INVALID_REQUEST"],
    ),
    "a body that is not UTF-8": (
        compare(b"\xff{", ALL),
        describe("POST", "compare", body=b"\xff{"),
        400,
        ERRORS["INVALID_REQUEST"],
    ),
    "an unknown server": (
        compare(UNKNOWN, ALL),
        describe("POST", "compare", body=UNKNOWN),
        404,
        ERRORS["SERVER_NOT_FOUND"],
    ),
}


def find_plan(sent: bytes) -> str | None:
    return "all" if ALL in sent else "short" if SHORT in sent else None


@pytest.mark.parametrize("case", EXCHANGES)
def test_an_exchange_is_recorded(case: str, recorded: Recorded, cli: Cli) -> None:
    sent, described, status, answer = EXCHANGES[case]
    before = time.time_ns() // 1_000_000

    record = recorded.send(sent)

    schema = json.loads(cli("schema", "recording").stdout)
    jsonschema_rs.Draft202012Validator(schema).validate(record)
    requested_at = record.pop("requestedAt")
    assert format_instant(before) <= requested_at <= format_instant(time.time_ns() // 1_000_000)
    assert record == {
        "document": "recording",
        "version": 1,
        "asOf": format_instant(AS_OF),
        "root": send_request(recorded.service, HEALTH).json["root"],
        "plan": find_plan(sent),
        "request": described,
        "response": {"status": status, "body": answer and answer.decode()},
    }


def test_only_requests_of_the_api_are_recorded(recorded: Recorded) -> None:
    before = len(read_records(recorded.path))

    for sent in (HEALTH, get("nothing", ALL)):
        send_request(recorded.service, sent)

    wait_for_records(recorded.path, 0, before)


PLACES = (
    lambda key: get(f"servers/{key}", ALL),
    lambda key: get(f"servers/a?by={key}", ALL),
    lambda key: get(f"servers/a?{key}=id"),
    lambda key: get("servers/a", b"X-Gateway-Key: " + key.encode()),
    lambda key: get("servers/a", ALL, b"X-Gateway-Key: " + key.encode()),
    lambda key: get("servers/a", ALL, b"Authorization: Bearer " + key.encode()),
    lambda key: get("servers/a", ALL, b"Cookie: " + key.encode()),
    lambda key: get("servers/a", ALL, b"X-Request-Id: " + key.encode()),
    lambda key: get("servers/a", ALL, b"Content-Type: text/" + key.encode()),
    lambda key: get("servers/a", ALL, method=key),
    lambda key: request(b"GET http://u:%b@x/gateway/v1/servers/a HTTP/1.1" % key.encode(), HOST),
    lambda key: compare(TWO.replace(b'"a"', json.dumps(key).encode()), ALL),
    lambda key: compare(TWO[:-1] + b",%b:1}" % json.dumps(key).encode(), ALL),
    lambda key: compare(b"\xff" + key.encode(), ALL),
)
"""Requests with a key in a wrong place."""


@given(st.sampled_from(PLACES), st.sampled_from([REGISTERED, GENERATED, "key-of-all"]), st.data())
def test_no_key_is_recorded(
    recorded: Recorded, place: Callable[[str], bytes], key: str, data: st.DataObject
) -> None:
    sent = place(key)
    line, end, rest = sent.partition(b" HTTP/1.1")
    if line.startswith(b"GET"):
        escaped = data.draw(st.sets(st.sampled_from(range(len(key)))), "escaped characters")
        in_url = "".join(f"%{ord(c):02x}" if at in escaped else c for at, c in enumerate(key))
        sent = line.replace(key.encode(), in_url.encode()) + end + rest

    record = recorded.send(sent)

    assert key not in unquote(json.dumps(record))
    assert key.encode() not in b64decode(record["request"]["bodyBase64"] or "")
    assert record["request"]["path"].startswith(("/gateway/v1/", "http://…@x/gateway/v1/"))


def test_a_record_names_the_snapshot_that_answered(tmp_path: Path) -> None:
    path = tmp_path / "exchanges.ndjson"
    with serve(build_small(tmp_path), "--record", str(path)) as service:
        first = Recorded(service, path).send(get("servers/a", ALL))
        build_small(tmp_path, "other.db", players=9).replace(tmp_path / "small.db")
        second = Recorded(service, path).send(get("servers/a", ALL))
        refused = Recorded(service, path).send(get("servers/a"))
        root = send_request(service, HEALTH).json["root"]

    assert first["root"] != second["root"] == refused["root"] == root
    assert '"current":6' in first["response"]["body"]
    assert '"current":9' in second["response"]["body"]


def test_exchanges_are_recorded_in_the_order_of_the_log(recorded: Recorded) -> None:
    before = len(read_records(recorded.path))
    logged = len(recorded.service.read_log())

    def ask(number: int) -> None:
        with Client(recorded.service) as client:
            for turn in range(25):
                client.send(get(f"servers/{number}-{turn}", ALL))
                client.read_answer()

    with ThreadPoolExecutor(8) as clients:
        list(clients.map(ask, range(8)))

    records = wait_for_records(recorded.path, 200, before)
    paths = [record["request"]["path"] for record in records]
    assert len(set(paths)) == 200
    entries = recorded.service.read_log()[logged:]
    assert paths == [
        f"/gateway/v1/servers/{entry['servers'][0].removeprefix('id:')}" for entry in entries
    ]


def test_a_recording_matches_when_it_is_replayed(
    recorded: Recorded, tmp_path: Path, cli: Cli
) -> None:
    before = recorded.path.stat().st_size
    hidden = get(f"servers/{REGISTERED}", ALL)
    for sent in (*(sent for sent, *_ in EXCHANGES.values()), hidden):
        recorded.send(sent)
    path = tmp_path / "exchanges.ndjson"
    path.write_bytes(recorded.path.read_bytes()[before:])

    ran = cli("replay", str(path), *recorded.options, "--json")

    expected = ["match"] * len(EXCHANGES) + ["notReproducible"]
    assert [each["class"] for each in ran.json["exchanges"]] == expected
