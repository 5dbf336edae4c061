"""Replace an existing snapshot completely, or change nothing."""

import gzip
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import AS_OF, Build, Cli, csv, ndjson, server, srvstat
from support.snapshots import COMMAND, EXISTS, WEEK, read_directory, read_observations
from support.terminal import SRVSTAT, run_in_terminal

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
    "bad.ndjson": ndjson([server("a"), {"cfxId": "b"}]),
    "twice.ndjson": ndjson([server("a"), server("b", cfxId="x-a")]),
}
REFUSALS = [
    (["--observations", "gone.csv"], 6, "gone.csv: No such file or directory"),
    (["--observations", "directory"], 6, None),
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
        "bad.ndjson, line 2: id: required, but missing",
    ),
    (
        ["--observations", "week.csv", "--servers", "twice.ndjson"],
        6,
        "twice.ndjson, line 2: cfxId: the same as in line 1",
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
    assert ran.stderr.startswith(f"error: {output}: ")
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


def test_the_order_of_sources_does_not_change_the_content(build: Build) -> None:
    rows = [(name, AS_OF - at, at % 9) for name in "ab" for at in range(500)]
    records = [server("a"), server("b")]
    one = build(records, rows)
    other = build(reversed(records), [*reversed(rows), *rows[:5], ("b", AS_OF, "x")])

    assert read_observations(one) == read_observations(other) == sorted(rows)


def test_a_terminal_shows_a_progress_bar_and_clears_it_at_the_end(here: Path) -> None:
    exit_code, shown = run_in_terminal([*SRVSTAT, *WEEK], cwd=here)

    bar, _, summary = shown.partition("built out.db\n")
    assert exit_code == 0
    assert "rows/s" in bar
    assert bar.endswith("\x1b[1A\x1b[2K")
    assert "\x1b[?25h" in bar
    assert "kept         3\n" in summary


@pytest.mark.parametrize(
    ("stream", "what"), [(["-"], "OUTPUT"), (["out.db", "--rejects", "-"], "--rejects")]
)
def test_standard_output_is_refused_for_a_snapshot_and_its_rejects(
    stream: list[str], what: str, here: Path, cli: Cli
) -> None:
    before = read_directory(here)
    ran = cli("snapshot", "build", *stream, *WEEK[3:])

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert ran.stderr == f"error: {what}: - is not a file; name a file\n"
    assert read_directory(here) == before
