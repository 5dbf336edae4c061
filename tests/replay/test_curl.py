"""Read curl commands from scripts and messages, and send what curl itself sends."""

import os
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.recorded import find_reason, read_all, read_one
from srvstat.contract.errors import SourceError
from srvstat.contract.http import JUDGED_HEADERS
from srvstat.support import pasted
from srvstat.support.recognition import read_recording
from srvstat.support.recordings import Exchange, Unreadable, keep_judged

URL = "http://h/gateway/v1/servers/a"


@pytest.fixture
def mail(empty_directory: Path) -> Path:
    """Name a file in the current directory."""
    return empty_directory / "mail.txt"


def list_targets(read: list[Exchange | Unreadable]) -> list[tuple[str, bytes, bytes] | str]:
    return [
        read.reason
        if isinstance(read, Unreadable)
        else (read.head.method, read.head.path, read.head.query)
        for read in read
    ]


def test_commands_in_a_message_are_read_and_the_rest_is_skipped(mail: Path) -> None:
    text = """\
        Hello, curl doesn't work since 12:00. It's this command:

          $ curl -s 'http://h/gateway/v1/servers/a?by=id' \\
              -H "X-Gateway-Key: $KEY" | jq '
              .data' > out
        curl https://other.example/x?token=1   # not yours
        # curl http://h/commented
        > curl http://h/quoted
        curl.exe --frobnicate=secret http://h/
        curl h/gateway/v1/servers/b; curl 'unclosed
        curl h/gateway/v1/servers/c
        """

    read = read_all(mail, dedent(text).replace("\n", "\r\n"))

    assert [(found.place, *list_targets([found])) for found in read] == [
        (f"{mail}, line 3", ("GET", b"/gateway/v1/servers/a", b"by=id")),
        (f"{mail}, line 6", ("GET", b"/x", b"token=1")),
        (f"{mail}, line 8", ("GET", b"/quoted", b"")),
        (f"{mail}, line 9", "unknown option --frobnicate"),
        (f"{mail}, line 10", "a quote is not closed"),
        (f"{mail}, line 11", ("GET", b"/gateway/v1/servers/c", b"")),
    ]


@pytest.mark.parametrize(
    "prompt",
    [
        *("$ ", "~/dir$ ", "me@host:~$ ", "[me@host my dir]$ ", "root@host:/# ", "me@Mac ~ % "),
        *("C:\\My dir>", "PS C:\\My dir> ", "> ", ">> $ "),
    ],
)
def test_a_command_may_follow_a_prompt(prompt: str, mail: Path) -> None:
    assert list_targets([read_one(mail, f"{prompt}curl {URL}?by=id")]) == [
        ("GET", b"/gateway/v1/servers/a", b"by=id")
    ]


# Neither a program's arguments nor a line of a message can have NUL or a lone surrogate.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")
TEXTS = st.text(st.one_of(st.sampled_from("'\"\\$`!^%&|<>();{},#~*? \t\n"), CHARACTERS))


def quote_ansi(word: str) -> str:
    """Quote a word with $'…', as browsers do, and other characters by their bytes."""
    escapes = (
        character if re.match("[a-z ]", character) else
        f"\\u{ord(character):04x}" if character < "\u0100" else
        "".join(f"\\x{byte:02x}" for byte in character.encode())
        for character in word
    )  # fmt: skip
    return f"$'{''.join(escapes)}'"


def quote_double(word: str) -> str:
    escaped = re.sub(r'[\\"$`]', r"\\\g<0>", word)
    return f'"{escaped}"'


def quote_backslash(word: str) -> str:
    escaped = re.sub(r"[^A-Za-z0-9\n]", r"\\\g<0>", word).replace("\n", "'\n'")
    return escaped or "''"


def quote_cmd(word: str) -> str:
    """Quote a word as Chrome does in "Copy as cURL (cmd)"."""
    quoted = re.sub(r'(\\*)"', r'\1\1\\"', word)
    quoted = re.sub(r"(\\+)\Z", r"\1\1", quoted)
    return re.sub(r"[^a-zA-Z0-9\s]", r"^\g<0>", f'"{quoted}"').replace("\n", "^\n\n")


@pytest.mark.parametrize(
    ("quote", "end"),
    [
        (shlex.quote, "\\"),
        (quote_ansi, "\\"),
        (quote_double, "\\"),
        (quote_backslash, "\\"),
        (quote_cmd, "^"),
    ],
)
@given(word=TEXTS)
def test_quoted_words_are_read(quote: Callable[[str], str], end: str, word: str) -> None:
    text = f"curl --data-raw {quote(word)} {end}\n {URL} | jq\ncurl http://h/next"

    first, following = pasted.read_text("mail", iter([text.encode()]))

    assert isinstance(first, Exchange)
    assert first.body == word.encode()
    assert isinstance(following, Exchange)
    assert following.head.path == b"/next"


