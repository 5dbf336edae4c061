"""Replay what people send: a body alone, a command with its response, and packed files."""

import gzip
import json
import re
import shlex
import time
import zipfile
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Cli
from replay.recorded import (
    COMPARE,
    build_entry,
    build_har,
    describe_exchange,
    find_reason,
    read_all,
    read_one,
    write_har,
)
from srvstat.contract.errors import SourceError
from srvstat.contract.http import JUDGED_HEADERS
from srvstat.support import recognition
from srvstat.support.pasted import read_text
from srvstat.support.recognition import read_recording
from srvstat.support.recordings import Exchange, Unreadable, read_har

AT = "2026-03-01T06:00:00Z"
IDS = ("harbor-city", "night-shift")
BODY = json.dumps({"servers": [{"identifier": name, "by": "id"} for name in IDS], "range": "7d"})
CURL = f"curl -d '{BODY}' -H 'Content-Type: application/json' https://api.example{COMPARE}"


@pytest.fixture
def response(cli: Cli, demo_snapshot: str) -> str:
    """Return a response that was true six hours before the end of the snapshot."""
    ran = cli("compare", *IDS, "--range", "7d", "--at", AT, "-s", demo_snapshot, "--json")
    return ran.stdout.decode().strip()


def replay(cli: Cli, path: Path, snapshot: str, *options: str) -> Any:
    return cli("replay", str(path), "-s", snapshot, *options)


def test_a_response_alone_is_dated(
    cli: Cli, demo_snapshot: str, response: str, tmp_path: Path
) -> None:
    path = tmp_path / "answer.txt"
    path.write_text(json.dumps(json.loads(response), indent=2), encoding="utf-8")
    (found,) = replay(cli, path, demo_snapshot).json["exchanges"]
    shown = replay(cli, path, demo_snapshot, "--table").stdout.decode()

    assert (found["class"], found["path"]) == ("differs", COMPARE)
    assert [one["from"] <= AT <= one["to"] for one in found["trueDuring"]] == [True]
    assert "before" not in shown
    assert "stale" not in shown


def test_bodies_alone_are_read(cli: Cli, demo_snapshot: str, tmp_path: Path) -> None:
    path = tmp_path / "body.json"

    def find_class(text: str) -> list[str]:
        path.write_text(text, encoding="utf-8")
        return [each["class"] for each in replay(cli, path, demo_snapshot).json["exchanges"]]

    detail = cli("get", "harbor-city", "-s", demo_snapshot, "--json").stdout.decode()
    assert find_class(detail) == ["match"]
    assert find_class(BODY) == ["unrecorded"]
    assert find_class('{"error":{"code":"SERVER_NOT_FOUND","message":"x"}}') == ["unreadable"]
    for value in ("[7]", "7", '[{"serverId":1e400}]'):
        assert find_class(f'{{"data":{value},"range":"7d"}}') == ["unreadable"]
    with pytest.raises(SourceError, match="send the whole text"):
        list(read_recording(str(write(path, BODY[:-1]))))


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


HEAD = "HTTP/1.1 200 OK\ndate: Sun, 01 Mar 2026 06:00:00 GMT\ncontent-type: application/json\n\n"
VERBOSE = "> POST /x HTTP/1.1\n> Host: h\n>\n" + "".join(
    f"< {line}\n" for line in HEAD.splitlines()
)


