"""Compare the reader of curl commands with the requests that curl itself sends."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from srvstat.contract.http import JUDGED_HEADERS
from srvstat.support.recordings import Exchange, Unreadable, keep_judged
from srvstat.support.replay import read_recording

pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")

GET = "URL/gateway/v1/servers/a"
COMPARE = "URL/gateway/v1/compare"
JSON = "-H 'Content-Type: application/json'"

COMMANDS = [
    f"curl {GET}",
    f"curl -sS '{GET}?by=cfxId#there'",
    f"curl -I {GET}?",
    f"curl {GET}/../%62?by=%69d",
    f"curl --path-as-is {GET}/../b",
    f"curl -G -d by=id -d x=1 {GET}",
    f"curl -G --data-urlencode 'by=c d' '{GET}?a=1'",
    f"curl -d '' {COMPARE}",
    f"curl -d a=1 --data-ascii b {COMPARE}",
    f"curl -sSXPOST {COMPARE}",
    f"curl -X DELETE {COMPARE}",
    f"curl -X get -d x {GET}",
    f"curl {COMPARE} {JSON} --data-raw '@lines'",
    f"curl {COMPARE} --json '{{\"servers\":' --json '[]}}'",
    f"curl {COMPARE} --json '{{}}' -d x=1",
    f"curl {COMPARE} -d x=1 --json '{{}}' -d y=2 -d ''",
    f"curl {COMPARE} --json '[]' -H 'content-type: text/plain'",
    f"curl {COMPARE} -d a --data-urlencode 'q=x y/é' --data-urlencode '=a&b' --data-urlencode c",
    f"curl {COMPARE} -H 'Content-Type:' -d x",
    f"curl {COMPARE} -H 'Content-Type;' -H 'X-Gateway-Key;' -d x",
    f"curl {COMPARE} -H 'Transfer-Encoding: chunked' {JSON} -d x",
    f"curl {COMPARE} {JSON} --data-raw $'{{\\n\\t\\\"a\\\": \\'\\u00e9\\xc3\\xa9\\101\\''",
    f"""curl {COMPARE} \\
      -H "X-Gateway-Key: a\\$b\\`c\\\\d" \\
      {JSON}    --data "{{\\"a\\": 'b'}}" # the end""",
    f"curl {GET} ; curl {GET}?2 && curl {GET}?3 | cat > /dev/null 2>&1",
    f"curl {GET}?1 {GET}?2 --next -d x {COMPARE}",
    f"curl -g '{GET}?x=[1]{{2}}'",
    f"curl '{GET}?x=\\[1\\]'",
    f"curl --http1.1 -L -u me:secret -b a=b -A me -e r --max-time 5 --compressed {GET}",
    f"curl -XPOST -- {COMPARE}",
    f"curl {GET}?1 --url {GET}?2 -s {GET}?3 -- {GET}?4",
    f"curl {COMPARE} --data-raw -- -d --next --data-raw --x=1 -- {COMPARE}",
    f"curl {COMPARE} --data-raw a\rb",
    f"curl {GET} && \\curl {GET}?2",
    *(
        f"curl {COMPARE} --data-raw {word}"
        for word in (
            r"""a'b'"c"\d$'e'$"f"''""g#h # end""",
            '"\\a\\$\\"\\`\\\\\\\nb"',
            r"""$'\a\b\e\E\f\n\r\t\v\\\'\"\?\q\1\12\1234\x4g\xe9\xc3\xa9\u41 \U1F600'""",
            "a 2>/dev/null --data-raw b>c -d d >&2 -d e 2>&1 &>/dev/null",
            'a$ -d \'c\'"$" -d "$."',
            r"a{b}c -d x=y~x\#",
        )
    ),
]

Sent = tuple[str, bytes, list[tuple[bytes, bytes]], bytes]
"""The method, the target, the judged headers in a fixed order, and the body."""


class Handler(BaseHTTPRequestHandler):
    """Keeps each request in the server's list `sent`, and answers it without a body."""

    protocol_version = "HTTP/1.1"
    server: Any

    def handle_one_request(self) -> None:
        """Read a request with any method."""
        self.raw_requestline = self.rfile.readline()
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        headers = [(name.encode(), text.encode("latin-1")) for name, text in self.headers.items()]
        kept = keep_judged(pair for pair in headers if pair[0].lower() in JUDGED_HEADERS)
        target = self.raw_requestline.split(b" ")[1]
        self.server.sent.append((self.command, target, sorted(kept), self.read_body()))
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        self.close_connection = True

    def read_body(self) -> bytes:
        """Read the body by its length or in chunks."""
        if self.headers["Transfer-Encoding"] != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"] or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.sent = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def describe(exchange: Any) -> Sent:
    assert isinstance(exchange, Exchange), exchange
    head = exchange.head
    target = head.path + (b"?" + head.query if head.query else b"")
    judged = sorted(pair for pair in head.headers if pair[0] in JUDGED_HEADERS)
    return head.method, target, judged, exchange.body


def run_script() -> subprocess.CompletedProcess[bytes]:
    environment = {"CURL_HOME": "/", "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        ["bash", "case.sh"], capture_output=True, env=environment, timeout=30, check=False
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_curl_sends_the_requests_that_are_read(
    command: str, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = command.replace("URL", f"http://127.0.0.1:{server.server_port}")
    Path("case.sh").write_text(script, encoding="utf-8")
    server.sent.clear()

    ran = run_script()

    assert ran.returncode == 0, ran.stderr
    sent = [
        (method, target.removesuffix(b"?"), headers, body)
        for method, target, headers, body in server.sent
    ]
    assert [describe(read) for read in read_recording("case.sh")] == sent


@pytest.mark.parametrize(
    "command",
    [
        "curl -H 'Accept: x'",
        "curl -I -d x URL/",
        "curl -d",
        "curl --frobnicate URL/",
        "curl --data=x URL/",
        "curl --url=URL/",
        "curl 'URL/a b'",
        "curl 'URL/{a'",
        "curl 'URL/[x'",
    ],
)
def test_what_curl_refuses_is_unreadable(
    command: str, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = command.replace("URL", f"http://127.0.0.1:{server.server_port}")
    Path("case.sh").write_text(script, encoding="utf-8")
    server.sent.clear()

    assert run_script().returncode
    assert server.sent == []
    assert [type(read) for read in read_recording("case.sh")] == [Unreadable]