def test_the_environment_does_not_change_how_options_are_read(
    mail: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSIXLY_CORRECT", "1")

    assert read_one(mail, f"curl {URL} -d x").body == b"x"


def test_only_judged_headers_are_kept(mail: Path) -> None:
    command = f"curl {URL} -H 'X-Gateway-Key: k' -H 'Cookie: secret' -u me:secret -b c=secret"

    head = read_one(mail, command).head

    assert (b"x-gateway-key", b"k") in head.headers
    assert b"secret" not in repr(head).encode()


def test_a_variable_that_no_answer_depends_on_is_left_out(mail: Path) -> None:
    for value in ("$KEY", "${KEY:-x}", "$(cat key)", "`cat key`"):
        head = read_one(mail, f'curl "$BASE/gateway/v1/servers/a" -H "X-Gateway-Key: {value}"').head
        assert head.path == b"/gateway/v1/servers/a"
        assert [name for name, _ in head.headers] == [b"x"]


@pytest.mark.parametrize(
    "command",
    [
        r"""curl ^"http://h/gateway/v1/compare?a=%^20^&b^" ^
  -X ^"POST^" ^
  -H ^"Content-Type: application/json^" ^
  --data-raw ^"^{^\^"a^\^":^\^"x^%^41^& y^\^"^}^"
""",
        r"""curl.exe "http://h/gateway/v1/compare?a=%20&b" ^
  -H "Content-Type: application/json" ^
  -d "{\"a\":\"x%41^& y\"}" | more""",
        r"""curl "http://h/gateway/v1/compare?a=%20&b" -H "Content-Type: application/json" ^
  -d "{""a"":""x%41& y""}" > out.txt""",
    ],
)
def test_carets_of_windows_are_read(command: str, mail: Path) -> None:
    read = read_one(mail, f"{command}\n\nBest regards")

    assert list_targets([read]) == [("POST", b"/gateway/v1/compare", b"a=%20&b")]
    assert (b"content-type", b"application/json") in read.head.headers
    assert read.body == b'{"a":"x%41& y"}'


VARIABLE = "a variable or substitution; replace it with its value"
NOT_PLAIN = "a substitution, a backtick or a bracket outside quotes; write or quote its value"
NOT_READ = "files and standard input are not read; write the contents into the command"
PIPE = f"a pipe or <: {NOT_READ}"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("curl -X POST `\n  http://h/", NOT_PLAIN),
        ("curl -F a=b http://h/", "unknown option -F"),
        ("curl -sé http://h/", "unknown option -…"),
        ("curl -s-k http://h/", "unknown option -…"),
        ("curl --data='{}' http://h/", "unknown option --data"),
        ("curl --url=http://h/", "unknown option --url"),
        ("curl http://h/ -d", "-d: missing argument"),
        ("curl --max-time 5 -X POST", "no URL"),
        ('curl -X "$M" http://h/', f"request: {VARIABLE}"),
        ('curl "$BASE/compare"', f"url: {VARIABLE}"),
        ("curl http://h/ -H Content-Type:$T", f"header: {VARIABLE}"),
        # A line with percent signs is not for cmd.exe if it has a dollar sign or a backtick.
        (f'curl {URL} -H "X-D: $(date +%Y%m%d)" -d "$(cat secret.txt)"', f"data: {VARIABLE}"),
        ('curl http://h/gateway/v1/servers/`cat f` -o "%Y%"', f"url: {VARIABLE}"),
        (f'curl {URL} -H "%CT%"', f"header: {VARIABLE}"),
        (f"curl {URL}/%DATE%", f"url: {VARIABLE}"),
        (f'PS C:\\> type "secret.txt" | curl {URL}?a=%ID% -o x', f"url: {VARIABLE}"),
        (f"cat secret.txt | curl {URL} -d x", PIPE),
        (f"Get-Content secret.txt | curl.exe {URL} -d x", PIPE),
        (f"$ cat secret.txt |& curl {URL} -d x | jq .", PIPE),
        ("curl -d \"$(cat 'a')$((1))\" http://h/", NOT_PLAIN),
        ('curl -d "${A" http://h/', NOT_PLAIN),
        ("curl -d {a,b} http://h/", NOT_PLAIN),
        ("curl 'http://h/ a'", "url: contains a space or control character; percent-encode it"),
        ("curl -d $'a\\0' http://h/", "a NUL character"),
        ("curl -d 'a\0' http://h/", "a NUL character, or not UTF-8"),
        ('curl -d "a', "a quote is not closed"),
        ("curl -d $'a", "a quote is not closed"),
        ('curl ^"http://h/^" -d ^"a', "a quote is not closed"),
        pytest.param("curl -d " + "%A%" * 80_000 + "'", "a quote is not closed", id="percent"),
        pytest.param("curl h/" + "a" * 300_000, "longer than 262,144 characters", id="long"),
        pytest.param('curl ^"h/' + "a" * 300_000, "longer than 262,144 characters", id="long cmd"),
    ],
)  # fmt: skip
def test_an_invalid_command_is_unreadable(command: str, reason: str, mail: Path) -> None:
    assert find_reason(mail, command) == reason