@pytest.mark.parametrize(
    "template",
    [
        "{curl}\n{body}\n",
        "$ {curl}\n{head}{body}\n$ ",
        "$ {curl}\nHTTP/1.1 100 Continue\n\n{head}{body}\n",
        "me@Mac ~ % {curl}\n{verbose}{body}\n",
        "Hello,\n\n> PS C:\\> {curl}\n> {head}\n> {body}\n\nRegards",
        "I ran\n{curl}\nand got this, which is wrong: {body}",
    ],
)
def test_the_response_below_a_command_is_compared(
    template: str, cli: Cli, demo_snapshot: str, response: str, tmp_path: Path
) -> None:
    """With its date, it is right; without, it is dated."""
    path = tmp_path / "mail.txt"
    path.write_text(
        template.format(curl=CURL, body=response, head=HEAD, verbose=VERBOSE), encoding="utf-8"
    )

    ran = replay(cli, path, demo_snapshot)
    (found,) = ran.json["exchanges"]
    if "{head}" in template or "{verbose}" in template:
        assert found["answeredAt"] == "2026-03-01T06:00:00.000Z"
        assert (ran.exit_code, found["differences"]) == (0, [])
    else:
        assert found["answeredAt"] is None
        assert (ran.exit_code, len(found["trueDuring"])) == (5, 1)


@pytest.mark.parametrize(
    ("code", "status"), [("SERVER_NOT_FOUND", 404), ("INVALID_REQUEST", 400), ("OTHER", 500)]
)
def test_an_error_below_a_command_has_the_status_of_its_code(
    code: str, status: int, tmp_path: Path
) -> None:
    read = read_one(tmp_path / "mail.txt", f'{CURL}\n{{"error":{{"code":"{code}"}}}}')
    assert read.response
    assert read.response.status == status
    odd = read_one(tmp_path / "mail.txt", f'{CURL}\n{{"error":{{"code":[]}}}}')
    assert odd.response
    assert odd.response.status == 500
    without = read_one(tmp_path / "mail.txt", f"{CURL} -i\nHTTP/2 502\nserver: proxy\n\nBad")
    assert without.response
    assert (without.response.status, without.response.body) == (502, None)


HEADERS = {"content-type": "application/json", "x-gateway-key": "k"}
PAIRS = [{"key": name, "value": value} for name, value in HEADERS.items()]


def test_calls_of_fetch_are_read(cli: Cli, demo_snapshot: str, tmp_path: Path) -> None:
    options = {"headers": HEADERS, "body": BODY, "method": "POST", "mode": "cors"}
    text = f"""See:

      await fetch("https://api.example{COMPARE}", {json.dumps(options, indent=2)});
      fetch("https://api.example/gateway/v1/servers/harbor-city")
      fetch("https://api.example/x", broken)
    """
    found = replay(cli, write(tmp_path / "mail.txt", text), demo_snapshot).json["exchanges"]

    assert [(one["place"].rpartition(" ")[2], one["class"]) for one in found] == [
        ("3", "unrecorded"),
        ("12", "unrecorded"),
        ("13", "unreadable"),
    ]
    assert [one["answer"]["status"] for one in found[:2]] == [200, 200]


URL = f"https://api.example{COMPARE}"
CHROME = r"""
$session = New-Object Microsoft.PowerShell.Commands.WebRequestSession
$session.UserAgent = "Mozilla/5.0"
Invoke-WebRequest -UseBasicParsing -Uri "https://api.example/gateway/v1/compare" `
-Method "POST" `
-WebSession $session `
-Headers @{
"method"="POST"
  "x-gateway-key"="a`$b`"c"
} `
-ContentType "application/json" `
-Body ([System.Text.Encoding]::UTF8.GetBytes("{`"`":`"$([char]233)$([char]55357)$([char]56832)`"}"))
"""
CURLCONVERTER = """
import requests

headers = {
    'X-Gateway-Key': 'k',
    # 'Accept': '*/*',
}

json_data = {
    'range': '7d',
}

response = requests.post('https://api.example/gateway/v1/compare', headers=headers, json=json_data)
"""
SCRIPT = """
>>> BASE = "https://api.example"
>>> payload = dict_of_another_kind
>>> payload = {"range": "7d",
...            "servers": []}
>>> print(httpx.request("POST", f"{BASE}/gateway/v1/compare", content=json.dumps(payload).encode(),
...       headers={"Content-Type": "application/json", "X-Gateway-Key": os.environ["KEY"]}).json())
"""
TYPED = """
const r = await fetch(base + '/gateway/v1/compare', {
  method: 'post', headers: {'Content-Type': 'application/json'},
  body: JSON.stringify({range: '7d', exact: true, none: null}),
});
"""


