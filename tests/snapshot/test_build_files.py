"""Keep the modes and groups of replaced files; write rejects to streams and descriptors."""

import gzip
import json
import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import AS_OF, SERVERS, Cli, csv, ndjson, server, srvstat
from srvstat.files.writing import atomic_write
from support.process import replace_descriptor
from support.snapshots import (
    COMMAND,
    EXISTS,
    WEEK,
    expect_conflict,
    read_directory,
    read_observations,
    read_rejects,
)
from support.terminal import SRVSTAT, run_in_terminal, run_srvstat_in_terminal

pytestmark = pytest.mark.usefixtures("here")

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change groups at will")
ODD = csv([("a", AS_OF, 5), *[("a", AS_OF, "x" * 99)] * 2_000])


def get_mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444, 0o666])
def test_a_replaced_file_keeps_its_mode(mode: int, cli: Cli) -> None:
    names = ["out.db", "rejects.ndjson"]
    for name in names:
        Path(name).touch()
        Path(name).chmod(mode)

    assert cli(*WEEK, "--overwrite", "--rejects", "rejects.ndjson").exit_code == 0

    assert [get_mode(name) for name in names] == [mode, mode]


@pytest.mark.slow
def test_a_draft_has_no_more_permissions_than_the_replaced_file(here: Path) -> None:
    os.mkfifo("fifo.csv")
    Path("out.db").touch()
    Path("out.db").chmod(0o400)
    before = read_directory(here)
    command = [sys.executable, "-m", "srvstat", *WEEK, "--observations", "fifo.csv", "--overwrite"]
    with subprocess.Popen(command) as process:
        while not (drafts := read_directory(here).keys() - before.keys()):
            assert process.poll() is None
            time.sleep(0.01)
        (mode,) = map(get_mode, drafts)
        with open("fifo.csv", "wb") as pipe:
            pipe.write(csv([("a", AS_OF, 5)]))
        assert (process.wait(timeout=60), mode) == (0, 0o600)

    assert get_mode("out.db") == 0o400


@pytest.mark.slow
@AS_ROOT
def test_a_replaced_file_keeps_its_owner_and_group(cli: Cli) -> None:
    Path("out.db").touch()
    os.chown("out.db", 65_534, 12_345)
    Path("out.db").chmod(0o640)

    assert cli(*WEEK, "--overwrite").exit_code == 0

    status = os.stat("out.db")
    assert (status.st_uid, status.st_gid, get_mode("out.db")) == (65_534, 12_345, 0o640)


def replace_as_nobody(directory: str) -> None:
    os.chdir(directory)
    os.setgroups([])
    os.setgid(65_534)
    os.setuid(65_534)
    warned = pytest.warns(UserWarning, match="^out.db: belongs to user 65534 now, not to user 0")
    with warned, atomic_write("out.db", overwrite=True):
        pass