@pytest.mark.parametrize(
    ("option", "part"),
    [
        ("-d @secret.txt", "--data"),
        ("-d@secret.txt", "--data"),
        ("-d @-", "--data"),
        ("-G -d by=id -d @secret.txt", "--data"),
        ("--data-ascii @secret.txt", "--data-ascii"),
        ("--data-binary @secret.txt", "--data-binary"),
        ("--data-urlencode @secret.txt", "--data-urlencode"),
        ("-G --data-urlencode by@secret.txt", "--data-urlencode"),
        ("--json @secret.txt", "--json"),
        ("--url @secret.txt", "--url"),
        ("-H @secret.txt", "--header"),
        ("--proxy-header @secret.txt", "--proxy-header"),
        ("-b secret.txt", "--cookie"),
        ("--etag-compare secret.txt", "--etag-compare"),
        ("-K secret.txt", "--config"),
        ("-T secret.txt", "--upload-file"),
        ("-n", "--netrc"),
        ("--netrc-optional", "--netrc-optional"),
        ("--netrc-file secret.txt", "--netrc-file"),
        ("< secret.txt", "a pipe or <"),
        ("<<< secret", "a pipe or <"),
        ("-d x^ < secret.txt ^", "a pipe or <"),
        ("; curl h/x | curl http://h/y", "a pipe or <"),
        ("& curl h/x | curl http://h/y ^", "a pipe or <"),
    ],
)  # fmt: skip
def test_a_command_with_input_from_a_file_is_unreadable(option: str, part: str, mail: Path) -> None:
    Path("secret.txt").write_text("by=id\nX-Gateway-Key: k\n", encoding="utf-8")

    reason = list_targets(read_all(mail, f"curl {URL} {option}"))[-1]

    assert reason == f"{part}: {NOT_READ}"


def test_an_at_sign_that_names_no_file_is_data(mail: Path) -> None:
    options = "-G --data-raw @a --data-urlencode by=@b -b a=@d -A @e"

    assert list_targets([read_one(mail, f"curl {URL} {options}")]) == [
        ("GET", b"/gateway/v1/servers/a", b"@a&by=%40b")
    ]


