"""Check that the documentation is generated, that its examples run and that it is complete."""

import ast
import json
import os
import re
import runpy
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.models import Context

import srvstat
from campaigns.__main__ import CAMPAIGNS
from conftest import AS_OF, ROOT, Build, Cli, server
from generate import find_drift
from manual_pages import list_commands as list_typer_commands
from srvstat.cli.app import COMMANDS, Group, app
from srvstat.cli.app import PAGES as APP_PAGES
from srvstat.cli.demo import read_demo_file
from srvstat.contract.errors import SrvstatError
from srvstat.snapshot.rows import FORMAT_VERSION

pytestmark = pytest.mark.slow

PAGES = ROOT / "docs" / "man"
MARKDOWN = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("**/*.md"))]


WITH_EXAMPLES = [path for path in MARKDOWN if "```console\n$ " in path.read_text("utf-8")]
TOOLS = ("bash", "cmp", "curl", "dd", "gunzip", "jq")
"""The programs that the examples need besides srvstat."""


def test_generated_files_are_up_to_date() -> None:
    assert not find_drift(None, None), "make docs"


@pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"needs {', '.join(TOOLS)}")
@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_print_the_shown_output(path: Path, quick_srvstat: str) -> None:
    assert not find_drift(path, quick_srvstat), "make docs"


