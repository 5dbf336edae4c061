"""Build the archives of a release twice, and check that both builds give the same bytes."""

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from release.project import ReleaseError, copy_sources


class Archives(NamedTuple):
    """The two files of a release."""

    sdist: Path
    wheel: Path


def build_twice(directory: Path, python: str = sys.executable) -> Archives:
    """Build in two new directories; return the archives of the first build.

    The first build makes the wheel from the unpacked sdist, the second one from the sources.
    Directories, times and permissions of files, and the time zone differ. `python` is an
    interpreter that has the package `build`.

    Raises ReleaseError if a build fails, or if the builds differ.
    """
    one, two = directory / "one", directory / "two" / "elsewhere"
    for tree in (one, two):
        copy_sources(tree)
    for path in two.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(0o700 if path.is_dir() or os.access(path, os.X_OK) else 0o600)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(_build, one, python, [], "UTC")
        second = pool.submit(_build, two, python, ["--sdist", "--wheel"], "Asia/Tokyo")
        archives, others = first.result(), second.result()
    for archive, other in zip(archives, others, strict=True):
        if archive.name != other.name or archive.read_bytes() != other.read_bytes():
            raise ReleaseError(f"two builds differ: {archive} and {other}")
    return archives


def _build(tree: Path, python: str, options: Sequence[str], time_zone: str) -> Archives:
    output = tree.parent / f"dist-{tree.name}"
    run([python, "-m", "build", *options, "--outdir", str(output)], tree, TZ=time_zone)
    (sdist,), (wheel,) = output.glob("*.tar.gz"), output.glob("*.whl")
    return Archives(sdist, wheel)


def run(command: Sequence[str], directory: Path, **variables: str) -> str:
    """Run a command in a directory and return its output. Variables of Python are not passed on.

    Raises ReleaseError with the end of its output if it fails.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "SRVSTAT_", "SOURCE_DATE_EPOCH", "VIRTUAL_ENV"))
    }
    ran = subprocess.run(
        command,
        cwd=directory,
        env=inherited | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ran.returncode:
        end = "\n".join(ran.stdout.splitlines()[-40:])
        raise ReleaseError(f"{' '.join(command)}: exit code {ran.returncode}\n{end}")
    return ran.stdout
