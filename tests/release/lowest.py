"""Print pip's constraints for the lowest version of each dependency of users."""

import re
import tomllib
from pathlib import Path

TOOLS = {"dev", "spark"}
"""Extras of developers, and that of Spark, whose tests need Java."""

text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
project = tomllib.loads(text)["project"]
extras = project["optional-dependencies"]
lines = [line for name in extras.keys() - TOOLS for line in extras[name]]
for line in sorted({*project["dependencies"], *lines}):
    bounds = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\w.]+),<[\w.]+", line)
    if bounds is None:
        raise ValueError(f"pyproject.toml: {line} is not NAME>=LOWEST,<LIMIT")
    print(f"{bounds[1]}=={bounds[2]}")
