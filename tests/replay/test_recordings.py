"""Read recordings of every kind: their exchanges, and why others are unreadable."""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.recorded import (
    COMPARE,
    HOST,
    SERVER,
    build_content,
    build_entry,
    build_har,
    find_reason,
    read_all,
    read_one,
)
from srvstat.contract.errors import InvalidRequestError, SourceError
from srvstat.contract.http import MAX_HEAD_BYTES, Head, parse_get_server
from srvstat.documents.support import Recording, StoredRequest, StoredResponse
from srvstat.files import json_stream
from srvstat.support.pasted import read_cassette, read_json, read_postman, read_text
from srvstat.support.recognition import Reader
from srvstat.support.recordings import Exchange, RecordedResponse, Unreadable, read_har, read_ndjson
from test_memory import run_python_measured

HAR = build_har(build_entry()).decode()
LINE = '{"request":{"method":"GET","path":"/gateway/v1/servers/a"}}'
COMMAND = "curl http://h/gateway/v1/servers/a"


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("a.har", HAR, "entry 1"),
        ("A.HAR", HAR, "entry 1"),
        ("a", HAR, "entry 1"),
        ("a.json", f" \r\n{HAR}", "entry 1"),
        ("a.ndjson", LINE, "line 1"),
        ("a.JSONL", LINE, "line 1"),
        ("a", f"\n{LINE}", "line 2"),
        ("a.har.bak", LINE, "line 1"),
        ("a.sh", COMMAND, "line 1"),
        ("a.curl", COMMAND, "line 1"),
        ("a", COMMAND, "line 1"),
        ("a", "\n" * 2_000 + COMMAND, "line 2001"),
    ],
)
def test_the_name_or_else_the_content_selects_the_kind(
    name: str, content: str, place: str, tmp_path: Path
) -> None:
    path = tmp_path / name

    (read,) = read_all(path, content)

    assert isinstance(read, Exchange)
    assert read.place == f"{path}, {place}"
    assert read.head.path == b"/gateway/v1/servers/a"


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="/a: empty; ask for the recording again"):
        read_all(tmp_path / "a", b" \n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello", "no request found"),
        ("I used curl and requests", "a command or a call needs its URL"),
        ("type: collection.insomnia.rest/5.0", "HTTPie and Insomnia are not read; copy as cURL"),
        ("http POST :8000/x a=b", "HTTPie and Insomnia are not read; copy as cURL"),
        (
            '1.2.3.4 - - [1/Mar/2026:06:00:00 +0000] "POST /gateway/v1/compare HTTP/1.1" 200 9',
            "a log has no bodies; run srvstat replay RECORDING --request-id ID",
        ),
    ],
)
def test_a_text_without_exchanges_is_refused_with_what_came_near(
    text: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(SourceError) as refused:
        read_all(tmp_path / "mail.txt", text)

    remedy = (
        "a recording is a HAR file or a curl command; for numbers without a request, use srvstat"
        " when"
    )
    assert str(refused.value) == f"{tmp_path}/mail.txt: {reason}; {remedy}"


def mutate(text: bytes) -> st.SearchStrategy[bytes]:
    """Generate texts with a part that is replaced."""
    places = st.integers(0, len(text))
    return st.tuples(places, places, st.binary(max_size=5)).map(
        lambda drawn: text[: drawn[0]] + drawn[2] + text[drawn[1] :]
    )


PARTS = [
    *"-d'\"\\\n\t^`${}()|&;<>#:\0é",
    "$'",
    "%A%",
    "curl ",
    "http://h/gateway/v1/compare ",
    "-H @x",
]
COMMANDS = st.lists(st.sampled_from(PARTS)).map(lambda parts: f"curl -{''.join(parts)}".encode())


FETCH = (
    b'fetch("http://h/gateway/v1/compare", {"method": "POST", "headers": {"a": "b"}, "body": "{}"})'
)
POSTMAN = (
    b'{"info":{},"item":[{"request":{"method":"GET","url":"http://h/gateway/v1/servers/a"},'
    b'"response":[{"code":200,"header":[{"key":"Date","value":"x"}],"body":"{}"}]}]}'
)
ANSWER_ALONE = b'{"range":"7d","data":[{"serverId":"a"},{"serverId":"b"}]}'
POWERSHELL = (
    b'irm -Uri "http://h/gateway/v1/compare" -Method "POST" `\n-Headers @{ "a"="b"; \'c\'=$d }'
    b' -Body "{`"servers`":$([char]91)]}"\n{"range":"7d","data":[]}'
)
PYTHON = (
    b"body = {'servers': [], 'range': f'{n}d', **more}\n"
    b"r = requests.post(base + '/gateway/v1/compare', json=body, headers={'a': 'b'})\n"
)
ENTRY = (
    b'{"time":"2026-03-01T06:00:00Z","id":"a","operation":"compareServers","servers":["id:a"],'
    b'"range":"7d","status":200}'
)
CASSETTE = (
    b'interactions: [{"request":{"method":"GET","uri":"http://h/gateway/v1/servers/a","body":"",'
    b'"headers":{"a":["b"]}},"response":{"status":{"code":200},"headers":{"Content-Length":["2"]},'
    b'"body":{"string":"{}"}},"recorded_at":"x"}]'
)
TEXTS = (
    *(HAR.encode(), LINE.encode(), FETCH, POSTMAN, ANSWER_ALONE),
    *(POWERSHELL, PYTHON, ENTRY, CASSETTE),
)


@pytest.mark.parametrize(
    "read", [read_har, read_ndjson, read_text, read_json, read_postman, read_cassette]
)
@given(
    text=st.one_of(st.binary(), st.sampled_from(TEXTS).flatmap(mutate), COMMANDS),
    size=st.integers(1, 100),
)
def test_any_content_is_read_or_refused(read: Reader, text: bytes, size: int) -> None:
    chunks = (text[start : start + size] for start in range(0, len(text), size))

    with suppress(SourceError):
        for found in read("case", chunks):
            assert isinstance(found, Exchange | Unreadable)


@given(
    value=st.recursive(
        st.none() | st.integers(-9, 9) | st.text(max_size=20),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=20), inner),
    ),
    size=st.integers(1, 9),
    is_ascii=st.booleans(),
)
def test_only_long_strings_are_replaced(value: Any, size: int, is_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    chunks = [text[start : start + size] for start in range(0, len(text), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "MAX_TEXT_BYTES", 10)
        limited = b"".join(json_stream.limit_strings(chunks))

    replaced = re.compile(rb'"\\u0000too long\\u0000[^"]*"')
    expected = re.sub(
        rb'"((?:[^"\\]|\\.)*)"', lambda string: string[0] if len(string[1]) <= 10 else b"long", text
    )
    assert replaced.sub(b"long", limited) == expected


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


NOT_MILLISECONDS = "not a time; use YYYY-MM-DDTHH:MM:SSZ or Unix milliseconds"
NO_ZONE = "no time zone; add Z or an offset such as +02:00"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (json.dumps(PLAIN)[:-1] + ', "request": {}}', 'the key "request" is repeated'),
        ('{"request": {"method": "GET"}}', "request.path: missing"),
        (change(version=2), "version: 2 is not one of 1"),
        (change(document="replay"), 'document: "replay" is not one of recording'),
        (change(asOf="2026-03-01 12:00"), f"asOf: {NO_ZONE}"),
        (change(requestedAt=-1), f"requestedAt: {NOT_MILLISECONDS}"),
        (change(requestedAt=None), "requestedAt: must be an integer"),
        (change(root=7), "root: must be a string"),
        (change(more=1), "more: unknown property"),
        (change(as_of=1), "as_of: unknown property"),
        (change(response={"status": 99, "body": ""}), "response.status: must be at least 100"),
        (change(response={"status": "x", "body": ""}), "response.status: must be an integer"),
        (ask(headers=[]), "request.headers: must be an object"),
        (ask(body="", bodyBase64=""), "request: both body and bodyBase64"),
        (ask(bodyBase64="*"), "request.bodyBase64: not base64"),
        (ask(bodyBase64="é"), "request.bodyBase64: not base64"),
        (ask(body="\ud800"), "nested too deeply, or not Unicode text (a lone surrogate)"),
        (ask(method="\ud800"), "nested too deeply, or not Unicode text (a lone surrogate)"),
        (change(plan="\ud800"), "nested too deeply, or not Unicode text (a lone surrogate)"),
        pytest.param('{"document":' + "[" * 100_000, "nested too deeply", id="deep"),
    ],
)  # fmt: skip
def test_a_line_is_validated_strictly(line: str, reason: str, case: Path) -> None:
    assert find_reason(case, line) == reason


