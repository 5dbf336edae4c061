"""Write all generated files of the repository: `make docs`.

The lines between `<!-- generated: NAME -->` and `<!-- end -->` in a Markdown file are generated
from the code. Console examples are run in a terminal of 80 columns and show its output;
docs/pictures has the pictures that those of docs/how-to/draw.md write. docs/man and
docs/completions are generated from the commands, and the page `/docs` from openapi.json. The
fixtures are the files of the demo. `--check` writes nothing, and fails if a file is out of date.
"""

import argparse
import fcntl
import gzip
import json
import os
import pty
import re
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast

from typer.core import TyperGroup, TyperOption
from typer.main import get_command
from typer.models import Context

import api_page
import command_page
import demo_data
import manual_pages
from srvstat.cli.app import app
from srvstat.cli.app import main as run_srvstat
from srvstat.cli.demo import read_demo_file, write_demo
from srvstat.cli.options import DEFAULT_SNAPSHOT, SNAPSHOT_VARIABLE
from srvstat.contract.errors import ApiError, SrvstatError
from srvstat.documents import load_documents

ROOT = Path(__file__).parent.parent
COLUMNS = 80
PORT = 8000
"""The port of the service in the examples, its default."""
TOOLS = ("bash", "cmp", "curl", "dd", "gunzip", "jq")
"""The programs that the examples need besides srvstat."""

