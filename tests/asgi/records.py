"""Wait for the lines of a recording."""

import json
import time
from pathlib import Path
from typing import Any


def wait_for_records(path: Path, number: int, after: int = 0) -> list[dict[str, Any]]:
    """Wait for a number of lines, check that no more come, and return them."""
    deadline = time.monotonic() + 5
    while len(read_records(path)) < after + number and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.07)  # longer than lines are collected
    found = read_records(path)[after:]
    assert len(found) == number, found
    return found


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the lines so far, which must be whole."""
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    return [json.loads(line) for line in lines]
