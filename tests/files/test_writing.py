"""Write files atomically, and remove the drafts that killed builds left."""

import errno
import fcntl
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Cli
from srvstat.contract.errors import OutputError, SourceError, SrvstatError, UsageError
from srvstat.files.paths import convert_errors
from srvstat.files.writing import atomic_folder, atomic_write, copy_file, write_file
from support.snapshots import read_directory

pytestmark = pytest.mark.usefixtures("here")

LEFT = "0123456789abcdef.tmp"
"""The end of the name of a draft that a killed build left."""


def write_atomically(target: str, text: str = "new", *, overwrite: bool = True) -> None:
    # "r+" writes to the existing draft and never creates a file.
    with (
        atomic_write(target, overwrite=overwrite) as draft,
        open(draft, "r+", encoding="utf-8") as to,
    ):
        to.write(text)


def test_drafts_of_dead_builds_are_removed_before_the_next_build(here: Path) -> None:
    before = read_directory(here)
    for number in range(3):
        Path(f".out.db.srvstat-{number}{LEFT[1:]}").write_bytes(b"left")

    with atomic_write("out.db", overwrite=True) as draft:
        assert read_directory(here).keys() - before.keys() == {os.path.basename(draft)}


def test_the_draft_of_a_running_build_stays(here: Path) -> None:
    before = read_directory(here)

    with atomic_write("out.db", overwrite=True) as draft:
        Path(draft).write_bytes(b"first")
        write_atomically("out.db", "second")
        assert read_directory(here) == {
            **before,
            "out.db": b"second",
            os.path.basename(draft): b"first",
        }

    assert read_directory(here) == {**before, "out.db": b"first"}


def test_files_with_other_names_than_drafts_stay(here: Path) -> None:
    names = [
        f".other.db.srvstat-{LEFT}",
        f".out-db.srvstat-{LEFT}",
        f"..out.db.srvstat-{LEFT}",
        f".out.db.srvstat-{LEFT}x",
        f".out.db.srvstat-{LEFT}\n",
        f".out.db.srvstat-{LEFT.upper()}",
        f".out.db.srvstat-0{LEFT}",
        f".out.db.{LEFT}",
        f"out.db.srvstat-{LEFT}",
        "out.db-journal",
    ]
    for name in names:
        Path(name).write_bytes(b"left")
    before = read_directory(here)

    write_atomically("out.db")

    assert read_directory(here) == {**before, "out.db": b"new"}


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("week.csv", path)])
def test_only_regular_files_are_removed(make: Callable[[str], None], here: Path) -> None:
    make(f".out.db.srvstat-{LEFT}")
    before = read_directory(here)

    write_atomically("out.db")

    assert read_directory(here) == {**before, "out.db": b"new"}


def test_drafts_are_in_the_directory_of_a_links_target(here: Path) -> None:
    os.mkdir("elsewhere")
    os.symlink("elsewhere/target.db", "out.db")
    left = [f"elsewhere/.target.db.srvstat-{LEFT}", f".out.db.srvstat-{LEFT}"]
    for name in left:
        Path(name).write_bytes(b"left")

    write_atomically("out.db", overwrite=False)

    assert read_directory(here / "elsewhere") == {"target.db": b"new"}
    assert Path("out.db").is_symlink()
    assert left[1] in read_directory(here)


@pytest.mark.parametrize("name", ["x" * 255, "ä" * 127, "夜" * 85, "\U0001f319" * 63])
def test_a_name_may_have_the_greatest_length_of_the_file_system(name: str, here: Path) -> None:
    before = read_directory(here)
    with atomic_write("out.db", overwrite=True) as draft:
        beginning, ending = os.path.basename(draft).split("out.db")
    Path(f"{beginning}{name[:50]}{ending}").write_bytes(b"left")

    write_atomically(name)

    assert read_directory(here) == {**before, name: b"new", "out.db": b""}


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
def test_drafts_are_not_removed_on_a_file_system_without_locks(
    number: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_descriptor: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refused)
    Path(f".out.db.srvstat-{LEFT}").write_bytes(b"left")
    before = read_directory(here)

    write_atomically("out.db")

    assert read_directory(here) == {**before, "out.db": b"new"}


@pytest.mark.parametrize("holds_it", [True, False])
def test_a_draft_removed_before_it_is_locked_is_created_again(
    holds_it: bool, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_directory(here)
    lock = fcntl.flock
    swept: list[str] = []

    def late(descriptor: int, operation: int) -> None:
        """Lock, but let the other build remove the first draft before or just after."""
        if swept:
            return lock(descriptor, operation)
        swept.extend(read_directory(here).keys() - before.keys())
        sweeping = os.open(swept[0], os.O_RDWR)
        lock(sweeping, operation)
        try:
            if holds_it:
                lock(descriptor, operation)
        finally:
            os.unlink(swept[0])
            os.close(sweeping)
        return lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)

    write_atomically("out.db")

    assert len(swept) == 1
    assert read_directory(here) == {**before, "out.db": b"new"}


def write_often(target: str, writer: str, rounds: int) -> None:
    for number in range(rounds):
        write_atomically(target, f"{writer}{number} " * 1000)


def test_simultaneous_builds_keep_each_others_drafts(here: Path) -> None:
    before = read_directory(here)
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=write_often, args=("out.db", writer, 50)) for writer in "abcd"
    ]
    for process in writers:
        process.start()
    for process in writers:
        process.join()

    assert [process.exitcode for process in writers] == [0] * 4
    assert read_directory(here).keys() - before.keys() == {"out.db"}
    words = Path("out.db").read_text(encoding="utf-8").split()
    assert (len(words), len(set(words))) == (1000, 1)


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links_needs_overwrite(
    number: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_draft: str, _target: str) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    before = read_directory(here)

    with pytest.raises(OutputError) as refused:
        write_atomically("out.db", overwrite=False)

    assert refused.value.reason == (
        "out.db: this file system has no hard links, which protect an existing file;"
        " --overwrite works without them"
    )
    assert read_directory(here) == before

    write_atomically("out.db")
    assert read_directory(here) == {**before, "out.db": b"new"}


