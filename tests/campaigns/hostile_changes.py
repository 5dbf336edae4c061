"""Build the small snapshot that the campaigns damage, and change it as arbitrary bytes say."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import chdir, closing
from functools import cache
from pathlib import Path

from srvstat.cli.main import main
from support.records import AS_OF, DAY, csv, ndjson, server


@cache
def build_sound_snapshot() -> bytes:
    return build_snapshot(last=None)


def build_snapshot(*, last: int | None) -> bytes:
    """Build a snapshot of three servers, with large counts and bands of several values.

    `last` replaces the players of the last observation of each server.
    """
    times = range(AS_OF - 3 * DAY, AS_OF + 1, DAY // 4)
    observations = [
        (name, at, factor * (at // DAY % 7) if last is None or at < AS_OF else last)
        for name, factor in (("a", 1), ("b", 20), ("c", 2**40))
        for at in times
    ]
    # More days than fit in the server's row, and more values and intervals than bands.
    observations += [
        ("b", AS_OF - day * DAY - day * day % 97, day * 40 % 999) for day in range(4, 74)
    ]
    records = [server(name, tags=["x", "\u65e5"], hostname=name * 3) for name in "abc"]
    sources = ["--servers", "servers.ndjson", "--observations", "week.csv"]
    with tempfile.TemporaryDirectory() as directory, chdir(directory):
        Path("servers.ndjson").write_bytes(ndjson(records))
        Path("week.csv").write_bytes(csv(observations))
        assert main(["snapshot", "build", "snapshot.db", *sources, "--quiet"]) == 0
        return Path("snapshot.db").read_bytes()


def apply_changes(sound: bytes, changes: bytes) -> bytes:
    """Change a file; each change is 6 bytes: the kind, 3 bytes of position, 2 of value."""
    file = bytearray(sound)
    for start in range(0, len(changes) - 5, 6):
        where = int.from_bytes(changes[start + 1 : start + 4], "big") % max(len(file), 1)
        how = changes[start + 4 : start + 6]
        number = int.from_bytes(how, "big")
        match changes[start] % 5:
            case 0:
                file[where : where + 1] = bytes(byte ^ how[1] for byte in file[where : where + 1])
            case 1:
                file[where : where + 2] = how
            case 2:
                file[where : where + number] = bytes(len(file[where : where + number]))
            case 3:
                page = int.from_bytes(sound[16:18], "big")
                source, target = number * page % len(file or sound), where // page * page
                file[target : target + page] = file[source : source + page]
            case 4:
                del file[where:]
    return bytes(file)


@cache
def _list_columns() -> list[tuple[str, str]]:
    """Return (table, column) for every column that answers read."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(build_sound_snapshot())
        names = (
            *("snapshot", "directory", "servers", "calendars", "bands", "days"),
            *("summary_index", "summaries", "interval_counts", "intervals"),
        )
        return [
            (table, column)
            for table in names
            for (_, column, *_) in connection.execute(f"PRAGMA table_info({table})")
        ]


def build_sql(changes: bytes) -> Iterator[str]:
    """Yield UPDATE statements; 4 bytes give the column, row, change and length of the value."""
    rest = changes
    while len(rest) > 3:
        table, column = _list_columns()[rest[0] % len(_list_columns())]
        value = rest[4 : 4 + rest[3] % 64]
        number = int.from_bytes(value[:8], "big", signed=True)
        new = (
            "NULL",
            str(number),
            f"x'{value.hex()}'",
            f"CAST(x'{value.hex()}' AS TEXT)",
            f"zeroblob({abs(number) % (1 << 24)})",
            f"{column} + {number}",
            f"CAST(substr({column}, 1, {number % 50}) || x'{value.hex()}' AS BLOB)",
            f"substr({column}, {number % 50})",
        )[rest[2] % 8]
        # The columns come from our schema; a value is a number or hexadecimal digits.
        row = f"SELECT rowid FROM {table} LIMIT 1 OFFSET {rest[1] % 16}"  # noqa: S608 - see above
        yield f"UPDATE {table} SET {column} = {new} WHERE rowid = ({row});"  # noqa: S608 - see above
        rest = rest[4 + len(value) :]
