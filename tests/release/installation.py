"""Install a wheel into empty environments, and try it there."""

import os
from collections.abc import Iterator
from pathlib import Path

from release.builds import run
from release.project import ROOT, ReleaseError

_SMOKE = str(ROOT / "tests" / "release" / "smoke.py")
_SCRIPTS = {
    "_srvstat": "zsh/site-functions/_srvstat",
    "srvstat.bash": "bash-completion/completions/srvstat",
    "srvstat.fish": "fish/vendor_completions.d/srvstat.fish",
}
"""The scripts that smoke.py writes, and where an environment has them in `share`."""


def write_expected_answers(directory: Path, python: str) -> Path:
    """Write the answers of the source tree to a new directory and return it.

    `python` is an interpreter that has the tree installed, with the service.
    """
    directory.mkdir(parents=True)
    run([python, "-I", _SMOKE, "serve"], directory)
    return directory


def create_environment(python: str, directory: Path) -> Path:
    """Create an empty environment and return its Python.

    Raises ReleaseError if this Python can't create one.
    """
    run([python, "-m", "venv", str(directory)], Path.cwd())
    return directory / "bin" / "python"


def install(python: Path, requirement: str) -> None:
    """Install a requirement with pip, in an environment.

    Raises ReleaseError.
    """
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, requirement], python.parent)


def check_installation(python: Path, wheel: Path, directory: Path, expected: Path) -> None:
    """Install a wheel into an empty environment, without and with the service, and try both.

    The answers must have the bytes of the expected ones. `directory` is a new one, for the answers.

    Raises ReleaseError.
    """
    for requirement, extra in ((str(wheel), []), (f"{wheel}[serve]", ["serve"])):
        install(python, requirement)
        answers = directory / ("-".join(extra) or "plain")
        answers.mkdir(parents=True)
        run([str(python), "-I", _SMOKE, *extra], answers)
        _compare(answers, expected, is_whole=bool(extra))
    _check_shared_files(python.parent.parent / "share", expected)
    (program,) = [python.parent / "srvstat"]
    printed = run([str(program), "--version"], directory)
    if printed.encode() != (expected / "version.txt").read_bytes():
        raise ReleaseError(f"{program} --version: {printed}")


def _compare(answers: Path, expected: Path, *, is_whole: bool) -> None:
    found, wanted = set(_list_files(answers)), set(_list_files(expected))
    if is_whole and found != wanted:
        raise ReleaseError(f"{answers} and {expected} have different files: {found ^ wanted}")
    for name in found:
        if (answers / name).read_bytes() != (expected / name).read_bytes():
            raise ReleaseError(f"{answers / name} differs from that of the source tree")


def _list_files(directory: Path) -> Iterator[str]:
    for folder, _, names in os.walk(directory):
        yield from (os.path.relpath(os.path.join(folder, name), directory) for name in names)


def _check_shared_files(share: Path, expected: Path) -> None:
    for name, installed in _SCRIPTS.items():
        if (share / installed).read_bytes() != (expected / name).read_bytes():
            raise ReleaseError(f"{share / installed} differs from `srvstat completion`")
    pages = {path.name for path in (share / "man" / "man1").iterdir()}
    if pages != {path.name for path in (ROOT / "docs" / "man").iterdir()}:
        raise ReleaseError(f"{share / 'man' / 'man1'} has other pages than docs/man")