STARTED = 1_772_366_400_123
ANSWER = b'{"data":{"id":"a"}}'


@pytest.fixture
def har(tmp_path: Path) -> Path:
    return tmp_path / "case.har"


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
        f"{HOST}{COMPARE}?a=%20b#fragment",
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
        requested_at=STARTED,
        response=RecordedResponse(200, '{"ü":2}'.encode()),
    )


@pytest.mark.parametrize(
    ("started", "at"),
    [
        ("2026-03-01T12:00:00.123456+00:00", STARTED),  # mitmproxy
        ("2026-03-01T13:00:00.123+01:00", STARTED),  # Firefox
        ("2026-03-01T12:00:00.1234567Z", STARTED),  # Fiddler
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
        ("gzip", gzip.compress(ANSWER, mtime=0)),
        ("gzip", gzip.compress(ANSWER[:5], mtime=0) + gzip.compress(ANSWER[5:], mtime=0)),
        ("x-gzip", gzip.compress(ANSWER, mtime=0)),
        ("deflate", zlib.compress(ANSWER)),
        ("gzip", ANSWER),  # already decompressed, as in browsers
        ("br", ANSWER),
        ("identity", ANSWER),
        ("gzip", b"<html>"),
    ],
)
def test_a_compressed_body_is_decompressed(coding: str, recorded: bytes, har: Path) -> None:
    entry = build_entry(
        response_headers=[{"name": "Content-Encoding", "value": coding}],
        response_content=build_content(recorded),
    )

    expected = ANSWER if recorded != b"<html>" else recorded
    assert read_one(har, build_har(entry)).response == RecordedResponse(200, expected)


