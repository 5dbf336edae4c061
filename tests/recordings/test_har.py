"""Read HAR files as browsers and proxies export them, and damaged ones."""

import base64
import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from recordings.readings import (
    COMPARE,
    SERVER,
    build_entry,
    build_har,
    find_reason,
    read_all,
    read_one,
)
from srvstat.contract.errors import InvalidRequestError, SourceError
from srvstat.contract.http import MAX_HEAD_BYTES, Head, parse_get_server
from srvstat.files import json_stream
from srvstat.support.recordings import Exchange, RecordedResponse, Unreadable, read_har

NOON = 1_772_366_400_123
BODY = b'{"data":{"id":"a"}}'


@pytest.fixture
def har(tmp_path: Path) -> Path:
    return tmp_path / "case.har"


def build_content(body: bytes, **members: Any) -> dict[str, Any]:
    return {"text": base64.b64encode(body).decode(), "encoding": "base64", **members}


@pytest.mark.usefixtures("backend")
def test_an_exchange_is_read(har: Path) -> None:
    headers = [
        {"name": ":authority", "value": "api.example"},
        {"name": "Content-Type", "value": "application/json"},
        {"name": "X-Gateway-Key", "value": "k"},
        {"name": "cookie", "value": "12345"},
        {"name": "authorization", "value": "secret"},
    ]
    entry = build_entry(
        f"{COMPARE}?a=%20b#fragment",
        request_method="POST",
        request_headers=headers,
        request_postData={"mimeType": "application/json", "params": [], "text": '{"é":1}'},
        response_content={"size": 2, "text": '{"ü":2}'},
    )

    read = read_one(har, build_har(entry))

    kept = [(b"content-type", b"application/json"), (b"x-gateway-key", b"k")]
    filler = (b"x", b"." * (len("cookie12345authorizationsecret") - 1))
    assert read == Exchange(
        f"{har}, entry 1",
        Head("POST", b"/gateway/v1/compare", b"a=%20b", [*kept, filler]),
        '{"é":1}'.encode(),
        "api.example",
        requested_at=NOON,
        response=RecordedResponse(200, '{"ü":2}'.encode()),
    )


@pytest.mark.parametrize(
    ("started", "at"),
    [
        ("2026-03-01T12:00:00.123456+00:00", NOON),  # mitmproxy
        ("2026-03-01T13:00:00.123+01:00", NOON),  # Firefox
        ("2026-03-01T12:00:00.1234567Z", NOON),  # Fiddler
        (None, None),
    ],
)
def test_the_time_of_a_request_is_read(started: str | None, at: int | None, har: Path) -> None:
    assert read_one(har, build_har(build_entry(startedDateTime=started))).requested_at == at


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (None, None),
        ({"status": 0, "headers": [], "content": {}}, None),  # mitmproxy, Chrome
        ({"status": 204}, RecordedResponse(204, None)),
        ({"status": 200, "content": {"size": 19, "_file": "a.json"}}, RecordedResponse(200, None)),
        ({"status": 200, "content": {"text": None}}, RecordedResponse(200, None)),
        ({"status": 200, "content": {"text": ""}}, RecordedResponse(200, b"")),
        ({"status": 200, "content": build_content(b"\xff")}, RecordedResponse(200, b"\xff")),
    ],
)
def test_an_exchange_may_have_no_response_or_body(
    response: Any, expected: RecordedResponse | None, har: Path
) -> None:
    assert read_one(har, build_har(build_entry(response=response))).response == expected


# The names of tests must not depend on the time: pytest-xdist compares them.
@pytest.mark.parametrize(
    ("coding", "recorded"),
    [
        ("gzip", gzip.compress(BODY, mtime=0)),
        ("x-gzip", gzip.compress(BODY, mtime=0)),
        ("deflate", zlib.compress(BODY)),
        ("deflate", zlib.compress(BODY, wbits=-15)),
        ("gzip", BODY),  # already decompressed, as in browsers
        ("br", BODY),
        ("identity", BODY),
        ("gzip", b"<html>"),
    ],
)
def test_a_compressed_body_is_decompressed(coding: str, recorded: bytes, har: Path) -> None:
    entry = build_entry(
        response_headers=[{"name": "Content-Encoding", "value": coding}],
        response_content=build_content(recorded),
    )

    expected = BODY if recorded != b"<html>" else recorded
    assert read_one(har, build_har(entry)).response == RecordedResponse(200, expected)


DECOMPRESSED = "export it again with decompressed bodies"


@pytest.mark.parametrize(
    ("coding", "recorded", "reason"),
    [
        ("br", b"\x0b\x09\x80{\xff", f"compressed with br; {DECOMPRESSED}"),
        ("gzip, br", b"\xff", f"compressed with an unknown coding; {DECOMPRESSED}"),
        ("gzip", b"\xff\xff", "damaged compressed data"),
        ("gzip", gzip.compress(BODY, mtime=0)[:-9], "compressed data that is cut off"),
        ("gzip", gzip.compress(bytes(9 << 20), mtime=0), "more than 4,194,304 bytes when decomp"),
    ],
)
def test_a_body_that_cannot_be_decompressed_is_unreadable(
    coding: str, recorded: bytes, reason: str, har: Path
) -> None:
    entry = build_entry(
        response_headers=[{"name": "content-encoding", "value": coding}],
        response_content=build_content(recorded),
    )

    assert find_reason(har, build_har(entry)).startswith(f"response.content: {reason}")


