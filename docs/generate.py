"""Write everything in the repository that can be generated: `make docs`.

Between `<!-- generated: NAME -->` and `<!-- end -->` a Markdown file holds what the code says of
NAME. In README.md and service.md the examples are run, in a terminal of 80 columns, and show what
they printed. The fixtures are what the demo writes, src/srvstat/contract/openapi.json comes from
docs/openapi. A test fails when any of it has drifted.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from random import sample
from typing import TypeVar

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from campaigns import CAMPAIGNS  # noqa: E402 - from the tests, on the path since above
from openapi.document import encode_openapi_document  # noqa: E402
from srvstat import demo  # noqa: E402
from srvstat.asgi.app import WORK_SECONDS  # noqa: E402
from srvstat.asgi.connection import (  # noqa: E402
    ANSWER_SECONDS,
    BODY_SECONDS,
    HEAD_SECONDS,
    IDLE_SECONDS,
)
from srvstat.asgi.server import MOST_CONNECTIONS  # noqa: E402
from srvstat.contract.errors import ApiError, SrvstatError  # noqa: E402
from srvstat.contract.http import MAX_HEAD_BYTES  # noqa: E402
from srvstat.contract.requests import MAX_BODY_BYTES  # noqa: E402
from srvstat.snapshot.format.schema import schema  # noqa: E402
from support.terminal import run_in_terminal  # noqa: E402 - from the tests, on the path since above

COLUMNS = 80
PORT = 8000
"""Where the examples show the service, which is its default."""
TOOLS = ("bash", "cmp", "curl", "dd", "jq")
"""What the examples need besides srvstat."""
WITH_EXAMPLES = (ROOT / "README.md", ROOT / "docs" / "service.md")

_MARK = "\x1e"
_BLOCK = re.compile(r"(?<=<!-- generated: )(\w[\w-]*)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
_EXAMPLES = re.compile(r"(?<=```console\n).*?(?=```\n)", re.DOTALL)
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_TIMING = re.compile(r"in [\d.]+ s, [\d,]+ a second")

_OTHER_EXITS = {
    0: "an answer",
    1: "a bug in srvstat; please report it",
    129: "the terminal was closed",
    130: "interrupted",
    141: "whoever read the output has closed it",
    143: "terminated",
}


def generated() -> Iterator[tuple[Path, bytes]]:
    """Yield each generated file that the repository must hold, whole."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))):
        text = path.read_text(encoding="utf-8")
        text = _BLOCK.sub(lambda block: block[1] + block[2] + CONTENT[block[1]](), text)
        yield path, text.encode("utf-8")
    yield ROOT / "src" / "srvstat" / "contract" / "openapi.json", encode_openapi_document()
    yield ROOT / "fixtures" / "servers.ndjson", demo.servers_ndjson()
    yield ROOT / "fixtures" / "observations.csv", demo.observations_csv()
    yield ROOT / "fixtures" / "access.toml", demo.access_toml()


def _schema() -> str:
    return f"```sql\n{schema()}```\n"


def _commands() -> str:
    """Return the reference of all commands, from the commands themselves."""
    command = [sys.executable, "-m", "typer", "srvstat.cli.app", "utils", "docs"]
    printed = subprocess.run(
        [*command, "--name", "srvstat"], capture_output=True, text=True, check=True
    ).stdout
    return re.sub(r"^# .*\n", "", printed).replace("```console\n", "```\n").strip() + "\n"


