"""Check that the documentation is generated, that its examples run and that it is complete."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import srvstat
from conftest import ROOT, Cli
from srvstat.cli.app import COMMANDS, Group
from srvstat.contract.errors import SrvstatError

pytestmark = pytest.mark.slow

MARKDOWN = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


WITH_EXAMPLES = [path for path in MARKDOWN if "```console\n$ " in path.read_text("utf-8")]
TOOLS = ("bash", "cmp", "curl", "dd", "gunzip", "jq")
"""The programs that the examples need besides srvstat."""


def generate(*options: str | Path) -> None:
    """Run `make docs`, but write nothing: fail if a file is out of date."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check", *options],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"make docs: {done.stdout}{done.stderr}"


def test_generated_files_are_up_to_date() -> None:
    generate("--no-examples")


@pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"needs {', '.join(TOOLS)}")
@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_print_the_shown_output(path: Path, quick_srvstat: str) -> None:
    generate("--examples", path, "--programs", quick_srvstat)


@pytest.fixture
def _demo(demo_snapshot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a directory where `srvstat demo` has run."""
    monkeypatch.chdir(tmp_path)
    Path("srvstat-demo").mkdir()
    Path("srvstat-demo/snapshot.db").symlink_to(demo_snapshot)


@pytest.mark.usefixtures("_demo")
@pytest.mark.parametrize("page", ["README.md", "docs/api.md"])
def test_the_python_example_runs(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)

    names: dict[str, object] = {}
    exec(example, names)  # noqa: S102 - the example is ours

    assert isinstance(names["answer"], srvstat.CompareResponse)


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


@pytest.mark.parametrize("name", ["report.png", "explore.png"])
def test_a_screenshot_is_a_small_png_on_the_page_of_pictures(name: str) -> None:
    screenshot = ROOT / "docs" / "pictures" / name

    assert screenshot.read_bytes().startswith(b"\x89PNG\r\n")
    assert screenshot.stat().st_size < 200_000
    assert f"](pictures/{name})" in (ROOT / "docs" / "pictures.md").read_text(encoding="utf-8")


def test_architecture_names_existing_files() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "srvstat"
    parts = ("snapshot/format", "snapshot/read", "snapshot/write", "support")
    folders = (ROOT, package, *(package / part for part in parts))

    names = re.findall(r"`([\w/]+(?:/|\.\w+))`", text)

    assert len(names) > 30
    for name in names:
        assert any((folder / name).exists() for folder in folders), name


def test_every_exit_code_is_documented(cli: Cli) -> None:
    codes = {0, 1, 129, 130, 141, 143} | {kind.exit_code for kind in _list_errors()}
    tables = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/errors.md")]

    for text in tables:
        assert {code for code in codes if f"\n| {code} |" in text} == codes - {41, 49, 50}
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


@pytest.mark.parametrize("command", list(list_commands()))
def test_help_fits_80_columns_and_names_every_option(cli: Cli, command: str) -> None:
    ran = cli(*command.split(), "--help")
    text = ran.stdout.decode()

    assert ran.exit_code == 0
    assert max(map(len, text.splitlines())) <= 80
    reference = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for option in re.findall(r"^  .*?(--[a-z-]+)", text, re.MULTILINE):
        assert option in reference


def test_every_decision_that_the_code_refers_to_is_documented() -> None:
    files = [path for name in ("src", "tests", "docs") for path in (ROOT / name).rglob("*.py")]
    numbers = {
        int(number)
        for path in files
        for number in re.findall(r"\bD([0-9]+)\b", path.read_text(encoding="utf-8"))
    }
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    documented = [int(number) for number in re.findall(r"^\*\*D([0-9]+) ", text, re.MULTILINE)]

    assert len(numbers) > 10
    assert documented == list(range(1, len(documented) + 1))
    assert numbers <= set(documented)


def test_changelog_has_a_section_for_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert f"\n## [{srvstat.__version__}] - " in text