@pytest.mark.parametrize(
    ("text", "method", "target", "body"),
    [
        (CHROME, "POST", COMPARE, '{"":"\u00e9\U0001f600"}'),
        ("PS C:\\> irm http://h/a?by=id", "GET", "/a?by=id", ""),
        ("> PS /home> $r = (iwr -UseBasicParsing 'h/a').Content", "GET", "/a", ""),
        ("curl -Uri http://h/a -Method Put -Body 'it''s' | ConvertTo-Json", "PUT", "/a", "it's"),
        ("irm -UseB h/a -Meth Put -Bo 'x' -Skiph:$false", "PUT", "/a", "x"),
        ("irm h/a -Debug -m:Post -b:x", "POST", "/a", "x"),
        ("irm h/a -Body @{ by='id'; x = 1 }", "GET", "/a?by=id&x=1", ""),
        ("irm h/a -Method Post -Body @{by='id'}", "POST", "/a", "by=id"),
        ('irm "$base/gateway/v1/servers/a"', "GET", "/gateway/v1/servers/a", ""),
        (CURLCONVERTER, "POST", COMPARE, '{"range": "7d"}'),
        (SCRIPT, "POST", COMPARE, '{"range": "7d", "servers": []}'),
        (TYPED, "POST", COMPARE, '{"range": "7d", "exact": true, "none": null}'),
        ("requests.get('http://h/a?x=1', params={'by': 'id'})", "GET", "/a?x=1&by=id", ""),
        ("requests.get('http://h/a', 'by=id')", "GET", "/a?by=id", ""),
        ("session.post('http://h/a', {'by': 'c d'})", "POST", "/a", "by=c+d"),
        ("requests.put(url='http://h/a', data='x')", "PUT", "/a", "x"),
        ("a = 'http://h/'\nclient.delete(a + 'b')\na = 'no'", "DELETE", "/b", ""),
    ],
)  # fmt: skip
def test_commands_and_calls_are_read(
    text: str, method: str, target: str, body: str, tmp_path: Path
) -> None:
    read = read_one(tmp_path / "mail.txt", text)

    query = b"?" + read.head.query if read.head.query else b""
    assert (read.head.method, (read.head.path + query).decode()) == (method, target)
    assert read.body.decode() == body


@pytest.mark.parametrize(
    "change",
    [
        "url += '/a'",
        "url, _ = split()",
        "(x, url) = split()",
        "const {url, x} = split();",
        "[url, x] = split();",
        "for url in urls:",
        "for (const url of urls) {",
        "with choose() as url:",
        "def ask(name, url):",
        "def ask(name=1, url=2):",
        "const ask = (x, url) => {",
        "urls.map(url => {",
        "url['range'] = '30d'",
        "url.headers.x = 1;",
        "url['a'].append(2)",
        "url.update(x=1)",
        "Object.assign(url, more);",
        "del url['a']",
        "url ??= 'http://h/b';",
        "if x: url = 'http://h/b'",
        "x = 1; url = 'http://h/b'",
        "if x:\n    url = 'http://h/b'",
        "const x = 1,\n  url = choose();",
    ],
)
def test_a_variable_that_something_else_changes_is_unknown(change: str, tmp_path: Path) -> None:
    text = f"url = 'http://h/a'\n{change}\nrequests.get(url)"
    assert find_reason(tmp_path / "mail.txt", text) == f"requests.get: url: {UNKNOWN}"