@pytest.mark.slow
@AS_ROOT
@pytest.mark.parametrize(("mode", "kept"), [(0o664, 0o644), (0o640, 0o600), (0o606, 0o606)])
def test_another_group_gets_no_more_rights_than_other_users(mode: int, kept: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        os.chown(directory, 65_534, 65_534)
        path = os.path.join(directory, "out.db")
        Path(path).touch()
        os.chown(path, -1, 12_345)
        os.chmod(path, mode)

        context = multiprocessing.get_context("fork")
        other = context.Process(target=replace_as_nobody, args=(directory,))
        other.start()
        other.join(60)

        assert other.exitcode == 0
        assert (os.stat(path).st_gid, get_mode(path)) == (65_534, kept)


STREAMS = ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2", "link", "log.log"]


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_rejects_are_appended_to_the_log_of_standard_error(name: str, cli: Cli) -> None:
    if name.startswith("/proc") and not os.path.isdir("/proc/self/fd"):
        pytest.skip("a name of Linux")
    os.symlink("/dev/stderr", "link")
    Path("week.csv").write_bytes(ODD)
    Path("log.log").write_text("before\n", encoding="utf-8")

    with open("log.log", "ab") as log:
        identity = os.fstat(log.fileno()).st_ino
        with replace_descriptor(2, log.fileno()):
            assert cli(*WEEK, "--max-rejected=100%", "--rejects", name).exit_code == 0

    before, *lines = Path("log.log").read_text(encoding="utf-8").splitlines()
    assert (before, os.stat("log.log").st_ino) == ("before", identity)
    assert [json.loads(line)["line"] for line in lines[:2_000]] == [*range(3, 2_003)]
    assert lines[2_000] == "built out.db"


@pytest.mark.slow
def test_rejects_may_go_to_standard_output_or_dev_null(here: Path, cli: Cli) -> None:
    Path("week.csv").write_bytes(ODD)
    before = read_directory(here)

    ran = cli(*WEEK, "--max-rejected=100%", "--rejects", "/dev/stdout")
    silent = cli(*WEEK, "--max-rejected=100%", "--rejects", "/dev/null", "--overwrite")

    assert (ran.exit_code, ran.stdout.count(b'"file":"week.csv"')) == (0, 2_000)
    assert (silent.exit_code, silent.stdout) == (0, b"")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert read_directory(here).keys() - before.keys() == {"out.db"}


@pytest.mark.slow
def test_rejects_may_go_through_a_fifo(cli: Cli) -> None:
    Path("week.csv").write_bytes(ODD)
    os.mkfifo("fifo")
    received: list[bytes] = []
    reader = threading.Thread(
        target=lambda: received.append(Path("fifo").read_bytes()), daemon=True
    )
    reader.start()

    assert cli(*WEEK, "--max-rejected=100%", "--rejects", "fifo").exit_code == 0
    reader.join(60)
    assert (
        cli(*WEEK, "--max-rejected=100%", "--overwrite", "--rejects", "rejects.ndjson").exit_code
        == 0
    )

    assert received == [Path("rejects.ndjson").read_bytes()]
    assert len(read_rejects()) == 2_000


@pytest.mark.slow
def test_rejects_for_a_slow_reader_of_a_pipe_are_complete() -> None:
    Path("week.csv").write_bytes(ODD)
    reading_end, writing_end = os.pipe()
    os.set_blocking(writing_end, False)
    command = [
        sys.executable,
        "-m",
        "srvstat",
        *WEEK,
        "--max-rejected=100%",
        "--quiet",
        "--rejects",
    ]
    with subprocess.Popen([*command, f"/dev/fd/{writing_end}"], pass_fds=[writing_end]) as process:
        os.close(writing_end)
        with open(reading_end, "rb") as pipe:
            assert pipe.read().count(b"\n") == 2_000
        assert process.wait(timeout=60) == 0


@pytest.mark.slow
def test_rejects_on_a_terminal_have_no_control_characters(here: Path) -> None:
    Path("week.csv").write_bytes(csv([("a", AS_OF, 5), ("a", AS_OF + 1, "\x9b2J")]))

    _, shown = run_srvstat_in_terminal(*WEEK, "--quiet", "--rejects", "/dev/stderr", cwd=here)

    assert "\x9b" not in shown
    assert r"\u009b2J" in shown


@pytest.mark.slow
def test_a_closed_descriptor_is_refused_for_rejects(here: Path) -> None:
    before = read_directory(here)

    ran = srvstat(*WEEK, "--rejects", "/dev/fd/99")

    assert (ran.exit_code, ran.stderr) == (4, "error: /dev/fd/99: bad file descriptor\n")
    assert read_directory(here) == before


IN_THE_WAY = {
    "header.csv": b"serverId,players,observedAt\n",
    "late.csv": csv([("a", AS_OF + at, 5) for at in range(80_000)]) + b"\xff\n",
    "cut.csv.gz": gzip.compress(csv([("a", AS_OF, 5)]), mtime=0)[:-9],
    "damaged.csv.gz": gzip.compress(csv([("a", AS_OF, 5)]), mtime=0)[:-8] + b"\x00" * 8,
    "odd.csv": csv([("a", AS_OF, 5), ("a", AS_OF, 6), ("a", AS_OF, "x")]),
    "unknown.csv": csv([("unknown", AS_OF, 5)]),
    "week.txt": b"<!DOCTYPE html><p>404",
    "bad.ndjson": ndjson([server("a"), {"cfxId": "b"}]),
    "twice.ndjson": ndjson([server("a"), server("b", cfxId="x-a")]),
}
READ_ONCE = "standard input (-) can be read only once"
NO_LIMITS = ["", "-1", "1e3", "100.1%", "%"]
NOT_UTF8_TEXT = "not UTF-8; if it is Windows-1252, add --encoding cp1252"
REFUSALS = [
    (["--observations", "gone.csv"], 6, "gone.csv: no such file or directory"),
    (["--observations", "directory"], 6, None),
    (
        ["--observations", "directory", "--format", "csv"],
        6,
        "directory: no data files found; name a file",
    ),
    (["--observations", "week.csv/x.csv"], 6, "week.csv/x.csv: not a directory"),
    (["--observations", "header.csv"], 6, None),
    (["--observations", "late.csv"], 6, f"late.csv, line 80002: {NOT_UTF8_TEXT}"),
    (["--observations", "cut.csv.gz"], 6, "cut.csv.gz, line 3: the gzip data is cut off here"),
    (["--observations", "damaged.csv.gz"], 6, None),
    (["--observations", "unknown.csv"], 6, None),
    (["--observations", "odd.csv", "--strict"], 6, None),
    (["--observations", "week.txt"], 6, "week.txt: a web page, not data; download the data itself"),
    (["--observations", "week.csv", "--observations", "gone.csv"], 6, None),
    (
        ["--observations", "week.csv", "--servers", "gone.ndjson"],
        6,
        "gone.ndjson: no such file or directory",
    ),
    (
        ["--observations", "week.csv", "--servers", "bad.ndjson"],
        6,
        "bad.ndjson, line 2: id: required, but missing",
    ),
    (
        ["--observations", "week.csv", "--servers", "twice.ndjson"],
        6,
        "twice.ndjson, line 2: cfxId: the same as in line 1",
    ),
    (["--observations", "week.csv", "--format", "xml"], 2, None),
    (["--observations", "week.csv", "--at", "2026-03-01"], 2, None),
    (["--observations", "week.csv", "--at", "now"], 2, None),
    (
        ["--observations", "week.csv", "--rejects", "gone/x"],
        4,
        "gone/x: the folder does not exist; create it first",
    ),
    (["--observations", "week.csv", "--rejects", "directory"], 2, None),
    (["--observations", "week.csv", "--rejects", "out.db"], 2, None),
    (
        ["--observations", "week.csv", "--rejects", "-"],
        2,
        "--rejects: standard output is not supported; give a file name",
    ),
    (["--observations", "-", "--observations", "-"], 2, READ_ONCE),
    (["--servers", "-", "--observations", "-"], 2, READ_ONCE),
    (["--observations", "a\0.csv"], 6, None),
    *((["--observations", "week.csv", f"--max-rejected={limit}"], 2, None) for limit in NO_LIMITS),
    (["--observations", "week.csv", "--rejects", "./directory/../out.db"], 2, None),
    (["--observations", "week.csv", "--rejects", "week.csv"], 2, None),
    (["--observations", "link.csv", "--rejects", "week.csv"], 2, None),
    (["--observations", "week.csv", "--rejects", "link.csv"], 2, None),
    (["--observations", "week.csv", "--rejects", "servers.ndjson"], 2, None),
    (["--observations", "week.csv", "--nonsense"], 2, None),
    ([], 2, None),
]


@pytest.mark.parametrize(("options", "exit_code", "reason"), REFUSALS)
def test_a_refused_build_changes_nothing(
    options: list[str], exit_code: int, reason: str | None, here: Path, cli: Cli
) -> None:
    for name, data in IN_THE_WAY.items():
        Path(name).write_bytes(data)
    os.mkdir("directory")
    os.mkfifo("fifo")
    os.symlink("week.csv", "link.csv")

    for old in ({}, {"out.db": b"old"}):
        for name, data in old.items():
            Path(name).write_bytes(data)
        before = read_directory(here)

        ran = cli(*COMMAND, "--overwrite", *options)

        assert (ran.exit_code, ran.stdout) == (exit_code, b"")
        assert ran.stderr.startswith("error: ")
        assert reason is None or ran.stderr == f"error: {reason}\n"
        assert read_directory(here) == before


def test_an_existing_output_is_replaced_only_with_overwrite(here: Path, cli: Cli) -> None:
    Path("out.db").write_bytes(b"old")
    before = read_directory(here)

    ran = cli(*WEEK, "--rejects", "rejects.ndjson")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, b"", EXISTS)
    assert read_directory(here) == before

    assert cli(*WEEK, "--overwrite").exit_code == 0
    assert cli("snapshot", "info", "out.db").json["observations"] == 3


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
@pytest.mark.parametrize(
    ("output", "exit_code"),
    [
        ("-", 2),
        ("directory", 2),
        ("fifo", 2),
        ("/dev/null", 2),
        ("/dev/stdout", 2),
        ("/dev/fd/1", 2),
        ("week.csv", 2),
        ("./week.csv", 2),
        ("link.csv", 2),
        ("servers.ndjson", 2),
        ("gone/out.db", 4),
        ("week.csv/out.db", 4),
        ("loop", 4),
        ("x" * 300, 4),
    ],
)
def test_an_output_that_cannot_be_written_is_refused(
    output: str, exit_code: int, overwrite: list[str], here: Path, cli: Cli
) -> None:
    os.mkdir("directory")
    os.mkfifo("fifo")
    os.symlink("week.csv", "link.csv")
    os.symlink("loop", "loop")
    before = read_directory(here)
    sources = ["--servers", "servers.ndjson", "--observations", "week.csv"]

    ran = cli("snapshot", "build", output, *sources, *overwrite)

    assert (ran.exit_code, ran.stdout) == (exit_code, b"")
    assert ran.stderr.startswith(f"error: {'OUTPUT: standard output' if output == '-' else output}")
    assert read_directory(here) == before
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_fifo_as_source_and_output_is_refused_without_waiting() -> None:
    os.mkfifo("fifo.csv")
    sources = ["--servers", "servers.ndjson", "--observations", "fifo.csv"]

    assert srvstat("snapshot", "build", "fifo.csv", *sources, "--overwrite").exit_code == 2


