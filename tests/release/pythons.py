"""Find the installed Pythons of the versions that srvstat supports."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

_ASK = "import sys; print('%d.%d' % sys.version_info[:2])"


def find_pythons(versions: Iterable[str]) -> dict[str, str | None]:
    """Return the path of a Python of each version, on PATH or of pyenv; None if there is none."""
    return {version: next(_find(version), None) for version in versions}


def _find(version: str) -> Iterator[str]:
    on_path = shutil.which(f"python{version}")
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    of_pyenv = sorted((root / "versions").glob(f"{version}.*/bin/python"), key=_read_patch)
    candidates = [on_path] if on_path else []
    for python in (*candidates, *map(str, reversed(of_pyenv))):
        ran = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=False)
        # A command of pyenv exists for versions that are installed but not chosen, and fails.
        if ran.stdout.strip() == version:
            yield python


def _read_patch(python: Path) -> int:
    patch = python.parent.parent.name.split(".")[2]
    return int(patch) if patch.isdecimal() else -1
