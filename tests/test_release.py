"""Check what publishes a release: its tag, its links, its bounds and its workflows."""

import re
import subprocess
import sys

import pytest

import srvstat
from conftest import ROOT
from release.bounds import list_bounds
from release.contents import check_links
from release.project import (
    ReleaseError,
    check_tag,
    list_source_files,
    list_supported_pythons,
    read_project,
    read_version,
)
from release.pythons import find_pythons

DATED = "# Changelog\n\n## [1.2.3] - 2026-12-01\n\n## [1.2.2] - 2026-11-01\n"
ADDRESS = "https://github.com/srvstat/srvstat"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_a_tag_must_be_that_of_the_version_with_dated_changes() -> None:
    check_tag("v1.2.3", "1.2.3", DATED)

    for tag, version, changelog, reason in (
        ("v1.2.2", "1.2.3", DATED, "the version is 1.2.3; tag v1.2.3"),
        ("1.2.3", "1.2.3", DATED, "tag v1.2.3"),
        ("v1.2.3", "1.2.3", DATED.replace("2026-12-01", "unreleased"), "replace `unreleased`"),
        ("v1.2.30", "1.2.30", DATED, r"needs a line `## \[1.2.30\]"),
        ("v1.2.2", "1.2.2", DATED, "the first section is that of 1.2.3"),
    ):
        with pytest.raises(ReleaseError, match=reason):
            check_tag(tag, version, changelog)


def test_the_version_and_the_address_are_written_in_one_place() -> None:
    project = read_project()
    urls = project["project"]["urls"]
    readme = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    links = re.findall(r"https://[^)]+", str(readme["substitutions"]))

    assert read_version() == srvstat.__version__
    assert len(links) == 2
    for address in (*urls.values(), *links):
        assert address.startswith(urls["Homepage"])
    assert f"Python :: {list_supported_pythons()[0]}" in str(project["project"]["classifiers"])
    assert project["project"]["requires-python"] == f">={list_supported_pythons()[0]}"


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        (f"[a]({ADDRESS}/blob/v1.2.3/docs/gone.md#x)", "docs/gone.md leads to no file"),
        ("[a](docs/cli.md)", "docs/cli.md does not work outside"),
        ("no link", "has no links"),
    ],
)
def test_a_link_that_leads_nowhere_is_refused(description: str, reason: str) -> None:
    sources = ["README.md", "docs/cli.md"]
    good = f"[a]({ADDRESS}/blob/v1.2.3/docs/cli.md#x) ![b]({ADDRESS}/raw/v1.2.3/docs) [c](#c)"
    check_links(good, "1.2.3", sources)

    with pytest.raises(ReleaseError, match=reason):
        check_links(description, "1.2.3", sources)


def test_each_dependency_of_users_has_bounds() -> None:
    names = {name for name, _, _ in list_bounds()}

    assert names >= {"typer", "pydantic", "h11", "psycopg", "pyarrow", "resvg-py"}
    assert not names & {"pytest", "pyspark", "matplotlib"}


def test_this_python_is_found_and_an_unknown_one_is_not() -> None:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"

    found = find_pythons([own, "3.99"])

    assert found["3.99"] is None
    python = found[own]
    if python is None:
        pytest.skip(f"python{own} is not on PATH")
    printed = subprocess.run([python, "--version"], capture_output=True, text=True, check=True)
    assert printed.stdout.startswith(f"Python {own}.")


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the files of a release are those in Git")
def test_the_files_of_a_release_are_those_that_git_does_not_ignore() -> None:
    names = list_source_files()

    assert {"pyproject.toml", "src/srvstat/py.typed", "docs/man/srvstat.1"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or name.startswith(".venv")]


@pytest.mark.skipif(not WORKFLOWS, reason="an sdist has no workflows")
def test_workflows_run_targets_of_make() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    texts = [path.read_text(encoding="utf-8") for path in WORKFLOWS]
    commands = re.findall(r"^ +(?:- )?run: (.+)$", "\n".join(texts), re.MULTILINE)

    used = [command.split()[1] for command in commands if command.startswith("make ")]
    assert {path.name for path in WORKFLOWS} == {"check.yml", "release.yml"}
    assert {"test-lowest", "test-newest", "release-check"} <= set(used) <= targets
    others = [command for command in commands if not command.startswith(("make ", "gh release "))]
    assert others == ["bash .ci/run"]
