"""Random fleets, the outcome of an engine by our own readers, and a check against `compare`."""

import csv
import gzip
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from string import ascii_letters, digits
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from conftest import Cli, Ran
from srvstat.contract.requests import MAX_SERVERS
from srvstat.contract.stats import Statistics, compute_statistics
from srvstat.contract.time import format_instant
from srvstat.contract.windows import Window
from srvstat.fleet.engine import Engine, Resolved, Servers, open_engine
from srvstat.fleet.rows import Conflicts, read_rows
from srvstat.snapshot.write.intake import Inputs, Intake, Reason, open_temporary
from srvstat.snapshot.write.roster import Roster
from srvstat.sources.mapping import STRICT, ColumnMapping
from srvstat.sources.source import Reject, Source
from srvstat.sources.values import MAX_PLAYERS
from support.records import AS_OF, DAY, ndjson, server
from support.snapshots import parse_summary

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
    return FleetFiles(path, sources, [f"--at={AS_OF}"] if has_end else [])


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
    name, at, _ = rows[0]
    no_count: list[Row] = [(name, at, -1), (name, at, None), (name, -1, 5), (None, at, 5)]
    plain: list[Row] = [
        *no_count, (name, at, MAX_PLAYERS + 1), (name, None, 5), (name, 1 << 62, 5), ("", at, 5),
    ]  # fmt: skip
    text: list[Row] = [
        (name, at, -1), (name, at, "1.5"), (name, at, MAX_PLAYERS + 1), (name, "yesterday", 5),
        (name, "2026-01-01T00:00", 5), ("", at, 5), (name, at, ""),
    ]  # fmt: skip
    json_rows: list[Row] = [(name, at, 1.0), (name, at, True), (None, at, 5), (name, None, 5)]
    quoted: list[Row] = [(name, at, "1_0"), (name, "now", 5), (name, at, "")]
    writers: dict[Path, tuple[Callable[[Path, Random, list[Row]], None], list[Row]]] = {
        directory / "week's *.csv": (_write_csv, text),
        directory / "week?.ndjson.gz": (_write_ndjson, json_rows),
        directory / "other.parquet": (_write_other, no_count),
        directory / "texts.parquet": (_write_texts, quoted),
        **dict.fromkeys(parts, (partial(_write_parquet, schema=PLAIN), plain)),
    }
    shares = {path: random.choices(bad, k=len(bad)) for path, (_, bad) in writers.items()}
    for row in rows:
        shares[random.choice(list(shares))].append(row)
    for path, (write, _) in writers.items():
        random.shuffle(shares[path])
        write(path, random, shares[path])
    return [*(path for path in writers if path.parent == directory), folder]


def _write_csv(path: Path, random: Random, rows: list[Row]) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator=random.choice(["\n", "\r\n"]))
    writer.writerow(["serverId", "observedAt", "players"])
    writer.writerows(
        (name, random.choice([at, format_instant(at) if isinstance(at, int) else at]), players)
        for name, at, players in rows
    )
    path.write_text(stream.getvalue(), encoding="utf-8", newline="")


def _write_ndjson(path: Path, _random: Random, rows: list[Row]) -> None:
    lines = [
        json.dumps({"serverId": name, "observedAt": at, "players": players})
        for name, at, players in rows
    ]
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def _write_other(path: Path, random: Random, rows: list[Row]) -> None:
    cells = [
        # Digits beyond milliseconds are cut.
        (name, at * 1000 + random.randrange(1000), players)
        for name, at, players in rows
        if (players or 0) < 1 << 31
    ]
    _write_parquet(path, random, cells, OTHER)


def _write_texts(path: Path, random: Random, rows: list[Row]) -> None:
    cells = [(name, str(at), str(players)) for name, at, players in rows]
    _write_parquet(path, random, cells, TEXTS)


def _write_parquet(path: Path, random: Random, rows: Sequence[Row], schema: pa.Schema) -> None:
    columns = dict(zip(("serverId", "observedAt", "players"), zip(*rows, strict=True), strict=True))
    arrays = [pa.array(columns.get(field.name, [None] * len(rows)), field.type) for field in schema]
    table = pa.Table.from_arrays(arrays, schema=schema)
    with path.open("wb") as file:
        parquet.write_table(table, file, row_group_size=random.choice([7, 100, 10_000]))


NOON = 1_700_000_000_000
WINDOW = Window(NOON - 5, NOON + 5)
IDS = ("a", "b", "c")
SERVERS = Servers(IDS, {name: number for number, name in enumerate(IDS)})


def write_rows(path: Path, rows: list[tuple[Any, Any, Any]], **types: pa.DataType) -> Path:
    """Write observations as a Parquet file, whose columns may have other types."""
    given_types = {"serverId": pa.string(), "observedAt": pa.int64(), "players": pa.int64()} | types
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    table = pa.table(
        {
            name: pa.array(column, pa.int64()).cast(kind) if name == "observedAt" and rows
            else _build_array(column, kind)
            for (name, kind), column in zip(given_types.items(), columns, strict=True)
        }
    )  # fmt: skip
    parquet.write_table(table, path)
    return path


