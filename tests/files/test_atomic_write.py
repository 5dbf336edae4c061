"""Publishing: a file gets its name when it is complete, and what killed builds left is removed."""

import errno
import fcntl
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Cli
from srvstat.contract.errors import OutputError, UsageError
from srvstat.files.atomic_write import atomic_write
from srvstat.files.drafts import sweep_drafts
from support.snapshots import COMMAND, WEEK, read_directory

pytestmark = pytest.mark.usefixtures("here")

LEFT = "0123456789abcdef.tmp"
"""How the name of a draft ends that was left by a build long gone."""


def publish(target: str, text: str = "new", *, overwrite: bool = True) -> None:
    # "r+" writes the draft handed out, and makes no other.
    with (
        atomic_write(target, overwrite=overwrite) as draft,
        open(draft, "r+", encoding="utf-8") as to,
    ):
        to.write(text)


def test_what_dead_builds_of_a_target_left_is_removed_before_the_next_begins(here: Path) -> None:
    before = read_directory(here)
    for number in range(3):
        Path(f".out.db.srvstat-{number}{LEFT[1:]}").write_bytes(b"left")

    with atomic_write("out.db", overwrite=True) as draft:
        assert read_directory(here).keys() - before.keys() == {os.path.basename(draft)}


def test_the_draft_of_a_living_build_stays(here: Path) -> None:
    before = read_directory(here)

    with atomic_write("out.db", overwrite=True) as draft:
        Path(draft).write_bytes(b"first")
        publish("out.db", "second")
        assert read_directory(here) == {
            **before,
            "out.db": b"second",
            os.path.basename(draft): b"first",
        }

    assert read_directory(here) == {**before, "out.db": b"first"}


def test_a_killed_build_that_had_given_its_file_the_name_leaves_it_whole(here: Path) -> None:
    # Without --overwrite the draft is linked: for a moment the file has two names.
    before = read_directory(here)
    Path("out.db").write_bytes(b"new")
    os.link("out.db", f".out.db.srvstat-{LEFT}")

    sweep_drafts(os.path.realpath("out.db"))

    assert read_directory(here) == {**before, "out.db": b"new"}


def test_whatever_has_not_the_name_of_a_draft_of_this_target_stays(here: Path) -> None:
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

    publish("out.db")

    assert read_directory(here) == {**before, "out.db": b"new"}


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("week.csv", path)])
def test_what_is_no_regular_file_stays_whatever_its_name(
    make: Callable[[str], None], here: Path
) -> None:
    make(f".out.db.srvstat-{LEFT}")
    before = read_directory(here)

    publish("out.db")

    assert read_directory(here) == {**before, "out.db": b"new"}


def test_a_draft_is_looked_for_where_a_symbolic_link_leads(here: Path) -> None:
    os.mkdir("elsewhere")
    os.symlink("elsewhere/target.db", "out.db")
    left = [f"elsewhere/.target.db.srvstat-{LEFT}", f".out.db.srvstat-{LEFT}"]
    for name in left:
        Path(name).write_bytes(b"left")

    publish("out.db", overwrite=False)

    assert read_directory(here / "elsewhere") == {"target.db": b"new"}
    assert Path("out.db").is_symlink()
    assert left[1] in read_directory(here)


def test_the_drafts_of_the_rejects_are_removed_too(here: Path, cli: Cli) -> None:
    before = read_directory(here)
    Path(f".rejects.ndjson.srvstat-{LEFT}").write_bytes(b"left")

    assert cli(*WEEK, "--rejects", "rejects.ndjson").exit_code == 0

    assert read_directory(here).keys() - before.keys() == {"out.db", "rejects.ndjson"}


def test_who_only_reads_or_is_refused_removes_nothing(here: Path, cli: Cli) -> None:
    assert cli(*WEEK).exit_code == 0
    Path(f".out.db.srvstat-{LEFT}").write_bytes(b"left")
    before = read_directory(here)

    assert cli("snapshot", "info", "out.db").exit_code == 0
    assert cli("get", "a", "-s", "out.db").exit_code == 0
    assert cli(*WEEK).exit_code == 2
    assert cli(*COMMAND, "--nonsense").exit_code == 2

    assert read_directory(here) == before