def _errors() -> str:
    rows = [
        f"| `{error.code}` | {error.http_status} | {error.message} | {error.exit_code} |"
        f" {_meaning(error)} |"
        for error in _classes(ApiError)
    ]
    head = ["| code | HTTP status | message | exit code | when |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def _exit_codes() -> str:
    meanings = dict(_OTHER_EXITS)
    for error in _classes(SrvstatError):
        meanings[error.exit_code] = _meaning(error)
    for api_error in _classes(ApiError):
        meanings[api_error.exit_code] = f"the answer is `{api_error.code}`"
    # No local command answers these; they are kept for the codes of the service.
    for reserved in (41, 49, 50):
        del meanings[reserved]
    rows = [f"| {code} | {meaning} |" for code, meaning in sorted(meanings.items())]
    return "\n".join(["| exit code | meaning |", "|---|---|", *rows]) + "\n"


def _deadlines() -> str:
    rows = [
        ("the head of a request, from its first byte or the connection", HEAD_SECONDS),
        ("its body, from the end of the head", BODY_SECONDS),
        ("the work, other requests' included", WORK_SECONDS),
        ("until the client has taken the answer, from the end of the request", ANSWER_SECONDS),
        ("between an answer and the next request", IDLE_SECONDS),
    ]
    limits = [
        ("bytes of a head", MAX_HEAD_BYTES),
        ("bytes of a body", MAX_BODY_BYTES),
        ("connections, or as many as the limit of open files allows", MOST_CONNECTIONS),
    ]
    head = ["| what | at most |", "|---|--:|"]
    seconds = [f"| {what} | {value:.0f} s |" for what, value in rows]
    return "\n".join([*head, *seconds, *(f"| {what} | {most:,} |" for what, most in limits)]) + "\n"


def _reliability() -> str:
    """Return the table of the campaigns' last long run, in the order of their list."""
    kept = json.loads((ROOT / "docs" / "reliability.json").read_bytes())
    head = [
        "| campaign | cases | seed | time | what became of them | broken |",
        "|---|--:|--:|--:|---|--:|",
    ]
    rows = [
        f"| {name} | {last['cases']:,} {campaign.unit} | {last['seed']} | {last['seconds']:,} s |"
        f" {_outcomes(last['counts'])} | {last['failures']} |"
        for name, campaign in CAMPAIGNS.items()
        if (last := kept.get(name))
    ]
    return "\n".join([*head, *rows]) + "\n"


def _outcomes(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())


_Error = TypeVar("_Error", bound=SrvstatError)


def _classes(base: type[_Error]) -> list[type[_Error]]:
    found = [kind for kind in base.__subclasses__() if "exit_code" in vars(kind)]
    return sorted(found, key=lambda kind: kind.exit_code)


def _meaning(error: type[SrvstatError]) -> str:
    first, _, _ = (error.__doc__ or "").partition("\n")
    return first[0].lower() + first[1:].rstrip(".")


CONTENT: dict[str, Callable[[], str]] = {
    "schema": _schema,
    "commands": _commands,
    "errors": _errors,
    "exit-codes": _exit_codes,
    "deadlines": _deadlines,
    "reliability": _reliability,
}


def with_examples_run(text: str) -> str:
    """Return a Markdown text whose console examples show what they print today.

    They run one after another in one shell, in an empty directory.
    """
    commands = [
        line.removeprefix("$ ")
        for block in _EXAMPLES.findall(text)
        for line in block.splitlines()
        if line.startswith("$ ")
    ]
    outputs = iter(_run(commands))

    def shown(block: re.Match[str]) -> str:
        lines = [line for line in block[0].splitlines() if line.startswith("$ ")]
        return "".join(f"{line}\n{next(outputs)}" for line in lines)

    return _EXAMPLES.sub(shown, text)


def same_but_for_timing(one: str, other: str) -> bool:
    """Say whether two texts are equal where a clock has no part in them."""
    return _TIMING.sub("", one) == _TIMING.sub("", other)


def _run(commands: list[str]) -> list[str]:
    """Run commands in one shell in a terminal and return what each printed.

    The service takes a free port in the place of the one that the examples show.
    """
    port = _free_port()
    script = "".join(f"printf '\\036'\n{command}\n" for command in commands)
    script = script.replace("srvstat serve ", f"srvstat serve --port {port} ")
    script = script.replace(f":{PORT}/", f":{port}/")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    env = {"PATH": path, "LC_ALL": "C.UTF-8", "TERM": "dumb"}
    with tempfile.TemporaryDirectory() as directory:
        _, output = run_in_terminal(["bash", "-c", script], columns=COLUMNS, env=env, cwd=directory)
    return _COLOR.sub("", output).replace(f":{port}", f":{PORT}").split(_MARK)[1:]


def _free_port() -> int:
    """Return a port that is free, and that the system gives to nobody who asks for any."""
    for port in sample(range(20_000, 30_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise SystemExit("no port is free between 20,000 and 30,000")


def main() -> None:
    """Write what has changed, and say so."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise SystemExit(f"the examples need {', '.join(missing)}")
    for path, content in generated():
        old = path.read_bytes() if path.exists() else b""
        new = content
        if path in WITH_EXAMPLES:
            text = with_examples_run(content.decode("utf-8"))
            # A clock that ran differently is no reason to write.
            new = old if same_but_for_timing(text, old.decode("utf-8")) else text.encode()
        if new != old:
            path.write_bytes(new)
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