DECOMPRESSED = "export it again with decompressed bodies"


@pytest.mark.parametrize(
    ("coding", "recorded", "reason"),
    [
        ("br", b"\x0b\x09\x80{\xff", f"compressed with br; {DECOMPRESSED}"),
        ("gzip, br", b"\xff", f"compressed with an unknown coding; {DECOMPRESSED}"),
        ("gzip", b"\xff\xff", "damaged compressed data"),
        ("gzip", gzip.compress(ANSWER, mtime=0)[:-9], "compressed data that is cut off"),
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
        # Playwright, with recordContent omit or attach
        {"request_bodySize": 84, "request_postData": {"mimeType": "", "text": ""}},
        {"request_bodySize": -1, "request_postData": {"mimeType": "", "text": ""}},
        {},  # a body that the browser streamed
    ],
)
def test_a_request_whose_body_is_missing_is_unreadable(members: Any, har: Path) -> None:
    entry = build_entry(HOST + COMPARE, request_method="POST", **members)

    expected = "request.postData.text: missing; export the recording with bodies"
    assert find_reason(har, build_har(entry)) == expected


def test_a_refused_request_may_have_no_body(har: Path) -> None:
    entry = build_entry(HOST + COMPARE, request_method="POST", response_status=400)

    assert read_one(har, build_har(entry)).body == b""


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (
            {"request_bodySize": 84, "request_postData": {"text": '{"servers":[{'}},
            "request.postData.text: has 13 of 84 bytes",
        ),
        (
            {
                "request_headers": [{"name": "Content-Length", "value": "14"}],
                "request_postData": {"text": '{"servers":[{'},
            },
            "request.postData.text: has 13 of 14 bytes",
        ),
        ({"response_content": {"size": 19, "text": ""}}, "response.content.text: has 0 of 19 b"),
        (
            {"response_content": {"size": 1_200, "text": '{"data":'}},
            "response.content.text: has 8 of 1,200 bytes",
        ),
        (
            {"response_content": build_content(b"{", size=19, compression=-3)},
            "response.content.text: has 1 of 16 bytes",
        ),
    ],
)
def test_a_body_that_is_shorter_than_recorded_is_unreadable(
    members: Any, reason: str, har: Path
) -> None:
    post = {"request_method": "POST", "request_postData": {"text": "{}"}}
    found = find_reason(har, build_har(build_entry(HOST + COMPARE, **(post | members))))

    assert found.startswith(reason)
    assert found.endswith("; export the recording with whole bodies")


@pytest.mark.parametrize(
    "members",
    [
        # mitmproxy: the size is that of the compressed body
        {"size": 39, "compression": -20, "text": ANSWER.decode()},
        {"size": 39, "text": ANSWER.decode()},
        {"size": 12, "compression": 7, "text": ANSWER.decode()},
        build_content(gzip.compress(ANSWER, mtime=0), size=60),
    ],
)
def test_the_size_of_a_compressed_body_may_be_larger(members: Any, har: Path) -> None:
    coding = [{"name": "content-encoding", "value": "gzip"}]
    entry = build_entry(response_headers=coding, response_content=members)

    assert read_one(har, build_har(entry)).response == RecordedResponse(200, ANSWER)