@pytest.mark.parametrize("name", ["x" * 255, "ä" * 127, "夜" * 85, "\U0001f319" * 63])
def test_a_name_may_be_as_long_as_the_file_system_allows(name: str, here: Path) -> None:
    before = read_directory(here)
    with atomic_write("out.db", overwrite=True) as draft:
        beginning, ending = os.path.basename(draft).split("out.db")
    Path(f"{beginning}{name[:50]}{ending}").write_bytes(b"left")

    publish(name)

    assert read_directory(here) == {**before, name: b"new", "out.db": b""}


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_without_locks_is_built_on_and_never_swept(
    number: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_descriptor: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refused)
    Path(f".out.db.srvstat-{LEFT}").write_bytes(b"left")
    before = read_directory(here)

    publish("out.db")

    assert read_directory(here) == {**before, "out.db": b"new"}


@pytest.mark.parametrize("holds_it", [True, False])
def test_a_draft_that_another_build_sweeps_before_it_is_locked_is_made_anew(
    holds_it: bool, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_directory(here)
    lock = fcntl.flock
    swept: list[str] = []

    def late(descriptor: int, operation: int) -> None:
        """Lock, but the first draft only while the other build removes it, or just after."""
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

    publish("out.db")

    assert len(swept) == 1
    assert read_directory(here) == {**before, "out.db": b"new"}


def publish_often(target: str, writer: str, rounds: int) -> None:
    for number in range(rounds):
        publish(target, f"{writer}{number} " * 1000)


def test_builds_that_sweep_all_the_time_remove_no_living_draft(here: Path) -> None:
    before = read_directory(here)
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=publish_often, args=("out.db", writer, 150)) for writer in "abcd"
    ]
    for process in writers:
        process.start()
    for process in writers:
        process.join()

    assert [process.exitcode for process in writers] == [0] * 4
    assert read_directory(here).keys() - before.keys() == {"out.db"}
    words = Path("out.db").read_text(encoding="utf-8").split()
    assert (len(words), len(set(words))) == (1000, 1)


def refusing(number: int) -> Callable[[str, str], None]:
    def link(_draft: str, _target: str) -> None:
        raise OSError(number, os.strerror(number))

    return link


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links_needs_overwrite(
    number: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", refusing(number))
    before = read_directory(here)

    with pytest.raises(OutputError) as refused:
        publish("out.db", overwrite=False)

    assert refused.value.reason == (
        "out.db: this file system has no hard links, which protect an existing file;"
        " --overwrite works without them"
    )
    assert read_directory(here) == before

    publish("out.db")
    assert read_directory(here) == {**before, "out.db": b"new"}


def test_a_link_that_fails_says_why(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", refusing(errno.ENOSPC))
    before = read_directory(here)

    with pytest.raises(OutputError) as refused:
        publish("out.db", overwrite=False)

    assert refused.value.reason == "out.db: No space left on device"
    assert read_directory(here) == before


def test_a_file_that_appears_while_another_is_written_stays(here: Path) -> None:
    before = read_directory(here)

    with pytest.raises(UsageError), atomic_write("out.db", overwrite=False):
        Path("out.db").write_bytes(b"other")

    assert read_directory(here) == {**before, "out.db": b"other"}


def test_what_no_file_can_be_called_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        publish("out\0.db")

    assert refused.value.reason == "out\0.db: not a file name"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write in any directory")
@pytest.mark.parametrize("mode", [0o500, 0o300, 0o000])
def test_a_directory_that_may_not_be_written_and_read_is_refused_at_the_start(
    mode: int, here: Path, cli: Cli
) -> None:
    os.mkdir("closed")
    Path("closed/out.db").write_bytes(b"old")
    os.chmod("closed", mode)
    sources = ["--servers", "gone.ndjson", "--observations", "week.csv"]

    ran = cli("snapshot", "build", "closed/out.db", *sources, "--overwrite")

    os.chmod("closed", 0o700)
    assert (ran.exit_code, ran.stdout) == (4, b"")
    assert ran.stderr == "error: closed/out.db: Permission denied\n"
    assert read_directory(here / "closed") == {"out.db": b"old"}
