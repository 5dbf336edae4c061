"""Read cassettes of VCR, flows of mitmproxy, and HAR files with attached bodies."""

import base64
import gzip
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from replay.recorded import (
    COMPARE,
    HOST,
    SERVER,
    build_entry,
    build_har,
    find_reason,
    read_all,
    read_one,
)
from srvstat.contract.errors import SourceError
from srvstat.contract.http import Head
from srvstat.support.recognition import read_recording
from srvstat.support.recordings import Exchange, RecordedResponse

NOON = 1_772_366_400_000
DATE = "Sun, 01 Mar 2026 12:00:00 GMT"
BODY = '{"servers":[]}'
ANSWER = '{"range":"7d","data":[]}'
CASSETTE = f"""\
interactions:
- request:
    body: '{BODY}'
    headers:
      Content-Length:
      - '14'
      Content-Type:
      - application/json
      X-Gateway-Key:
      - k
    method: POST
    uri: {HOST}{COMPARE}
  response:
    body:
      string: '{ANSWER}'
    headers:
      Content-Length:
      - '24'
      Date:
      - {DATE}
    status:
      code: 200
      message: OK
version: 1
"""
"""What VCR.py writes; its JSON has the same members."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cassette.txt"


def build_cassette(
    request_body: Any = BODY, response_body: Any = ANSWER, **headers: str
) -> dict[str, Any]:
    """Return a cassette of one interaction; `headers` are those of the response."""
    sent = {"Content-Type": ["application/json"], "X-Gateway-Key": ["k"]}
    received = {name.replace("_", "-"): [value] for name, value in headers.items()}
    request = {"method": "POST", "uri": HOST + COMPARE, "body": request_body, "headers": sent}
    status = {"code": 200, "message": "OK"}
    response = {"status": status, "headers": received, "body": {"string": response_body}}
    return {"version": 1, "interactions": [{"request": request, "response": response}]}


def expect(path: Path, **times: Any) -> Exchange:
    headers = [(b"content-type", b"application/json"), (b"x-gateway-key", b"k")]
    return Exchange(
        f"{path}, interaction 1",
        Head("POST", COMPARE.encode(), b"", headers),
        BODY.encode(),
        host="api.example",
        response=RecordedResponse(200, ANSWER.encode()),
        **times,
    )


def test_a_cassette_in_yaml_is_read(path: Path) -> None:
    read = read_one(path, CASSETTE)

    assert read.head.path == COMPARE.encode()
    assert (b"x-gateway-key", b"k") in read.head.headers
    assert (read.body, read.answered_at) == (BODY.encode(), NOON)
    assert read.response == RecordedResponse(200, ANSWER.encode())


def test_a_cassette_in_json_is_read(path: Path) -> None:
    cassette = build_cassette(Content_Length="24", Date=DATE)

    assert read_one(path, json.dumps(cassette, indent=4)) == expect(path, answered_at=NOON)


@pytest.mark.parametrize("member", ["string", "base64_string"])
def test_a_cassette_of_ruby_or_betamax_is_read(member: str, path: Path) -> None:
    """It has bodies in objects, and the time at which each interaction was recorded."""

    def build_body(text: str) -> dict[str, str]:
        encoded = base64.b64encode(text.encode()).decode()
        return {"encoding": "UTF-8", member: text if member == "string" else encoded}

    (interaction,) = build_cassette()["interactions"]
    interaction["request"]["headers"]["X-Gateway-Key"] = "k"  # not a list in some
    interaction["request"] |= {"method": "post", "body": build_body(BODY)}
    interaction["response"]["body"] = build_body(ANSWER)
    interaction["recorded_at"] = DATE

    text = f"---\nhttp_interactions: {json.dumps([interaction])}\nrecorded_with: VCR 6.1.0\n"

    assert read_one(path, text) == expect(path, requested_at=NOON)


def test_a_compressed_body_is_decompressed(path: Path) -> None:
    packed = base64.b64encode(gzip.compress(ANSWER.encode())).decode()
    text = CASSETTE.replace(f"'{ANSWER}'", f"!!binary |\n        {packed}").replace(
        "Content-Length:\n      - '24'", "content-encoding:\n      - gzip"
    )

    assert read_one(path, text).response == RecordedResponse(200, ANSWER.encode())
    # Some recorders store the decompressed body beside the headers of the compressed one.
    text = text.replace(f"!!binary |\n        {packed}", f"'{ANSWER}'")
    assert read_one(path, text).response == RecordedResponse(200, ANSWER.encode())


def test_an_interaction_without_its_bodies_is_unreadable(path: Path) -> None:
    for cassette, reason in (
        (build_cassette(None), "request.postData.text: missing; export the recording with bodies"),
        (
            build_cassette(response_body="", Content_Length="24"),
            "response.content.text: has 0 of 24 bytes; export the recording with whole bodies",
        ),
        ({"interactions": [{}]}, "not an interaction of VCR; record it again"),
        (build_cassette(Content_Length="x"), "not an interaction of VCR; record it again"),
    ):
        assert find_reason(path, json.dumps(cassette)) == reason
    unrecorded = read_one(path, json.dumps(build_cassette(response_body=None)))
    assert unrecorded.response == RecordedResponse(200, None)
    assert read_all(path, "interactions: []\n") == []


def test_the_aliases_and_merge_keys_of_a_cassette_take_no_room(path: Path) -> None:
    values = "['1'" + ",'1'" * 500 + "]"
    repeated = CASSETTE.replace("Content-Length:\n      - '24'", f"A: &a {values}\n      B: *a")
    reason = "not an interaction of VCR; record it again"
    assert find_reason(path, repeated.replace("      B: *a", "      B: *a\n      C: *a")) == reason
    read_one(path, repeated.replace("500", "400").replace("\n      B: *a", ""))

    merged = "a0: &a0 {k: v}\n" + "".join(
        f"a{at}: &a{at}\n  <<: [*a{at - 1}, *a{at - 1}]\n" for at in range(1, 40)
    )
    assert read_one(path, CASSETTE + merged).body == BODY.encode()


@pytest.mark.parametrize("damage", ["interactions: [\n", '{"version": 1'])
def test_a_damaged_cassette_is_refused(damage: str, path: Path) -> None:
    with pytest.raises(SourceError, match="damaged, or of a newer version; ask for it again"):
        read_all(path, damage)


def test_a_missing_library_has_a_remedy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("yaml", "mitmproxy"):
        monkeypatch.setitem(sys.modules, library, None)

    for content, reason in (
        (CASSETTE, "needs PyYAML; install it, or record with serializer='json'"),
        (
            "8:9:websocket;0:~}",
            "needs mitmproxy; install it, or run mitmdump -nr FILE --set hardump=customer.har",
        ),
    ):
        with pytest.raises(SourceError) as raised:
            read_all(path, content)
        assert raised.value.reason == f"{path}: {reason}"


def test_the_bodies_that_playwright_attaches_are_read(tmp_path: Path) -> None:
    """It names each by its digest, and leaves an empty text for that of a request."""
    request, response = (f"{digit * 40}.json" for digit in "ab")
    sent = build_entry(
        HOST + COMPARE,
        request_method="POST",
        request_bodySize=len(BODY),
        request_postData={"text": "", "params": [], "_file": request},
        response_content={"size": len(ANSWER), "compression": 0, "_file": response},
    )
    foreign, lost = build_entry(HOST), build_entry(HOST + SERVER)
    lost["response"]["content"] = {"size": 9, "_file": "missing.json"}
    path = tmp_path / "page.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("case/har.har", build_har(sent, foreign, lost))
        archive.writestr(f"case/{request}", BODY)
        archive.writestr(f"case/{response}", ANSWER)

    read, *others = read_recording(str(path))

    assert isinstance(read, Exchange)
    assert (read.body, read.response) == (BODY.encode(), RecordedResponse(200, ANSWER.encode()))
    assert [one.response for one in others if isinstance(one, Exchange)] == [
        None,
        RecordedResponse(200, None),
    ]
    assert find_reason(tmp_path / "page.har", build_har(sent)).startswith("request.postData.text")


def test_the_pictures_that_playwright_attaches_are_not_read(tmp_path: Path) -> None:
    """A damaged one is no reason to leave out the other requests."""
    name = f"{'a' * 40}.png"
    picture = build_entry(HOST + "/x.png", response_content={"size": 7, "_file": name})
    path = tmp_path / "page.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("har.har", build_har(picture, build_entry(HOST + SERVER)))
        archive.writestr(name, "picture")
    path.write_bytes(path.read_bytes().replace(b"picture", b"damaged"))

    other, read = read_recording(str(path))

    assert isinstance(other, Exchange)
    assert isinstance(read, Exchange)
    assert (other.is_foreign, read.head.path) == (True, SERVER.encode())
