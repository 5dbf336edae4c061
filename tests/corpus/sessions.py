"""What the program says: transcripts of commands and requests, compared by `test_promises.py`.

Each file in `transcripts` is a session in a directory of its own. Its commands are the cases, and
the lines below a command are what it said:

    $ srvstat get harbor-city           a command whose output goes to a pipe
    80$ srvstat get harbor-city         the same in a terminal with 80 columns
    $ serve demo.db --explore           start a service in this process
    $ http GET /healthz 'A: b' BODY     send it a request
    $ anything else                     a command for bash

Standard output is indented, `!` marks standard error, and `=` an exit code other than 0.
"""

import asyncio
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, chdir
from difflib import unified_diff
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.cells import cell_len

from conftest import ROOT
from corpus.fleets import prepare_files
from srvstat import __version__
from srvstat.asgi import Settings, SimulationSettings
from srvstat.asgi.app import Service as App
from srvstat.asgi.log import Log
from srvstat.cli.app import main
from support.process import replace_descriptor
from support.terminal import PLAIN, replace_environment, run_srvstat_in_terminal

_OPTIONS = ArgumentParser("serve")
_OPTIONS.add_argument("snapshot")
_OPTIONS.add_argument("--access")
_OPTIONS.add_argument("--record")
_OPTIONS.add_argument("--explore", action="store_true")
_OPTIONS.add_argument("--explain-errors", action="store_true")
_OPTIONS.add_argument("--cors", action="append", default=[])
_OPTIONS.add_argument("--allow-prefer", action="store_true")
_OPTIONS.add_argument("--fail", type=float, default=0.0)
_OPTIONS.add_argument("--drop", type=float, default=0.0)


class Service:
    """The application of `serve`; its log is discarded."""

    def __init__(self, arguments: list[str]) -> None:
        options = _OPTIONS.parse_args(arguments)
        settings = Settings(
            options.snapshot,
            options.access,
            options.record,
            options.explore,
            tuple(options.cors),
            SimulationSettings(
                fail=options.fail, drop=options.drop, allows_prefer=options.allow_prefer
            ),
            options.explain_errors,
        )
        self._app = App(settings, Log())
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        with open(os.devnull, "wb") as discarded:
            self._stderr = replace_descriptor(2, discarded.fileno())
            self._stderr.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._runner.close()
        self._app.close()
        self._stderr.__exit__(kind, error, at)

    def ask(self, method: str, target: str, *rest: str) -> str:
        """Return the response to a request; `rest` are its headers, and its body in braces."""
        body = next((each for each in rest if each.startswith("{")), "")
        fields = [each for each in rest if each != body]
        return self._runner.run(self._send(method, target, fields, body.encode()))

    async def _send(self, method: str, target: str, fields: list[str], body: bytes) -> str:
        path, _, query = target.partition("?")
        headers = [tuple(part.encode() for part in field.split(": ", 1)) for field in fields]
        if body:
            headers.append((b"Content-Length", b"%d" % len(body)))
        sent: list[dict[str, Any]] = []
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.lower(), value) for name, value in headers],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8000),
        }
        requests = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            return requests.pop() if requests else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        if not sent:
            return "the connection is closed without a response\n"
        head, *parts = sent
        lines = sorted(b"%s: %s\n" % field for field in head["headers"])
        status = head["status"]
        first = f"HTTP {status} {HTTPStatus(status).phrase}\n".encode()
        # A server sends no body to HEAD.
        content = b"".join(part.get("body", b"") for part in parts) if method != "HEAD" else b""
        return b"".join([first, *lines, b"\n%s\n" % content if content else b""]).decode()


TRANSCRIPTS = Path(__file__).parent / "transcripts"

_COMMAND = re.compile(r"(\d*)\$ (.*)")
_VARIABLE = re.compile(r"([A-Z_]+)=(.*)")
_WIDTH = 100

_VARYING = [
    (re.compile(rf'(srvstat |"programVersion":"){re.escape(__version__)}'), r"\1VERSION"),
    (re.compile(r"in \d+\.\d+ s, [\d,]+ per second"), "in TIME, SPEED"),
    (re.compile(r"^(!   size +)[\d,]+", re.MULTILINE), r"\1SIZE"),
    (re.compile(r"^(! wrote .*, )\d+ KB$", re.MULTILINE), r"\1SIZE"),
    (re.compile(r"(x-request-id: )[0-9a-f]{16}\b"), r"\1ID"),
    # A slow machine needs more than a second from one request to the next.
    (re.compile(r"(;t=|retry-after: )(?:5[5-9]|60)\b"), r"\g<1>MINUTE"),
]
_ROOT = re.compile(r"\b[0-9a-f]{64}\b")
"""Roots change with the format of snapshots, so only the transcript `roots` has them."""


def compare_transcript(path: Path, *, writes: bool = False) -> list[str]:
    """Return the lines that differ from what the program says now, as a unified diff."""
    before, after = path.read_text(encoding="utf-8"), run_transcript(path)
    if writes:
        path.write_text(after, encoding="utf-8")
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return list(unified_diff(old, new, f"{path.name} (stored)", f"{path.name} (now)", n=8))