@pytest.mark.parametrize(
    "word",
    [
        "$ID", "${ID}", "$(cat id)", "`xclip -o`", '"$(pbpaste)"', "$env:ID", "%ID%", "%CFX_ID%",
        "$ID -o $(date +%Y%m%d)",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("command", "option"), [("curl -d {} http://h/x", "data"), (f"curl {URL}{{}}", "url")]
)
def test_a_command_with_a_variable_or_the_clipboard_is_unreadable(
    command: str, option: str, word: str, mail: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ID", "secret")

    assert find_reason(mail, command.format(word)) == f"{option}: {VARIABLE}"


@pytest.mark.parametrize(
    "word",
    [
        "(Get-Clipboard)", "(gcb)", "(gc id)", "(cat f)", "(type f)",
        "([IO.File]::ReadAllText('f'))",
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["curl {}", "curl -d {} http://h/x", f"curl {URL} -b {{}}"])
def test_a_powershell_expression_is_unreadable(command: str, word: str, mail: Path) -> None:
    assert find_reason(mail, command.format(word)) == NOT_PLAIN


@pytest.mark.parametrize(
    ("path", "option"),
    [
        ("harbor-city", "-o out-$(date +%Y%m%d).json"),
        ("C%C3%A9", ""),
        ("a%ABC%20d", ""),
        ("%AB%CD", ""),
    ],
)
def test_percent_signs_that_name_no_variable_are_data(path: str, option: str, mail: Path) -> None:
    read = read_one(mail, f"curl http://h/gateway/v1/servers/{path} {option}")

    assert list_targets([read]) == [("GET", f"/gateway/v1/servers/{path}".encode(), b"")]


def test_only_a_pipe_before_a_command_is_its_input(mail: Path) -> None:
    text = f"true || curl {URL}\n| curl | curl {URL} |\ncurl {URL}/1 | curl {URL}/2\n"

    assert list_targets(read_all(mail, text)) == [("GET", b"/gateway/v1/servers/a/1", b""), PIPE]


def test_a_command_that_is_not_utf8_is_unreadable(mail: Path) -> None:
    text = b"Gr\xfc\xdfe\ncurl http://h/a\ncurl 'http://h/\xfc'\ncurl http://h/b\n"

    expected = [("GET", b"/a", b""), "a NUL character, or not UTF-8", ("GET", b"/b", b"")]
    assert list_targets(read_all(mail, text)) == expected


@pytest.mark.parametrize("end", ["\\", "^"])
def test_reading_continues_after_the_line_with_an_error(end: str, mail: Path) -> None:
    # Otherwise each of many lines that continue would be read again for each one before it.
    text = f'curl http://h/a {end}\ncurl http://h/b "\ncurl http://h/c\n'.replace('"', '"x')

    assert list_targets(read_all(mail, text.encode())) == [
        "a quote is not closed",
        ("GET", b"/c", b""),
    ]


def test_no_reason_quotes_what_was_sent(mail: Path) -> None:
    for command in (
        "curl 'http://h/a b?secret'",
        "curl --X-Gateway-Key:secret http://h/",
        "curl --secret=x -H 'X-Gateway-Key: secret' --bad='secret' http://h/",
        "curl -H 'Content-Type: $secret' -d \"secret $A\" http://h/",
    ):
        assert "secret" not in find_reason(mail, command.replace("--secret=x", ""))


def test_a_file_that_is_too_large_is_refused(mail: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasted, "MAX_BYTES", 10)

    with pytest.raises(SourceError, match=r"more than 10 bytes; split it$"):
        read_all(mail, "curl http://h/")


needs_curl = pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")

GET = "URL/gateway/v1/servers/a"
COMPARE = "URL/gateway/v1/compare"
JSON = "-H 'Content-Type: application/json'"

COMMANDS = [
    f"curl {GET}",
    f"curl -sS '{GET}?by=cfxId#there'",
    f"curl -I {GET}?",
    f"curl --path-as-is {GET}/../%62?by=%69d",
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
    f"curl {COMPARE} {JSON} --data-raw $'{{\\n\\t\\\"a\\\": \\'\\u00e9\\xc3\\xa9\\101\\''",
    f"""curl {COMPARE} \\
      -H "X-Gateway-Key: a\\$b\\`c\\\\d" \\
      {JSON}    --data "{{\\"a\\": 'b'}}" # the end""",
    f"curl {GET} ; curl {GET}?2 && curl {GET}?3 | cat > /dev/null 2>&1",
    f"curl {GET}?1 {GET}?2",
    f"curl -g '{GET}?x=[1]{{2}}'",
    f"curl --http1.1 -L -u me:secret -b a=b -A me -e r --max-time 5 --compressed {GET}",
    f"curl -XPOST -- {COMPARE}",
    f"curl {GET}?1 --url {GET}?2 -s {GET}?3 -- {GET}?4",
    f"curl {COMPARE} --data-raw -- -d --data --data-raw --x=1 -- {COMPARE}",
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

RunCurl = Callable[[str], "subprocess.CompletedProcess[bytes]"]
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


@pytest.fixture
def run_curl(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunCurl:
    """Run commands, with the address of the server for `URL`, as the script case.sh."""

    def run(command: str) -> subprocess.CompletedProcess[bytes]:
        monkeypatch.chdir(tmp_path)
        script = command.replace("URL", f"http://127.0.0.1:{server.server_port}")
        Path("case.sh").write_text(script, encoding="utf-8")
        server.sent.clear()
        environment = {"CURL_HOME": "/", "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        return subprocess.run(
            ["bash", "case.sh"], capture_output=True, env=environment, timeout=30, check=False
        )

    return run


@needs_curl
@pytest.mark.parametrize("command", COMMANDS)
def test_curl_sends_the_requests_that_are_read(
    command: str, server: Any, run_curl: RunCurl
) -> None:
    ran = run_curl(command)

    assert ran.returncode == 0, ran.stderr
    sent = [
        (method, target.removesuffix(b"?"), headers, body)
        for method, target, headers, body in server.sent
    ]
    assert [describe(read) for read in read_recording("case.sh")] == sent


@needs_curl
@pytest.mark.parametrize(
    "command",
    [
        "curl -H 'Accept: x'",
        "curl -d",
        "curl --frobnicate URL/",
        "curl --data=x URL/",
        "curl --url=URL/",
        "curl 'URL/a b'",
    ],
)
def test_what_curl_refuses_is_unreadable(command: str, server: Any, run_curl: RunCurl) -> None:
    assert run_curl(command).returncode
    assert server.sent == []
    assert [type(read) for read in read_recording("case.sh")] == [Unreadable]
