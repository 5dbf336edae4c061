"""Mutants: the program with one small change, which its tests have to notice."""

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
LEAST_CAUGHT = 0.9
CAUGHT = ("killed", "timeout")
"""Noticed by a test, or without an end: such a test would never pass."""

JUDGED_BY = {
    "stats.py": "test_stats.py",
    "contract/wire.py": "contract/test_wire.py",
    "snapshot/format/packing.py": "snapshot/format/test_packing.py",
    "snapshot/format/digest.py": "snapshot/format/test_digest.py",
}
"""Each module that is changed, and the tests that are to notice it, without the others' help."""


def run(seed: int, _count: int) -> Result:
    """Judge all mutants there are, whatever the count; the tests draw their own cases by the seed.

    That is done in a copy, so that no change is ever found in the place it was copied from.
    """
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for needed in NEEDED:
            put = shutil.copytree if (ROOT / needed).is_dir() else shutil.copy
            put(ROOT / needed, copy / needed)
        with (copy / "setup.cfg").open("w", encoding="utf-8") as file:
            settings(seed).write(file)
        mutmut(copy, "run")
        outcomes = dict(
            re.findall(r"^ +(\S+): (.+)$", mutmut(copy, "results", "--all", "1"), re.MULTILINE)
        )
        uncaught = [mutant for mutant, outcome in outcomes.items() if outcome not in CAUGHT]
        changes = {mutant: change(mutmut(copy, "show", mutant)) for mutant in uncaught}
    return Result(len(outcomes), Counter(outcomes.values()), tuple(failures(outcomes, changes)))


def settings(seed: int) -> ConfigParser:
    """Return what mutmut is to change, and to judge it by."""
    judged = {module: by for module, by in JUDGED_BY.items() if (ROOT / "tests" / by).exists()}
    lists = {
        "source_paths": ["src/"],
        "only_mutate": [f"src/srvstat/{module}" for module in judged],
        "pytest_add_cli_args": [f"--hypothesis-seed={seed}"],
        "pytest_add_cli_args_test_selection": [f"tests/{by}" for by in judged.values()],
    }
    config = ConfigParser()
    config["mutmut"] = {name: "\n".join(["", *values]) for name, values in lists.items()}
    return config


def mutmut(copy: Path, *arguments: str) -> str:
    """Run mutmut in a copy, and return what it says."""
    # What is set there for the tests here would have the tests there test what is here.
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


def change(shown: str) -> str:
    """Return what a mutant has in the place of our own lines, on one line."""
    return " ".join(line[1:].strip() for line in re.findall(r"^\+(?!\+\+).*", shown, re.MULTILINE))


def failures(outcomes: dict[str, str], changes: dict[str, str]) -> list[str]:
    """Tell of mutants that nothing noticed and nobody explained, and of too many of any kind."""
    explained = set(re.findall(r"^- `(.+?)`:", KNOWN.read_text(encoding="utf-8"), re.MULTILINE))
    found = [
        f"{mutant} ({outcomes[mutant]}): {changed}"
        for mutant, changed in changes.items()
        if changed not in explained
    ]
    caught = len(outcomes) - len(changes)
    if caught < LEAST_CAUGHT * len(outcomes) or not outcomes:
        found.append(f"only {caught} of {len(outcomes)} mutants were caught")
    return found


MUTANTS = Campaign(
    name="mutants",
    promise=(
        "nine of ten small changes to the statistics, the JSON, the packing and the digests are"
        " noticed by the module's own tests, and docs/mutants.md explains the others"
    ),
    run=run,
    short=0,
    long=1,
    unit="mutants",
)
