"""Sources: names, formats, gzip, UTF-8 and lines."""

import fcntl
import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys
import termios
import threading
import time
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import zstandard

from conftest import AS_OF, Cli, Ran, csv, ndjson, server
from sources.readings import read_table
from srvstat.contract.errors import SourceError, UsageError
from srvstat.sources import registry
from srvstat.sources.mapping import ColumnMapping
from srvstat.sources.registry import KINDS, Kind
from srvstat.sources.source import (
    MAX_LINE_BYTES,
    EncodingError,
    Source,
    check_stdin_once,
    expand_name,
)
from support.snapshots import COMMAND

Lines = list[tuple[int, str]]

MIB = 1 << 20


def read_lines(path: Path | str) -> Lines:
    return list(Source(str(path), "ndjson").read_lines())


def read_refusal(path: Path | str) -> str:
    with pytest.raises(SourceError) as caught:
        read_lines(path)
    return caught.value.reason


@pytest.fixture
def lines(tmp_path: Path) -> Callable[[bytes], Lines]:
    """Return a function that reads bytes as a file."""

    def read(data: bytes) -> Lines:
        (tmp_path / "source").write_bytes(data)
        return read_lines(tmp_path / "source")

    return read


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[[bytes], str]:
    """Return a function that returns why bytes are refused, without the name of the file."""

    def read(data: bytes) -> str:
        (tmp_path / "source").write_bytes(data)
        return read_refusal(tmp_path / "source").removeprefix(f"{tmp_path / 'source'}, ")

    return read


def pack_zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


CSV = b"time,n\n2026-01-05T00:00Z,4\n"
RRD = b'<?xml version="1.0"?>\n<!DOCTYPE rrd SYSTEM "x.dtd">\n<!-- made by rrdtool -->\n<rrd>'
BATTLEMETRICS = b'{"data":[{"type":"dataPoint","attributes":{}}]}'
CONTENTS = {
    "csv": [CSV, b"", b"a\n", b"# note\na;b", b"[time],[n]", "Zeit,Zähler".encode("utf-16"), b"{x"],
    "ndjson": [b'{"a":1}', b'\xef\xbb\xbf{"a":1}\r\n\n{"b":[2]}\n', b'{"a":1}\nx\n'],
    "json": [
        b"[]",
        b' [{"a":1}]',
        b'{"a":\n1}',
        b'{"a":[1]}',
        b"var data = [[1,2]];",
        b"[[1767571200",
    ],
    "prometheus": [b'{"status":"success","data":{"resultType":"matrix","result":[]}}'],
    "battlemetrics": [BATTLEMETRICS],
    "rrd": [RRD, b"<rrd>\n<version>"],
    "parquet": [b"PAR1"],
    "duckdb": [bytes(8) + b"DUCK"],
}
NOT_DATA = {
    "a web page": b"\n<!doctype html><p>",
    "a database of RRDtool; run rrdtool dump": b"RRD\x000003",
    "an old file of Excel; save it as .xlsx": b"\xd0\xcf\x11\xe0\xa1",
    "an archive; extract it": b"PK\x03\x04",
    "a picture": b"\x89PNG\r\n",
    "XML, but no dump of RRDtool": b"<?xml version='1.0'?><a/>",
    "a dump of SQL; load it with sqlite3": b"-- made by\nCREATE TABLE x (a);",
    "not text, in an unknown format": b"a\x00b",
}