@pytest.mark.parametrize(
    "between",
    [
        "requests.delete(url)",
        "requests.get(\n    'http://h', url='x',\n    url=url,\n    data=url)",
        "requests.get(\n    url='http://h/c'\n)",
        "print(url, len(url), url == 'x', url.strip(), {'a': url})",
        "for x in url:",
        "if url <= 'http://h/b' or url != x:",
        "this.url = 3; curl = 4; url2 = 5",
    ],
)
def test_a_variable_that_is_only_read_keeps_its_value(between: str, tmp_path: Path) -> None:
    text = f"url = 'http://h/old'\nurl = 'http://h/a'\n{between}\nrequests.get(url)"
    read = read_all(tmp_path / "mail.txt", text)[-1]
    assert isinstance(read, Exchange), read
    assert read.head.path == b"/a"


NOT_WHOLE = "not a whole call with its values; write them into it, or copy it as cURL"
EXPRESSION = "an expression, or a quote that is not closed; write the values as text"
FILES = "-InFile, -Form: files and standard input are not read; write the contents into the command"
UNKNOWN = "a variable or substitution; replace it with its value"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("requests.get(url)", f"requests.get: url: {UNKNOWN}"),
        ("requests.get('http://h/', headers=h)", f"requests.get: headers: {UNKNOWN}"),
        ("requests.post('http://h/', json={'a': [b]})", f"requests.post: data-raw: {UNKNOWN}"),
        ("requests.post('http://h/', json={**b})", f"requests.post: data-raw: {UNKNOWN}"),
        ("requests.post('http://h/', data={'a': b()})", f"requests.post: data-raw: {UNKNOWN}"),
        ("requests.get('http://h/', params={'a': b})", f"requests.get: url: {UNKNOWN}"),
        ("fetch(`http://h/`)", f"fetch: {NOT_WHOLE}"),
        ("requests.get('http://h/", f"requests.get: {NOT_WHOLE}"),
        ("requests.get('http://h/', data=7)", f"requests.get: {NOT_WHOLE}"),
        ("requests.get(" + "(" * 300, f"requests.get: {NOT_WHOLE}"),
        ("requests.get('" + "a" * 300_000, f"requests.get: {NOT_WHOLE}"),
        ("a = b + b\nb = a\nb = a + a\n" + "b = b + b\n" * 9_000 + "requests.get(b)",
         f"requests.get: {NOT_WHOLE}"),
        ("requests.post('http://h/', **more)",
         "requests.post: options in a variable or a file; write them into the call"),
        ("requests.post('http://h/', files={})",
         "requests.post: options in a variable or a file; write them into the call"),
        ("irm http://h/ -Body (Get-Clipboard)", EXPRESSION),
        ("irm http://h/ -Body 'a", EXPRESSION),
        ("irm http://h/ -InFile secret.txt", FILES),
        ("irm http://h/ -Method Post -Inf secret.txt", FILES),
        ("irm http://h/ -CustomMethod X",
         "-CustomMethod: not a known parameter; use -Method or -Headers"),
        ("irm http://h/ -Headers $h", f"headers: {UNKNOWN}"),
        ("irm http://h/ -Method Post -Body $b", f"data-raw: {UNKNOWN}"),
        ('irm http://h/ -Method Post -Body "$(gc id)"', f"data-raw: {UNKNOWN}"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_unreadable(text: str, reason: str, tmp_path: Path) -> None:
    assert find_reason(tmp_path / "mail.txt", text) == reason


def quote_powershell(text: str) -> str:
    """Quote a text as Chrome does."""
    escaped = re.sub(r'[`$"]', r"`\g<0>", text)
    units = escaped.encode("utf-16-le")
    pairs = (units[at : at + 2] for at in range(0, len(units), 2))
    codes = (int.from_bytes(pair, "little") for pair in pairs)
    return f'"{"".join(chr(one) if 32 <= one < 127 else f"$([char]{one})" for one in codes)}"'


NAMES = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=" "), min_size=1
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


