"""Find the programs that `make external` installs, and look at pages in Chromium."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT

INSTALLED = ROOT / ".venv" / "external" / "bin"
PROGRAMS = ROOT / "tests" / "external" / "programs"

HOSTILE_NAMES = (
    "<script>globalThis.hacked = 1</script>",
    "</script><img src=x onerror='hacked = 2'>",
    '{{7*7}} \' onmouseover="hacked = 3" ]]>',
    "<svg onload=hacked=4> & &amp; <a href='https://example.org'>",
)


def require(*programs: str | Path) -> None:
    """Skip the test if a program is missing or does not run."""
    for program in programs:
        found = shutil.which(program)
        version = "version" if program == "go" else "-version" if program == "java" else "--version"
        if (
            not found
            or subprocess.run([found, version], capture_output=True, check=False).returncode
        ):
            pytest.skip(f"needs {program}; see `make external`")


def browse(program: str, function: str, *arguments: str | Path) -> Any:
    """Run a program that looks at a page in Chromium, and return what it found."""
    chromium = shutil.which("chromium") or "chromium"
    require(chromium, INSTALLED / "playwright")
    command = (INSTALLED / "python", PROGRAMS / program, function, chromium, *arguments)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=300)
    return json.loads(done.stdout)
