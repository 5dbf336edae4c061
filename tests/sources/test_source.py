"""Sources: names, formats, gzip, UTF-8 and lines."""

import fcntl
import gzip
import os
import re
import subprocess
import sys
import termios
import threading
import time
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import zstandard

from conftest import AS_OF, Cli, Ran, csv, ndjson, server
from srvstat.contract.errors import SourceError, UsageError
from srvstat.sources.registry import KINDS, Kind
from srvstat.sources.source import MAX_LINE_BYTES, Source, check_stdin_once
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
        with pytest.raises(UsageError, match="unknown format; add --format"):
            Source.from_name(name, None)
        assert [Source.from_name(name, each).kind for each in ("csv", "ndjson")] == [
            "csv",
            "ndjson",
        ]


def test_a_missing_folder_is_named_although_its_name_has_no_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="/days: No such file or directory"):
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
    assert read_refusal(tmp_path / "gone") == f"{tmp_path / 'gone'}: No such file or directory"
    assert read_refusal(tmp_path) == f"{tmp_path}: Is a directory"
    assert read_refusal("a\x00b") == "a\x00b: not a file name"
    assert read_refusal(os.fsdecode(b"week-\xff")) == r"week-\xff: No such file or directory"


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
    assert ran.stderr == "error: /proc/self/mem: Input/output error\n"


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