@given(value=st.dictionaries(TEXTS, VALUES, max_size=3), key=NAMES)
def test_every_spelling_of_a_request_gives_the_same_exchange(
    value: dict[str, Any], key: str
) -> None:
    """As the HAR file of the same request."""
    body = json.dumps(value, ensure_ascii=False)
    headers = {"Content-Type": "application/json", "X-Gateway-Key": key}
    options = {"method": "POST", "headers": headers, "body": body}
    shell = " ".join(f"-H {shlex.quote(f'{name}: {text}')}" for name, text in headers.items())
    table = "; ".join(
        f"{quote_powershell(name)}={quote_powershell(headers[name])}" for name in headers
    )
    spellings = [
        f"curl {URL} {shell} --data-raw {shlex.quote(body)}",
        f"irm -Uri '{URL}' -Method POST -Headers @{{ {table} }} -Body {quote_powershell(body)}",
        f"iwr {URL} `\n-Method Post -Headers @{{\n{table}}} -Body {quote_powershell(body)}",
        f"h = {headers!r}\nrequests.post({URL!r}, headers=h, data={body!r}.encode())",
        f"httpx.request('POST', {URL!r}, content={body!r}, headers={headers!r})",
        f"await fetch({json.dumps(URL)}, {json.dumps(options, indent=2)});",
        f"await fetch({json.dumps(URL)}, {json.dumps(options, ensure_ascii=False)});",
    ]
    pairs = [{"name": name, "value": text} for name, text in headers.items()]
    sent = {"request_method": "POST", "request_headers": pairs, "request_postData": {"text": body}}
    har = build_har(build_entry(URL, **sent))

    (expected,) = map(describe, read_har("case", iter([har])))
    for text in spellings:
        (read,) = map(describe, read_text("case", iter([text.encode()])))
        assert read == expected, text


def describe(read: Exchange | Unreadable) -> Any:
    assert isinstance(read, Exchange), read
    head = read.head
    judged = {name: text for name, text in head.headers if name in JUDGED_HEADERS}
    judged.pop(b"content-length", None)
    return head.method, head.path, head.query, judged, read.body, read.host


def test_commands_of_all_kinds_are_read_in_their_order_with_their_responses(tmp_path: Path) -> None:
    answer = '{"range": "7d", "data": []}'
    calls = [
        "irm http://h/1",
        'fetch("http://h/2")',
        "$ curl http://h/3",
        "print(requests.get('http://h/4').json())",
        "PS C:\\> iwr http://h/5",
    ]
    text = "\n\n".join(f"Then\n{call}\nwhich said\n{answer}" for call in calls)

    read = [each for each in read_all(tmp_path / "mail.txt", text) if isinstance(each, Exchange)]

    assert [each.head.path for each in read] == [b"/1", b"/2", b"/3", b"/4", b"/5"]
    assert [each.response and each.response.body for each in read] == [answer.encode()] * 5


def test_a_line_of_the_log_is_the_request_that_it_describes(
    cli: Cli, demo_snapshot: str, tmp_path: Path
) -> None:
    def write_entry(**fields: Any) -> str:
        return json.dumps({"time": AT, "id": "a1", "remote": "", "method": "GET", **fields})

    names = ["id:harbor-city", "id:night-shift"]
    compared = {"servers": names, "range": "7d", "status": 200}
    lines = [
        write_entry(operation="compareServers", **compared),
        write_entry(operation="getServer", servers=["cfxId:fa9t5w"], status=200),
        write_entry(operation="getServer", status=400),
        write_entry(operation="getHealth", status=200),
        json.dumps({"time": AT, "event": "stopped"}),
        write_entry(status="x"),
    ]
    path = tmp_path / "case.txt"
    for text in ("\n".join(lines), "\n".join(f"> journal: {line}" for line in lines)):
        found = replay(cli, write(path, text), demo_snapshot).json["exchanges"]
        assert [(one["path"], one["class"]) for one in found[:4]] == [
            (COMPARE, "unrecorded"),
            ("/gateway/v1/servers/fa9t5w?by=cfxId", "unrecorded"),
            ("/gateway/v1/servers/?by=id", "unrecorded"),
            ("/getHealth", "foreign"),
        ]
        assert found[4]["reason"] == "status: must be an integer"
        assert (found[0]["requestId"], found[0]["answeredAt"]) == ("a1", "2026-03-01T06:00:00.000Z")
        assert found[0]["request"] == {"servers": names, "range": "7d"}