def test_a_file_that_appears_during_a_build_stays(here: Path) -> None:
    before = read_directory(here)

    with pytest.raises(UsageError), atomic_write("out.db", overwrite=False):
        Path("out.db").write_bytes(b"other")

    assert read_directory(here) == {**before, "out.db": b"other"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write in any directory")
@pytest.mark.parametrize("mode", [0o500, 0o300, 0o000])
def test_a_directory_without_permissions_is_refused_at_the_start(
    mode: int, here: Path, cli: Cli
) -> None:
    os.mkdir("closed")
    Path("closed/out.db").write_bytes(b"old")
    os.chmod("closed", mode)
    sources = ["--servers", "gone.ndjson", "--observations", "week.csv"]

    ran = cli("snapshot", "build", "closed/out.db", *sources, "--overwrite")

    os.chmod("closed", 0o700)
    assert (ran.exit_code, ran.stdout) == (4, b"")
    assert ran.stderr == "error: closed/out.db: permission denied\n"
    assert read_directory(here / "closed") == {"out.db": b"old"}


@pytest.fixture
def empty(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty directory."""
    directory = here / "empty"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


def write_folder(path: str, finish: Callable[[], None] = lambda: None) -> None:
    with atomic_folder(path) as draft:
        write_file(os.path.join(draft, "in", "a"), [b"1", b"2"], title=path)
        finish()


def interrupt() -> None:
    raise KeyboardInterrupt


def list_names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_folder_appears_when_the_block_succeeds(empty: Path) -> None:
    with atomic_folder("new/") as draft:
        write_file(os.path.join(draft, "a"), [b"1"], title="new/")
        assert not Path("new").exists()

    assert list_names(empty) == ["new"]
    assert Path("new/a").read_bytes() == b"1"


def test_nothing_stays_when_the_block_fails(empty: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_folder("new", interrupt)

    assert list_names(empty) == []


def test_folders_of_killed_commands_are_removed_but_not_those_in_use(empty: Path) -> None:
    for name in ("new", "other"):
        Path(f".{name}.srvstat-{LEFT}").mkdir()
        Path(f".{name}.srvstat-{LEFT}", "a").write_bytes(b"1")
    write_folder("new")

    assert list_names(empty) == [f".other.srvstat-{LEFT}", "new"]
    descriptor = os.open(f".other.srvstat-{LEFT}", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    write_folder("other")
    os.close(descriptor)
    assert list_names(empty) == [f".other.srvstat-{LEFT}", "new", "other"]


def make_full_folder(path: str) -> None:
    Path(path, "own").mkdir(parents=True)


@pytest.mark.parametrize("make", [make_full_folder, lambda path: Path(path).touch()])
def test_what_exists_stays_even_if_it_appears_late(
    make: Callable[[str], None], empty: Path
) -> None:
    make("new")
    with pytest.raises(UsageError, match="new: already exists; choose a new folder"):
        write_folder("new")
    with pytest.raises(UsageError, match="late: already exists; choose a new folder"):
        write_folder("late", lambda: make("late"))

    assert list_names(empty) == ["late", "new"]
    assert not list(empty.rglob("a"))


@pytest.mark.usefixtures("empty")
def test_a_file_that_can_not_be_written_is_an_error_with_the_title() -> None:
    write_file("in/a", [b"1"], title="title")

    with pytest.raises(OutputError, match="title: file exists"):
        write_file("in/a", [b"2"], title="title")


DATA = os.urandom(3 << 20)


@pytest.fixture
def source(tmp_path: Path) -> int:
    """Return a descriptor of a file of a few megabytes, beside which there is an empty one."""
    (tmp_path / "source").write_bytes(DATA)
    (tmp_path / "target").touch()
    return os.open(tmp_path / "source", os.O_RDONLY)


@pytest.mark.parametrize("error", [None, errno.ENOSYS, errno.EXDEV])
def test_a_file_is_copied_with_or_without_the_kernels_help(
    source: int, error: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(error, "refused")

    if error:
        monkeypatch.setattr(os, "copy_file_range", refuse, raising=False)

    copy_file("shown", source, str(tmp_path / "target"))

    assert (tmp_path / "target").read_bytes() == DATA
    os.close(source)


def test_an_error_names_the_file_when_the_copy_is_needed(source: int, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"^shown: no such file or directory$"):
        copy_file("shown", source, str(tmp_path / "missing"))

    os.close(source)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("gone", SourceError("gone: no such file; create it")),
        ("/dev/null/x", OutputError("/dev/null/x: not a directory")),
        ("a\0b", SourceError("a\0b: not a file name")),
    ],
)
def test_errors_have_the_path_the_reason_and_the_class_of_their_cause(
    path: str, expected: SrvstatError
) -> None:
    with (
        pytest.raises(type(expected)) as raised,
        convert_errors(path, OutputError, name_class=SourceError, remedy="create it"),
    ):
        os.stat(path)

    assert raised.value.reason == expected.reason
    assert raised.value.__suppress_context__


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError("no file"), "no file"),
        (OSError(errno.EIO, "x"), "x"),
        (OSError(errno.EMFILE, "x"), "x; allow more with `ulimit -n`"),
    ],
)
def test_an_error_has_a_reason_and_with_too_many_open_files_a_remedy(
    error: OSError, reason: str
) -> None:
    with pytest.raises(SourceError, match=f"^file: {reason}$"), convert_errors("file", SourceError):
        raise error