_MARK = "\x1e"
_BLOCK = re.compile(r"(?<=<!-- generated: )(\w[\w-]*)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
_EXAMPLES = re.compile(r"(?<=```console\n).*?(?=```\n)", re.DOTALL)
_PLOT = re.compile(r"^\$ srvstat plot (.*) -o (\w+\.svg)$", re.MULTILINE)
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_PRINTED_BY = {
    "accessCheck": "access check",
    "diff": "snapshot diff",
    "distribution": "report",
    "explanation": "get, compare",
    "manifest": "fleet",
    "recording": "serve",
    "snapshotInfo": "snapshot info",
    "timeline": "report",
    "verification": "snapshot verify",
}
"""What prints a document that has not the name of a command."""
_TIMING = re.compile(r"in [\d.]+ s, [\d,]+ per second")

_OTHER_EXITS = {
    0: "success; also if a signal stopped the service",
    1: "out of memory, or a bug in srvstat; please report a bug",
    129: "the terminal was closed",
    130: "interrupted",
    141: "the reader closed the output",
    143: "terminated",
}


def _list_pages(only: Path | None) -> Iterator[tuple[Path, bytes]]:
    """Yield the path and the content of one page or each, with the examples as they are."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    for path in [only] if only else pages:
        yield path, _BLOCK.sub(_format_block, path.read_text(encoding="utf-8")).encode("utf-8")


def _list_other_files() -> Iterator[tuple[Path, bytes]]:
    """Yield the path and the content of each generated file that is not a page."""
    yield from _draw_pictures()
    for name, page in manual_pages.list_manual_pages(_list_exit_codes()):
        yield ROOT / "docs" / "man" / name, page
    for name, script in manual_pages.list_completion_scripts():
        yield ROOT / "docs" / "completions" / name, script
    docs = ROOT / "src" / "srvstat" / "render" / "web" / "docs.html"
    yield docs, api_page.build_api_page(docs.read_text(encoding="utf-8"))
    made = {
        "servers.ndjson": demo_data.build_servers_file(),
        "observations.csv": demo_data.build_observations_file(),
        "access.toml": read_demo_file("access.toml"),
    }
    for name, content in made.items():
        yield ROOT / "fixtures" / name, content
    folder = ROOT / "src" / "srvstat" / "cli" / "demo_files"
    yield folder / "servers.ndjson", made["servers.ndjson"]
    yield folder / "games.csv", demo_data.build_table_file()
    if read_demo_file("observations.csv") != made["observations.csv"]:
        # Versions of zlib compress differently.
        packed = gzip.compress(made["observations.csv"], mtime=0)
        yield folder / "observations.csv.gz", packed


def _draw_pictures() -> Iterator[tuple[Path, bytes]]:
    """Yield the pictures that the examples of docs/how-to/draw.md write."""
    text = (ROOT / "docs/how-to/draw.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as directory:
        snapshot = write_demo(directory)
        for words, name in _PLOT.findall(text):
            path = Path(directory) / name
            run_srvstat(["plot", *shlex.split(words), "--snapshot", snapshot, "-o", str(path)])
            yield ROOT / "docs" / "pictures" / name, path.read_bytes()


def _format_errors() -> str:
    rows = [
        f"| `{error.code}` | {error.http_status} | {error.message} | {error.exit_code} |"
        f" {_describe(error)} |"
        for error in _list_classes(ApiError)
    ]
    head = ["| code | HTTP status | message | exit code | when |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def _list_exit_codes() -> dict[int, str]:
    """Return the exit codes of commands in order, with their meanings."""
    meanings = dict(_OTHER_EXITS)
    for error in _list_classes(SrvstatError):
        meanings[error.exit_code] = _describe(error)
    for api_error in _list_classes(ApiError):
        meanings[api_error.exit_code] = f"the response is `{api_error.code}`"
    # No command exits with these; they correspond to errors that only the service returns.
    for reserved in (41, 49, 50):
        del meanings[reserved]
    return dict(sorted(meanings.items()))


def _format_exit_codes() -> str:
    rows = [f"| {code} | {meaning} |" for code, meaning in _list_exit_codes().items()]
    return "\n".join(["| exit code | meaning |", "|---|---|", *rows]) + "\n"


def _format_settings() -> str:
    """Return the options of `serve`: option, variable, default, meaning."""
    group = cast("TyperGroup", get_command(app))
    command = group.get_command(Context(group), "serve")
    rows = [
        _format_setting(option)
        for option in (command.params if command else ())
        if isinstance(option, TyperOption) and option.name not in (None, "help")
    ]
    return (
        "\n".join(["| option | variable | default | meaning |", "|---|---|---|---|", *rows]) + "\n"
    )


def _format_setting(option: TyperOption) -> str:
    flags = ", ".join(f"`{flag}`" for flag in option.opts)
    if option.name == "snapshot":  # other commands have it too, and its default is in its help
        return f"| {flags} | `{SNAPSHOT_VARIABLE}` | `{DEFAULT_SNAPSHOT}` | The snapshot. |"
    # An option without a default of its own describes it.
    meaning, _, described = (option.help or "").partition(" [default: ")
    default = f"`{option.default}`" if option.default else described.removesuffix("].")
    meaning = meaning.replace("|", "\\|").removesuffix(".")
    variable = f"`{option.envvar}`" if option.envvar else ""
    return f"| {flags} | {variable} | {default} | {meaning}. |"


def _format_documents() -> str:
    """Return the table of JSON documents: the name, what prints it, and its first sentence."""
    commands = {
        " ".join(words[1:]) for words, _ in manual_pages.list_commands(get_command(app), ("",))
    }
    rows = []
    for name, model in load_documents().items():
        command = re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", name)
        source = command if command in commands else _PRINTED_BY[name]
        meaning, _, _ = (model.__doc__ or "").partition("\n")
        rows.append(f"`{name}` | {source} | {meaning}")
    return "\n".join(["document | command | contents", "---|---|---", *rows]) + "\n"


def _format_reliability() -> str:
    """Return the table of each campaign's last results."""
    kept = json.loads((ROOT / "docs" / "reliability.json").read_bytes())
    rows = [
        f"{name} | {last['date']} | {last['cases']:,} {last['unit']} | {last['failures']}".replace(
            ",000 thousand", " million"
        )
        for name, last in kept.items()
    ]
    head = ["campaign | date | cases | broken", "--- | --- | --- | --:"]
    return "\n".join([*head, *rows]) + "\n"


_Error = TypeVar("_Error", bound=SrvstatError)


def _list_classes(base: type[_Error]) -> list[type[_Error]]:
    found = [kind for kind in base.__subclasses__() if "exit_code" in vars(kind)]
    return sorted(found, key=lambda kind: kind.exit_code)


def _describe(error: type[SrvstatError]) -> str:
    first, _, _ = (error.__doc__ or "").partition("\n")
    return first[0].lower() + first[1:].rstrip(".")


_CONTENT: dict[str, Callable[[], str]] = {
    "commands": command_page.format_commands,
    "documents": _format_documents,
    "errors": _format_errors,
    "exit-codes": _format_exit_codes,
    "settings": _format_settings,
    "reliability": _format_reliability,
}


def _format_block(block: re.Match[str]) -> str:
    content = _CONTENT.get(block[1])
    return block[1] + block[2] + content() if content else block[0]


def _run_examples(text: str, programs: str) -> str:
    """Return a Markdown text with the current output of its console examples.

    They run one after another in one shell, in a directory that has only a link to `docs`, with
    srvstat from a directory of programs.
    """
    commands = [
        line.removeprefix("$ ")
        for block in _EXAMPLES.findall(text)
        for line in block.splitlines()
        if line.startswith("$ ")
    ]
    outputs = iter(_run_commands(commands, programs) if commands else ())

    def show_output(block: re.Match[str]) -> str:
        lines = [line for line in block[0].splitlines() if line.startswith("$ ")]
        return "".join(f"{line}\n{next(outputs)}" for line in lines)

    return _EXAMPLES.sub(show_output, text)


def _run_commands(commands: list[str], programs: str) -> list[str]:
    """Run commands in one shell in a terminal and return the output of each.

    The service uses a free port; the output shows the one of the examples.
    """
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        raise SystemExit(f"the examples need {', '.join(missing)}")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    # curl would wait for a second before it tries again.
    is_ready = f"(: < /dev/tcp/127.0.0.1/{port}) 2> /dev/null"
    ready = f"for _ in {{1..200}}; do {is_ready} && break; sleep 0.05; done"
    script = "".join(
        f"printf '\\036'\n{command}\n{ready if re.match('srvstat serve .*&$', command) else ''}\n"
        for command in commands
    )
    script = script.replace("srvstat serve ", f"srvstat serve --port {port} ")
    script = re.sub(rf":{PORT}\b", f":{port}", script)
    # The second one has the python that runs this.
    folders = [programs, str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    env = {"PATH": os.pathsep.join(folders), "LC_ALL": "C.UTF-8", "TERM": "dumb"}
    env |= {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ}
    with tempfile.TemporaryDirectory() as directory:
        for name in ("docs", "fixtures"):
            (Path(directory) / name).symlink_to(ROOT / name)
        output = _run_in_terminal(["bash", "-c", script], env, directory)
    return _COLOR.sub("", output).replace(f":{port}", f":{PORT}").split(_MARK)[1:]


def _run_in_terminal(command: list[str], env: dict[str, str], directory: str) -> str:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    output = b""
    # From a terminal, a command would wait for answers.
    stdin = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=stdin, stdout=theirs, stderr=theirs, cwd=directory, env=env
    ):
        os.close(theirs)
        # When the last writer has closed a terminal, a read fails on Linux and is empty on macOS.
        try:
            while chunk := os.read(ours, 65_536):
                output += chunk
        except OSError:
            pass
    os.close(ours)
    return output.decode("utf-8").replace("\r\n", "\n")


def find_drift(page: Path | None, programs: str | None) -> dict[Path, bytes]:
    """Return what the files that are out of date must contain.

    With a page, only its examples are looked at. `programs` is the directory of the srvstat that
    runs the examples, or None to run none.
    """
    drifted = {}
    for path, content in [*_list_pages(page), *(() if page else _list_other_files())]:
        old = path.read_bytes() if path.exists() else b""
        new = content
        if path.suffix == ".md" and programs:
            text = _run_examples(content.decode(), programs)
            # Measured times differ each time.
            is_same = _TIMING.sub("", text) == _TIMING.sub("", old.decode())
            new = old if is_same else text.encode()
        if new != old:
            drifted[path] = new
    return drifted


def main() -> None:
    """Write the files that have changed and print their names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a file is out of date")
    parser.add_argument("--examples", metavar="PAGE", help="run only the examples of this page")
    parser.add_argument("--no-examples", action="store_true", help="run no examples")
    parser.add_argument("--programs", default=str(Path(sys.executable).parent))
    options = parser.parse_args()
    page = Path(options.examples).resolve() if options.examples else None
    programs = None if options.no_examples else options.programs
    drifted = find_drift(page, programs)
    if not options.check:
        for path, content in drifted.items():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
    for path in drifted:
        print(f"{'out of date' if options.check else 'wrote'}: {path.relative_to(ROOT)}")
    sys.exit(bool(drifted and options.check))


if __name__ == "__main__":
    main()
