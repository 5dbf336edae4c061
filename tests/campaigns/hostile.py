"""Ask snapshots that a stranger made: forged values with fitting digests, and arbitrary files.

Their answers may be anything, but each command ends within a second without a bug's traceback.
"""

import random
import sqlite3
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

from campaigns.campaign import MEMORY, Campaign, Result, run_in_blocks
from campaigns.small_snapshots import QUESTIONS, ask_everything, build_small_snapshot
from support.snapshots import forge

_MAX_SECONDS = 1.0 * len(QUESTIONS)
_BUG = 1


@cache
def _build_sound_snapshot() -> bytes:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        return build_small_snapshot(Path(name, "built"), seed=1).read_bytes()


@cache
def _list_columns() -> list[tuple[str, str]]:
    """Return (table, column) for every column of the snapshot's tables."""
    query = "SELECT name FROM sqlite_schema WHERE type = 'table'"
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(_build_sound_snapshot())
        return [
            (table, column)
            for (table,) in connection.execute(query).fetchall()
            for (_, column, *_) in connection.execute(f"PRAGMA table_info({table})")
        ]


def _draw_statements(rng: random.Random) -> Iterator[str]:
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        table, column = rng.choice(_list_columns())
        value = rng.randbytes(rng.randrange(64)).hex()
        number = rng.choice((0, 1, -1, 2**31, 2**53, 2**63 - 1, rng.randrange(-(2**63), 2**63)))
        new = rng.choice(
            (
                "NULL",
                str(number),
                f"x'{value}'",
                f"CAST(x'{value}' AS TEXT)",
                f"zeroblob({abs(number) % (1 << 24)})",
                f"{column} + {number}",
                f"CAST(substr({column}, 1, {number % 50}) || x'{value}' AS BLOB)",
                f"substr({column}, {number % 50})",
            )
        )
        # The columns come from our schema; a value is a number or hexadecimal digits.
        row = f"SELECT rowid FROM {table} LIMIT 1 OFFSET {rng.randrange(8)}"  # noqa: S608 - see above
        yield f"UPDATE {table} SET {column} = {new} WHERE rowid = ({row});"  # noqa: S608 - see above


def _run_block(rng: random.Random, count: int) -> Result:
    counts: Counter[str] = Counter()
    failures = []
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        path = Path(name, "hostile.db")
        for number in range(count):
            sound = _build_sound_snapshot()
            if number % 4:
                path.write_bytes(sound)
                statements = "".join(_draw_statements(rng))
            else:
                path.write_bytes(sound[: rng.choice((0, 16, 100, 4096))] + rng.randbytes(4_096))
                statements = ""
            outcome, findings = _run_case(path, statements)
            counts[outcome] += 1
            failures += [f"{statements or 'arbitrary bytes'}: {finding}" for finding in findings]
    return Result(count, counts, tuple(failures))


def _run_case(path: Path, statements: str) -> tuple[str, list[str]]:
    try:
        if statements:
            forge(str(path), statements)
    except (sqlite3.Error, ValueError, TypeError, LookupError, OverflowError, struct.error):
        return "could not be forged", []  # SQLite or the digests do not allow these changes
    started = time.process_time()
    found = ask_everything(str(path))
    seconds = time.process_time() - started
    bugs = [f"{answer!r:.300}" for answer in found if answer.exit_code == _BUG]
    slow = [f"took {seconds:.1f} s"] if seconds > _MAX_SECONDS else []
    return "answered or refused", [*bugs, *slow]


def _run(seed: int, count: int) -> Result:
    return run_in_blocks(_run_block, seed, count, size=1_000)


CAMPAIGN = Campaign(
    name="hostile",
    promise="any file gives an answer or an error, within a second a command",
    run=_run,
    short=20,
    long=2_000,
    unit="files",
)
