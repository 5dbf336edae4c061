"""Building: the snapshot is whole or as it was, whatever happens."""

import gzip
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pytest

from conftest import AS_OF, Build, Cli, Ran, csv, ndjson, server, srvstat
from support.building import COMMAND, EXISTS, WEEK, content, stored
from support.signals import heard_signals
from support.terminal import srvstat_in_terminal

pytestmark = pytest.mark.usefixtures("here")


IN_THE_WAY = {
    "header.csv": b"serverId,players,observedAt\n",
    "latin.csv": csv([("a", AS_OF, 5)]) + b"caf\xe9\n",
    "late.csv": csv([("a", AS_OF + at, 5) for at in range(80_000)]) + b"\xff\n",
    "cut.csv.gz": gzip.compress(csv([("a", AS_OF, 5)]), mtime=0)[:-9],
    "damaged.csv.gz": gzip.compress(csv([("a", AS_OF, 5)]), mtime=0)[:-8] + b"\x00" * 8,
    "odd.csv": csv([("a", AS_OF, 5), ("a", AS_OF, 6), ("a", AS_OF, "x")]),
    "unknown.csv": csv([("unknown", AS_OF, 5)]),
    "week.txt": csv([("a", AS_OF, 5)]),
    "bad.ndjson": ndjson([server("a"), {"id": "b"}]),
    "twice.ndjson": ndjson([server("a"), server("b", cfxId="x-a")]),
}
REFUSALS = [
    (["--observations", "gone.csv"], 6, "gone.csv: No such file or directory"),
    (["--observations", "directory"], 2, None),
    (["--observations", "directory", "--format", "csv"], 6, "directory: Is a directory"),
    (["--observations", "week.csv/x.csv"], 6, "week.csv/x.csv: Not a directory"),
    (["--observations", "header.csv"], 6, None),
    (["--observations", "latin.csv"], 6, "latin.csv, line 3: not UTF-8"),
    (["--observations", "late.csv"], 6, "late.csv, line 80002: not UTF-8"),
    (["--observations", "cut.csv.gz"], 6, "cut.csv.gz, line 3: the gzip data is cut off here"),
    (["--observations", "damaged.csv.gz"], 6, None),
    (["--observations", "unknown.csv"], 6, None),
    (["--observations", "odd.csv", "--strict"], 6, None),
    (["--observations", "week.txt"], 2, None),
    (["--observations", "week.csv", "--observations", "gone.csv"], 6, None),
    (
        ["--observations", "week.csv", "--servers", "gone.ndjson"],
        6,
        "gone.ndjson: No such file or directory",
    ),
    (
        ["--observations", "week.csv", "--servers", "bad.ndjson"],
        6,
        "bad.ndjson, line 2: cfxId: missing, and needed",
    ),
    (
        ["--observations", "week.csv", "--servers", "twice.ndjson"],
        6,
        "twice.ndjson, line 2: cfxId: line 1 has the same one",
    ),
    (["--observations", "week.csv", "--format", "xml"], 2, None),
    (["--observations", "week.csv", "--as-of", "2026-03-01"], 2, None),
    (["--observations", "week.csv", "--as-of", "now"], 2, None),
    (["--observations", "week.csv", "--rejects", "gone/x"], 4, "gone/x: No such file or directory"),
    (["--observations", "week.csv", "--rejects", "directory"], 2, None),
    (["--observations", "week.csv", "--rejects", "out.db"], 2, None),
    (["--observations", "week.csv", "--rejects", "./directory/../out.db"], 2, None),
    (["--observations", "week.csv", "--rejects", "week.csv"], 2, None),
    (["--observations", "link.csv", "--rejects", "week.csv"], 2, None),
    (["--observations", "week.csv", "--rejects", "link.csv"], 2, None),
    (["--observations", "week.csv", "--rejects", "servers.ndjson"], 2, None),
    (["--observations", "week.csv", "--nonsense"], 2, None),
    ([], 2, None),
]


@pytest.mark.parametrize(("options", "exit_code", "reason"), REFUSALS)
def test_a_refusal_leaves_everything_as_it_was(
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
        before = content(here)

        ran = cli(*COMMAND, "--overwrite", *options)

        assert (ran.exit_code, ran.stdout) == (exit_code, b"")
        assert ran.stderr.startswith("error: ")
        assert reason is None or ran.stderr == f"error: {reason}\n"
        assert content(here) == before


def test_an_output_that_exists_is_replaced_only_when_told_so(here: Path, cli: Cli) -> None:
    Path("out.db").write_bytes(b"old")
    before = content(here)

    ran = cli(*WEEK, "--rejects", "rejects.ndjson")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, b"", EXISTS)
    assert content(here) == before

    assert cli(*WEEK, "--overwrite").exit_code == 0
    assert cli("snapshot", "info", "out.db").json["observations"] == 3