def test_a_postman_collection_is_read(
    cli: Cli, demo_snapshot: str, response: str, tmp_path: Path
) -> None:
    request = {
        "method": "POST",
        "header": PAIRS,
        "url": {"raw": f"{{{{base}}}}{COMPARE}", "host": ["{{base}}"]},
        "body": {"mode": "raw", "raw": BODY},
    }
    date = {"key": "Date", "value": "Sun, 01 Mar 2026 06:00:00 GMT"}
    saved = {"originalRequest": request, "code": 200, "header": [date], "body": response}
    detail = {"method": "GET", "url": "api.example/gateway/v1/servers/harbor-city", "header": []}
    folder = {"item": [{"request": request, "response": [saved]}]}
    collection = {"info": {}, "item": [folder, {"request": detail}, {"request": 7}]}
    execution = {
        "request": request | {"url": {"path": COMPARE[1:].split("/"), "host": ["api", "example"]}},
        "response": {"code": 200, "stream": {"type": "Buffer", "data": list(response.encode())}},
    }

    def list_classes(value: Any) -> list[str]:
        path = write(tmp_path / "case.json", json.dumps(value))
        return [one["class"] for one in replay(cli, path, demo_snapshot).json["exchanges"]]

    assert list_classes(collection) == ["match", "unrecorded", "unreadable"]
    assert list_classes({"run": {"executions": [execution]}}) == ["differs"]


@pytest.mark.parametrize("pack", ["gzip", "zip", "utf-16", "utf-16 in gzip"])
def test_a_packed_recording_is_read(
    pack: str, cli: Cli, demo_snapshot: str, response: str, tmp_path: Path
) -> None:
    line = describe_exchange(COMPARE, response, body=BODY, requestedAt=AT)
    text = Path(write_har(tmp_path / "x.har", [line])).read_bytes()
    path = tmp_path / "case.txt"
    if pack == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("case/customer.har", text)
            archive.writestr("__MACOSX/._customer.har", b"x")
    else:
        text = text.decode().encode("utf-16") if "utf-16" in pack else text
        path.write_bytes(gzip.compress(text) if "gzip" in pack else text)

    ran = replay(cli, path, demo_snapshot)
    assert (ran.exit_code, ran.json["counts"]["match"]) == (0, 1)
    place = f"{path}/case/customer.har" if pack == "zip" else str(path)
    assert ran.json["exchanges"][0]["place"] == f"{place}, entry 1"


def test_what_cannot_be_unpacked_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    packed = gzip.compress(CURL.encode())
    for content, reason in (
        (packed[:-9], "damaged or cut gzip data; ask for it again"),
        (b"PK\x03\x04" + bytes(50), "a damaged archive; ask for it again"),
        (b"hello", "no request found"),
    ):
        path.write_bytes(content)
        with pytest.raises(SourceError, match=reason):
            list(read_recording(str(path)))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("picture.png", b"\x89PNG")
    (other,) = read_recording(str(path))
    assert other.place == f"{path}/picture.png"


@pytest.mark.parametrize("pack", ["gzip", "zip", "gzip in zip", "attachment"])
def test_what_unpacks_to_too_much_is_refused(
    pack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recognition, "MAX_UNPACKED_BYTES", 100_000)
    path, content = tmp_path / "x.har", build_har(build_entry("https://a.example" + COMPARE))
    if pack == "attachment":
        entry = build_entry(URL, response_content={"size": 9, "_file": "big"})
        content = build_har(*[entry] * 3)
    else:
        content += b" " * 100_000
    content = gzip.compress(content) if "gzip" in pack else content
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.har", content)
        archive.writestr("x/big", bytes(40_000))
        archive.writestr("big", bytes(40_000))
    if pack == "gzip":
        path.write_bytes(content)

    with pytest.raises(SourceError) as raised:
        deque(read_recording(str(path)), 0)

    assert raised.value.reason == f"{path}: more than 100,000 bytes when unpacked; divide it"