@pytest.mark.parametrize(
    "members",
    [
        {"request_bodySize": 5},
        {"request_headers": [{"name": "content-length", "value": "5"}]},
        {"request_bodySize": 5, "request_postData": {"mimeType": "", "_file": "a.json"}},
    ],
)
def test_a_request_whose_body_is_missing_is_unreadable(members: Any, har: Path) -> None:
    entry = build_entry(COMPARE, request_method="POST", **members)

    expected = "request.postData.text: missing; export the recording with bodies"
    assert find_reason(har, build_har(entry)) == expected


NO_ZONE = "no time zone: end it with Z or an offset such as +02:00"
NOT_HEADERS = "must have objects with a name and a value, which are strings"
NOT_BASE64 = "response.content.encoding: not base64"
NOT_BASE64_TEXT = "response.content.text: not base64"


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (build_entry(startedDateTime="2026-03-01T12:00:00"), f"startedDateTime: {NO_ZONE}"),
        (build_entry(startedDateTime=5), "startedDateTime: must be a string"),
        (build_entry(request_method=None), "request.method: missing"),
        (build_entry(request_url=["x"]), "request.url: must be a plain value"),
        (build_entry(request_url=7), "request.url: must be a string"),
        (build_entry(request_headers={}), "request.headers: must be an array"),
        (build_entry(request_headers=[{"name": "a"}]), f"request.headers: {NOT_HEADERS}"),
        (build_entry(request=None), "request.method: missing"),
        (build_entry(request="x"), "request: must be an object"),
        (build_entry(request_bodySize=1.5), "request.bodySize: must be an integer"),
        (build_entry(response="x"), "response: must be an object"),
        (build_entry(response_status="200"), "response.status: must be an integer"),
        (build_entry(response_status=True), "response.status: must be an integer"),
        (build_entry(response_status=99), "response.status: must be from 100 to 599"),
        (build_entry(response_content={"text": "*", "encoding": "base64"}), NOT_BASE64_TEXT),
        (build_entry(response_content={"text": "", "encoding": "x"}), NOT_BASE64),
        (7, "entry: must be an object"),
        ([{}], "entry: must be an object"),
        (None, "request.method: missing"),
    ],
)  # fmt: skip
def test_an_invalid_entry_is_unreadable_and_the_rest_is_read(
    entry: Any, reason: str, har: Path
) -> None:
    first, last = read_all(har, build_har(entry, build_entry()))

    assert first == Unreadable(f"{har}, entry 1", reason)
    assert isinstance(last, Exchange)


def test_a_repeated_key_makes_an_entry_unreadable(har: Path) -> None:
    text = build_har(build_entry()).replace(b'"method"', b'"method": "POST", "method"')

    assert find_reason(har, text) == "request.method: repeated"


@pytest.mark.usefixtures("backend")
def test_a_har_that_is_cut_off_anywhere_is_refused() -> None:
    entry = build_entry(response_content={"text": 'a"\\\u00e9😀'}, cache=[1e5, True, None, -2])
    text = json.dumps({"log": {"entries": [entry]}}, ensure_ascii=False).encode()
    assert len(list(read_har("case.har", iter([text])))) == 1

    for end in range(len(text)):
        with pytest.raises(SourceError, match="; export it again"):
            list(read_har("case.har", iter([text[:end]])))


NO_ENTRIES = "not a HAR file: it has no array log.entries; export it as HAR 1.2"


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", NO_ENTRIES),
        ("[]", NO_ENTRIES),
        ('{"log": []}', NO_ENTRIES),
        ('{"log": {"entries": {}}}', NO_ENTRIES),
        ('{"log": {"entries": [], "entries": []}}', NO_ENTRIES),
        ('{"log": {"entries": [{}], "x": \'\'}}', "not JSON after entry 1; export it again"),
        ('{"log": {"entries": []}} x', "not JSON after entry 0; export it again"),
        ('{"log": {"entries": ["\\q"]}}', "not JSON after entry 0; export it again"),
        ("", "cut off after entry 0; export it again"),
    ],
)  # fmt: skip
def test_what_is_not_a_har_is_refused(text: str, problem: str, har: Path) -> None:
    with pytest.raises(SourceError) as refused:
        read_all(har, text)
    assert refused.value.reason == f"{har}: {problem}"


def test_dropped_headers_still_count(har: Path) -> None:
    """The limit applies to the target and all headers, read or dropped."""
    size = MAX_HEAD_BYTES - len("/gateway/v1/servers/a") - len("cookie")
    for extra in (0, 1):
        headers = [{"name": "cookie", "value": "c" * (size + extra)}]
        head = read_one(har, build_har(build_entry(request_headers=headers))).head
        if extra:
            with pytest.raises(InvalidRequestError, match="more than 16,384 bytes"):
                parse_get_server(head, b"a")
        else:
            parse_get_server(head, b"a")


def test_a_text_that_is_too_long_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MAX_TEXT_BYTES", 200)
    long = '"\\é' * 40
    text = build_har(
        build_entry(response_content={"text": long}),
        build_entry(f"{SERVER}{long}"),
        build_entry(f"https://cdn.example/{long}"),
        build_entry(startedDateTime=long),
        build_entry(request_headers=[{"name": "cookie", "value": long}]),
    )

    chunks = (text[start : start + 7] for start in range(0, len(text), 7))
    body, url, foreign, time, last = read_har("case.har", chunks)

    problem = "longer than 200 bytes"
    assert body == Unreadable("case.har, entry 1", f"response.content.text: {problem}")
    assert url == Unreadable("case.har, entry 2", f"request.url: {problem}")
    assert foreign == Exchange("case.har, entry 3", Head("GET", b"/", b"", ()), b"", "cdn.example")
    assert time == Unreadable("case.har, entry 4", f"startedDateTime: {problem}")
    assert isinstance(last, Exchange)
    with pytest.raises(InvalidRequestError, match=r"more than 16,384 bytes"):
        parse_get_server(last.head, b"a")