def test_an_output_that_exists_is_refused_before_anything_is_read(cli: Cli) -> None:
    Path("out.db").write_bytes(b"old")
    Path("servers.ndjson").unlink()

    assert cli(*WEEK).stderr == EXISTS


def test_overwrite_needs_nothing_to_overwrite(cli: Cli) -> None:
    assert cli(*WEEK, "--overwrite").exit_code == 0


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
@pytest.mark.parametrize(
    ("output", "exit_code"),
    [
        ("directory", 2),
        ("fifo", 2),
        ("/dev/null", 2),
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
def test_an_output_that_cannot_be_is_refused(
    output: str, exit_code: int, overwrite: list[str], here: Path, cli: Cli
) -> None:
    os.mkdir("directory")
    os.mkfifo("fifo")
    os.symlink("week.csv", "link.csv")
    os.symlink("loop", "loop")
    before = content(here)
    sources = ["--servers", "servers.ndjson", "--observations", "week.csv"]

    ran = cli("snapshot", "build", output, *sources, *overwrite)

    assert (ran.exit_code, ran.stdout) == (exit_code, b"")
    assert ran.stderr.startswith(f"error: {output}: ")
    assert content(here) == before
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_fifo_that_is_source_and_output_is_refused_without_waiting() -> None:
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
    assert content(here).keys() == {"elsewhere", "out.db", "servers.ndjson", "week.csv"}


@pytest.fixture(params=[0o022, 0o077, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Set the mask of this process for a while."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_the_umask_sets_the_mode_of_what_is_written(umask: int, cli: Cli) -> None:
    for _ in range(2):
        assert cli(*WEEK, "--overwrite", "--rejects", "rejects.ndjson").exit_code == 0
        for name in ("out.db", "rejects.ndjson"):
            assert stat.S_IMODE(os.stat(name).st_mode) == 0o666 & ~umask


def start(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "srvstat", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[bytes]) -> Ran:
    stdout, stderr = process.communicate(timeout=30)
    return Ran(process.returncode, stdout, stderr.decode())


def pipe_to(process: subprocess.Popen[bytes], path: str) -> BinaryIO:
    """Open a FIFO for writing, which succeeds once a build has opened it for reading."""
    while process.poll() is None:
        with suppress(OSError):
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            os.set_blocking(pipe, True)
            return os.fdopen(pipe, "wb")
        time.sleep(0.01)
    pytest.fail(f"ended before it read {path}: {finish(process).stderr}")


SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.fixture
def heard() -> Iterator[None]:
    """Let children hear signals."""
    with heard_signals():
        yield


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize(("number", "exit_code"), SIGNALS)
def test_a_build_stopped_while_it_reads_leaves_everything_as_it_was(
    number: signal.Signals, exit_code: int, here: Path
) -> None:
    os.mkfifo("fifo.csv")
    Path("out.db").write_bytes(b"old")
    Path("rejects.ndjson").write_bytes(b"old")
    before = content(here)
    process = start(
        *COMMAND, "--observations", "fifo.csv", "--rejects", "rejects.ndjson", "--overwrite"
    )

    with pipe_to(process, "fifo.csv") as pipe:
        pipe.write(csv([("a", AS_OF, 5), ("a", AS_OF, 6)]))
        pipe.flush()
        assert content(here).keys() > before.keys()
        process.send_signal(number)
        ran = finish(process)

    assert ran == Ran(exit_code, b"", "")
    assert content(here) == before


@pytest.mark.usefixtures("heard")
def test_a_signal_that_was_ignored_from_the_start_stays_ignored(here: Path) -> None:
    os.mkfifo("fifo.csv")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    process = start(*COMMAND, "--observations", "fifo.csv")

    with pipe_to(process, "fifo.csv") as pipe:
        process.send_signal(signal.SIGHUP)
        pipe.write(csv([("a", AS_OF, 5)]))

    assert finish(process).exit_code == 0
    assert "out.db" in content(here)


@pytest.mark.usefixtures("heard")
def test_a_build_stopped_while_it_waits_leaves_nothing(here: Path) -> None:
    os.mkfifo("fifo.csv")
    before = content(here)
    process = start(*COMMAND, "--observations", "fifo.csv")
    while content(here) == before:
        assert process.poll() is None
        time.sleep(0.01)

    process.send_signal(signal.SIGTERM)

    assert finish(process) == Ran(143, b"", "")
    assert content(here) == before


def test_a_build_killed_outright_leaves_the_old_snapshot_and_a_draft_that_the_next_removes(
    here: Path, cli: Cli
) -> None:
    os.mkfifo("fifo.csv")
    Path("out.db").write_bytes(b"old")
    before = content(here)
    process = start(*COMMAND, "--observations", "fifo.csv", "--overwrite")
    with pipe_to(process, "fifo.csv") as pipe:
        pipe.write(csv([("a", AS_OF, 5)]))
        pipe.flush()
        process.kill()
        assert finish(process).exit_code == -signal.SIGKILL

    (draft,) = content(here).keys() - before.keys()
    assert re.fullmatch(r"\.out\.db\.srvstat-[0-9a-f]{16}\.tmp", draft)
    assert Path("out.db").read_bytes() == b"old"
    assert cli(*WEEK, "--overwrite").exit_code == 0
    assert content(here).keys() == before.keys()


@pytest.mark.parametrize(("options", "exit_codes"), [(["--overwrite"], [0, 0]), ([], [0, 2])])
def test_of_two_builds_to_one_path_at_once_one_stands_whole(
    options: list[str], exit_codes: list[int], here: Path, cli: Cli
) -> None:
    names = ["one.csv", "two.csv"]
    for name in names:
        os.mkfifo(name)
    before = content(here)
    builds = [start(*COMMAND, "--observations", name, *options) for name in names]
    pipes = [pipe_to(process, name) for process, name in zip(builds, names, strict=True)]
    for count, pipe in enumerate(pipes, 1):
        with pipe:
            pipe.write(csv([("a", AS_OF + at, at) for at in range(count * 1000)]))
    ran = [finish(build) for build in builds]

    assert sorted(one.exit_code for one in ran) == exit_codes
    assert [one.stderr for one in ran if one.exit_code] == [EXISTS] * exit_codes.count(2)
    info = cli("snapshot", "info", "out.db").json
    (winner,) = (names.index(name) for name in info["sources"])
    assert ran[winner].exit_code == 0
    assert info["observations"] == len(stored("out.db")) == 1000 * (winner + 1)
    assert content(here).keys() - before.keys() == {"out.db"}


def test_the_same_files_build_the_same_bytes_wherever_and_whenever(here: Path) -> None:
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


def test_the_same_content_gives_the_same_answers_whatever_its_order(build: Build) -> None:
    rows = [(name, AS_OF - at, at % 9) for name in "ab" for at in range(500)]
    records = [server("a"), server("b")]
    one = build(records, rows)
    other = build(reversed(records), [*reversed(rows), *rows[:5], ("b", AS_OF, "x")])

    assert stored(one) == stored(other) == sorted(rows)


LIMITED = ["sh", "-c", 'ulimit -f "$0"; exec "$@"']


@pytest.mark.parametrize(("blocks", "failing"), [("16", "out.db"), ("1024", "rejects.ndjson")])
def test_a_file_that_may_not_grow_exits_4_and_leaves_everything_as_it_was(
    blocks: str, failing: str, here: Path
) -> None:
    odd = [("a", AS_OF, "x" * 300)] * 3000
    Path("odd.csv").write_bytes(csv(odd))
    Path("out.db").write_bytes(b"old")
    Path("rejects.ndjson").write_bytes(b"old")
    before = content(here)
    options = ["--observations", "odd.csv", "--rejects", "rejects.ndjson", "--overwrite"]

    done = subprocess.run(
        [*LIMITED, blocks, sys.executable, "-m", "srvstat", *WEEK, *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout) == (4, "")
    assert re.fullmatch(f"error: {failing}: .+\n", done.stderr)
    assert content(here) == before


def test_a_progress_bar_appears_on_a_terminal_and_is_gone_at_the_end(here: Path) -> None:
    exit_code, shown = srvstat_in_terminal(*WEEK, cwd=here)

    bar, _, summary = shown.partition("built out.db\n")
    assert exit_code == 0
    assert "rows/s" in bar
    assert bar.endswith("\x1b[1A\x1b[2K")
    assert "\x1b[?25h" in bar
    assert "kept         3\n" in summary


def test_a_progress_bar_is_gone_after_an_error_too(here: Path) -> None:
    Path("week.csv").write_bytes(b"serverId\n")

    exit_code, shown = srvstat_in_terminal(*WEEK, cwd=here)

    bar, _, message = shown.partition("error: ")
    assert exit_code == 6
    assert bar.endswith("\x1b[1A\x1b[2K")
    assert "\x1b[?25h" in bar
    assert message.count("\n") == 1


def test_no_progress_bar_appears_for_who_wants_none(here: Path, cli: Cli) -> None:
    assert srvstat_in_terminal(*WEEK, "--quiet", cwd=here) == (0, "")
    _, shown = srvstat_in_terminal(*WEEK, "--overwrite", cwd=here, env={"TERM": "dumb"})
    assert shown.startswith("built out.db\n")
    assert cli(*WEEK, "--overwrite").stderr.startswith("built out.db\n")


@pytest.mark.parametrize("stream", [["-"], ["out.db", "--rejects", "-"]])
def test_a_stream_is_no_place_for_a_snapshot_or_its_rejects(
    stream: list[str], here: Path, cli: Cli
) -> None:
    before = content(here)
    ran = cli("snapshot", "build", *stream, *WEEK[3:])

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert ran.stderr == "error: OUTPUT and --rejects: - is not a file; name one\n"
    assert content(here) == before
