"""Change the program in small ways (mutants) and check that its tests fail."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from configparser import ConfigParser
from pathlib import Path

from campaigns.campaign import Campaign, Result

ROOT = Path(__file__).parents[2]
KNOWN = ROOT / "docs" / "mutants.md"
NEEDED = ("src", "tests", "pyproject.toml")
MIN_CAUGHT = 0.9
CAUGHT = ("killed", "timeout")
"""A test failed, or did not end, so it cannot pass."""

TESTS_OF = {
    "stats.py": ("test_stats.py", "test_ranking.py"),
    "contract/wire.py": ("contract/test_wire.py",),
    "snapshot/format/packing.py": ("snapshot/format/test_packing.py",),
    "snapshot/format/digest.py": ("snapshot/format/test_digest.py",),
}
"""Mutated modules, each with the only tests that run for it."""


def run(seed: int, _count: int) -> Result:
    """Test all mutants, whatever the count; the seed is that of the Hypothesis tests.

    Works in a copy of the repository, so that no mutant remains in the original.
    """
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for needed in NEEDED:
            put = shutil.copytree if (ROOT / needed).is_dir() else shutil.copy
            put(ROOT / needed, copy / needed)
        with (copy / "setup.cfg").open("w", encoding="utf-8") as file:
            build_settings(seed).write(file)
        run_mutmut(copy, "run")
        outcomes = dict(
            re.findall(r"^ +(\S+): (.+)$", run_mutmut(copy, "results", "--all", "1"), re.MULTILINE)
        )
        uncaught = [mutant for mutant, outcome in outcomes.items() if outcome not in CAUGHT]
        changes = {mutant: extract_change(run_mutmut(copy, "show", mutant)) for mutant in uncaught}
    return Result(
        len(outcomes), Counter(outcomes.values()), tuple(list_failures(outcomes, changes))
    )


def build_settings(seed: int) -> ConfigParser:
    """Return the settings of mutmut: the modules to change and the tests to run."""
    lists = {
        "source_paths": ["src/"],
        "only_mutate": [f"src/srvstat/{module}" for module in TESTS_OF],
        "pytest_add_cli_args": [f"--hypothesis-seed={seed}"],
        "pytest_add_cli_args_test_selection": [
            f"tests/{name}" for names in TESTS_OF.values() for name in names
        ],
    }
    config = ConfigParser()
    config["mutmut"] = {name: "\n".join(["", *values]) for name, values in lists.items()}
    return config


def run_mutmut(copy: Path, *arguments: str) -> str:
    """Run mutmut in a copy and return its output."""
    # A PYTHONPATH to this repository would make the copy's tests import the original.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"mutmut {arguments[0]} failed:\n{done.stdout[-2000:]}{done.stderr}")
    return done.stdout


def extract_change(shown: str) -> str:
    """Return the lines that a mutant adds, joined to one."""
    return " ".join(line[1:].strip() for line in re.findall(r"^\+(?!\+\+).*", shown, re.MULTILINE))


def list_failures(outcomes: dict[str, str], changes: dict[str, str]) -> list[str]:
    """Return mutants that survive without an explanation; also fails if too many survive."""
    explained = set(re.findall(r"^- `(.+?)`:", KNOWN.read_text(encoding="utf-8"), re.MULTILINE))
    found = [
        f"{mutant} ({outcomes[mutant]}): {changed}"
        for mutant, changed in changes.items()
        if changed not in explained
    ]
    caught = len(outcomes) - len(changes)
    if caught < MIN_CAUGHT * len(outcomes) or not outcomes:
        found.append(f"only {caught} of {len(outcomes)} mutants were caught")
    return found


MUTANTS = Campaign(
    name="mutants",
    promise=(
        "the module's own tests detect nine of ten small changes to the statistics, the JSON, the"
        " packing and the digests; docs/mutants.md explains the others"
    ),
    run=run,
    short=0,
    long=1,
    unit="mutants",
)
