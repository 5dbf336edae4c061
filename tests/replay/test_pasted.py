"""Replay what people send: a body alone, a command with its response, and packed files."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli
from replay.recorded import COMPARE, describe_exchange, find_reason, read_one, write_har
from srvstat.contract.errors import SourceError
from srvstat.support.recognition import read_recording

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
        (packed[:-9], "damaged or cut gzip data; send it again"),
        (b"PK\x03\x04" + bytes(50), "a damaged archive; send it again"),
        (b"hello", "no curl command, no HAR file"),
    ):
        path.write_bytes(content)
        with pytest.raises(SourceError, match=reason):
            list(read_recording(str(path)))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("picture.png", b"\x89PNG")
    (other,) = read_recording(str(path))
    assert other.place == f"{path}/picture.png"


def test_curly_quotes_are_named(tmp_path: Path) -> None:
    command = CURL.replace("'", "\u201c")
    assert find_reason(tmp_path / "mail.txt", command).startswith("curly quotes")
