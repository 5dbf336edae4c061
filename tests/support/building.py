"""What the tests of `snapshot build` ask and look at."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from conftest import Ran

COMMAND = ["snapshot", "build", "out.db", "--servers", "servers.ndjson"]
WEEK = [*COMMAND, "--observations", "week.csv"]
EXISTS = "error: out.db: exists; --overwrite replaces it\n"


def content(directory: Path) -> dict[str, bytes | None]:
    return {
        path.name: path.read_bytes() if path.is_file() else None for path in directory.iterdir()
    }


def stored(path: str) -> list[tuple[str, int, int]]:
    query = "SELECT id, observed_at, players FROM observations JOIN servers USING (server)"
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def told(ran: Ran) -> dict[str, str]:
    """Return the lines of a summary by their names."""
    return dict(re.findall(r"^  (\S+(?: \S+)*)  +(.*)$", ran.stderr, re.MULTILINE))


def rejects(path: str = "rejects.ndjson") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def conflict(name: str, line: int, first: int, text: str) -> dict[str, Any]:
    reason = f"conflicts with {first} players, read before for this server and instant"
    return {"file": name, "line": line, "reason": reason, "text": text}
