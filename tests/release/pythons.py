"""Find the installed Pythons of the versions that srvstat supports."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_ASK = "import sys; print('%d.%d' % sys.version_info[:2])"


def find_pythons(versions: Iterable[str]) -> dict[str, str | None]:
    """Return the path of a Python of each version, or None.

    A Python is found on PATH, where the running one is installed, or among those of pyenv.
    """
    return {version: next(_find(version), None) for version in versions}


def _find(version: str) -> Iterator[str]:
    name = f"python{version}"
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    of_pyenv = sorted((root / "versions").glob(f"{version}.*/bin/python"), key=_read_patch)
    own = os.path.join(sys.base_prefix, "bin", name)
    for path in (name, own, *map(str, reversed(of_pyenv))):
        python = shutil.which(path)
        if python is None:
            continue
        ran = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=False)
        # A command of pyenv exists for versions that are installed but not chosen, and fails.
        if ran.stdout.strip() == version:
            yield python


def _read_patch(python: Path) -> int:
    patch = python.parent.parent.name.split(".")[2]
    return int(patch) if patch.isdecimal() else -1