def run_transcript(path: Path) -> str:
    """Run the commands of a transcript in a new directory; return the new transcript."""
    stored = path.read_text(encoding="utf-8")
    keeps_roots = path.stem == "roots"
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name).resolve()
        shutil.copytree(prepare_files(), directory, dirs_exist_ok=True)
        (directory / "docs").symlink_to(ROOT / "docs")
        (directory / "tests").symlink_to(ROOT / "tests")
        (directory / "demo_files").symlink_to(ROOT / "src" / "srvstat" / "cli" / "demo_files")
        session = _Session(directory, stack)
        blocks = []
        for line in re.findall(r"^(?:#.*\n)*\d*\$ .*\n", stored, re.MULTILINE):
            said = session.run(line.splitlines()[-1])
            for pattern, replacement in _VARYING:
                said = pattern.sub(replacement, said)
            said = said.replace(str(directory), "DIRECTORY")
            blocks.append(line + (said if keeps_roots else _ROOT.sub("ROOT", said)))
    return "\n".join(blocks)


class _Session:
    """A directory, and the service that was started last."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self._directory = directory
        self._stack = stack
        self._service: Service | None = None

    def run(self, line: str) -> str:
        """Run a command and return what it says, laid out."""
        found = _COMMAND.fullmatch(line)
        assert found
        columns, command = found.groups()
        words = shlex.split(command)
        env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        while variable := _VARIABLE.fullmatch(words[0]):
            env[variable[1]] = variable[2]
            del words[0]
        with chdir(self._directory), replace_environment({**PLAIN, **env}):
            match words:
                case ["srvstat", *arguments] if columns:
                    code, said = run_srvstat_in_terminal(*arguments, columns=int(columns), env=env)
                    if code in {0, 5} and "--json" not in arguments:
                        _check_width(said, int(columns))
                    return _lay_out(said.encode(), b"", code)
                case ["srvstat", *arguments]:
                    return _lay_out(*self._run_in_pipe(arguments))
                case ["serve", *arguments]:
                    self._stack.pop_all().close()
                    self._service = self._stack.enter_context(Service(arguments))
                    return ""
                case ["http", *arguments]:
                    assert self._service
                    return _lay_out(self._service.ask(*arguments).encode(), b"", 0)
            ran = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
            return _lay_out(ran.stdout, ran.stderr, ran.returncode)

    def _run_in_pipe(self, arguments: list[str]) -> tuple[bytes, bytes, int]:
        """Run srvstat; the arguments can end with `< FILE` and `> FILE`."""
        files = {"<": os.devnull, ">": ""}
        while len(arguments) > 1 and arguments[-2] in files:
            *arguments, mark, files[mark] = arguments
        with (
            open(files["<"], "rb") as stdin,
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
            replace_descriptor(0, stdin.fileno()),
            replace_descriptor(1, stdout.fileno()),
            replace_descriptor(2, stderr.fileno()),
        ):
            code = main(arguments)
            stdout.seek(0)
            stderr.seek(0)
            said = stdout.read()
            if files[">"]:
                Path(files[">"]).write_bytes(said)
                said = b""
            return said, stderr.read(), code


def _check_width(said: str, columns: int) -> None:
    """Check that each line fits the terminal, except commands to copy."""
    for line in re.sub("\x1b\\[[0-9;]*m", "", said).split("\n"):
        assert cell_len(line) <= columns or line.startswith("  srvstat "), line


def _lay_out(stdout: bytes, stderr: bytes, exit_code: int) -> str:
    lines = [f"  {line}" for text in _split(stdout) for line in _lay_out_json(text)]
    lines += [f"! {line}" for line in _split(stderr)]
    if exit_code:
        lines.append(f"= {exit_code}")
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _split(output: bytes) -> list[str]:
    """Return the lines of an output, with other control characters as their numbers."""
    lines = output.decode("utf-8", "surrogateescape").split("\n")
    if lines[-1]:
        lines[-1] += "⟨no newline⟩"
    else:
        del lines[-1]
    return [re.sub(" $", "⟨20⟩", "".join(map(_escape, line))) for line in lines]


def _escape(character: str) -> str:
    return character if character.isprintable() else f"⟨{ord(character):x}⟩"


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"{}\[\],]+|[{}\[\],]')
_OPENING = re.compile(r'(?:"(?:[^"\\]|\\.)*":)?[{\[]')


def _lay_out_json(text: str, indent: str = "") -> Iterator[str]:
    """Yield compact JSON as lines that a person can read; only line breaks and indents are added.

    Yields other text as it is.
    """
    opening = _OPENING.match(text)
    if len(indent + text) <= _WIDTH or not opening:
        yield indent + text
        return
    end = len(text) - 1 - text.endswith(",")
    members, depth = [""], 0
    for part in _TOKEN.findall(text[opening.end() : end]):
        members[-1] += part
        depth += (part in "{[") - (part in "}]")
        if part == "," and not depth:
            members.append("")
    if opening[0] + "".join(members) + text[end:] != text:
        yield indent + text
        return
    yield indent + opening[0]
    for each in members:
        yield from _lay_out_json(each, f"{indent}  ")
    yield indent + text[end:]
