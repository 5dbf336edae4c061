"""Write a new folder completely or not at all."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from srvstat.contract.errors import OutputError, UsageError
from srvstat.files.atomic import atomic_folder, write_file

LEFT = "0123456789abcdef.tmp"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_folder(path: str, finish: Callable[[], None] = lambda: None) -> None:
    with atomic_folder(path) as draft:
        write_file(os.path.join(draft, "in", "a"), [b"1", b"2"], title=path)
        finish()


def interrupt() -> None:
    raise KeyboardInterrupt


def list_names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_folder_appears_when_the_block_succeeds(here: Path) -> None:
    with atomic_folder("new/") as draft:
        write_file(os.path.join(draft, "a"), [b"1"], title="new/")
        assert not Path("new").exists()

    assert list_names(here) == ["new"]
    assert Path("new/a").read_bytes() == b"1"


def test_nothing_stays_when_the_block_fails(here: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_folder("new", interrupt)

    assert list_names(here) == []


def test_folders_of_killed_commands_are_removed_but_not_those_in_use(here: Path) -> None:
    for name in ("new", "other"):
        Path(f".{name}.srvstat-{LEFT}").mkdir()
        Path(f".{name}.srvstat-{LEFT}", "a").write_bytes(b"1")
    write_folder("new")

    assert list_names(here) == [f".other.srvstat-{LEFT}", "new"]
    descriptor = os.open(f".other.srvstat-{LEFT}", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    write_folder("other")
    os.close(descriptor)
    assert list_names(here) == [f".other.srvstat-{LEFT}", "new", "other"]


def make_full_folder(path: str) -> None:
    Path(path, "own").mkdir(parents=True)


@pytest.mark.parametrize("make", [make_full_folder, lambda path: Path(path).touch()])
def test_what_exists_stays_even_if_it_appears_late(make: Callable[[str], None], here: Path) -> None:
    make("new")
    with pytest.raises(UsageError, match="new: exists; name a new folder"):
        write_folder("new")
    with pytest.raises(UsageError, match="late: exists; name a new folder"):
        write_folder("late", lambda: make("late"))

    assert list_names(here) == ["late", "new"]
    assert not list(here.rglob("a"))


def test_a_file_that_can_not_be_written_is_an_error_with_the_title() -> None:
    write_file("in/a", [b"1"], title="title")

    with pytest.raises(OutputError, match="title: File exists"):
        write_file("in/a", [b"2"], title="title")
