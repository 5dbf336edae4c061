"""Run the tests of the examples in the documentation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

pytestmark = pytest.mark.slow


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
    assert "10 passed" in done.stdout