NOT_BASE64 = "response.content.encoding: not base64"
NOT_BASE64_TEXT = "response.content.text: not base64"


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (build_entry(startedDateTime="2026-03-01T12:00:00"), f"startedDateTime: {NO_ZONE}"),
        (build_entry(startedDateTime=[]), "startedDateTime: must be an integer"),
        (build_entry(request_method=None), "request.method: must be a string"),
        (build_entry(request_url=7), "request.url: must be a string"),
        (build_entry(request_headers={}), "request.headers: must be an array"),
        (build_entry(request_headers=[{"name": "a"}]), "request.headers[0].value: missing"),
        (build_entry(request={}), "request.method: missing"),
        (build_entry(request="x"), "request: must be an object"),
        (build_entry(request_bodySize=1.5), "request.bodySize: must be an integer"),
        (build_entry(response="x"), "response: must be an object"),
        (build_entry(response_status="200"), "response.status: must be an integer"),
        (build_entry(response_status=True), "response.status: must be an integer"),
        (build_entry(response_status=600), "response.status: must be at most 599"),
        (build_entry(response_content={"text": "*", "encoding": "base64"}), NOT_BASE64_TEXT),
        (build_entry(response_content={"text": "", "encoding": "x"}), NOT_BASE64),
        (7, "body: must be an object"),
        ([{}], "body: must be an object"),
        ({}, "request: missing"),
    ],
)  # fmt: skip
def test_an_invalid_entry_is_unreadable_and_the_rest_is_read(
    entry: Any, reason: str, har: Path
) -> None:
    first, last = read_all(har, build_har(entry, build_entry()))

    assert first == Unreadable(f"{har}, entry 1", reason)
    assert isinstance(last, Exchange)


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
        ("", "empty; ask for the recording again"),
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
        build_entry(f"{HOST}{SERVER}{long}"),
        build_entry(f"https://cdn.example/{long}"),
        build_entry(request_headers=[{"name": "cookie", "value": long}]),
    )

    chunks = (text[start : start + 7] for start in range(0, len(text), 7))
    body, url, foreign, last = read_har("case.har", chunks)

    problem = "longer than 200 bytes"
    assert body == Unreadable("case.har, entry 1", f"response.content.text: {problem}")
    assert url == Unreadable("case.har, entry 2", f"request.url: {problem}")
    assert foreign == Exchange("case.har, entry 3", Head("GET", b"/", b"", []), b"", "cdn.example")
    assert isinstance(last, Exchange)
    with pytest.raises(InvalidRequestError, match=r"more than 16,384 bytes"):
        parse_get_server(last.head, b"a")


MAX_MIB = 100
"""A third of the 300 MiB that a large recording may take."""
SIZE = 50 << 20

READ = """
import sys
from srvstat.support.recognition import read_recording
assert sum(1 for _ in read_recording("case.har")) == int(sys.argv[1])
"""


def write_long_text(url: str) -> Iterator[str]:
    text = json.dumps(build_entry(url, response_content={"text": "LONG", "encoding": "base64"}))
    before, _, after = text.partition("LONG")
    yield before
    for _ in range(SIZE >> 20):
        yield "A" * (1 << 20)
    yield after


def write_many_entries() -> Iterator[str]:
    headers = [{"name": f"name-{number}", "value": "value"} for number in range(10)]
    for number in range(5_000):
        yield "," if number else ""
        yield json.dumps(build_entry(f"https://cdn/{number}", request_headers=headers))


WRITERS = {
    "ours": lambda: write_long_text("https://h/gateway/v1/servers/a"),
    "many": write_many_entries,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "backend"), [*((kind, "yajl2_c") for kind in WRITERS), ("ours", "python")]
)
def test_a_large_har_takes_little_memory(
    kind: str, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IJSON_BACKEND", backend)
    with (tmp_path / "case.har").open("w", encoding="utf-8") as file:
        file.write('{"log": {"entries": [')
        file.writelines(WRITERS[kind]())
        file.write("]}}")
    count = 5_000 if kind == "many" else 1

    assert run_python_measured(tmp_path, "-c", READ, str(count)) < MAX_MIB
