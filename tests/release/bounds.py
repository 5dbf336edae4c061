"""Print pip's constraints for the lowest versions, or what upper bounds exclude.

A program: `bounds.py lowest|excluded`. The tools of the tests are not constrained, because
users don't install them.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TOOLS = {"bench", "dev", "soak", "spark"}
"""Extras of developers, and that of Spark, whose tests need Java."""
_REQUIREMENT = re.compile(r"(?P<name>[\w-]+)(\[\w+\])?>=(?P<lowest>[\w.]+),<(?P<limit>[\w.]+)")


def list_bounds() -> Iterator[tuple[str, str, str]]:
    """Yield the name, the lower and the upper bound of each dependency of users.

    Raises ValueError if one has no bounds.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    chosen = [line for name, lines in extras.items() if name not in TOOLS for line in lines]
    for line in [*project["dependencies"], *chosen]:
        bounds = _REQUIREMENT.fullmatch(line)
        if bounds is None:
            raise ValueError(f"pyproject.toml: {line} is not NAME>=LOWEST,<LIMIT")
        yield bounds["name"], bounds["lowest"], bounds["limit"]


def print_excluded() -> None:
    """Print the newer versions of installed dependencies that the upper bounds exclude."""
    pip = [sys.executable, "-m", "pip", "list", "--outdated", "--disable-pip-version-check"]
    ran = subprocess.run([*pip, "--format", "json"], stdout=subprocess.PIPE, check=True)
    newest = {
        each["name"].lower().replace("_", "-"): each["latest_version"]
        for each in json.loads(ran.stdout)
    }
    excluded = [
        f"{name}: <{limit} excludes {newest[name]}"
        for name, _, limit in sorted(set(list_bounds()))
        if name in newest
    ]
    print("\n".join(excluded) or "upper bounds exclude no newer version")


def main(chosen: str) -> None:
    """Print constraints for `lowest`, and a report for `excluded`."""
    if chosen == "excluded":
        print_excluded()
    elif chosen == "lowest":
        for name, lowest, _ in sorted(set(list_bounds())):
            print(f"{name}=={lowest}")


if __name__ == "__main__":
    main(sys.argv[1])