TABLE_OF_SOURCES = re.findall(
    r"^\| .+ \| `srvstat (.+)` \|$",
    (ROOT / "docs/how-to/import-data.md").read_text("utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize("command", TABLE_OF_SOURCES)
def test_each_command_of_the_table_of_sources_reads_all_rows(
    command: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "docs" / "examples" / "sources", ".", dirs_exist_ok=True)
    runpy.run_path("write_databases.py", run_name="__main__")

    ran = cli(*shlex.split(command), "--strict")

    assert ran.exit_code == 0, ran.stderr
    with srvstat.open_snapshot("games.db") as snapshot:
        assert len([*snapshot.history(range="all")]) >= 3


@pytest.fixture
def _demo(demo_snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a directory where `srvstat demo` has run."""
    monkeypatch.chdir(tmp_path)
    Path("srvstat-demo").mkdir()
    Path("srvstat-demo/snapshot.db").symlink_to(demo_snapshot)
    for name in ("snapshot.db", "parquet.db"):
        Path(name).symlink_to(demo_snapshot)


@pytest.mark.usefixtures("_demo")
@pytest.mark.parametrize("page", ["docs/tutorials/data-engineer.md", "docs/reference/python.md"])
def test_the_python_examples_run(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)

    names: dict[str, object] = {}
    exec("".join(examples), names)  # noqa: S102 - the examples are ours

    assert isinstance(names["answer"], srvstat.CompareResponse)


@pytest.mark.usefixtures("_demo")
def test_the_notebook_runs_and_shows_each_of_its_results() -> None:
    page = json.loads((ROOT / "docs" / "examples" / "notebook.ipynb").read_bytes())
    cells = [cell for cell in page["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {}

    shown = [run_cell("".join(cell["source"]), names) for cell in cells]

    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    assert [*map(repr, shown)][:3] == [
        "<Top 7 days to 2026-03-01 12:00 UTC, 9 servers>",
        "<Picture of Timeline 30 days to 2026-03-01 12:00 UTC, 2 servers>",
        "<Stats 14 days to 2026-03-01 00:00 UTC, 1 server>",
    ]
    assert repr(shown[4]) == "<BuildSummary 2 of 2 rows kept, 2 servers>"
    assert repr(shown[5]) == "<Servers of 2026-03-01 13:00 UTC, 2 servers>"
    pages = [one for one in shown if hasattr(one, "_repr_html_") or hasattr(one, "_repr_svg_")]
    assert len(pages) == len(shown) - 1
    assert Path("report.html").read_bytes().startswith(b"<!DOCTYPE html>")


def run_cell(code: str, names: dict[str, object]) -> object:
    """Run a cell and return the value of its last line, which a notebook shows."""
    *lines, last = ast.parse(code).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(lines, []), "cell", "exec"), names)  # noqa: S102 - the notebook is ours
    shown: object = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307 - as above
    return shown


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_every_relative_link_resolves(path: Path) -> None:
    for name, _, anchor in re.findall(r"\]\(([^)#]*)(#([^)]+))?\)", read_prose(path)):
        if "://" not in name:
            target = path.parent / name if name else path
            assert target.exists(), name
            assert not anchor or anchor in list_anchors(target), f"{name}#{anchor}"


def read_prose(path: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(
        r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


@cache
def list_anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", read_prose(path), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


QUESTIONS = {
    # a support engineer
    "What does the API return for this request?": "tutorials/support#2-recompute-the-numbers",
    "What do I ask the customer for?": "tutorials/support#3-ask-for-a-recording",
    "When was a response right?": "tutorials/support#5-find-when-the-response-was-correct",
    "Which recordings can I replay?": "reference/recordings#formats",
    "Why can't a 429 be reproduced?": "reference/recordings#what-cant-be-reproduced",
    # an owner of servers
    "How do my counts become a snapshot?": "tutorials/owner#2-build-a-snapshot",
    "When should I restart?": "tutorials/owner#4-find-the-best-time-for-a-restart",
    "How do I post a picture?": "tutorials/owner#5-post-a-picture",
    "Who mails me about gaps?": "tutorials/owner#7-get-an-email-when-a-server-goes-silent",
    "What does change mean?": "explanation/numbers#change-and-growth",
    # a developer of a client
    "How do I run the API on my machine?": "tutorials/client#1-start-the-api",
    "How does my page survive failures?": "tutorials/client#4-handle-failures",
    "How do I test my client?": "how-to/test-a-client",
    "Why is my request invalid?": "how-to/fix-a-failing-request",
    # a data engineer
    "How do I compute every server?": (
        "tutorials/data-engineer#2-compute-statistics-for-every-server"
    ),
    "How do I query a snapshot with SQL?": "tutorials/data-engineer#4-query-it-with-sql",
    "Is today's snapshot complete and unchanged?": (
        "tutorials/data-engineer#6-update-and-verify-each-day"
    ),
    "How do I use it from Python?": "reference/python",
    # an operator of the service
    "How do I start it at boot?": "how-to/deploy#systemd",
    "How do I give a customer a key?": "reference/access#adding-and-revoking-keys",
    "What does each option of serve do?": "reference/service#configuration",
    "What does exit code 3 mean?": "reference/errors#exit-codes",
    # a contributor
    "Where is the code of a command?": "dev/architecture",
    "Why does it behave like this?": "explanation/decisions",
    "How is a promise tested?": "explanation/reliability#promises",
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_reader_finds_the_answer_in_two_clicks(question: str) -> None:
    page, _, heading = QUESTIONS[question].partition("#")

    assert f"]({page}.md)" in read_prose(ROOT / "docs" / "README.md")
    assert not heading or heading in list_anchors(ROOT / "docs" / f"{page}.md")


def test_the_index_links_each_page() -> None:
    index = ROOT / "docs" / "README.md"

    linked = {index.parent / name for name in re.findall(r"\]\(([^)]+)\)", read_prose(index))}

    assert linked >= {path for path in MARKDOWN if path.parent != ROOT and path != index}


@pytest.mark.parametrize("name", ["report.png", "explore.png"])
def test_a_screenshot_is_a_small_png_on_the_page_of_pictures(name: str) -> None:
    screenshot = ROOT / "docs" / "pictures" / name

    assert screenshot.read_bytes().startswith(b"\x89PNG\r\n")
    assert screenshot.stat().st_size < 200_000
    assert f"](../pictures/{name})" in (ROOT / "docs/how-to/draw.md").read_text(encoding="utf-8")


def test_architecture_names_existing_files() -> None:
    text = (ROOT / "docs/dev/architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "srvstat"
    parts = ("snapshot/read", "snapshot/write", "support", "render")
    folders = (ROOT, package, *(package / part for part in parts))

    names = re.findall(r"`([\w/]+(?:/|\.\w+))`", text)

    assert len(names) > 30
    for name in names:
        assert any((folder / name).exists() for folder in folders), name


def test_every_exit_code_is_documented(cli: Cli) -> None:
    codes = {0, 1, 129, 130, 141, 143} | {kind.exit_code for kind in _list_errors()}
    table = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")

    assert {code for code in codes if f"\n| {code} |" in table} == codes - {41, 49, 50}
    help_text = cli("--help").stdout.decode()
    assert all(str(code) in help_text for code in (2, 3, 4, 5, 6, 40, 43, 44, 130))


def _list_errors() -> list[type[SrvstatError]]:
    direct = SrvstatError.__subclasses__()
    every = [*direct, *(kind for base in direct for kind in base.__subclasses__())]
    return [kind for kind in every if "exit_code" in vars(kind)]


def list_commands() -> Iterator[str]:
    """Yield all commands and groups, beginning with the empty name of the root."""
    yield ""
    for name, entry in COMMANDS.items():
        yield name
        if isinstance(entry, Group):
            yield from (f"{name} {command}" for command in entry.commands)


@pytest.mark.parametrize("name", list(list_commands()))
def test_help_manual_page_and_reference_have_every_option_of_a_command(
    cli: Cli, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command: Any = get_command(app)
    for word in name.split():
        command = command.get_command(None, word)
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    options = {one for each in shown for one in (*each.opts, *each.secondary_opts)}
    manual = (PAGES / f"{'-'.join(['srvstat', *name.split()])}.1").read_text(encoding="ascii")
    for columns in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        ran = cli(*name.split(), "--help")
        text = ran.stdout.decode()

        assert ran.exit_code == 0
        assert max(map(len, text.splitlines())) <= min(columns, 90)
        for page in (text, re.sub(r"\\f[BIR]|\\(?=-)", "", manual)):
            named = set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*", page))
            assert {one for one in options if one.startswith("-")} <= named
        assert name in {"", "snapshot", "access"} or "See also: man srvstat-" in text
    assert "\n.SH ENVIRONMENT\n" in manual
    assert "\n.SH EXIT STATUS\n" in manual
    assert isinstance(COMMANDS.get(name), Group) or list_documented(name) == list_declared(name)


OPTION = re.compile(r"--[a-z][a-z-]*")
REFERENCE = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")


def list_declared(command: str) -> set[str]:
    """Return the options of a command that it does not hide, by its declarations."""
    commands = dict(list_typer_commands(get_command(app), ("srvstat",)))
    found = commands["srvstat", *command.split()]
    records = [each.get_help_record(Context(found)) for each in found.params]
    return {name for record in records if record for name in OPTION.findall(record[0])} - {"--help"}


def list_described(text: str) -> set[str]:
    """Return the options that the tables of a part of the reference describe."""
    cells = re.findall(r"^`(.+?)` \| ", text, re.MULTILINE)
    return {name for cell in cells for name in OPTION.findall(cell)}


def list_documented(command: str) -> set[str]:
    """Return the options that the reference describes for a command, or names as shared."""
    parts = re.split(r"^## (.+)$", REFERENCE, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    groups = re.split(
        r"^### (.+) options$", sections["Options of several commands"], flags=re.MULTILINE
    )
    section = sections[command or "srvstat"]
    shared = re.search(r"^Also: (.+)$", section, re.MULTILINE)
    names = set(OPTION.findall(re.sub(r"\(without .*?\)", "", shared[1] if shared else "")))
    names &= list_described(sections["Options of several commands"])
    for group, table in zip(groups[1::2], groups[2::2], strict=True):
        if used := shared and re.search(
            rf"(?:^|, )\[{group}\]\S+(?: \(without (.+?)\))?(?:,|$)", shared[1]
        ):
            names |= list_described(table) - set(OPTION.findall(used[1] or ""))
    elsewhere = re.search(r" describes (.+)\.$", section, re.MULTILINE)
    return names | list_described(section) | set(OPTION.findall(elsewhere[1] if elsewhere else ""))


@pytest.mark.parametrize("page", APP_PAGES.values())
def test_the_page_that_help_names_exists(page: str) -> None:
    assert [*(ROOT / "docs").rglob(f"{page}.md")]


def test_every_decision_that_the_code_refers_to_is_documented() -> None:
    files = [path for name in ("src", "tests", "docs") for path in (ROOT / name).rglob("*.py")]
    numbers = {
        int(number)
        for path in files
        for number in re.findall(r"\bD([0-9]+)\b", path.read_text(encoding="utf-8"))
    }
    text = (ROOT / "docs/explanation/decisions.md").read_text(encoding="utf-8")
    documented = [int(number) for number in re.findall(r"^### D([0-9]+) ", text, re.MULTILINE)]

    assert len(numbers) > 10
    assert documented == list(range(1, len(documented) + 1))
    assert numbers <= set(documented)


def test_each_campaign_ran_in_its_long_form_on_this_format() -> None:
    results = json.loads((ROOT / "docs" / "reliability.json").read_bytes())

    assert {name: result["format"] for name, result in results.items()} == dict.fromkeys(
        CAMPAIGNS, FORMAT_VERSION
    )
    assert not any(result["failures"] for result in results.values())
    drawn = CAMPAIGNS.keys() - {"faults", "updates", "bundles", "exports"}  # these try all cases
    assert {name: results[name]["cases"] for name in drawn} == {
        name: CAMPAIGNS[name].long for name in drawn
    }


def test_each_dependency_is_listed_with_its_license() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *chain(*(extras[name] for name in extras.keys() - {"dev"}))]
    text = (ROOT / "docs/reference/dependencies.md").read_text("utf-8")

    listed = re.findall(r"^\| ([\w-]+) \| [\w, ]+ \| [\w. -]+ \|$", text, re.MULTILINE)

    assert {*listed[1:], "srvstat"} == {re.match(r"[\w-]+", each)[0] for each in wanted}  # type: ignore[index]  # each has a name


@pytest.mark.parametrize(
    ("workflow", "step"),
    [("check", "run: make audit"), ("release", "uses: actions/attest-build-provenance@v")],
)
def test_workflows_do_what_the_security_policy_promises(workflow: str, step: str) -> None:
    path = ROOT / ".github" / "workflows" / f"{workflow}.yml"

    assert f"\n      - {step}" in path.read_text(encoding="utf-8")


def test_changelog_has_a_section_for_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert f"\n## {srvstat.__version__} - " in text


PAIR = ["srv-1", "srv-2"]
PLAN = ["--plan", "starter", "--access", "access.toml"]
BAD_RANGE = '# 1\n# 2\n# 3\n# 4\n[plans.starter]\noperations = []\nranges = ["8d"]\n'


def read_message_patterns() -> list[re.Pattern[str]]:
    """Return the messages of the table as patterns; capitals, digits and … match any text."""
    text = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    messages = re.findall(
        r"^\| `(.+?)` \|", text.partition("| message | remedy |")[2], re.MULTILINE
    )
    return [
        re.compile(re.sub(r"PATH|OUTPUT|\bX\b|\d+|…", r".+", re.escape(message)), re.DOTALL)
        for message in messages
    ]


@pytest.fixture
def _files(build: Build, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a directory with a snapshot, a bundle, a damaged snapshot and invalid files."""
    names = [*PAIR, "x-srv-9"]
    Path(build(map(server, names), [("srv-1", AS_OF, 5)])).rename(tmp_path / "good.db")
    Path(build(map(server, names), [("srv-1", AS_OF, 5)])).rename(tmp_path / "bad.db")
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("bad.db")) as connection, connection:
        connection.execute("UPDATE blocks SET players = x'06'")
    cli("snapshot", "bundle", *PAIR, "--range", "7d", "-o", "case.db", "-s", "good.db")
    Path("cut.har").write_bytes(b'{"log":{"entries":[')
    Path("other.har").write_bytes(b"{}")
    Path("own.csv").write_text("date;lobby\n2026-03-01;5\n")
    Path("access.toml").write_bytes(read_demo_file("access.toml"))
    Path("range").mkdir()
    Path("range/access.toml").write_text(BAD_RANGE)
    Path("keys").mkdir()
    Path("keys/access.toml").write_bytes(b"keys = []\n" + read_demo_file("access.toml"))


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize(
    "command",
    [
        ["compare", "srv-1", "-s", "good.db"],
        ["compare", "srv-1", "srv-1", "-s", "good.db"],
        ["get", "srv_1", "-s", "good.db"],
        ["get", "x-srv-1", "-s", "good.db"],
        ["compare", *PAIR, "--range", "1y", "-s", "good.db", *PLAN],
        ["history", "srv-1", "--range=all", "-sgood.db", "--plan=studio", "--access=access.toml"],
        ["access", "check", "--access", "range/access.toml"],
        ["access", "new-key", "--plan", "starter", "--access", "keys/access.toml"],
        ["serve", "-s", "good.db", "--host", "0.0.0.0"],  # noqa: S104 - rejected
        ["serve", "-s", "good.db", "--port", "TAKEN"],
        ["serve", "-s", "good.db", "--cors", "http://localhost:5173/"],
        ["get", "srv-1"],
        ["compare", *PAIR, "-s", "bad.db"],
        ["compare", *PAIR, "--range", "1y", "-s", "case.db"],
        ["get", "x-srv-9", "-s", "case.db"],
        ["replay", "cut.har", "-s", "good.db"],
        ["replay", "other.har", "-s", "good.db"],
        ["serve", "-s", "good.db", "--record", "access.toml"],
        ["snapshot", "verify", "good.db", "--expect", "0" * 64],
        ["snapshot", "build", "good.db", "--servers", "s.ndjson", "--observations", "o.csv"],
        ["snapshot", "build", "new.db", "--observations", "other.har"],
        ["snapshot", "build", "new.db", "--observations", "own.csv"],
        ["snapshot", "build", "new.db", "--observations", "own.csv", "--game", "game_a"],
        ["snapshot", "build", "new.db", "--observations=own.csv", "--game=game_a", "--wide=at=x"],
    ],
    ids=" ".join,
)
def test_a_printed_message_is_quoted_in_the_documentation(cli: Cli, command: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = cli(*(port if word == "TAKEN" else word for word in command))

    reason = ran.stderr.removeprefix("error: ").removesuffix("\n")
    assert ran.exit_code
    assert any(message.search(reason) for message in read_message_patterns()), reason


def test_the_tests_of_the_examples_pass(tmp_path: Path, quick_srvstat: str) -> None:
    path = os.pathsep.join([quick_srvstat, os.environ.get("PATH", os.defpath)])
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            ROOT / "docs" / "examples",
        ],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert "12 passed" in done.stdout


def test_each_command_has_a_page_and_nothing_else_has() -> None:
    names = {"-".join(["srvstat", *command.split()]) for command in list_commands()}

    assert {path.name for path in PAGES.iterdir()} == {f"{name}.1" for name in names}


def test_each_shell_has_a_completion_script() -> None:
    found = {path.name for path in (ROOT / "docs" / "completions").iterdir()}

    assert found == {"srvstat.bash", "_srvstat", "srvstat.fish"}


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_mandoc_has_nothing_to_warn_about() -> None:
    pages = sorted(PAGES.iterdir())

    ran = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *pages],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
