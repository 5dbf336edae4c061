"""What the repository says about a release: its version, its Pythons, its files and its changes."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent


class ReleaseError(Exception):
    """A release is not as it must be. The message says what is wrong, and what helps."""


def read_project() -> dict[str, Any]:
    """Return the whole pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read_version() -> str:
    """Return the version of the package, which is written in its `version.py`."""
    text = (ROOT / "src" / "srvstat" / "version.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return str(version)


def list_supported_pythons() -> list[str]:
    """Return the versions among the classifiers, such as 3.11, in their order."""
    text = "\n".join(read_project()["project"]["classifiers"])
    return re.findall(r"^Programming Language :: Python :: (3\.\d+)$", text, re.MULTILINE)


def list_source_files() -> list[str]:
    """Return the files of the working tree that Git does not ignore, relative to the root.

    Raises ReleaseError outside a clone.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if ran.returncode:
        raise ReleaseError("the files of a release are those in Git; run this in a clone")
    names = {name.decode() for name in ran.stdout.split(b"\0") if name}
    return sorted(name for name in names if (ROOT / name).is_file())


def list_release_files() -> list[str]:
    """Return the source files, and those that Git ignores but archives have.

    Raises ReleaseError if one is missing.
    """
    artifacts = read_project()["tool"]["hatch"]["build"]["artifacts"]
    for name in artifacts:
        if not (ROOT / name).is_file():
            raise ReleaseError(f"{name} is missing; add it with `make api-page`")
    return sorted([*list_source_files(), *artifacts])


def copy_sources(directory: Path) -> None:
    """Copy the files of a release to a new directory.

    Raises ReleaseError.
    """
    for name in list_release_files():
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target, follow_symlinks=False)


def check_tag(tag: str, version: str, changelog: str) -> None:
    """Check that a tag is that of a version whose changes have a date.

    `changelog` is the text of CHANGELOG.md. Raises ReleaseError.
    """
    if tag != f"v{version}":
        raise ReleaseError(
            f"the tag is {tag}, but the version is {version}; tag v{version},"
            " or change src/srvstat/version.py"
        )
    first, *_ = re.findall(r"^## \[(.+)\] - (.+)$", changelog, re.MULTILINE) or [("nothing", "")]
    if first[0] != version:
        raise ReleaseError(
            f"CHANGELOG.md: needs a line `## [{version}] - YYYY-MM-DD`;"
            f" the first section is that of {first[0]}"
        )
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", first[1]):
        raise ReleaseError(f"CHANGELOG.md: {version} needs a date; replace `{first[1]}`")
