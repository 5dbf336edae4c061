"""Copy a file in the background."""

import errno
import os
from itertools import count
from pathlib import Path

import pytest

from srvstat.contract.errors import OutputError
from srvstat.files.atomic import copy_in_background

DATA = os.urandom(3 << 20)
MANY = 1_000_000


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

    with copy_in_background("shown", source, str(tmp_path / "target")) as wait:
        wait()
        assert (tmp_path / "target").read_bytes() == DATA

    os.close(source)


def test_an_error_names_the_file_when_the_copy_is_needed(source: int, tmp_path: Path) -> None:
    with (
        pytest.raises(OutputError, match=r"^shown: No such file or directory$"),
        copy_in_background("shown", source, str(tmp_path / "missing")) as wait,
    ):
        wait()

    os.close(source)


def test_an_exception_stops_the_copy(
    source: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StoppedError(Exception):
        pass

    steps = count()
    monkeypatch.setattr(os, "copy_file_range", lambda *_: next(steps) < MANY, raising=False)

    with (
        pytest.raises(StoppedError),
        copy_in_background("shown", source, str(tmp_path / "target")),
    ):
        raise StoppedError

    os.close(source)
    assert next(steps) < MANY