@pytest.mark.parametrize("name", ["week", "week.dat", "week.txt.gz", "week.csv"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, pack_zstd])
def test_a_file_is_recognized_by_its_content(
    name: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / name
    for kind in CONTENTS.keys() & KINDS.keys():
        for content in CONTENTS[kind]:
            path.write_bytes(pack(content))
            if kind in {"parquet", "duckdb"} and pack is not bytes:
                with pytest.raises(SourceError, match="in another compression; decompress it"):
                    Source.from_name(str(path), None)
            else:
                assert Source.from_name(str(path), None).kind == kind, content
    for problem, content in NOT_DATA.items():
        path.write_bytes(pack(content))
        with pytest.raises(SourceError, match=re.escape(f"{path}: {problem}")):
            Source.from_name(str(path), None)


def test_what_is_read_once_needs_a_format(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in ("-", str(tmp_path / "fifo")):
        with pytest.raises(UsageError, match="unknown format; add --input-format"):
            Source.from_name(name, None)
        assert [Source.from_name(name, each).kind for each in ("csv", "ndjson")] == [
            "csv",
            "ndjson",
        ]


def test_a_missing_folder_is_named_although_its_name_has_no_format(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="/days: no such file or directory"):
        Source.from_name(f"{tmp_path}/days", None)


def test_standard_input_is_named_once_at_most() -> None:
    check_stdin_once(["-", "week.csv"])

    with pytest.raises(UsageError):
        check_stdin_once(["-", "week.csv", "-"])


ODD_NAMES = [b"a#b", b"a?b", b"a?mode=rwc", b"a%41b", b"a b", b"a\nb", b"-a", "ä夜".encode()]
NOT_UTF8 = pytest.param(
    b"\xff\xfe",
    marks=pytest.mark.skipif(sys.platform == "darwin", reason="its file names are UTF-8"),
)


@pytest.mark.parametrize("name", [*ODD_NAMES, NOT_UTF8])
def test_a_file_may_have_any_name(name: bytes, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(b"text\n")

    assert read_lines(path) == [(1, "text")]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert read_refusal(tmp_path / "gone") == f"{tmp_path / 'gone'}: no such file or directory"
    assert read_refusal(tmp_path) == f"{tmp_path}: is a directory"
    assert read_refusal("a\x00b") == "a\x00b: not a file name"
    assert read_refusal(os.fsdecode(b"week-\xff")) == r"week-\xff: no such file or directory"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n\r\n\n", []),
        (b"a\nb\r\nc", [(1, "a"), (2, "b"), (3, "c")]),
        (b"\n\r\na\n\n\nb\n", [(3, "a"), (6, "b")]),
        (b" \n\t\n", [(1, " "), (2, "\t")]),
        ("\ufeffa\n".encode(), [(1, "a")]),
        ("\ufeff".encode(), []),
        ("\ufeff\ufeffa\n".encode(), [(1, "\ufeffa")]),
        ("a\n\ufeffb\n".encode(), [(1, "a"), (2, "\ufeffb")]),
    ],
)
def test_lines_are_numbered_with_the_empty_ones(
    data: bytes, expected: Lines, lines: Callable[[bytes], Lines]
) -> None:
    assert lines(data) == expected


@pytest.mark.parametrize("character", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_only_a_newline_ends_a_line(character: str, lines: Callable[[bytes], Lines]) -> None:
    assert lines(f"a{character}b\nc\n".encode()) == [(1, f"a{character}b"), (2, "c")]


def test_lines_do_not_depend_on_the_blocks(lines: Callable[[bytes], Lines]) -> None:
    expected = [(number, f"line {number} é") for number in range(1, 150_000)]
    data = "".join(f"{text}\n" for _, text in expected).encode()

    assert len(data) > 2 * MIB
    assert lines(data) == expected


LONGEST = b"x" * MAX_LINE_BYTES
TOO_LONG = LONGEST + b"x"


@pytest.mark.parametrize("before", [b"", b"a\n" * 300_000])
@pytest.mark.parametrize("after", [b"", b"\n" + b"a\n" * 600_000])
def test_a_long_line_is_refused_anywhere(
    before: bytes, after: bytes, lines: Callable[[bytes], Lines], refusal: Callable[[bytes], str]
) -> None:
    line = before.count(b"\n") + 1

    assert (line, LONGEST.decode()) in lines(before + LONGEST + after)
    assert refusal(before + TOO_LONG + after) == f"line {line}: longer than 1,048,576 bytes"
    assert read_refusal("/dev/zero") == "/dev/zero, line 1: longer than 1,048,576 bytes"


NOT_UTF8_TEXT = "not UTF-8; if it is Windows-1252, add --encoding cp1252"


@pytest.mark.parametrize(
    "wrong", [b"\xff", b"\xc3", b"\xe2\x82", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
)
@pytest.mark.parametrize(("before", "line"), [(b"", 1), (b"a\r\n\n", 3), ("\ufeffé\n".encode(), 2)])
@pytest.mark.parametrize("after", [b"", b"\n", b"z\nmore\n"])
def test_text_that_is_not_utf8_is_refused_with_its_line(
    before: bytes, wrong: bytes, after: bytes, line: int, refusal: Callable[[bytes], str]
) -> None:
    assert refusal(before + b"x" + wrong + after) == f"line {line}: {NOT_UTF8_TEXT}"


TEXT = b"".join(b"line %d of %d\n" % (number, number * number) for number in range(1, 60_001))
PACKED = gzip.compress(TEXT, mtime=0)


def test_the_members_of_a_gzip_file_follow_one_another(lines: Callable[[bytes], Lines]) -> None:
    data = b"".join(gzip.compress(part) for part in (b"one\ntw", b"", b"o\nthree\n"))

    assert lines(data) == [(1, "one"), (2, "two"), (3, "three")]


def test_truncated_gzip_is_refused_with_the_line_reached(refusal: Callable[[bytes], str]) -> None:
    small = gzip.compress(b"some text")
    cuts = [small[:size] for size in range(2, len(small))]
    cuts += [PACKED[: int(len(PACKED) * part)] for part in (0.2, 0.5, 0.999)]

    lines = [zlib.decompressobj(wbits=31).decompress(cut).count(b"\n") + 1 for cut in cuts]
    assert [line > 1000 for line in lines[-3:]] == [True] * 3
    for cut, line in zip(cuts, lines, strict=True):
        assert refusal(cut) == f"line {line}: the gzip data is cut off here"


def test_damaged_gzip_is_refused(refusal: Callable[[bytes], str]) -> None:
    packed = gzip.compress(b"some text, some more text\n", mtime=0)

    # The header before has flags and a date, which change no text.
    for at in range(10, len(packed)):
        damaged = packed[:at] + bytes([packed[at] ^ 0xFF]) + packed[at + 1 :]
        assert "the gzip data is" in refusal(damaged)
    assert refusal(gzip.compress(b"a\n") + b"b\n") == "line 2: the gzip data is damaged here"


def feed(path: Path, data: bytes) -> None:
    """Write to a FIFO one byte at a time, each after the previous one was read."""
    with path.open("wb", 0) as pipe:
        for byte in data:
            pipe.write(bytes([byte]))
            while any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))):
                time.sleep(0)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_fifo_may_return_single_bytes(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    data = pack("\ufeffone\r\n\ntwo é\nthree".encode())
    os.mkfifo(tmp_path / "fifo")
    writer = threading.Thread(target=feed, args=(tmp_path / "fifo", data), daemon=True)
    writer.start()

    assert read_lines(tmp_path / "fifo") == [(1, "one"), (3, "two é"), (4, "three")]
    writer.join(10)


@pytest.mark.parametrize("data", [b"", b"a", b"ab", TEXT, PACKED])
def test_on_bytes_counts_every_stored_byte_once(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(data)
    counts: list[int] = []

    for _ in Source(str(tmp_path / "source"), "ndjson", on_bytes=counts.append).read_lines():
        pass

    assert sum(counts) == len(data)


CHANGED = "changed while it was read; run again once nothing writes to it"
LINES = b"".join(b"line %d\n" % number for number in range(60_000))


def replace_file(path: Path) -> None:
    copy = path.with_suffix(".new")
    copy.write_bytes(path.read_bytes())
    os.replace(copy, path)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"one more\n")


CHANGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: os.truncate(path, 200_000),
    "emptied": lambda path: os.truncate(path, 0),
    "grown": grow,
    "written again": lambda path: path.write_bytes(LINES),
    "replaced": replace_file,
    "removed": Path.unlink,
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_changes_while_it_is_read_is_refused(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "week.ndjson"
    path.write_bytes(LINES)
    os.utime(path, (0, 0))  # long ago, so that any write changes the time
    blocks = Source(str(path), "ndjson").read_blocks()
    next(blocks)

    change(path)

    with pytest.raises(SourceError) as caught:
        list(blocks)
    assert caught.value.reason == f"{path}: {CHANGED}"


@pytest.mark.slow
def test_standard_input_may_be_a_file_that_was_partly_read(tmp_path: Path) -> None:
    path = tmp_path / "week.csv"
    path.write_bytes(b"a comment\n" + csv([("a", AS_OF, 5)]))
    with path.open("rb", 0) as stdin:
        stdin.readline()
        done = subprocess.run(
            [sys.executable, "-m", "srvstat", *DRAFT, "-", "--format", "csv"],
            stdin=stdin,
            capture_output=True,
            timeout=60,
            check=False,
        )

    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="has no /proc")
def test_a_file_without_a_size_is_read_to_its_end() -> None:
    assert list(Source("/proc/self/status", "ndjson").read_lines())


DRAFT = ["snapshot", "draft-servers", "--game", "game_a", "--observations"]
ROWS = [("ab"[at % 2], AS_OF - at * 60_000, at % 50) for at in range(300)]
OBSERVATIONS = [*COMMAND, "--format", "csv", "--observations"]


@pytest.fixture
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("servers.ndjson").write_bytes(ndjson([server("a"), server("b")]))


@pytest.mark.skipif(sys.platform != "linux", reason="has no /proc")
@pytest.mark.usefixtures("_files")
def test_a_file_whose_first_read_fails_is_refused(cli: Cli) -> None:
    ran = cli(*OBSERVATIONS, "/proc/self/mem")

    assert (ran.exit_code, ran.stdout) == (6, b"")
    assert ran.stderr == "error: /proc/self/mem: input/output error\n"


def run_slowly(command: list[str], data: bytes) -> Ran:
    """Run a command whose standard input does not block and is often empty."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    cuts = [len(data) * part // 7 for part in range(1, 7)]
    with subprocess.Popen(
        [sys.executable, "-m", "srvstat", *command, "-"],
        stdin=read_end,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(read_end)
        for start, end in zip([0, 1, *cuts], [1, *cuts, len(data)], strict=True):
            os.write(write_end, data[start:end])
            deadline = time.monotonic() + 30
            while any(fcntl.ioctl(write_end, termios.FIONREAD, bytes(4))):
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.001)
            time.sleep(0.01)  # so that the next read finds nothing
        os.close(write_end)
        stdout, stderr = process.communicate(timeout=60)
    return Ran(process.returncode, stdout, stderr.decode())


@pytest.mark.slow
@pytest.mark.usefixtures("_files")
def test_a_nonblocking_standard_input_is_read_to_its_end(cli: Cli) -> None:
    data = csv(ROWS)
    assert cli(*OBSERVATIONS, "-", stdin=data).exit_code == 0
    expected = Path("out.db").read_bytes()
    Path("out.db").unlink()

    ran = run_slowly(OBSERVATIONS, data)

    assert (ran.exit_code, ran.stdout) == (0, b""), ran.stderr
    assert Path("out.db").read_bytes() == expected


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_kind_names_the_functions_that_read_it(kind: Kind) -> None:
    assert kind.observations or kind.records
    for name in filter(None, (kind.observations, kind.records, kind.sample)):
        module, _, function = name.partition(":")
        assert callable(getattr(import_module(module), function))


def test_a_reader_is_loaded_with_the_first_source_of_its_kind() -> None:
    kinds = [kind.observations for kind in KINDS.values() if kind.observations]
    readers = {name.partition(":")[0] for name in kinds}
    code = (
        "import sys; from srvstat.sources.source import Source; print(*sys.modules);"
        "Source.from_name('-', 'csv'); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = (set(line.split()) for line in done.stdout.splitlines())

    assert not readers & before
    assert readers & after == {"srvstat.sources.csv"}


def read_counts(name: str | Path, **options: Any) -> list[tuple[str, int, int]]:
    """Return the observations of a recognized file as (server, minutes since AS_OF, players)."""
    source = Source.from_name(str(name), None, ColumnMapping(**options))
    return [(name, (at - AS_OF) // 60_000, count) for _, name, at, count in read_table(source).kept]


def name_files(path: Path, *names: str) -> None:
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(CSV)


def expand(name: str, servers: str | None = None) -> tuple[list[str], list[str]]:
    """Return the names of the files that a name means, and the warnings."""
    warnings: list[str] = []
    found = expand_name(name, lambda each: Source.from_name(each, None), warnings.append, servers)
    return [os.path.normpath(source.name) for source in found], warnings


def test_a_folder_means_its_files_of_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name_files(tmp_path, "a/b.csv", "a/a.txt", "a/c/d", "a/.x.csv", "a/_y/z.csv", "a/README.txt")
    (tmp_path / "a/logo").write_bytes(b"\x89PNG")

    assert expand("a") == (
        ["a/a.txt", "a/b.csv", "a/c/d"],
        ["a: 2 files are not data, left out: README.txt, logo"],
    )
    assert expand("a", f"{tmp_path}/a/logo") == (
        ["a/a.txt", "a/b.csv", "a/c/d"],
        ["a: 1 file is not data, left out: README.txt"],
    )
    assert expand("a/*.csv") == (["a/b.csv"], [])
    name_files(tmp_path, "p/a.csv", "p/b.parquet", "p/case.har")
    (tmp_path / "p/b.parquet").write_bytes(b"PAR1")
    assert expand("p") == (
        ["p/b.parquet"],
        [
            "p: 1 file is not Parquet like the others, left out (name them to read them): a.csv",
            "p: 1 file is not data, left out: case.har",
        ],
    )
    assert expand("a/**/d") == (["a/c/d"], [])
    with pytest.raises(UsageError, match=r"a/\*\.dat: no file matches the pattern"):
        expand("a/*.dat")
    (tmp_path / "b*").mkdir()
    with pytest.raises(SourceError, match=r"b\*: no data files found"):
        expand("b*")


def test_the_name_of_a_file_or_folder_can_be_the_server() -> None:
    wanted = {"{file}": "2026", "{folder}": "lobby", "{folder}-{file}": "lobby-2026", "x": "x"}

    for name, expected in wanted.items():
        mapping = ColumnMapping(id=None, server=name)
        assert Source("lobby/2026.csv.zst", "csv", mapping).server_id == expected
        assert Source("../x/lobby/2026.", "csv", mapping).server_id == expected


ENCODED = "Zeit;Süd\n2026-03-01T12:00Z;4\n2026-03-01T12:05Z;5\n"


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", "utf-16-be", "latin-1", "utf-8-sig"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, pack_zstd])
def test_text_has_the_encoding_that_is_declared_or_that_its_mark_says(
    encoding: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(pack(ENCODED.encode(encoding)))
    given = None if encoding in {"utf-16", "utf-8-sig"} else encoding

    found = read_counts(tmp_path / "a", at="Zeit", is_wide=True, encoding=given)

    assert [(name, count) for name, _, count in found] == [("Süd", 4), ("Süd", 5)]


@pytest.mark.parametrize(
    ("data", "encoding", "line"),
    [
        (b"a\n\xe9\n", None, 2),
        (b"a\n\n\x81\n", "cp1252", 3),
        (b"a\n\x81\xff\n", "shift_jis", 2),
        ("a\n".encode("utf-16") + b"\x00", None, 2),
    ],
)
def test_text_in_another_encoding_is_refused(
    data: bytes, encoding: str | None, line: int, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(data)
    source = Source(str(tmp_path / "a"), "csv", ColumnMapping(encoding=encoding))

    with pytest.raises(EncodingError, match=f", line {line}: not {encoding or 'UTF-8'}"):
        list(source.read_lines())


def test_zstd_is_read_a_frame_at_a_time_and_refused_if_it_is_damaged(
    refusal: Callable[[bytes], str], lines: Callable[[bytes], Lines]
) -> None:
    packed = pack_zstd(TEXT)
    assert lines(packed + pack_zstd(b"last")) == [*lines(TEXT), (60_001, "last")]

    assert re.fullmatch(r"line \d+: the zstd data is cut off here", refusal(packed[:-9]))
    assert refusal(pack_zstd(b"a\n") + b"b\n") == "line 2: the zstd data is damaged here"


def write_workbook(path: Path, **sheets: str) -> None:
    """Write an .xlsx file; the text of a sheet has a row a line, and its cells `B2=t text`.

    The type of a cell is t for text, n for a number, d for a date, or e for an error.
    """
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    parts = {
        "_rels/.rels": f'<Relationships xmlns="{package}"><Relationship Id="w"'
        f' Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{main}"><cellXfs><xf numFmtId="0"/>'
        '<xf numFmtId="22"/></cellXfs></styleSheet>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        + "".join(f'<sheet name="{name}" sheetId="1" r:id="{name}"/>' for name in sheets)
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}">'
        + "".join(
            f'<Relationship Id="{name}" Type="{office}/{kind}" Target="{name}.xml"/>'
            for name, kind in [("styles", "styles"), *((name, "worksheet") for name in sheets)]
        )
        + "</Relationships>",
    }
    for sheet, text in sheets.items():
        rows = re.sub(r"(\w+)=t ([^ \n]*)", r'<c r="\1" t="str"><v>\2</v></c>', text)
        rows = re.sub(r"(\w+)=n ([^ \n]*)", r'<c r="\1"><v>\2</v></c>', rows)
        rows = re.sub(r"(\w+)=d ([^ \n]*)", r'<c r="\1" s="1"><v>\2</v></c>', rows)
        rows = re.sub(r"(\w+)=e ([^ \n]*)", r'<c r="\1" t="e"><v>\2</v></c>', rows)
        lines = "".join(f"<row>{row}</row>" for row in rows.split("\n"))
        parts[f"xl/{sheet}.xml"] = (
            f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>'
        )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


SHEET = """B2=t Counts
B3=t Time C3=t Lobby D3=t Süd
B5=d 46082.5 C5=n 41 D5=n 7
B6=d 46082.503472222222 C6=n 42 D6=e #N/A
B7=d 46083 C7=n 39.5 D7=t 1.000"""


def test_a_sheet_of_a_workbook_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.data"
    write_workbook(path, Notes="A1=t x", Data=SHEET)
    options: dict[str, Any] = {"at": "Time", "is_wide": True, "time_zone": "UTC"}
    options |= {"rounds": True, "thousands": "."}

    source = Source.from_name(str(path), None, ColumnMapping(**options))
    sample = registry.load_function("xlsx", KINDS["xlsx"].sample)(source)

    assert read_counts(path, **options) == [
        ("Lobby", 0, 41), ("Süd", 0, 7), ("Lobby", 5, 42), ("Lobby", 720, 40), ("Süd", 720, 1000),
    ]  # fmt: skip
    assert (sample.form, sample.is_whole) == ("Excel, sheet Data", True)
    assert sample.table.columns[0] == ("2026-03-01 12:00:00", "2026-03-01 12:05:00", "2026-03-02")
    assert list(sample.table.places) == [5, 6, 7]

    write_workbook(path, One=SHEET, Two=SHEET)
    with pytest.raises(UsageError, match='name one of its sheets with --input-table: "One", "Two"'):
        read_counts(path, **options)
    assert len(read_counts(path, table="Two", **options)) == 5


@pytest.mark.parametrize(
    "sheets",
    [{"Data": f"{SHEET}\nXFD1048576=n 1"}, {"Data": SHEET, "more": 'uniqueCount="4294967290"'}],
    ids=["cells", "texts"],
)
def test_a_workbook_that_would_fill_the_memory_is_refused(
    sheets: dict[str, str], tmp_path: Path
) -> None:
    write_workbook(tmp_path / "a.xlsx", **sheets)
    with pytest.raises(SourceError, match="too large; save the sheet as CSV"):
        read_counts(tmp_path / "a.xlsx", at="Time", is_wide=True)


ARCHIVE = """<rra><cf>{}</cf><pdp_per_row>{}</pdp_per_row>
<cdp_prep><ds><value>1</value></ds></cdp_prep>
<database>{}</database></rra>"""
DUMP = f"""<?xml version="1.0"?>
<!DOCTYPE rrd SYSTEM "https://oss.oetiker.ch/rrdtool/rrdtool.dtd">
<rrd><version>0003</version><step>300</step><lastupdate> {AS_OF // 1000 + 420} </lastupdate>
<ds><name> lobby </name></ds><ds><name> süd </name></ds>
{ARCHIVE.format("MAX", 1, "<row><v>9</v><v>9</v></row>")}
{ARCHIVE.format("AVERAGE", 12, "<row><v>5.05e+01</v><v>U</v></row>")}
{
    ARCHIVE.format(
        "AVERAGE",
        1,
        '''<!-- 2026-03-01 12:00:00 UTC / 1772366400 -->
<row><v>4.1000000000e+01</v><v>NaN</v></row>
<!-- 2026-03-01 12:05:00 UTC / 1772366700 --> <row><v> 42 </v><v>0.0000000000e+00</v></row>''',
    )
}
</rrd>
"""


def test_the_finest_averages_of_a_dump_of_rrdtool_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(DUMP)
    options: dict[str, Any] = {"at": "time", "is_wide": True}

    assert read_counts(path, **options) == [("lobby", 0, 41), ("lobby", 5, 42), ("süd", 5, 0)]
    assert read_counts(path, table="MAX/300", **options) == [("lobby", 5, 9), ("süd", 5, 9)]
    assert read_counts(path, table="AVERAGE/3600", rounds=True, **options) == [("lobby", 0, 51)]
    with pytest.raises(UsageError, match="--input-table: MAX/300, AVERAGE/3600, AVERAGE/300"):
        read_counts(path, table="LAST/60", **options)
    for cut in (len(DUMP) - 10, DUMP.index("<rra>"), 60):
        path.write_text(DUMP[:cut])
        with pytest.raises(SourceError, match="dump of RRDtool"):
            read_table(Source(str(path), "rrd", ColumnMapping(**options)))


def test_the_point_of_a_number_never_separates_thousands(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"t": AS_OF, "n": 1.942}, {"t": AS_OF + 1, "n": "1.942"}]
    paths = {name: tmp_path / name for name in ("lines", "document", "database")}
    paths["lines"].write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    paths["document"].write_text(json.dumps(rows))
    with closing(sqlite3.connect(paths["database"])) as connection:
        connection.execute("CREATE TABLE counts (t, n)")
        connection.executemany("INSERT INTO counts VALUES (:t, :n)", rows)
        connection.commit()

    for path in paths.values():
        found = read_counts(
            path, id=None, server="a", at="t", players="n", thousands=".", rounds=True
        )
        assert [count for *_, count in found] == [2, 1942]
