"""Snapshots of older formats, and what the versions that wrote them answered."""

import gzip
import json
from pathlib import Path
from typing import Any

from conftest import ROOT

FIXTURES = ROOT / "fixtures" / "formats"
VERSIONS = range(1, 8)
BUNDLE_VERSIONS = (6, 7)

BUILD = [
    f"--servers={FIXTURES / 'servers.ndjson'}",
    f"--observations={FIXTURES / 'observations.csv'}",
    f"--observations={FIXTURES / 'late.csv'}",
    "--as-of=2026-03-01T12:00:00.500Z",
    "--quiet",
]
"""The options from which all of them were built."""


def read_old_file(name: str) -> bytes:
    """Return the bytes of a snapshot, such as `format-3` or `format-7-bundle`."""
    return gzip.decompress((FIXTURES / f"{name}.db.gz").read_bytes())


def write_old_file(name: str, path: Path) -> str:
    """Write a snapshot to a path, and return it."""
    path.write_bytes(read_old_file(name))
    return str(path)


def read_answers(name: str) -> list[dict[str, Any]]:
    """Return the commands, exit codes and outputs of `answers` or `bundle-answers`."""
    lines = gzip.decompress((FIXTURES / f"{name}.ndjson.gz").read_bytes()).splitlines()
    return list(map(json.loads, lines))
