"""Write the files of a random fleet: records, and observations in files of several kinds."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from string import ascii_letters, digits
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from srvstat.contract.time import format_instant
from srvstat.sources.values import MAX_PLAYERS
from support.records import AS_OF, DAY, ndjson, server

HOSTILE = (
    'Löbby "1", <b>',
    "\u202egnp.exe",
    "a\tb",
    " two  spaces ",
    "\x1b[2J\x1b]0;title\x07",
    "'; DROP TABLE servers; --",
    "夜勤 «\U0001f47e»",
    "{}%s*[a-z]?\\",
    "month=2026-02",
)
"""Names that strangers could choose; none has a line break, which a line of CSV can't have."""

PLAIN = pa.schema([("serverId", pa.string()), ("observedAt", pa.int64()), ("players", pa.int64())])
OTHER = pa.schema(
    [
        ("players", pa.int32()),
        ("note", pa.string()),
        ("serverId", pa.dictionary(pa.int16(), pa.string())),
        ("observedAt", pa.timestamp("us", "Europe/Berlin")),
    ]
)
TEXTS = pa.schema(
    [("serverId", pa.string()), ("observedAt", pa.string()), ("players", pa.string())]
)
"""An engine reads the first two itself, and the last one with our own reader."""

Row = tuple[Any, Any, Any]


class FleetFiles(NamedTuple):
    """The arguments of a command: the file of records, the sources in order, and the options."""

    servers: Path
    sources: Sequence[Path]
    options: Sequence[str]


def write_fleet(directory: Path, random: Random, *, servers: int = 200) -> FleetFiles:
    """Write the files of a random fleet to a directory."""
    records = _build_records(random, servers)
    path = directory / "servers.ndjson"
    path.write_bytes(ndjson(records))
    has_end = random.random() < 0.5
    rows = [row for record in records for row in _observe(random, record, has_end=has_end)]
    rows += random.choices(rows, k=20)
    strangers = ("unknown", "un known", "ünknown", "")
    rows += [(name, AS_OF - random.randrange(DAY), 5) for name in strangers]
    random.shuffle(rows)
    sources = _write_sources(directory, random, rows)
    random.shuffle(sources)
    return FleetFiles(path, sources, [f"--as-of={AS_OF}"] if has_end else [])


def _build_records(random: Random, count: int) -> list[dict[str, Any]]:
    names = [_build_name(random, number) for number in range(2 * count)]
    ids, cfx_ids = names[:count], names[count:]
    cfx_ids[:5] = ids[5:10]  # an id of one server can be the cfxId of another
    records = []
    for number, (name, cfx_id) in enumerate(zip(ids, cfx_ids, strict=True)):
        optional: dict[str, Any] = {
            "sourceId": f"{random.choice(HOSTILE)}{number}",
            "publishable": False,
            "players": {"current": random.choice([0, 7, MAX_PLAYERS])},
        }
        given = {key: value for key, value in optional.items() if random.random() < 0.1}
        records.append(server(name, cfxId=cfx_id, hostname=random.choice(HOSTILE), **given))
    return records


def _build_name(random: Random, number: int) -> str:
    """Return an identifier that ends with a number, so that it is the only one of its kind."""
    length = random.choice([0, 1, 3, 10, 124])
    return "".join(random.choices(ascii_letters + digits + "-", k=length)) + f"{number:03}"


def _observe(random: Random, record: dict[str, Any], *, has_end: bool) -> list[Row]:
    """Return the observations of a server, some of them repeated, and some in conflict."""
    names = [record["id"], record.get("sourceId", record["id"])]
    values = random.choice([[0], range(3), range(300), range(MAX_PLAYERS - 5, MAX_PLAYERS + 1)])
    edges = [AS_OF - days * DAY + more for days in (0, 1, 7, 30, 90, 365) for more in (0, 1)]
    edges = edges if has_end else [edge for edge in edges if edge <= AS_OF]
    length = random.choice([DAY, 30 * DAY, 500 * DAY])
    times = [AS_OF - random.randrange(length) for _ in range(random.choice([0, 1, 2, 5, 40]))]
    times += [time for time in edges if random.random() < 0.1]
    again = [time for time in times if random.random() < 0.2]
    return [(random.choice(names), time, random.choice(values)) for time in (*times, *again)]