@pytest.mark.parametrize("old", [b"old", None])
def test_a_symbolic_link_stays_and_its_target_is_replaced(
    old: bytes | None, here: Path, cli: Cli
) -> None:
    os.mkdir("elsewhere")
    os.symlink("elsewhere/target.db", "out.db")
    if old:
        Path("elsewhere/target.db").write_bytes(old)
        assert cli(*WEEK).stderr == EXISTS

    assert cli(*WEEK, "--overwrite").exit_code == 0

    assert Path("out.db").is_symlink()
    assert os.listdir("elsewhere") == ["target.db"]
    assert cli("get", "a", "-s", "elsewhere/target.db").exit_code == 0
    assert read_directory(here).keys() == {"elsewhere", "out.db", "servers.ndjson", "week.csv"}


@pytest.fixture(params=[0o022, 0o077, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Set the umask of this process during a test."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_the_umask_sets_the_mode_of_what_is_written(umask: int, cli: Cli) -> None:
    for _ in range(2):
        assert cli(*WEEK, "--overwrite", "--rejects", "rejects.ndjson").exit_code == 0
        for name in ("out.db", "rejects.ndjson"):
            assert stat.S_IMODE(os.stat(name).st_mode) == 0o666 & ~umask


def test_equal_sources_build_equal_bytes_in_any_environment(here: Path) -> None:
    records = [server(f"s{number}", tags=["x", "y"], players={"max": 5}) for number in range(50)]
    rows = [(f"s{at * 7 % 60}", AS_OF - at * 1000, at % 9) for at in range(2000)]
    Path("servers.ndjson").write_bytes(ndjson(records))
    Path("week.csv").write_bytes(csv([*rows, *rows[:10], ("s0", AS_OF, 8)]))
    places = [
        (here, "week.csv", {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"}),
        (here / "x", "../week.csv", {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu"}),
        (here / "x" / "y", f"{here}/week.csv", {"PYTHONHASHSEED": "2", "LC_ALL": "C"}),
    ]
    built = set()
    for place, name, environment in places:
        place.mkdir(exist_ok=True)
        sources = ["--servers", f"{here}/servers.ndjson", "--observations", name]
        ran = srvstat("snapshot", "build", "out.db", *sources, cwd=place, env=environment)
        assert ran.exit_code == 0, ran.stderr
        built.add((place / "out.db").read_bytes())

    assert len(built) == 1


def test_a_terminal_shows_a_progress_bar_and_clears_it_at_the_end(here: Path) -> None:
    exit_code, shown = run_in_terminal([*SRVSTAT, *WEEK], cwd=here)

    bar, _, summary = shown.partition("built out.db\n")
    assert exit_code == 0
    assert "rows/s" in bar
    assert bar.endswith("\x1b[1A\x1b[2K")
    assert "\x1b[?25h" in bar
    assert "kept         3\n" in summary


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.ndjson", "x.jsonl", "x.ndjson.gz"])
def test_the_extension_sets_the_format_and_the_content_shows_gzip(
    name: str, pack: Any, cli: Cli
) -> None:
    record = {"serverId": "a", "observedAt": AS_OF, "players": 5}
    data = csv([("a", AS_OF, 5)]) if ".csv" in name else ndjson([record])
    Path(name).write_bytes(pack(data))
    Path("servers.ndjson").write_bytes(pack(ndjson(SERVERS)))

    assert cli(*COMMAND, "--observations", name).exit_code == 0
    assert read_observations("out.db") == [("a", AS_OF, 5)]


@pytest.mark.parametrize("name", ["servers", "x.nd", "x.csv", "x.csv.gz", "x.gz", "x.ndjson"])
def test_server_records_are_ndjson_with_any_file_name(name: str, cli: Cli) -> None:
    Path("servers.ndjson").rename(name)
    command = ["snapshot", "build", "out.db", "--servers", name, "--observations", "week.csv"]

    for pack in (bytes, gzip.compress):
        Path(name).write_bytes(pack(ndjson(SERVERS)))
        for options in ([], ["--format", "csv"], ["--format", "ndjson"]):
            assert cli(*command, *options, "--overwrite").exit_code == 0


def test_observations_may_come_from_standard_input(cli: Cli) -> None:
    rows = csv([("a", AS_OF, 5)])
    command = [*COMMAND, "--observations", "-"]

    refused = cli(*command, stdin=rows)
    reason = "unknown format; add --input-format csv or ndjson, or --source KIND"
    assert (refused.exit_code, refused.stderr) == (2, f"error: standard input: {reason}\n")

    odd = csv([("a", AS_OF, 5), ("a", AS_OF, "x")])
    ran = cli(*command, "--format", "csv", "--rejects", "rejects.ndjson", stdin=odd)
    assert ran.exit_code == 0
    assert read_observations("out.db") == [("a", AS_OF, 5)]
    assert [(reject["file"], reject["line"]) for reject in read_rejects()] == [
        ("standard input", 3)
    ]


def test_servers_may_come_from_standard_input(cli: Cli) -> None:
    sources = ["--servers", "-", "--observations", "week.csv", "--format", "ndjson"]
    command = ["snapshot", "build", "out.db", *sources]

    assert cli(*command, stdin=gzip.compress(ndjson(SERVERS))).exit_code == 0
    assert cli(*command, "--overwrite", stdin=b"{}").stderr == (
        "error: standard input, line 1: id: required, but missing\n"
    )


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_fifos_are_read_like_files(pack: Any, cli: Cli) -> None:
    rows = [("a", AS_OF + at, 5) for at in range(10_000)]  # more than a pipe holds
    os.mkfifo("fifo.csv")
    os.mkfifo("fifo.ndjson")
    data = {"fifo.csv": pack(csv(rows)), "fifo.ndjson": pack(ndjson(SERVERS))}
    writers = [
        threading.Thread(target=Path(name).write_bytes, args=(text,), daemon=True)
        for name, text in data.items()
    ]
    for writer in writers:
        writer.start()

    ran = cli(
        "snapshot", "build", "out.db", "--servers", "fifo.ndjson", "--observations", "fifo.csv"
    )

    assert (ran.exit_code, read_observations("out.db")) == (0, rows)


ODD_NAMES = [b"a#b", b"a?mode=rwc&d", b"a%41b", b"a b", b"a\nb", b"-a", b":memory:", "ä夜".encode()]
NOT_UTF8 = pytest.param(
    b"\xff\xfe",
    marks=pytest.mark.skipif(sys.platform == "darwin", reason="its file names are UTF-8"),
)


@pytest.mark.parametrize("name", [*ODD_NAMES, NOT_UTF8])
def test_any_path_can_be_read_and_written(name: bytes, here: Path, cli: Cli) -> None:
    odd = os.fsdecode(name)
    os.mkdir(odd)
    Path(f"{odd}/{odd}.csv").write_bytes(csv([("a", AS_OF, 5), ("a", AS_OF, 6)]))
    Path("servers.ndjson").rename(f"{odd}/servers.ndjson")
    options = [f"--servers={odd}/servers.ndjson", f"--observations={odd}/{odd}.csv"]
    output = f"{odd}/{odd}.db"

    ran = cli("snapshot", "build", *options, f"--rejects={odd}/rejects", "--", output)

    title = name.decode("utf-8", "backslashreplace")
    assert ran.exit_code == 0, ran.stderr
    assert {path.name for path in (here / odd).iterdir()} == {
        f"{odd}.csv",
        f"{odd}.db",
        "rejects",
        "servers.ndjson",
    }
    assert read_rejects(f"{odd}/rejects") == [
        expect_conflict(f"{title}/{title}.csv", 3, 5, ("a", AS_OF, 6))
    ]
    assert cli("snapshot", "info", "--", output).json["sources"] == [f"{title}.csv"]


def build_in_shell(shell: str, redirection: str, name: str) -> bytes:
    """Build from a descriptor that a shell opens, and return the bytes of the snapshot."""
    build = [sys.executable, "-m", "srvstat", *COMMAND, "--overwrite", "--format", "csv"]
    script = f'exec "$@" --observations {name} {redirection}'
    subprocess.run([shell, "-c", script, shell, *build], check=True, timeout=60)
    return Path("out.db").read_bytes()


@pytest.mark.slow
def test_all_descriptors_have_one_name(cli: Cli) -> None:
    built = {
        build_in_shell("sh", "7< week.csv", "/dev/fd/7"),
        build_in_shell("sh", "8< week.csv", "/dev/fd/8"),
        *([build_in_shell("bash", "", "<(cat week.csv)")] if shutil.which("bash") else []),
    }

    assert len(built) == 1
    assert cli("snapshot", "info", "out.db", "--json").json["sources"] == ["file descriptor"]


@pytest.mark.slow
def test_a_file_is_stored_by_its_name_without_directories(cli: Cli) -> None:
    Path("fd").mkdir()
    Path("fd/63").write_bytes(csv([("a", 5, 5)]))

    assert cli(*COMMAND, "--observations", "fd/63", "--format", "csv").exit_code == 0

    assert cli("snapshot", "info", "out.db", "--json").json["sources"] == ["63"]
