"""Read NDJSON that the service recorded, or that a person wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from recordings.readings import find_reason, read_all, read_one
from srvstat.contract.http import Head
from srvstat.documents.support import Recording, StoredRequest, StoredResponse
from srvstat.support.recordings import Exchange, RecordedResponse, Unreadable

NOON = 1_772_366_400_000
BODY = '{"servers":[]}'
TYPE = {"content-type": "application/json"}

RECORDING = Recording(
    as_of=NOON - 1,
    root="r",
    requested_at=NOON,
    plan="gold",
    request=StoredRequest(
        method="POST", path="/gateway/v1/compare?x", headers=TYPE, body=BODY, body_base64=None
    ),
    response=StoredResponse(status=400, body='{"é":1}'),
)
PLAIN: dict[str, Any] = {"request": {"method": "GET", "path": "/gateway/v1/servers/a?by=id"}}


@pytest.fixture
def case(tmp_path: Path) -> Path:
    return tmp_path / "case.ndjson"


def ask(**changes: Any) -> str:
    return json.dumps({"request": PLAIN["request"] | changes})


def change(**changes: Any) -> str:
    return json.dumps(json.loads(RECORDING.to_json()) | changes)


def test_a_recording_of_the_service_is_read(case: Path) -> None:
    assert read_one(case, RECORDING.to_json()) == Exchange(
        f"{case}, line 1",
        Head("POST", b"/gateway/v1/compare", b"x", [(b"content-type", b"application/json")]),
        BODY.encode(),
        requested_at=NOON,
        response=RecordedResponse(400, '{"é":1}'.encode()),
        is_from_service=True,
        plan="gold",
        as_of=NOON - 1,
    )


def test_a_body_may_be_base64_and_a_response_may_have_none(case: Path) -> None:
    request = {"method": "HEAD", "path": "/gateway/v1/servers/a", "headers": {}}
    line = change(
        plan=None,
        request={**request, "body": None, "bodyBase64": "/w=="},
        response={"status": 200, "body": None},
    )

    read = read_one(case, line)

    assert (read.body, read.response, read.plan) == (b"\xff", RecordedResponse(200, None), None)


def test_a_line_that_a_person_wrote_is_read(case: Path) -> None:
    headers = {"X-Gateway-Key": "k", "Cookie": "secret"}
    line = {
        "request": {**PLAIN["request"], "headers": headers},
        "response": {"status": 200},
        "asOf": NOON,
        "requestedAt": "2026-03-01T13:00+01:00",
    }

    assert read_one(case, json.dumps(line)) == Exchange(
        f"{case}, line 1",
        Head(
            "GET", b"/gateway/v1/servers/a", b"by=id", [(b"x-gateway-key", b"k"), (b"x", b"." * 11)]
        ),
        b"",
        requested_at=NOON,
        response=RecordedResponse(200, None),
        as_of=NOON,
    )
    assert read_one(case, json.dumps(PLAIN)).response is None


def test_a_foreign_line_keeps_only_its_method_and_target(case: Path) -> None:
    line = {"request": {"method": "GET", "path": "/x?a", "body": "secret"}}

    assert read_one(case, json.dumps(line)) == Exchange(
        f"{case}, line 1", Head("GET", b"/x", b"a", []), b""
    )


def test_an_invalid_line_is_unreadable_and_the_rest_is_read(case: Path) -> None:
    good = json.dumps(PLAIN).encode()
    text = b"\xef\xbb\xbf" + good + b"\r\n\n \nx\n\xff\n[]\n" + b"[" * (5 << 20) + b"\n" + good

    first, *bad, last = read_all(case, text)

    assert isinstance(first, Exchange)
    assert bad == [
        Unreadable(f"{case}, line 4", "not JSON at column 1: Expecting value"),
        Unreadable(f"{case}, line 5", "not UTF-8 at byte 1"),
        Unreadable(f"{case}, line 6", "must be an object"),
        Unreadable(f"{case}, line 7", "longer than 4,194,304 bytes"),
    ]
    assert last.place == f"{case}, line 8"
    assert isinstance(last, Exchange)


NO_ZONE = "no time zone: end it with Z or an offset such as +02:00"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (json.dumps(PLAIN)[:-1] + ', "request": {}}', 'the key "request" is repeated'),
        ('{"request": {"method": "GET"}}', "request.path: missing"),
        (change(version=2), "version: 2 is not one of 1"),
        (change(document="replay"), 'document: "replay" is not one of recording'),
        (change(asOf="2026-03-01 12:00"), f"asOf: {NO_ZONE}"),
        (change(requestedAt=-1), "requestedAt: not Unix milliseconds and not YYYY-MM-DDTHH:MM:SSZ"),
        (change(requestedAt=None), "requestedAt: must be an integer"),
        (change(root=7), "root: must be a string"),
        (change(more=1), "more: unknown property"),
        (change(as_of=1), "as_of: unknown property"),
        (change(response={"status": 99, "body": ""}), "response.status: must be from 100 to 599"),
        (change(response={"status": "x", "body": ""}), "response.status: must be an integer"),
        (ask(headers=[]), "request.headers: must be an object"),
        (ask(body="", bodyBase64=""), "request: both body and bodyBase64"),
        (ask(bodyBase64="*"), "request.bodyBase64: not base64"),
        (ask(bodyBase64="é"), "request.bodyBase64: not base64"),
        (ask(body="\ud800"), "not Unicode text (a lone surrogate)"),
        (ask(method="\ud800"), "not Unicode text (a lone surrogate)"),
        (change(plan="\ud800"), "not Unicode text (a lone surrogate)"),
        pytest.param('{"document":' + "[" * 100_000, "nested too deeply", id="deep"),
    ],
)  # fmt: skip
def test_a_line_is_validated_strictly(line: str, reason: str, case: Path) -> None:
    assert find_reason(case, line) == reason