def _write_sources(directory: Path, random: Random, rows: Sequence[Row]) -> list[Path]:
    """Write each row to one of several files, and return the files and folders."""
    folder = directory / random.choice(HOSTILE)
    folder.mkdir()
    parts = [folder / f"{number} {random.choice(HOSTILE)} #%41.parquet" for number in range(3)]
    parts.append(folder / "month=2026-02" / "part é.parquet")
    parts[-1].parent.mkdir()
    writers: dict[Path, Callable[[Path, Random, list[Row]], None]] = {
        directory / "week's *.csv": _write_csv,
        directory / "week?.ndjson.gz": _write_ndjson,
        directory / "other.parquet": _write_other,
        directory / "texts.parquet": _write_texts,
        **dict.fromkeys(parts, _write_plain),
    }
    shares: dict[Path, list[Row]] = {path: [] for path in writers}
    for row in rows:
        shares[random.choice(list(shares))].append(row)
    for path, write in writers.items():
        write(path, random, shares[path])
    return [*(path for path in writers if path.parent == directory), folder]


def _write_csv(path: Path, random: Random, rows: list[Row]) -> None:
    name, at, _ = rows[0]
    bad: list[Row] = [
        (name, at, -1), (name, at, "1.5"), (name, at, MAX_PLAYERS + 1), (name, "yesterday", 5),
        (name, "2026-01-01T00:00", 5), ("", at, 5), (name, at, ""),
    ]  # fmt: skip
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator=random.choice(["\n", "\r\n"]))
    writer.writerow(["serverId", "observedAt", "players"])
    writer.writerows(
        (name, random.choice([at, format_instant(at) if isinstance(at, int) else at]), players)
        for name, at, players in _mix(random, rows, bad)
    )
    path.write_text(stream.getvalue(), encoding="utf-8", newline="")


def _write_ndjson(path: Path, random: Random, rows: list[Row]) -> None:
    name, at, _ = rows[0]
    bad: list[Row] = [(name, at, 1.0), (name, at, True), (None, at, 5), (name, None, 5)]
    lines = [
        json.dumps({"serverId": name, "observedAt": at, "players": players})
        for name, at, players in _mix(random, rows, bad)
    ]
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def _write_plain(path: Path, random: Random, rows: list[Row]) -> None:
    name, at, _ = rows[0]
    bad: list[Row] = [
        (name, at, -1), (name, at, MAX_PLAYERS + 1), (name, at, None), (name, None, 5),
        (None, at, 5), (name, -1, 5), (name, 1 << 62, 5), ("", at, 5),
    ]  # fmt: skip
    _write_parquet(path, random, PLAIN, _mix(random, rows, bad))


def _write_other(path: Path, random: Random, rows: list[Row]) -> None:
    name, at, _ = rows[0]
    bad: list[Row] = [(name, at, -1), (name, at, None), (name, -1, 5), (None, at, 5)]
    cells = [
        # Digits beyond milliseconds are cut.
        (name, None if at is None else at * 1000 + random.randrange(1000), players)
        for name, at, players in _mix(random, rows, bad)
    ]
    _write_parquet(path, random, OTHER, [row for row in cells if (row[2] or 0) < 1 << 31])


def _write_texts(path: Path, random: Random, rows: list[Row]) -> None:
    name, at, _ = rows[0]
    bad: list[Row] = [(name, at, "1_0"), (name, "now", 5), (name, at, "")]
    cells = [(name, str(at), str(players)) for name, at, players in _mix(random, rows, bad)]
    _write_parquet(path, random, TEXTS, cells)


def _mix(random: Random, rows: list[Row], bad: list[Row]) -> list[Row]:
    mixed = [*rows, *random.choices(bad, k=len(bad))]
    random.shuffle(mixed)
    return mixed


def _write_parquet(path: Path, random: Random, schema: pa.Schema, rows: Sequence[Row]) -> None:
    columns = dict(zip(("serverId", "observedAt", "players"), zip(*rows, strict=True), strict=True))
    arrays = [pa.array(columns.get(field.name, [None] * len(rows)), field.type) for field in schema]
    table = pa.Table.from_arrays(arrays, schema=schema)
    with path.open("wb") as file:
        parquet.write_table(table, file, row_group_size=random.choice([7, 100, 10_000]))