def forge_statistics(path: Path, true: int, wrong: int) -> None:
    """Replace a number in the statistics of a Parquet file, but not in its rows."""
    stored = path.read_bytes()
    footer = len(stored) - 8 - int.from_bytes(stored[-8:-4], "little")
    old, new = (number.to_bytes(8, "little", signed=True) for number in (true, wrong))
    assert old in stored[footer:]
    path.write_bytes(stored[:footer] + stored[footer:].replace(old, new))


def _build_array(column: Sequence[Any], kind: pa.DataType) -> pa.Array:
    # Not every version of PyArrow can build all dictionaries directly.
    if pa.types.is_dictionary(kind):
        return pa.array(column, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(column, kind)


class Outcome(NamedTuple):
    """What an engine says about the servers of IDS."""

    last_players: Mapping[str, int]
    rows: Mapping[int, int]
    rejected: Sequence[Sequence[Reason]]
    skipped: Mapping[str, int]
    figures: Mapping[int, Statistics]
    resolved: Resolved
    warnings: Sequence[str]


def open_sources(*paths: Path, mapping: ColumnMapping = STRICT) -> list[Source]:
    """Return the sources at some paths."""
    return [Source.from_name(str(path), None, mapping) for path in paths]


@contextmanager
def open_job(
    sources: Sequence[Source], conflicts: Conflicts = "first", memory: int = 512 << 20
) -> Iterator[Engine]:
    """Open the DuckDB engine for all observations of some sources."""
    with (
        open_temporary() as connection,
        open_engine(
            Intake(connection, Roster(()), Inputs(None, sources)),
            conflicts,
            memory=memory,
            threads=2,
            progress=lambda *_: None,
        ) as engine,
    ):
        yield engine


def run_engine(sources: Sequence[Source], window: Window, conflicts: Conflicts) -> Outcome:
    """Return the outcome of the DuckDB engine."""
    with open_job(sources, conflicts) as engine:
        return ask_engine(engine, window)


def ask_engine(engine: Engine, window: Window) -> Outcome:
    """Return the outcome of an engine that is open."""
    last_players = {row.identifier: row.last_players or 0 for row in engine.survey()}
    figures, resolved = engine.count(SERVERS, window)
    engine.reject(["a", "c"], "why")
    return Outcome(
        last_players,
        +Counter(engine.intake.rows_of),
        _list_reasons(engine.intake),
        dict(engine.intake.skipped),
        figures,
        resolved._replace(conflict=None),
        engine.intake.warnings,
    )


def compute_outcome(sources: Sequence[Source], window: Window, conflicts: Conflicts) -> Outcome:
    """Return the outcome that follows from the rows of our own readers."""
    with open_temporary() as connection:
        intake = Intake(connection, Roster(()), Inputs(None, sources))
        return _compute_outcome(intake, window, conflicts)


def _compute_outcome(intake: Intake, window: Window, conflicts: Conflicts) -> Outcome:
    by_instant: defaultdict[str, defaultdict[int, list[tuple[int, int]]]]
    by_instant = defaultdict(lambda: defaultdict(list))
    named: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for number, source in enumerate(intake.inputs.observations):
        for batch in read_rows(source, number, intake):
            for row in batch.to_pylist():
                pair = (row["position"], row["players"])
                order = pair if conflicts == "first" else pair[::-1]
                by_instant[row["identifier"]][row["at"]].append(order)
                if row["identifier"] in {"a", "c"}:
                    named[number].append((row["position"], row["identifier"]))
    of_pair = 1 if conflicts == "first" else 0
    standing = {
        name: {at: min(rows)[of_pair] for at, rows in sorted(of_server.items())}
        for name, of_server in by_instant.items()
    }
    figures = {}
    equal = different = kept = 0
    for number, name in enumerate(IDS):
        inside = {at: n for at, n in standing.get(name, {}).items() if window.includes(at)}
        kept += len(inside)
        for at, players in inside.items():
            values = [row[of_pair] for row in by_instant[name][at]]
            equal += values.count(players) - 1
            different += len(values) - values.count(players)
        if inside:
            figures[number] = compute_statistics([*inside.values()])
    lasts = {name: of_server[max(of_server)] for name, of_server in standing.items()}
    for rows in named.values():
        place, name = min(rows)
        intake.rejects.add(place, Reject(0, "why", name, name, rows=len(rows)))
    return Outcome(
        lasts,
        +intake.rows_of,
        _list_reasons(intake),
        dict(intake.skipped),
        figures,
        Resolved(kept, equal, different),
        intake.warnings,
    )


def _list_reasons(intake: Intake) -> list[list[Reason]]:
    """Return why rows of each source were rejected.

    Times that are no dates of Python are left out: engines read them in their unit.
    """
    return [
        [
            each._replace(value=None) if each.text.endswith("9999") else each
            for each in intake.rejects.list_reasons(number)
        ]
        for number, _ in enumerate(intake.inputs.observations)
    ]


def check_same_bytes(
    cli: Cli, files: FleetFiles, directory: Path, range: str, *options: str
) -> None:
    """Build a snapshot and run `fleet` from the same files, and compare every result."""
    built = build(cli, files, directory)
    output = directory / "results.ndjson"
    ran = cli(
        "fleet", *map(str, files.sources), f"--servers={files.servers}", *files.options,
        f"--range={range}", f"--output={output}", "--overwrite", *options,
    )  # fmt: skip
    assert ran.exit_code == 0, ran.stderr

    check_results(cli, directory, output, range)
    assert len(output.read_bytes().splitlines()) == int(parse_summary(built)["servers"].split()[0])
    _check_counts(ran, built, directory / "rejects.ndjson")


def check_results(cli: Cli, directory: Path, output: Path, range: str) -> None:
    """Compare each line of a file with the answer of the snapshot in a directory."""
    lines = output.read_bytes().splitlines()
    assert lines == sorted(lines, key=_get_id)
    answers = _compare(cli, directory / "snapshot.db", lines, range)
    for joined, answer in zip(_join(lines, range), answers, strict=True):
        assert joined == answer, (joined, answer)


def build(cli: Cli, files: FleetFiles, directory: Path) -> Ran:
    """Build the snapshot of a fleet in a directory."""
    path = directory / "snapshot.db"
    ran = cli(
        "snapshot", "build", str(path), f"--servers={files.servers}", *files.options,
        *(f"--observations={source}" for source in files.sources),
        f"--rejects={directory}/rejects.ndjson", "--overwrite",
    )  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    return ran


def _get_id(line: bytes) -> str:
    server_id: str = json.loads(line)["serverId"]
    return server_id


def _split(lines: list[bytes]) -> Iterable[list[bytes]]:
    """Return parts of the size of a request; `compare` needs two servers at least."""
    starts = [*range(0, len(lines) - MAX_SERVERS, MAX_SERVERS), len(lines) - MAX_SERVERS]
    return (lines[start : start + MAX_SERVERS] for start in starts)


def _join(lines: list[bytes], range: str) -> list[bytes]:
    """Return the answers that have the results of a fleet."""
    head = b'{"range":"%s","data":[' % range.encode()
    return [head + b",".join(part) + b"]}" for part in _split(lines)]


def _compare(cli: Cli, snapshot: Path, lines: list[bytes], range: str) -> list[bytes]:
    requests = [
        {"servers": [{"identifier": _get_id(line), "by": "id"} for line in part], "range": range}
        for part in _split(lines)
    ]
    text = "".join(f"{json.dumps(request)}\n" for request in requests)
    ran = cli("compare", "--batch=-", f"--snapshot={snapshot}", stdin=text.encode())
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout.splitlines()


def _check_counts(ran: Ran, build: Ran, rejects: Path) -> None:
    """Check that all rows met the fate that they have in a build, or are before the window."""
    found, built = parse_summary(ran), parse_summary(build)
    lines = rejects.read_bytes().splitlines()
    reasons = Counter(json.loads(line)["reason"] for line in lines)
    malformed = {why: rows for why, rows in reasons.items() if "an earlier row" not in why}
    assert _find_reasons(ran.stderr) == malformed, (ran.stderr, malformed)
    assert int(found["rejected"]) == sum(malformed.values())
    skipped = _parse(found["skipped"])
    early = skipped.pop("before the window", 0)
    assert skipped == _parse(built["skipped"]), (skipped, built)
    rows = ("kept", "repeated", "conflicting")
    assert early + _add(found, rows) == _add(built, rows)
    if not early:
        assert [found[name] for name in rows] == [built[name] for name in rows], (found, built)
    assert found["read"].split(" in ")[0] == built["read"].split(" in ")[0]
    assert found["servers"] == built["servers"]


def _find_reasons(summary: str) -> dict[str, int]:
    lines = re.findall(r"^ {15}([\d,]+) (.*)$", summary, re.MULTILINE)
    return {why: int(rows.replace(",", "")) for rows, why in lines}


def _parse(text: str) -> dict[str, int]:
    _, _, reasons = text.removesuffix(")").partition(" (")
    parts = (part.partition(" ") for part in reasons.split(", ") if part)
    return {why: int(rows.replace(",", "")) for rows, _, why in parts}


def _add(counts: Mapping[str, str], names: Iterable[str]) -> int:
    return sum(int(counts[name].replace(",", "")) for name in names)
