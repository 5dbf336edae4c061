"""Files as trackers, monitoring, bots and spreadsheets write them, read as their owners would.

Each `ugly/NAME.session` begins with answers such as `ZONE=Europe/Berlin`, commands that make files
which are not text, and the first command of an owner. Below are what it said, the command that it
proposed with the answers in it, and the counts of the snapshot, each as `id,instant,count`.

`WRITE=1 python -m pytest tests/sources/test_ugly_files.py` stores what the program says now.
"""

import gzip
import os
import re
import shlex
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow.csv
import pyarrow.parquet
import pytest
import zstandard

import srvstat
from conftest import Cli
from srvstat.contract.time import format_instant

UGLY = Path(__file__).parent / "ugly"
SESSIONS = sorted(UGLY.glob("*.session"))


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_a_file_is_read_as_its_owner_would(
    path: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for found in UGLY.glob(f"{path.stem}.*"):
        shutil.copy(found, tmp_path)
    if (UGLY / path.stem).is_dir():
        shutil.copytree(UGLY / path.stem, path.stem)
    stored = path.read_text(encoding="utf-8")

    played = play(stored, cli)

    if os.environ.get("WRITE"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == stored


def play(stored: str, cli: Cli) -> str:
    """Run a session, and return it with what the program says now."""
    answers = dict(re.findall(r"^([A-Z]+)=(.*)\n", stored, re.MULTILINE))
    lines = [f"{name}={value}" for name, value in answers.items()]
    for command in re.findall(r"^\$ make (.*)\n", stored, re.MULTILINE):
        kind, *names = shlex.split(command)
        MAKERS[kind](*names)
        lines.append(f"$ make {command}")
    (first, *_) = re.findall(r"^\$ srvstat (.*)\n", stored, re.MULTILINE)
    words = shlex.split(first)
    code, said = run(words, cli)
    lines += said
    if proposed := [line[4:] for line in said if line.startswith("!   srvstat ")]:
        assert code == 2
        (command,) = proposed
        _, *words = [answers.get(word, word) for word in shlex.split(command)]
        assert not {"ZONE", "NAME", "FORMAT"} & {*words}
        code, said = run(words, cli)
        lines += said
    assert Path("games.db").exists() == (code == 0)
    if code == 0:
        lines += list_counts("games.db")
        if not lines[-1].endswith(" more"):
            check_update(words, cli)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def run(words: Sequence[str], cli: Cli) -> tuple[int, list[str]]:
    """Run a command; return its exit code, and the lines of a session.

    They leave out the summary of a build, whose counts are listed instead.
    """
    before = {*Path().iterdir()}
    ran = cli(*words)
    said = ran.stderr.splitlines()
    if ran.exit_code:
        assert {*Path().iterdir()} == before
    else:
        said = [line for line in said if line.startswith("warning: ")]
    assert ran.stdout == b""
    lines = [f"$ {shlex.join(['srvstat', *words])}", *(f"! {line}" for line in said)]
    return ran.exit_code, [*lines, *([f"= {ran.exit_code}"] if ran.exit_code else [])]


def list_counts(path: str) -> list[str]:
    with srvstat.open_snapshot(path) as snapshot:
        counts = [
            f"  {name},{format_instant(at).replace('.000Z', 'Z')},{players}"
            for name, at, players in snapshot.history(range="all")
        ]
    return [*counts[:20], *([f"  {len(counts) - 20:,} more"] if len(counts) > 20 else [])]


def check_update(words: Sequence[str], cli: Cli) -> None:
    """Check that an update with the same files asks nothing and changes nothing."""
    _, _, path, *rest = words
    before = read_root(path)
    files = rest[: next((at for at, word in enumerate(rest) if word.startswith("--")), len(rest))]

    ran = cli("snapshot", "update", path, *files)

    assert ran.exit_code == 0, ran.stderr
    assert read_root(path) == before


def read_root(path: str) -> str:
    with srvstat.open_snapshot(path) as snapshot:
        return snapshot.root


def make_sqlite(source: str, target: str) -> None:
    with closing(sqlite3.connect(target)) as connection, connection:
        connection.executescript(Path(source).read_text(encoding="utf-8"))


def make_compressed(compress: Callable[[bytes], bytes], source: str, target: str) -> None:
    Path(target).write_bytes(compress(Path(source).read_bytes()))


def make_parquet(source: str, target: str) -> None:
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(source), target)


def make_archive(source: str, target: str) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        archive.write(source)


def make_bytes(digits: str, target: str) -> None:
    Path(target).write_bytes(bytes.fromhex(digits))


def make_corner(target: str) -> None:
    """Write a sheet with a cell so far away that it has 17 billion cells in memory."""
    write_workbook(target, b'<sheetData><row><c r="XFD1048576"><v>1</v></c></row></sheetData>')


def make_zeros(target: str) -> None:
    """Write a gigabyte of zeros as a megabyte of gzip data."""
    Path(target).write_bytes(gzip.compress(bytes(1 << 20)) * 1000)


def make_line(target: str) -> None:
    """Write a line of 100 MB after a header."""
    Path(target).write_bytes(b"time,server,players\n" + b"1" * 100_000_000 + b"\n")


def make_columns(target: str) -> None:
    """Write a wide file of ten thousand servers."""
    servers = range(1, 10_001)
    rows = [["time", *(f"s{server}" for server in servers)]]
    rows += [[f"2026-01-0{day}", *(str(server % 50 + day) for server in servers)] for day in (5, 6)]
    Path(target).write_text("".join(",".join(row) + "\n" for row in rows), encoding="ascii")


def make_rooms(target: str) -> None:
    """Write a file in order of rooms, so that its first 12,000 rows are of one room."""
    times = [format_instant(1_767_571_200_000 + at * 60_000) for at in range(12_000)]
    rows = [f"{at},{room},{players}" for players, room in ((41, "A"), (12, "B")) for at in times]
    Path(target).write_text("\n".join(["time,Raum,Spieler", *rows, ""]), encoding="ascii")


def damage(target: str) -> None:
    """Overwrite a page in the middle of a database."""
    data = bytearray(Path(target).read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = b"\xa5" * 4096
    Path(target).write_bytes(data)


def make_xlsx(source: str, target: str) -> None:
    """Write a workbook with a sheet: instants are dates of Excel, and digits are numbers."""
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    rows = "".join(f"<row>{''.join(map(format_cell, line.split(',')))}</row>" for line in lines)
    write_workbook(target, f"<sheetData>{rows}</sheetData>".encode())


def format_cell(text: str) -> str:
    if text.isdecimal():
        return f"<c><v>{text}</v></c>"
    if re.fullmatch(r"\d{4}-\d\d-\d\d .*", text):
        days = (datetime.fromisoformat(text) - datetime(1899, 12, 30)).total_seconds() / 86_400  # noqa: DTZ001 - Excel has no zones
        return f'<c s="1"><v>{days!r}</v></c>'
    return f'<c t="inlineStr"><is><t>{escape(text)}</t></is></c>'


_NAMESPACE = "http://schemas.openxmlformats.org"
_WORKBOOK = {
    "[Content_Types].xml": f'<Types xmlns="{_NAMESPACE}/package/2006/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_NAMESPACE}/package/2006/relationships">'
    f'<Relationship Id="r" Type="{_NAMESPACE}/officeDocument/2006/relationships/officeDocument"'
    ' Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_NAMESPACE}/spreadsheetml/2006/main"'
    f' xmlns:r="{_NAMESPACE}/officeDocument/2006/relationships"><sheets>'
    '<sheet name="Tabelle1" sheetId="1" r:id="s"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": "<Relationships"
    f' xmlns="{_NAMESPACE}/package/2006/relationships"><Relationship Id="s"'
    f' Type="{_NAMESPACE}/officeDocument/2006/relationships/worksheet"'
    f' Target="worksheets/sheet1.xml"/><Relationship Id="t"'
    f' Type="{_NAMESPACE}/officeDocument/2006/relationships/styles" Target="styles.xml"/>'
    "</Relationships>",
    "xl/styles.xml": f'<styleSheet xmlns="{_NAMESPACE}/spreadsheetml/2006/main">'
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs></styleSheet>',
}


def write_workbook(target: str, sheet: bytes) -> None:
    """Write a workbook of Excel with a sheet."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in _WORKBOOK.items():
            archive.writestr(name, text)
        archive.writestr(
            "xl/worksheets/sheet1.xml",
            b'<worksheet xmlns="%b/spreadsheetml/2006/main">%b</worksheet>'
            % (_NAMESPACE.encode(), sheet),
        )


MAKERS: Mapping[str, Callable[..., None]] = {
    "sqlite": make_sqlite,
    "gzip": partial(make_compressed, partial(gzip.compress, mtime=0)),
    "cut": partial(make_compressed, lambda data: gzip.compress(data, mtime=0)[:-40]),
    "zstd": partial(make_compressed, zstandard.ZstdCompressor().compress),
    "parquet": make_parquet,
    "xlsx": make_xlsx,
    "zip": make_archive,
    "bytes": make_bytes,
    "zeros": make_zeros,
    "corner": make_corner,
    "line": make_line,
    "columns": make_columns,
    "rooms": make_rooms,
    "damage": damage,
}
"""How a session makes a file."""


def test_a_database_that_is_being_written_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_sqlite(str(UGLY / "tables-of-sqlite.sql"), "polls.db")
    with closing(sqlite3.connect("polls.db", isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("DELETE FROM polls")

        ran = cli("snapshot", "build", "games.db", "polls.db")

        writer.execute("ROLLBACK")
    reason = "can't be read as a SQLite database: database is locked"
    remedy = "if a program writes to it, read a copy"
    assert (ran.exit_code, ran.stderr) == (6, f"error: polls.db: {reason}; {remedy}\n")
    assert not Path("games.db").exists()