def test_an_archive_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recognition, "MAX_ARCHIVE_BYTES", 100)
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.har", bytes(100))

    with pytest.raises(SourceError) as raised:
        list(read_recording(str(path)))

    assert raised.value.reason == f"{path}: more than 100 bytes; divide it"


def test_curly_quotes_are_named(tmp_path: Path) -> None:
    command = CURL.replace("'", "\u201c")
    assert find_reason(tmp_path / "mail.txt", command).startswith("curly quotes")


def write_postman(path: Path, request: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"info": {}, "item": [{"request": request}]}), encoding="utf-8")
    return path


def test_a_request_of_postman_is_the_one_that_it_sends(tmp_path: Path) -> None:
    body = {"mode": "raw", "raw": "{}", "options": {"raw": {"language": "json"}}}
    off = {"key": "X-Gateway-Key", "value": "old", "disabled": True}
    url = {"host": "{{base}}", "path": "gateway/v1/compare", "query": [{**off, "key": "a"}]}
    path = write_postman(
        tmp_path / "a.json", {"method": "POST", "url": url, "header": [off], "body": body}
    )

    (read,) = read_recording(str(path))

    assert isinstance(read, Exchange)
    assert (read.head.path, read.head.query, read.body) == (b"/gateway/v1/compare", b"", b"{}")
    assert read.head.headers == [(b"content-type", b"application/json")]


def test_a_variable_of_postman_makes_a_request_unreadable(tmp_path: Path) -> None:
    url = "{{base}}/gateway/v1/servers/{{id}}"
    path = write_postman(tmp_path / "a.json", {"method": "GET", "url": url})

    (read,) = read_recording(str(path))

    assert isinstance(read, Unreadable)
    assert read.reason == "a variable {{…}}; replace it with its value"


@pytest.mark.parametrize(
    "text",
    [
        "a" + "|curl" * 20_000,
        'irm -Uri `"' + '`"' * 20_000,
        "irm http://h/ -Headers @{" + "a" * 40_000 + "}",
        "a:" + " " * 20_000 + "\nrequests.get(a)",
        "requests.get('http://" + "a:" * 100_000 + "')",
    ],
    ids=["pipes", "quotes", "table", "annotation", "passwords"],
)
def test_a_hostile_text_is_read_in_a_moment(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mail.txt"
    path.write_text(text, encoding="utf-8")
    started = time.process_time()

    with suppress(SourceError):
        [*read_recording(str(path))]

    assert time.process_time() - started < 5  # only a quadratic search takes longer


def test_a_key_in_a_prefix_is_hidden(cli: Cli, demo_snapshot: str, tmp_path: Path) -> None:
    key = "customer-secret-key-123456"
    path = tmp_path / "mail.txt"
    path.write_text(f"curl http://h/{key}/gateway/v1/servers/a -H 'X-Gateway-Key: {key}'")

    for form in ("--json", "--table"):
        ran = cli("replay", str(path), "--prefix", "/zzz", "--snapshot", demo_snapshot, form)
        assert key not in ran.stdout.decode() + ran.stderr


def test_a_damaged_member_leaves_the_others_readable(tmp_path: Path) -> None:
    path = tmp_path / "case.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", "x" * 500 + "curl http://h/")
        archive.writestr("b.json", '{"servers": []}')
    data = bytearray(path.read_bytes())
    start = data.index(b"a.txt") + 5
    data[start : start + 6] = b"\xff" * 6
    path.write_bytes(data)

    damaged, other = read_recording(str(path))

    assert damaged == Unreadable(f"{path}/a.txt", "damaged; ask for the archive again")
    assert isinstance(other, Exchange)
